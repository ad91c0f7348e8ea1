//! Every study that comes with Underlay reads, checks and plans.

use underlay_core::{Bytes, Nanos};
use underlay_study::{
    BackgroundWork, Builtin, ClientPlace, Colour, DatastoreKind, DesignPlan, DirectoryState,
    Enforcement, HostView, Origin, Plan, PlanOptions, Scale, StudySize, WorkloadKind,
    builtin_studies, check, find_study, plan_json, recorded_study,
};

/// The smallest host the project promises anything for: two processors, 4 GiB, 40 GB free.
fn small_host() -> HostView<'static> {
    HostView {
        cpus: 2,
        memory: Bytes::from_gib(4),
        free_space: Bytes(40_000_000_000),
        memory_limits: Enforcement::Enforced,
        cpu_limits: Enforcement::Enforced,
        directory: &|_| DirectoryState::Missing,
        servers: &|_, _| None,
    }
}

fn planned(study: &Builtin, options: &PlanOptions, host: &HostView<'_>) -> Plan {
    match check(&study.source(), options, host) {
        Ok((_, plan)) => plan,
        Err(problems) => panic!("{}", problems.render(100, Colour::Plain)),
    }
}

fn planned_by_name(name: &str, options: &PlanOptions, host: &HostView<'_>) -> Plan {
    planned(find_study(name).expect("built in"), options, host)
}

#[test]
fn all_plan_on_a_large_host() {
    for study in builtin_studies() {
        let plan = planned(study, &PlanOptions::default(), &HostView::unlimited());
        assert_eq!(plan.name, study.name.replace('/', "-"));
        assert!(plan.designs.len() >= 2, "{} compares nothing", study.name);
        assert!(!plan.provenance.is_empty());
    }
}

#[test]
fn quickstart_fits_five_minutes_on_the_smallest_host() {
    let plan = planned_by_name("quickstart", &PlanOptions::default(), &small_host());
    assert!(plan.estimates.duration < Nanos::from_secs(300), "{}", plan.estimates.duration);
    assert!(plan.estimates.disk < Bytes::from_gib(5), "{}", plan.estimates.disk);
    // Reads must come from storage.
    assert!(plan.estimates.working_set_ratio.is_some_and(|ratio| ratio > 2.0));
    assert_eq!(plan.schedule.len(), 6);
    let designs: Vec<usize> = plan.schedule.iter().map(|run| run.design).collect();
    assert_eq!(designs, [0, 1, 1, 0, 1, 0]);
}

#[test]
fn the_paper_does_not_fit_a_laptop_and_says_at_which_scale_it_does() {
    let k2 = find_study("kingston/k2").expect("built in");
    let problems =
        check(&k2.source(), &PlanOptions::default(), &small_host()).expect_err("16 processors");
    let text = problems.render(100, Colour::Plain);
    assert!(text.contains("--scale 1/8"), "{text}");
    assert!(problems.as_slice().iter().all(|problem| problem.code.starts_with("larger-than")));

    let options = PlanOptions { scale: Some(Scale { divisor: 16 }), ..PlanOptions::default() };
    let plan = planned_by_name("kingston/k2", &options, &small_host());
    // 1,000 / 16, rounded.
    assert_eq!(plan.workload.kind.population().count, 63);
    assert_eq!(plan.procedure.users, [1, 2, 3, 6]);
    assert_eq!(plan.engine.cpus, Some(1.0));
    assert_eq!(plan.engine.memory_limit, Some(Bytes::from_gib(2)));
    assert_eq!(plan.engine.settings["shared_buffers"], "512MB");
    assert_eq!(plan.full_size.population.count, 1000);
    assert_eq!(plan.full_size.users.last(), Some(&89));
}

#[test]
fn the_paper_stands_on_its_test_beds_with_its_memory_and_database() {
    let plan = planned_by_name("kingston/k2", &PlanOptions::default(), &HostView::unlimited());
    let beds = plan.designs.iter().map(|design| match &design.kind {
        underlay_study::DatastoreKind::Cluster(cluster) => {
            let groups = cluster.spec.hosts.iter().flat_map(|host| &host.groups);
            let drives: usize = groups.map(|group| 1 + group.capacity.len()).sum();
            (cluster.spec.hosts.len(), drives, cluster.policy.failures_to_tolerate)
        }
        _ => panic!("{} is no cluster", design.name),
    });
    assert_eq!(beds.collect::<Vec<_>>(), [(4, 12, 0), (3, 9, 0), (3, 9, 0)]);
    let ratio = plan.estimates.working_set_ratio.expect("a memory limit");
    assert!((ratio - 3.1).abs() < 0.06, "100 GB on 32 GB are 3.1, not {ratio}");
}

#[test]
fn the_published_numbers_are_the_headline_of_the_paper() {
    let plan = planned_by_name("kingston/k2", &PlanOptions::default(), &HostView::unlimited());
    let at_89 = |design: &str| {
        let series = plan
            .published
            .iter()
            .find(|series| series.design == design && series.metric == "nopm")
            .expect("published");
        let last = series.users.iter().position(|users| *users == 89).expect("89 users");
        series.values[last]
    };
    let ratio = at_89("dc1500m") / at_89("5200eco");
    assert!((ratio - 2.33).abs() < 0.01, "{ratio}");
    assert_eq!(plan.published.len(), 12);
}

/// A laptop: two processors, 24 GiB, 60 GB free.
fn laptop() -> HostView<'static> {
    HostView { memory: Bytes::from_gib(24), free_space: Bytes(60_000_000_000), ..small_host() }
}

#[test]
fn published_experiments_fit_a_laptop_at_a_scale() {
    let published = builtin_studies().iter().filter(|study| study.name.contains('/'));
    for study in published {
        // The batch is small as it is; several databases take several times the room.
        let divisor = match study.text.contains("[workload.batch]") {
            true => 1,
            false if study.text.contains("[[database]]") => 64,
            false => 32,
        };
        let options = PlanOptions { scale: Some(Scale { divisor }), ..PlanOptions::default() };
        let plan = planned(study, &options, &laptop());
        let full = planned(study, &PlanOptions::default(), &HostView::unlimited());
        let ratio = |plan: &Plan| plan.estimates.working_set_ratio;
        if let (Some(scaled), Some(full)) = (ratio(&plan), ratio(&full)) {
            let change = scaled / full;
            assert!((0.9..1.1).contains(&change), "{}: {scaled} of {full}", study.name);
        }
        assert_eq!(plan.published.len(), full.published.len());
    }
}

/// The options of `--laptop`.
fn at_laptop_size() -> PlanOptions {
    PlanOptions { size: Some(StudySize::Laptop), ..PlanOptions::default() }
}

#[test]
fn every_published_experiment_has_a_laptop_size_of_at_most_twenty_minutes() {
    let published = builtin_studies().iter().filter(|study| study.name.contains('/'));
    for study in published {
        let small = planned(study, &at_laptop_size(), &HostView::laptop());
        let full = planned(study, &PlanOptions::default(), &HostView::unlimited());
        let (duration, name) = (small.estimates.duration, &study.name);
        // Six web shops are the experiment; to check each before and after every run takes most of the time.
        let most = if name == "vmware/v4" { 2100 } else { 1200 };
        assert!(duration <= Nanos::from_secs(most), "{name} takes {duration}");
        assert!(duration < full.estimates.duration, "{name}");
        // What the experiment is about stays: its designs and points, its ratio of database to memory, its results.
        let names = |plan: &Plan| -> Vec<String> {
            plan.designs.iter().map(|design| design.name.clone()).collect()
        };
        assert_eq!(names(&small), names(&full));
        assert_eq!(small.published.len(), full.published.len());
        let ratio = |plan: &Plan| plan.estimates.working_set_ratio;
        if let (Some(small), Some(full)) = (ratio(&small), ratio(&full)) {
            assert!((0.9..1.1).contains(&(small / full)), "{name}: {small} of {full}");
        }
        // Three repeats are the least of which an interval means something.
        let runs = small.schedule.len() / small.designs.len();
        assert!(runs >= 3, "{name} has {runs} repeats");
        assert!(!small.deviations.is_empty() || name.starts_with("vmware/v1"), "{name}");
    }
}

#[test]
fn the_evening_is_long_enough_for_every_published_experiment() {
    let published = builtin_studies().iter().filter(|study| study.name.contains('/'));
    let durations = published
        .map(|study| planned(study, &at_laptop_size(), &HostView::laptop()).estimates.duration.0);
    let all = Nanos(durations.sum());
    assert!(all <= Nanos::from_secs(9 * 3600), "{all}");
}

#[test]
fn a_laptop_size_is_the_study_with_other_values_and_says_who_decided_them() {
    let k2 = find_study("kingston/k2").expect("built in");
    let (study, plan) = check(&k2.source(), &at_laptop_size(), &HostView::laptop()).expect("fits");
    assert_eq!(plan.scale, Scale { divisor: 16 });
    assert_eq!(
        (&plan.full_size.users[..], &plan.size.users[..]),
        (&[13, 34, 89][..], &[1, 2, 6][..])
    );
    let row = |path: &str| {
        let row = plan.provenance.iter().find(|row| row.path == path).expect(path);
        row.origin.clone()
    };
    let line = 1 + k2.text.lines().position(|it| it.starts_with("procedure.measure")).expect("set");
    assert_eq!(row("procedure.measure"), Origin::File { line });
    // The record leads back to the same plan, with the options that were given.
    let recorded = plan_json(&plan);
    let (source, options) = recorded_study(&recorded).expect("just written");
    assert_eq!((&source, &options), (study.source(), &at_laptop_size()));
    let again = underlay_study::plan(&study, &options, &HostView::laptop()).expect("as before");
    assert_eq!(plan_json(&again), recorded);
    // An option of the command line takes precedence.
    let options = PlanOptions {
        scale: Some(Scale { divisor: 32 }),
        measure: Some(Nanos::from_secs(30)),
        ..at_laptop_size()
    };
    let plan = planned(k2, &options, &HostView::laptop());
    assert_eq!((plan.scale, plan.procedure.measure), (Scale { divisor: 32 }, Nanos::from_secs(30)));
    assert_eq!(plan.procedure.users, [1, 3]);
}

#[test]
fn a_laptop_size_holds_at_every_point_of_an_axis() {
    let plan = planned_by_name("kingston/k1", &at_laptop_size(), &HostView::laptop());
    let limits = plan.designs.iter().map(|design| design.engine.memory_limit.map(|it| it.0 >> 30));
    assert_eq!(limits.collect::<Vec<_>>(), [Some(2), Some(8), Some(2)]);
    let is_given = |point: &Plan| point.options == at_laptop_size();
    assert!(is_given(&plan) && plan.points.iter().all(is_given));
    let batch = planned_by_name("vmware/v6", &at_laptop_size(), &HostView::laptop());
    assert!(batch.points.iter().all(|point| point.workload.kind.population().count == 100_000));
}

#[test]
fn a_laptop_size_lists_what_it_changes_after_the_deviations_of_the_study() {
    for name in ["vmware/v2", "kingston/k5", "storagereview/sr2"] {
        let full = planned_by_name(name, &PlanOptions::default(), &HostView::unlimited());
        let small = planned_by_name(name, &at_laptop_size(), &HostView::laptop());
        let of_size = small.deviations.strip_prefix(&full.deviations[..]).expect("those first");
        assert!(!of_size.is_empty(), "{name}");
        assert!(of_size.iter().all(|it| it.starts_with("At laptop size ")), "{of_size:?}");
        assert!(small.points.iter().all(|point| point.deviations == small.deviations), "{name}");
        assert!(full.deviations.iter().all(|it| !it.contains("laptop")), "{name}");
    }
}

#[test]
fn a_study_without_a_laptop_size_refuses_one() {
    let quickstart = find_study("quickstart").expect("built in");
    let problems = check(&quickstart.source(), &at_laptop_size(), &HostView::laptop());
    let text = problems.expect_err("no table").render(100, Colour::Plain);
    assert!(text.contains("the study has no `[laptop]` table"), "{text}");
}

/// Where the study is fine and its laptop size is not, the study is refused: its smaller size would be found out too late.
#[test]
fn a_wrong_laptop_size_is_reported_where_it_stands() {
    let mut source = find_study("quickstart").expect("built in").source();
    source.text += "\n[laptop]\nprocedure.users = [0]\n";
    let problems = check(&source, &PlanOptions::default(), &small_host()).expect_err("no user");
    let line =
        1 + source.text.lines().position(|it| it.starts_with("procedure.users")).expect("set");
    let found: Vec<_> =
        problems.as_slice().iter().map(|it| it.position().map(|(line, _)| line)).collect();
    assert_eq!(found, [Some(line)]);
}

#[test]
fn databases_of_published_experiments_have_the_ratio_to_memory_of_the_paper() {
    // 100 GB in 32 GB, 157 GB in 32 GB.
    for (name, paper) in [("kingston/k1", 100.0 / 32.0), ("kingston/k3", 157.0 / 32.0)] {
        let plan = planned_by_name(name, &PlanOptions::default(), &HostView::unlimited());
        let ratio = plan.estimates.working_set_ratio.expect("a limit of memory");
        assert!((ratio / paper - 1.0).abs() < 0.05, "{name}: {ratio}");
    }
}

#[test]
fn the_machines_of_the_first_test_differ_in_one_thing_from_its_first_point() {
    let plan = planned_by_name("kingston/k1", &PlanOptions::default(), &HostView::unlimited());
    let machines = plan.designs.iter().map(|design| {
        let memory = design.engine.memory_limit.map(|bytes| bytes.0 >> 30);
        (memory, design.client.place, design.client.network.is_some())
    });
    assert_eq!(
        machines.collect::<Vec<_>>(),
        [
            (Some(32), ClientPlace::Remote, true),
            (Some(128), ClientPlace::Remote, true),
            (Some(32), ClientPlace::Local, false),
        ]
    );
    let at_89 = |machine: &str| {
        let is_wanted = |series: &&underlay_study::PublishedSeries| {
            series.metric == "tpm" && series.at[0].1 == machine
        };
        let series = plan.published.iter().find(is_wanted).expect("published");
        *series.values.last().expect("89 users")
    };
    // What the paper asks: four times the memory, and the place of the load generator.
    let first = at_89("32 GB remote");
    assert!((at_89("128 GB remote") / first - 1.25).abs() < 0.01);
    assert!((at_89("32 GB local") / first - 1.53).abs() < 0.01);
    assert_eq!(plan.published.len(), 9);
}

/// Their results judge what was fitted to the others.
#[test]
fn results_that_are_kept_apart_are_in_no_study() {
    let kept_apart = ["kingston/k3", "storagereview/sr7", "storagereview/sr12"];
    let printed = [
        "kingston/k1",
        "kingston/kh1",
        "vmware/v1",
        "storagereview/sr6",
        "storagereview/sr13",
        "storagereview/sr18",
    ];
    let published = |name: &str| {
        planned_by_name(name, &PlanOptions::default(), &HostView::unlimited()).published.len()
    };
    assert!(kept_apart.iter().all(|name| published(name) == 0));
    assert!(printed.iter().all(|name| published(name) >= 2));
}

#[test]
fn the_databases_of_the_fifth_test_are_those_of_the_paper() {
    let at_full_size =
        |name: &str| planned_by_name(name, &PlanOptions::default(), &HostView::unlimited());
    let in_design = |plan: &Plan, design: usize| {
        let plan = plan.plans()[plan.point_of(design)];
        let here = plan.databases.iter().filter(|it| it.part(&plan.designs[design]).is_some());
        let (jobs, users): (Vec<_>, Vec<_>) = here.partition(|database| database.is_job());
        (users.len(), jobs.len())
    };
    let plan = at_full_size("kingston/k5");
    assert_eq!((in_design(&plan, 0), in_design(&plan, 1)), ((12, 0), (9, 0)));
    let plan = at_full_size("kingston/k5-backups");
    let databases: Vec<_> = (0..4).map(|design| in_design(&plan, design)).collect();
    assert_eq!(databases, [(8, 0), (8, 4), (6, 0), (6, 3)]);
    // Of each machine and of all of them: 12 and 9, 8 and 6.
    let printed = |plan: &Plan, metric: &str, design: &str| -> (Vec<f64>, f64) {
        let of = |it: &&underlay_study::PublishedSeries| it.design == design && it.metric == metric;
        let (each, all): (Vec<_>, Vec<_>) =
            plan.published.iter().filter(of).partition(|series| !series.database.is_empty());
        assert_eq!(all.len(), 1, "{metric} of {design}");
        (each.iter().map(|series| series.values[0]).collect(), all[0].values[0])
    };
    for (name, design, machines, mean) in [
        ("kingston/k5", "dc1500m", 12, 523_516.0),
        ("kingston/k5", "5200eco", 9, 269_320.0),
        ("kingston/k5-backups", "dc1500m", 8, 575_933.0),
        ("kingston/k5-backups", "5200eco", 6, 351_258.0),
    ] {
        let (each, all) = printed(&at_full_size(name), "tpm", design);
        assert_eq!((each.len(), each.iter().sum::<f64>()), (machines, all), "{name}");
        // The mean as the paper printed it, truncated.
        assert_eq!((all / machines as f64).floor(), mean, "{name}");
    }
}

/// A shop has a size in steps: scaled sizes are rounded to them, and do not become the smallest shop.
#[test]
fn a_shop_is_scaled_to_the_nearest_size_that_there_is() {
    let customers = |divisor| {
        let options = PlanOptions { scale: Some(Scale { divisor }), ..PlanOptions::default() };
        let plan = planned_by_name("vmware/v2", &options, &HostView::unlimited());
        plan.workload.kind.population().count
    };
    // 80 GB have 160 million customers; a 48th of 80 GB are 1,666,666.7 kB.
    assert_eq!((customers(1), customers(64), customers(48)), (160_000_000, 2_500_000, 3_333_320));
}

#[test]
fn the_hosts_of_hyper_threading_have_a_fifth_more_with_it() {
    let plan = planned_by_name("vmware/v3", &PlanOptions::default(), &HostView::unlimited());
    let cpus = plan.designs.iter().map(|design| match &design.kind {
        underlay_study::DatastoreKind::Cluster(cluster) => {
            cluster.compute.iter().map(|host| host.cpus().expect("a limit")).collect::<Vec<_>>()
        }
        _ => panic!("{} is no cluster", design.name),
    });
    let cpus: Vec<_> = cpus.collect();
    assert_eq!(cpus[0], [24.0; 4]);
    assert!(
        cpus[1].len() == 4 && cpus[1].iter().all(|cpus| (cpus - 28.32).abs() < 1e-9),
        "{cpus:?}"
    );
    // A machine sees one processor per thread.
    let plan = planned_by_name("vmware/v2", &PlanOptions::default(), &HostView::unlimited());
    assert_eq!(plan.designs[2].engine.cpus, Some(48.0));
    let text = underlay_study::render_plan(&plan, 100);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let gives = "gives its databases 24 cores of 2 threads, 256 GiB of memory";
    assert!(text.contains(gives), "{text}");
    let host = &plan_json(&plan)["designs"][2]["datastore"]["cluster"]["compute"][3];
    assert_eq!((&host["cores"], &host["threads_per_core"]), (&24.0.into(), &2.into()));
}

#[test]
fn slower_processors_are_less_processor_time() {
    let near = |found: Option<f64>, expected: f64| {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{found:?}");
    };
    let plan = planned_by_name("kingston/k5", &PlanOptions::default(), &HostView::unlimited());
    let [nvme, sata] = &plan.designs[..] else { panic!("two beds") };
    assert_eq!((nvme.engine.cpus, sata.engine.cpus), (Some(16.0), Some(16.0)));
    near(nvme.engine.whole_cpus(), 16.0);
    near(sata.engine.whole_cpus(), 16.0 * 0.66);
    let compute = |design: &DesignPlan| match &design.kind {
        DatastoreKind::Cluster(cluster) => cluster.compute[0].cpus(),
        other => panic!("{other:?}"),
    };
    near(compute(nvme), 48.0 * 1.18);
    near(compute(sata), 20.0 * 1.18 * 0.66);
    let engine = &plan_json(&plan)["designs"][1]["engine"];
    assert_eq!(engine["core_speed"], 0.66);
    near(engine["cpus"].as_f64(), 16.0 * 0.66);
    let text = underlay_study::render_plan(&plan, 200);
    assert!(text.contains("20 cores of 2 threads of speed 0.66"), "{text}");
    assert!(text.contains("own engine values: core-speed"), "{text}");
}

#[test]
fn backups_are_scaled_in_data_and_not_in_cycles() {
    let planned = |divisor| {
        let options = PlanOptions { scale: Some(Scale { divisor }), ..PlanOptions::default() };
        planned_by_name("kingston/k4", &options, &HostView::unlimited())
    };
    let (full, small) = (planned(1), planned(64));
    let (WorkloadKind::Backup(of_full), WorkloadKind::Backup(of_small)) =
        (&full.workload.kind, &small.workload.kind)
    else {
        panic!("backups")
    };
    assert_eq!((of_full.warehouses, of_full.cycles, of_full.restore), (1500, 3, true));
    assert_eq!((of_small.warehouses, of_small.cycles, of_small.restore), (23, 3, true));
    // Rates are divided like the data: a cycle takes as long.
    let ratio = small.estimates.under_load.0 as f64 / full.estimates.under_load.0 as f64;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    // Three databases: the one that is backed up, its backup, its restored copy.
    let on_disk = full.estimates.disk_volumes.0 as f64 / full.estimates.database.0 as f64;
    assert!((3.0..3.5).contains(&on_disk), "{on_disk}");
    let json = underlay_study::plan_json(&full);
    assert_eq!(json["workload"]["backup"]["cycles"], 3);
    assert_eq!(json["outcome"]["counted"], "MB backed up");
    let text = underlay_study::render_plan(&full, 100);
    assert!(text.contains("3 cycles of a backup and its restore"), "{text}");
    // Nothing is in memory when a backup begins: it does not matter what a cache holds.
    assert_eq!(full.estimates.working_set_ratio, None);
}

/// A study on two designs that come with Underlay.
fn on_designs(first: &str, second: &str) -> underlay_study::Source {
    let text = format!(
        "name = \"two\"\nquestion = \"Which?\"\n[engine]\nmemory-limit = \"1GiB\"\n[engine.settings]\nshared_buffers = \"256MB\"\n\
         [volumes]\ndata = {{ capacity = \"40GiB\" }}\nwal = {{ capacity = \"10GiB\" }}\nbackup = {{ capacity = \"20GiB\" }}\n\
         [[design]]\nuse = \"{first}\"\n[[design]]\nuse = \"{second}\"\n\
         [workload.tpcc]\nwarehouses = 50\n[procedure]\nusers = [1, 4]\n"
    );
    underlay_study::Source { name: "two.toml".to_string(), text }
}

#[test]
fn every_built_in_design_plans_at_full_size_and_at_one_eighth() {
    for design in underlay_study::builtin_designs() {
        for divisor in [1, 8] {
            let options = PlanOptions { scale: Some(Scale { divisor }), ..PlanOptions::default() };
            let other = if design.name == "null" { "hdd" } else { "null" };
            let source = on_designs(&design.name, other);
            if let Err(problems) = check(&source, &options, &HostView::unlimited()) {
                // Logs of 16 GB lie on cards of 16 GB: an eighth of a card does not hold a log.
                let text = problems.render(100, Colour::Plain);
                panic!("{} at 1/{divisor}\n{text}", design.name);
            }
        }
    }
}

#[test]
fn the_logs_of_the_log_device_test_are_mirrored() {
    let source = on_designs("demartek-log-nvme", "demartek-log-nvram");
    let (_, plan) =
        check(&source, &PlanOptions::default(), &HostView::unlimited()).expect("both are built in");
    for design in &plan.designs {
        let underlay_study::DatastoreKind::Emulated { devices, .. } = &design.kind else {
            panic!("devices")
        };
        let copies: Vec<u32> = devices.iter().map(|(_, profile)| profile.copies).collect();
        assert_eq!(copies, [1, 2], "{}", design.name);
    }
    let text = underlay_study::render_plan(&plan, 100);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("NVRAM card, NVMe PCIe 3 x8, mirrored"), "{text}");
}

#[test]
fn a_cluster_is_resolved_into_hosts_groups_and_policy() {
    let source = on_designs("storagereview-optane-reduced", "vmware-pm1725a");
    let (_, plan) =
        check(&source, &PlanOptions::default(), &HostView::unlimited()).expect("both are built in");
    let underlay_study::DatastoreKind::Cluster(cluster) = &plan.designs[0].kind else {
        panic!("a cluster")
    };
    assert_eq!(cluster.spec.hosts.len(), 4);
    assert_eq!(cluster.spec.hosts[3].name, "node-4");
    let groups = &cluster.spec.hosts[0].groups;
    assert_eq!((groups.len(), groups[1].capacity.len()), (2, 2));
    assert_eq!(groups[0].cache.name, "p4800x-375");
    assert!(matches!(groups[0].reduction, underlay_model::Reduction::DedupeCompress(_)));
    assert_eq!(cluster.policy, underlay_model::cluster::Policy::DEFAULT);
    let json = underlay_study::plan_json(&plan);
    let host = &json["designs"][1]["datastore"]["cluster"]["hosts"][2];
    assert_eq!(host["disk_groups"][1]["capacity"].as_array().map(Vec::len), Some(3));
    insta::assert_snapshot!(underlay_study::render_plan(&plan, 100));
}

/// What runs beside the users of one of two equal designs is what they differ in.
#[test]
fn designs_that_differ_in_background_work_are_not_called_equal() {
    let source = find_study("snapshot-replication").expect("built in").source();
    let (_, plan) = check(&source, &PlanOptions::default(), &small_host()).expect("plans");
    assert_eq!(plan.background.len(), 1);
    assert_eq!(plan.background[0].designs, [1]);
    let codes: Vec<&str> = plan.findings.iter().map(|finding| finding.code).collect();
    assert!(!codes.contains(&"identical-designs"), "{codes:?}");
}

/// A block load that stands in the study is what its background work does, and one that nobody uses is doubted.
#[test]
fn a_study_can_have_block_loads_of_its_own() {
    let mut source = find_study("snapshot-replication").expect("built in").source();
    source.text += r#"
[[io-profile]]
name = "scan"
[[io-profile.job]]
rate-per-second = 100
[[io-profile.job.stream]]
random-percent = 0
size = "64KiB"

[[io-profile]]
name = "forgotten"
[[io-profile.job]]
[[io-profile.job.stream]]
size = "4KiB"

[[background]]
name = "scanner"
load = { profile = "scan", volumes = ["data"] }
"#;
    let (_, plan) = check(&source, &PlanOptions::default(), &small_host()).expect("plans");
    let BackgroundWork::Load { profile, .. } = &plan.background[1].work else {
        panic!("not a load: {:?}", plan.background[1]);
    };
    assert_eq!(profile.name, "scan");
    assert_eq!(profile.jobs[0].rate_per_second(), Some(100.0));
    let unused: Vec<&str> = plan
        .findings
        .iter()
        .filter(|finding| finding.code == "unused-io-profile")
        .map(|finding| finding.text.as_str())
        .collect();
    assert_eq!(unused.len(), 1, "{unused:?}");
    assert!(unused[0].contains("`forgotten`"), "{unused:?}");
}
