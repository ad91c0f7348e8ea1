//! A record for every figure that published studies have: what is in it, and the pages that the tests in `web/` look at.

use tempfile::tempdir;
use underlay_report::analysis::{Comparison, Published, Rung, Scope, StageKind};
use underlay_report::{Analysis, Colour, terminal_summary};

use crate::backups;
use crate::synthetic::{
    Job, Point, ROWS, Scenario, SimulatedDesign, SimulatedVariant, nvme, record, sata, scenario,
};
use crate::synthetic_resync::Resync;

fn analysis(scenario: &Scenario) -> Analysis {
    let dir = tempdir().unwrap();
    underlay_report::analyse(&record(scenario, &dir.path().join("record"))).unwrap()
}

/// Every page by the name of its file.
pub fn pages() -> Vec<(&'static str, Analysis)> {
    vec![
        ("backups.html", backups::analysed(3, backups::uneven)),
        ("cores.html", analysis(&cores())),
        ("databases.html", analysis(&databases())),
        ("job.html", analysis(&job())),
        ("resync.html", analysis(&resync())),
        ("one-rung.html", analysis(&one_rung())),
        ("published.html", published()),
    ]
}

/// One published value per design, and one of its own; the ratio of the two is given.
fn published() -> Analysis {
    let mut two = one_rung();
    two.designs.push(sata());
    let mut found = analysis(&two);
    let printed = [60_000.0, 30_000.0];
    found.published = found
        .rungs
        .iter()
        .zip(printed)
        .map(|(rung, printed)| Published {
            database: String::new(),
            design: rung.design,
            metric: "headline".into(),
            users: vec![89],
            values: vec![printed],
            unit: String::new(),
            rungs: vec![Some(rung.users)],
            ours: vec![Some(value(rung, "headline"))],
            given: true,
            experiment: "X4".into(),
            source: "an invented paper, figure 12".into(),
            note: String::new(),
        })
        .collect();
    let of_main = |one: &&mut Comparison| one.metric == "headline" && one.scope == Scope::Rung;
    for comparison in found.comparisons.iter_mut().filter(of_main) {
        let [a, b] = [comparison.a, comparison.b].map(|design| printed[design]);
        (comparison.published, comparison.published_given) = (Some(b / a), true);
    }
    found
}

fn at(
    base: SimulatedDesign,
    name: &'static str,
    title: &'static str,
    at: Point,
) -> SimulatedDesign {
    let (design, design_title) = (base.name, base.title);
    let variant = Some(SimulatedVariant { design, design_title, at });
    SimulatedDesign { name, title, variant, ..base }
}

/// Three numbers of cores on NVMe: the last two are more than the load needs.
fn cores() -> Scenario {
    let with = |name, title, cores: u32| {
        let mut design = at(nvme(), name, title, Point::Cores(u64::from(cores)));
        design.demands.processors = cores;
        design
    };
    let mut scenario = scenario(vec![
        with("nvme.1", "1 core", 1),
        with("nvme.2", "2 cores", 2),
        with("nvme.4", "4 cores", 4),
    ]);
    (scenario.users, scenario.measure_s) = (vec![2, 8], 20);
    scenario
}

/// Six databases on two designs.
fn databases() -> Scenario {
    let mut scenario = scenario(vec![nvme(), sata()]);
    scenario.databases = vec!["oltp-1", "oltp-2", "oltp-3", "oltp-4", "web-1", "web-2"];
    (scenario.users, scenario.measure_s) = (vec![2, 8], 20);
    scenario
}

/// An insertion of a million rows in three ways.
fn job() -> Scenario {
    let with = |name, title| at(nvme(), name, title, Point::Tuning(title));
    let mut scenario = scenario(vec![
        with("nvme.default", "default"),
        with("nvme.one-copy", "one copy"),
        with("nvme.one-transaction", "one transaction"),
    ]);
    (scenario.users, scenario.measure_s) = (vec![1], 20);
    scenario.job = Some(Job { took_s: &[680, 630, 6], ..ROWS });
    scenario
}

/// The same cluster with and without copies to make.
fn resync() -> Scenario {
    let mut copies = nvme();
    (copies.name, copies.title) = ("resync", "With resync");
    copies.demands.read_ns *= 1.03;
    let mut reference = nvme();
    (reference.name, reference.title) = ("reference", "Without resync");
    let mut scenario = scenario(vec![copies, reference]);
    (scenario.users, scenario.measure_s) = (vec![4], 40);
    scenario.resync = Some(Resync {
        alone_s: 20,
        after_s: 30,
        ios: 240_000.0,
        ios_alone: 5_000.0,
        ios_beside_load: 1_500.0,
    });
    scenario
}

/// What `underlay drive` records of a database with one number of users.
fn one_rung() -> Scenario {
    let mut scenario = scenario(vec![nvme()]);
    (scenario.users, scenario.repeats, scenario.measure_s) = (vec![8], 1, 30);
    scenario
}

fn value(rung: &Rung, metric: &str) -> f64 {
    rung.metrics.get(metric).and_then(|it| it.value).unwrap_or_else(|| panic!("no {metric}"))
}

#[test]
fn processors_are_used_in_part_where_there_are_more_of_them() {
    let found = analysis(&cores());
    let used: Vec<(f64, f64)> = (0..3)
        .map(|design| {
            let of = |rung: &&Rung| (rung.design, rung.users) == (design, 8);
            let rung = found.rungs.iter().find(of).unwrap();
            (value(rung, "server_cores"), value(rung, "server_cpu_use"))
        })
        .collect();
    for (place, limit) in [1.0, 2.0, 4.0].into_iter().enumerate() {
        let (cores, share) = used[place];
        assert!((share - cores / limit).abs() < 1e-9, "{used:?}");
    }
    assert!(used[0].1 > 0.95 && used[2].1 < used[0].1, "{used:?}");
}

#[test]
fn each_database_has_its_own_processor_time() {
    let found = analysis(&databases());
    for database in &found.databases {
        for (rung, total) in database.rungs.iter().zip(&found.rungs) {
            // Its limit is of four processors.
            let cores = value(rung, "server_cores");
            assert!(cores > 0.1, "{cores} of {}", database.name);
            assert!((value(rung, "server_cpu_use") - cores / 4.0).abs() < 1e-9);
            assert!(total.metrics.contains_key("server_cores"));
        }
    }
}

#[test]
fn a_job_says_how_long_it_took() {
    let found = analysis(&job());
    let took: Vec<f64> = found.rungs.iter().map(|rung| value(rung, "job_s").round()).collect();
    // The mean of three repeats, each a percent slower.
    assert_eq!(took, [687.0, 636.0, 6.0]);
    let text = terminal_summary(&found, 140, Colour::Never);
    for wanted in ["duration", "11:27", "10:36", "6.06 s"] {
        assert!(text.contains(wanted), "no {wanted:?} in {text}");
    }
    let users = terminal_summary(&analysis(&one_rung()), 140, Colour::Never);
    assert!(!users.contains("duration"), "{users}");
}

#[test]
fn copies_beside_a_load_have_their_stages() {
    let found = analysis(&resync());
    let of = |design: usize| {
        let run = found.runs.iter().find(|run| run.design == design).unwrap();
        run.stages.clone()
    };
    assert!(of(1).is_empty(), "the reference copies nothing");
    let stages = of(0);
    let kinds: Vec<StageKind> = stages.iter().map(|stage| stage.kind).collect();
    use StageKind::{LoadStable, LoadStarts, LoadStopped, ResyncAlone};
    assert_eq!(kinds, [ResyncAlone, LoadStarts, LoadStable, LoadStopped]);
    for (stage, rate) in stages.iter().zip([5_000.0, 1_500.0, 1_500.0, 5_000.0]) {
        let found = stage.resync_per_second.unwrap();
        assert!((found / rate - 1.0).abs() < 0.05, "{stage:?}");
        assert!((stage.resync_bytes_per_second.unwrap() / found - 65_536.0).abs() < 1.0);
    }
    // One ends where the next begins, and users work in the middle.
    assert!(stages.windows(2).all(|two| (two[0].end_s - two[1].begin_s).abs() < 1e-6));
    assert_eq!((stages[1].begin_s, stages[2].begin_s, stages[2].end_s), (23.0, 26.0, 66.0));
    // The same rates are metrics, so that published ones can stand beside them.
    let metric = |design: usize, name: &str| {
        let rung = found.rungs.iter().find(|rung| rung.design == design).expect("a rung");
        rung.metrics.get(name).and_then(|metric| metric.value)
    };
    for (name, rate) in [("resync_alone_iops", 5_000.0), ("resync_iops", 1_500.0)] {
        let value = metric(0, name).expect(name);
        assert!((value - rate).abs() < 0.02 * rate, "{name}: {value}");
        assert_eq!(metric(1, name), None, "nothing is copied without resync");
    }
    let headlines: Vec<f64> = stages.iter().map(|stage| stage.headline.unwrap_or(0.0)).collect();
    assert!(headlines[0] == 0.0 && headlines[2] > 1_000.0 && headlines[3] == 0.0, "{headlines:?}");
    let at_most = stages[3].end_s - stages[3].begin_s;
    assert!((10.0..28.0).contains(&at_most), "the copies end before the watch: {at_most}");
}

#[test]
fn copies_in_one_stage_alone_have_none() {
    let mut scenario = resync();
    // All are made before the load.
    scenario.resync.as_mut().unwrap().ios = 50_000.0;
    let found = analysis(&scenario);
    assert!(found.runs.iter().all(|run| run.stages.is_empty()));
}
