//! Plans of databases as scenarios of the engine model, and rungs of them.

use underlay_core::{Bytes, Evidence, Nanos, RootSeed};
use underlay_engine::{DemandProfile, EngineSpec, Load};
use underlay_model::target::Target;
use underlay_simulation::databases::{
    Assumptions, BackgroundSchedule, DesignTarget, Effort, Ladder, Second, SinglePlan,
    SinglePlanError, Stage, as_simulated, problems, scenario,
};
use underlay_study::{
    FaultPhase, HostView, Plan, PlanOptions, Source, StudySize, check, find_study,
};

const ASSUMED: Assumptions = Assumptions::defaults(4);

fn planned(text: String) -> Plan {
    let source = Source { name: "s.toml".to_string(), text };
    let checked = check(&source, &PlanOptions::default(), &HostView::unlimited());
    checked.unwrap_or_else(|problems| panic!("{}", problems.to_json())).1
}

fn study(engine: &str, more: &str) -> String {
    format!(
        "name = \"s\"\nquestion = \"What?\"\n[engine]\n{engine}\n[volumes]\ndata = {{ capacity = \"2GiB\" }}\n\
         wal = {{ capacity = \"2GiB\" }}\nbackup = {{ capacity = \"1GiB\" }}\n[[design]]\nuse = \"kingston-nvme\"\n\
         name = \"nvme\"\n[workload.tpcc]\nwarehouses = 2\n[procedure]\nusers = [2, 4]\nwarm-up = \"1s\"\nramp-up = \"1s\"\n\
         measure = \"40s\"\n{more}"
    )
}

#[test]
fn values_of_the_plan_arrive_in_the_scenario() {
    let engine = "cpus = 2.5\nmemory-limit = \"512MiB\"\n[engine.settings]\nshared_buffers = \"64MB\"\n\
                  checkpoint_timeout = \"90s\"\nfull_page_writes = \"off\"";
    let plan = planned(study(engine, "[client]\nplace = \"local\"\nconnections = 3\n"));
    assert_eq!(problems(&plan, &ASSUMED), Vec::<String>::new());
    let made = scenario(&plan, &plan.designs[0], 4, &ASSUMED).expect("a scenario");
    let (host, database) = (&made.hosts[0], &made.databases[0]);
    assert_eq!(host.cores, 3);
    assert!((host.speed * 3.0 - 2.5).abs() < 1e-9, "{}", host.speed);
    assert_eq!(database.load, Load::Closed { users: 4, pacing: 0.0 });
    assert_eq!((database.client.connections, database.client.host), (Some(3), Some(0)));
    let EngineSpec::Postgresql(settings) = &database.engine else { panic!("PostgreSQL") };
    assert_eq!(settings.shared_buffers, Bytes::from_mib(64));
    // Three sessions of 6 MiB.
    assert_eq!(settings.page_cache, Bytes::from_mib(512 - 64 - 18));
    assert_eq!(settings.checkpoint_timeout, Nanos::from_secs(90));
    assert!(!settings.full_page_writes && settings.synchronous_commit);
    let [data, log] = [database.data, database.log];
    assert_eq!((data.length, log.length), (Bytes::from_gib(2), Bytes::from_gib(2)));
    assert_ne!(data.volume, log.volume);

    let unlimited = planned(study("memory-limit = \"512MiB\"", ""));
    let made = scenario(&unlimited, &unlimited.designs[0], 4, &ASSUMED).expect("a scenario");
    assert_eq!((made.hosts[0].cores, made.hosts[0].speed), (4, 1.0), "as assumed");
    assert_eq!(made.databases[0].client.host, Some(0), "a client on a host without limits");
}

#[test]
fn work_of_requests_is_not_in_the_limit_of_the_server() {
    let demands =
        DemandProfile { cpu_per_io: Nanos::from_micros(20), ..DemandProfile::tpcc_postgresql() };
    let assumed = Assumptions { demands: Some(demands), ..ASSUMED };
    let cost = |limit: &str| {
        let plan = planned(study(&format!("{limit}\nmemory-limit = \"512MiB\""), ""));
        let made = scenario(&plan, &plan.designs[0], 4, &assumed).expect("a scenario");
        made.databases[0].demands.cpu_per_io
    };
    // Of four processors a server without a limit shares all with them, one with all four too.
    let all = Nanos::from_micros(20);
    assert_eq!([cost(""), cost("cpus = 4"), cost("cpus = 2")], [all, all, Nanos::ZERO]);
}

#[test]
fn every_reason_is_given_and_evidence_is_simulated() {
    let plan = planned(study(
        "memory-limit = \"512MiB\"\n[engine.settings]\nfsync = \"off\"",
        "causal-check = \"20s\"\n",
    ));
    let found = problems(&plan, &ASSUMED);
    assert_eq!(
        found,
        [
            "fsync is off, which is not simulated",
            "the study has a causal check, which is not simulated yet"
        ]
    );
    let without_memory = planned(study("cpus = 1", ""));
    let found = problems(&without_memory, &ASSUMED);
    assert!(found.len() == 1 && found[0].contains("memory-limit"), "{found:?}");
    let simulated = as_simulated(&plan);
    assert_eq!(simulated.evidence, Evidence::Simulated);
    assert!(simulated.designs.iter().all(|design| design.evidence == Evidence::Simulated));
    assert!((0..simulated.designs.len()).all(|design| !simulated.has_null_twin(design)));
}

/// Published studies that the engine model covers can be simulated at their size.
#[test]
fn built_in_studies_with_databases_are_not_refused() {
    let names = [
        "quickstart",
        "kingston/k1",
        "kingston/k2",
        "kingston/k3",
        "kingston/k4",
        "kingston/k5",
        "kingston/k5-backups",
        "vmware/v2",
        "vmware/v3",
        "vmware/v4",
        "demartek/d1",
        "demartek/d3",
        "demartek/d3-replication",
        "snapshot-replication",
        "demartek/d3-warehouse",
        "storagereview/sr1",
    ];
    for name in names {
        let source = find_study(name).expect("built in").source();
        let checked = check(&source, &PlanOptions::default(), &HostView::unlimited());
        let (_, plan) = checked.unwrap_or_else(|problems| panic!("{name}: {}", problems.to_json()));
        assert_eq!(problems(&plan, &ASSUMED), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_host_is_shared_where_it_has_no_core_for_each_processor_of_the_limits() {
    let plan = planned(find_study("kingston/k5").expect("built in").source().text);
    let hosts = |design: usize| {
        let made = scenario(&plan, &plan.designs[design], 89, &ASSUMED).expect("a scenario");
        let first = &made.hosts[0];
        let (cores, threads, speed) = (first.cores, first.threads_per_core, first.speed);
        (made.databases.len(), made.hosts.len(), cores, threads, speed)
    };
    // Three databases of 16 processors on 48 cores, and on 20 slower ones of two threads.
    assert_eq!(hosts(0), (12, 12, 16, 1, 1.0));
    assert_eq!(hosts(1), (9, 3, 20, 2, 0.66));
    let alone = planned(find_study("kingston/k2").expect("built in").source().text);
    let of = |design: usize| {
        let made = scenario(&alone, &alone.designs[design], 89, &ASSUMED).expect("a scenario");
        (made.hosts[0].cores, made.hosts[0].speed)
    };
    assert_eq!((of(0), of(1)), ((16, 1.0), (16, 0.66)));
}

#[test]
fn queries_of_a_warehouse_on_mariadb_are_refused_and_other_jobs_are_not() {
    let found_on = |engine: &str, workload: &str| {
        let users = study(&format!("{engine}memory-limit = \"512MiB\""), "");
        let (before, _) = users.split_once("[workload.tpcc]").expect("a workload");
        let plan = planned(format!("{before}{workload}"));
        problems(&plan, &ASSUMED)
    };
    let queries = "[workload.warehouse]\nscale = 0.1\n";
    assert_eq!(
        found_on("kind = \"mariadb\"\n", queries),
        ["the queries of a warehouse are simulated on PostgreSQL only: MariaDB's plans were not \
          measured"]
    );
    let found = |workload: &str| found_on("", workload);
    for job in [
        queries,
        "[workload.backup]\nwarehouses = 2\n",
        "[workload.batch]\nrows = 1000\n",
        "[workload.dvdstore]\ndb-size = \"1MB\"\n[procedure]\nusers = [2]\n",
    ] {
        assert_eq!(found(job), Vec::<String>::new(), "{job}");
    }
}

#[test]
fn a_job_ends_its_rung_and_tells_what_it_did() {
    let users = study("cpus = 2\nmemory-limit = \"512MiB\"", "");
    let (before, _) = users.split_once("[workload.tpcc]").expect("a workload");
    let plan = planned(format!("{before}[workload.backup]\nwarehouses = 2\ncycles = 2\n"));
    let (design, procedure) = (&plan.designs[0], &plan.procedure);
    let sessions = procedure.most_users();
    let made = scenario(&plan, design, sessions, &ASSUMED).expect("a scenario");
    assert_eq!(made.databases[0].load, Load::Job { sessions: 0 });
    let run = || {
        let target = DesignTarget::new(design, RootSeed(2)).expect("devices");
        let ladder = Ladder::new((target, &made), procedure, Effort::PRECISE, RootSeed(1));
        let mut ladder = ladder.expect("a scenario");
        ladder.warm_up(&mut |_, _, _| true);
        let rung = ladder.rung(sessions, &mut |_, _, _| true);
        (rung, ladder.jobs()[&0].clone())
    };
    let (rung, job) = run();
    // Each backup is restored.
    assert_eq!(job.operations.len(), 4, "{job:?}");
    let ended = job.ended.expect("done");
    assert!(rung.measured >= ended && rung.measured.0 < ended.0 + 1_000_000_000, "{rung:?}");
    assert!(!rung.ended_early && rung.precision.is_none());
    assert_eq!(run(), (rung, job), "equal seeds, equal numbers");
}

#[test]
fn a_rung_ends_when_its_throughput_is_known_or_at_its_time() {
    let plan = planned(study("cpus = 1\nmemory-limit = \"512MiB\"", ""));
    let design = &plan.designs[0];
    let made = scenario(&plan, design, 2, &ASSUMED).expect("a scenario");
    let run = |effort: Effort| {
        let target = DesignTarget::new(design, RootSeed(2)).expect("devices");
        let (mut warm, mut measured) = (0, 0);
        let mut each = |stage, _, _: &Second| {
            match stage {
                Stage::WarmUp | Stage::RampUp => warm += 1,
                Stage::Measure => measured += 1,
            }
            true
        };
        let ladder = Ladder::new((target, &made), &plan.procedure, effort, RootSeed(1));
        let mut ladder = ladder.expect("a scenario");
        ladder.warm_up(&mut each);
        (ladder.rung(2, &mut each), warm, measured)
    };
    let loose = Effort { precision: Some(0.5), ..Effort::PRECISE };
    let (early, warm, measured) = run(loose);
    assert_eq!((warm, measured, early.measured), (2, 10, Nanos::from_secs(10)));
    assert!(early.ended_early && early.precision.is_some_and(|share| share <= 0.5), "{early:?}");
    let (full, _, seconds) = run(Effort::FULL_LENGTH);
    assert_eq!((seconds, full.measured, full.ended_early), (40, plan.procedure.measure, false));
    let (again, ..) = run(Effort::FULL_LENGTH);
    assert_eq!(full, again, "equal seeds, equal numbers");
    assert!(full.headline > 0.0);
}

const MEMORY: &str = "cpus = 1\nmemory-limit = \"512MiB\"";
/// From the first second of the window on.
const COPY: &str = "[[background]]\nname = \"copy\"\n\
                    copy = { from = \"data\", bytes-per-second = \"10MB\" }\nat = \"1s\"\n";

/// The seconds of the phases of a run with background work, and what that read in each.
fn beside(background: &str, effort: Effort) -> Vec<(Stage, u32, u64)> {
    let plan = planned(study(MEMORY, background));
    assert_eq!(problems(&plan, &ASSUMED), Vec::<String>::new());
    let design = &plan.designs[0];
    let made = scenario(&plan, design, 4, &ASSUMED).expect("a scenario");
    let target = DesignTarget::new(design, RootSeed(2)).expect("devices");
    let (on, schedule) = ((target, &made), BackgroundSchedule::of(&plan, 0));
    let ladder = Ladder::with_background(on, schedule, &plan.procedure, effort, RootSeed(1));
    let mut ladder = ladder.expect("a scenario");
    let mut seconds = Vec::new();
    let mut each = |stage, users, second: &Second| {
        let parts = &second.run.background[0].parts;
        seconds.push((stage, users, parts.iter().map(|part| part.read.bytes).sum()));
        true
    };
    ladder.warm_up(&mut each);
    for users in [2, 4] {
        ladder.rung(users, &mut each);
    }
    seconds
}

#[test]
fn background_work_begins_in_its_phase_and_lasts_as_long_as_the_load() {
    let loose = Effort { precision: Some(0.5), ..Effort::PRECISE };
    let of_rung = |seconds: &[(Stage, u32, u64)], stage, users| {
        let is_it = |second: &&(Stage, u32, u64)| (second.0, second.1) == (stage, users);
        seconds.iter().filter(is_it).map(|second| second.2).collect::<Vec<_>>()
    };
    // In the last rung, where a study does not say which one.
    let seconds = beside(COPY, loose);
    assert!(seconds.iter().filter(|second| second.1 == 2).all(|second| second.2 == 0));
    let last = of_rung(&seconds, Stage::Measure, 4);
    // The copy takes longer than the window, which may end all the same.
    assert_eq!((last.len(), last[0]), (10, 0));
    assert!(last[1..].iter().all(|bytes| *bytes > 0), "{last:?}");

    // What begins in the warm-up goes on in all rungs.
    let warm = format!("{}phase = \"warm-up\"\n", COPY.replace("1s", "0s"));
    let seconds = beside(&warm, loose);
    assert!(seconds.iter().all(|second| second.2 > 0), "{seconds:?}");

    // A window has the length of the study where the clock ends the work, or begins it late.
    let ends = format!("{}lasts = \"5s\"\n", COPY.replace("1s", "0s"));
    let seconds = beside(&ends, loose);
    let last = of_rung(&seconds, Stage::Measure, 4);
    assert_eq!(last.len(), 40);
    assert!(last[..5].iter().all(|bytes| *bytes > 0) && last[6..].iter().all(|it| *it == 0));
    assert_eq!(of_rung(&seconds, Stage::Measure, 2).len(), 10, "without the work");
    let late = beside(&COPY.replace("1s", "25s"), loose);
    let last = of_rung(&late, Stage::Measure, 4);
    assert_eq!((last.len(), last.iter().position(|bytes| *bytes > 0)), (40, Some(25)));
    assert_eq!(beside(&COPY.replace("1s", "25s"), loose), late, "equal seeds, equal numbers");
}

#[test]
fn caches_are_empty_where_all_load_is_simulated_and_full_after_a_long_warm_up() {
    let misses = |warm_up: &str| {
        let text = study("cpus = 1\nmemory-limit = \"512MiB\"", "");
        let plan = planned(text.replace("warm-up = \"1s\"", &format!("warm-up = \"{warm_up}\"")));
        let design = &plan.designs[0];
        let made = scenario(&plan, design, 2, &ASSUMED).expect("a scenario");
        let target = DesignTarget::new(design, RootSeed(2)).expect("devices");
        let effort = Effort::OF_STUDIES;
        let ladder = Ladder::new((target, &made), &plan.procedure, effort, RootSeed(1));
        let mut first = None;
        ladder.expect("a scenario").warm_up(&mut |_, _, second| {
            first.get_or_insert(second.run.databases[0].pool.misses);
            false
        });
        first.expect("a second")
    };
    let (short, long) = (misses("1s"), misses("1h"));
    assert!(short > 2 * long, "{short} pages missed after a start, {long} after an hour");
}

#[test]
fn a_warm_up_that_is_cut_ends_in_a_cycle_of_checkpoints() {
    let text = study("cpus = 1\nmemory-limit = \"512MiB\"", "");
    let plan = planned(text.replace("warm-up = \"1s\"", "warm-up = \"1h\""));
    let design = &plan.designs[0];
    let made = scenario(&plan, design, 2, &ASSUMED).expect("a scenario");
    let pages = |effort: Effort, seed| {
        let target = DesignTarget::new(design, RootSeed(2)).expect("devices");
        let ladder = Ladder::new((target, &made), &plan.procedure, effort, RootSeed(seed));
        let mut ladder = ladder.expect("a scenario");
        let mut pages = 0;
        let mut each = |stage, _, second: &Second| {
            if stage == Stage::Measure {
                pages += second.run.databases[0].writers.checkpoint_pages;
            }
            true
        };
        assert!(ladder.warm_up(&mut each));
        ladder.rung(2, &mut each);
        pages
    };
    // In a tenth of the cycle nothing is left to be written.
    let found: Vec<u64> = (1..=4).map(|seed| pages(Effort::OF_STUDIES, seed)).collect();
    assert!(found.iter().filter(|pages| **pages > 100).count() >= 3, "{found:?}");
    assert_eq!(pages(Effort { skipped_at_most: 0, ..Effort::OF_STUDIES }, 1), 0);
}

#[test]
fn rungs_follow_each_other_on_one_database() {
    let plan = planned(study("cpus = 1\nmemory-limit = \"512MiB\"", ""));
    let design = &plan.designs[0];
    let made = scenario(&plan, design, 4, &ASSUMED).expect("a scenario");
    let target = DesignTarget::new(design, RootSeed(2)).expect("devices");
    let ladder = Ladder::new((target, &made), &plan.procedure, Effort::FULL_LENGTH, RootSeed(1));
    let mut ladder = ladder.expect("a scenario");
    let mut seconds = Vec::new();
    let mut each = |stage, users, second: &Second| {
        let database = &second.run.databases[0];
        seconds.push((stage, users, second.run.from, database.pool.misses, database.committed()));
        true
    };
    ladder.warm_up(&mut each);
    for users in [2, 4] {
        ladder.rung(users, &mut each);
    }
    let phases: Vec<(Stage, u32)> = seconds.iter().map(|second| (second.0, second.1)).collect();
    assert_eq!(phases[..3], [(Stage::WarmUp, 4), (Stage::RampUp, 2), (Stage::Measure, 2)]);
    assert_eq!((phases[42], phases[43]), ((Stage::RampUp, 4), (Stage::Measure, 4)));
    let begins = seconds.iter().map(|second| second.2);
    assert!(begins.eq((0..seconds.len() as u64).map(Nanos::from_secs)), "one clock");
    // The second rung finds the caches of the first.
    let misses = |at: usize| seconds[at].3 as f64 / seconds[at].4 as f64;
    assert!(misses(42) < misses(0) / 2.0, "{} then {}", misses(0), misses(42));
}

#[test]
fn data_moves_to_devices_that_join_before_the_load() {
    let source = find_study("vmware/v5").expect("built in").source();
    let options = PlanOptions { size: Some(StudySize::Laptop), ..PlanOptions::default() };
    let checked = check(&source, &options, &HostView::unlimited());
    let plan = checked.unwrap_or_else(|problems| panic!("{}", problems.to_json())).1;
    assert_eq!(problems(&plan, &ASSUMED), Vec::<String>::new());
    assert!(as_simulated(&plan).procedure.cool_down.is_none());
    // A prediction has no such phase.
    let mut single = plan.clone();
    single.databases.truncate(1);
    assert_eq!(SinglePlan::new(&single).err(), Some(SinglePlanError::Faults));
    single.faults.clear();
    assert!(SinglePlan::new(&single).is_ok());
    single.background = planned(study(MEMORY, COPY)).background;
    assert_eq!(SinglePlan::new(&single).err(), Some(SinglePlanError::Background));
    let moved = |name: &str| {
        let position = plan.designs.iter().position(|design| design.name == name);
        let position = position.expect("a design of the study");
        let made = DesignTarget::in_study(&plan, position, RootSeed(1));
        let DesignTarget::Cluster(mut target) = made.expect("a cluster") else { panic!("devices") };
        let mut finished = Vec::new();
        target.advance(plan.procedure.settle, &mut finished);
        assert!(finished.is_empty(), "nobody asked for anything");
        // The new ones are the last of their groups.
        let of_host = |group: &str| target.cluster().find_group(group).expect("a disk group");
        let groups = [of_host("host-1/group-1"), of_host("host-1/group-2")];
        let last = groups.map(|group| {
            let of_group = target.cluster().devices().filter(|it| it.device.group == group);
            of_group.last().expect("a device").used
        });
        (target.cluster().devices().count(), last)
    };
    let (before, _) = moved("alone");
    let (after, used) = moved("adaptive");
    assert_eq!(after, before + 2);
    // One after the other is filled.
    assert!(used.iter().any(|used| *used > Bytes::ZERO), "{used:?}");

    let mut later = plan.clone();
    later.faults[0].phase = FaultPhase::Measure;
    let found = problems(&later, &ASSUMED);
    assert!(found.iter().any(|problem| problem.contains("that join in `settle`")), "{found:?}");
}
