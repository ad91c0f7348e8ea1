//! Jobs on the engine model: bytes are conserved, devices decide how long they take, users feel
//! them.

use crate::scenario::{device, tpcc};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::result::JobResult;
use underlay_engine::{
    BackupSpec, BatchSpec, DatabaseSpec, DemandProfile, EngineRun, EngineSpec, HostSpec,
    InnodbSettings, Load, PostgresqlSettings, Scenario, Simulation, VolumeUse, Window,
    WorkloadSpec,
};
use underlay_model::target::StoreTarget;
use underlay_model::{DeviceProfile, Store, StoreDevice, StoreVolume};
use underlay_workload::batch::{Loop, Mode};

const SECOND: Nanos = Nanos::from_secs(1);

/// Backups of ten warehouses, about 1.1 GB, to a volume of their own.
fn backup(cycles: u32, restores: bool) -> DatabaseSpec {
    let spec = tpcc(10, 1, 4, Bytes::from_mib(64)).databases.remove(0);
    let WorkloadSpec::Tpcc(tpcc) = spec.workload else { panic!("TPC-C") };
    let volume = VolumeUse { volume: 2, offset: Bytes::ZERO, length: Bytes::from_gib(4) };
    let backup = BackupSpec {
        tpcc,
        cycles,
        pause: Nanos::from_secs(3),
        restores,
        bytes_per_second: None,
        volume,
    };
    DatabaseSpec {
        name: "backup".to_string(),
        workload: WorkloadSpec::Backup(backup),
        demands: DemandProfile::backup_postgresql(),
        load: Load::Job { sessions: 0 },
        ..spec
    }
}

fn alone(database: DatabaseSpec) -> Scenario {
    let hosts = vec![HostSpec::new("host", 4)];
    Scenario { hosts, databases: vec![database], background: Vec::new() }
}

/// Data, log and backups on one device.
fn volumes(profile: &DeviceProfile) -> StoreTarget {
    let device = StoreDevice { name: "d".to_string(), profile: profile.clone() };
    let volume = |gib| StoreVolume { device: 0, capacity: Bytes::from_gib(gib) };
    StoreTarget::new(Store::new(&[device], &[volume(8), volume(1), volume(4)], RootSeed(1)))
}

/// Runs second by second until the job is done; what it came to, and the seconds.
pub fn until_done(scenario: &Scenario, profile: &DeviceProfile) -> (JobResult, Vec<EngineRun>) {
    let mut simulation =
        Simulation::new(scenario, volumes(profile), RootSeed(3)).expect("a valid scenario");
    let mut all = JobResult::default();
    let mut seconds = Vec::new();
    while all.ended.is_none() {
        assert!(seconds.len() < 600, "it ends: {all:?}");
        let second = simulation.run(&Window { warm_up: Nanos::ZERO, measure: SECOND });
        all.add(second.databases[0].job.as_ref().expect("a job"));
        seconds.push(second);
    }
    (all, seconds)
}

#[test]
fn a_backup_reads_and_writes_every_byte_of_the_database_once() {
    for engine in [
        EngineSpec::Postgresql(PostgresqlSettings {
            page_cache: Bytes::from_mib(256),
            ..PostgresqlSettings::default()
        }),
        EngineSpec::Mariadb(InnodbSettings::default()),
    ] {
        let mut database = backup(2, true);
        database.engine = engine;
        let (job, seconds) = until_done(&alone(database), &device("p4500-2000"));
        let [first, restore, second, last] = job.operations[..] else { panic!("{job:?}") };
        assert_eq!((first.kind, restore.kind, second.kind, last.kind), (0, 1, 0, 1));
        assert_eq!((first.cycle, second.cycle), (1, 2));
        let bytes = first.bytes;
        assert!((700_000_000..1_300_000_000).contains(&bytes), "{bytes}");
        assert!(job.operations.iter().all(|operation| operation.bytes == bytes));
        // Two backups read the tables and write archives, two restores the other way round.
        let [data, archive] = job.volumes;
        assert_eq!([data.read, archive.written, archive.read, data.written], [2 * bytes; 4]);
        assert_eq!(second.begin, restore.end + Nanos::from_secs(3), "after the pause");
        // Megabytes are counted as they are written.
        let counted = |kind: usize| {
            seconds.iter().map(|second| second.databases[0].types[kind].committed).sum::<u64>()
        };
        assert_eq!((counted(0), counted(1)), (2 * (bytes / 1_000_000), 2 * (bytes / 1_000_000)));
    }
}

#[test]
fn files_that_stay_in_memory_are_read_once() {
    let mut database = backup(2, true);
    let settings =
        PostgresqlSettings { page_cache: Bytes::from_gib(4), ..PostgresqlSettings::default() };
    database.engine = EngineSpec::Postgresql(settings);
    let (job, _) = until_done(&alone(database), &device("p4500-2000"));
    let bytes = job.operations[0].bytes;
    let [data, archive] = job.volumes;
    assert_eq!((data.read, archive.read), (bytes, 0));
    assert_eq!((data.written, archive.written), (2 * bytes, 2 * bytes));
}

#[test]
fn a_backup_is_faster_on_a_faster_device_until_processors_limit_it() {
    let took = |profile: &str| {
        let (job, _) = until_done(&alone(backup(1, false)), &device(profile));
        let operation = job.operations[0];
        (operation.end - operation.begin).as_secs_f64()
    };
    let (disk, sata, nvme, nothing) =
        (took("hdd-7200"), took("dc500m-1920"), took("dc1500m-960"), took("null"));
    assert!(disk > 1.5 * sata && sata > 1.2 * nvme && nvme >= nothing, "{disk} {sata} {nvme}");
    // The slower of two processes: 0.45 s per GB, on a core of its own.
    let bytes = until_done(&alone(backup(1, false)), &device("null")).0.operations[0].bytes;
    let least = bytes as f64 / 1e9 * 0.45;
    assert!(nothing >= least && nothing < 1.1 * least, "{nothing} {least}");
}

#[test]
fn users_and_a_backup_on_one_device_slow_each_other() {
    let users = tpcc(10, 16, 4, Bytes::from_mib(64)).databases.remove(0);
    let both = |with_backup: bool, profile: &str| {
        let mut job = backup(20, false);
        // Beside the users' data.
        job.data.offset = Bytes::from_gib(3);
        job.data.length = Bytes::from_gib(4);
        job.host = 1;
        let mut first = users.clone();
        first.data.length = Bytes::from_gib(3);
        let mut databases = vec![first];
        databases.extend(with_backup.then_some(job));
        let hosts = vec![HostSpec::new("a", 4), HostSpec::new("b", 4)];
        let scenario = Scenario { hosts, databases, background: Vec::new() };
        let target = volumes(&device(profile));
        let mut simulation = Simulation::new(&scenario, target, RootSeed(3)).expect("valid");
        simulation.warm_caches(20_000);
        let measure = Nanos::from_secs(10);
        let run = simulation.run(&Window { warm_up: SECOND, measure });
        let length = run.length();
        for database in &run.databases {
            for io in database.io.job {
                for station in [io.read, io.write, io.flush] {
                    // Little's law, but for what was in flight at the ends.
                    let difference = station.present_ns.abs_diff(station.stay_ns);
                    assert!(difference <= 66 * u128::from(length.0) / 10, "{station:?}");
                }
            }
        }
        let read = run.databases.get(1).and_then(|it| it.job.as_ref()).map(|it| it.volumes[0].read);
        (run.headline(0), read)
    };
    let (undisturbed, _) = both(false, "dc500m-1920");
    let (disturbed, slow) = both(true, "dc500m-1920");
    assert!(disturbed < 0.95 * undisturbed, "{disturbed} {undisturbed}");
    let (_, fast) = both(true, "dc1500m-960");
    assert!(slow < fast, "{slow:?} {fast:?}");
    assert_eq!(both(true, "dc500m-1920"), (disturbed, slow), "equal seeds, equal results");
}

#[test]
fn a_backup_is_as_fast_as_it_may_be_and_its_restore_is_not_limited() {
    let operations = |bytes_per_second| {
        let mut database = backup(1, true);
        let WorkloadSpec::Backup(spec) = &mut database.workload else { panic!("a backup") };
        spec.bytes_per_second = bytes_per_second;
        let (job, _) = until_done(&alone(database), &device("dc1500m-960"));
        let rates: Vec<f64> = job
            .operations
            .iter()
            .map(|it| it.bytes as f64 / (it.end.as_secs_f64() - it.begin.as_secs_f64()))
            .collect();
        [rates[0], rates[1]]
    };
    let free = operations(None);
    let limited = operations(Some(50_000_000));
    assert!((0.97..=1.001).contains(&(limited[0] / 50e6)), "{limited:?}");
    assert!((0.9..=1.1).contains(&(limited[1] / free[1])), "{limited:?} {free:?}");
    let above = operations(Some(1 << 40));
    assert!((0.99..=1.01).contains(&(above[0] / free[0])), "{above:?} {free:?}");
}

#[test]
fn rows_of_a_batch_wait_for_the_log_only_one_by_one() {
    const ROWS: u32 = 20_000;
    let took = |(mode, place), engine: Option<InnodbSettings>| {
        let mut database = tpcc(1, 4, 4, Bytes::from_mib(256)).databases.remove(0);
        database.workload = WorkloadSpec::Batch(BatchSpec { rows: ROWS, mode, place });
        database.load = Load::Job { sessions: 4 };
        database.demands = DemandProfile::batch_postgresql();
        if let Some(settings) = engine {
            database.demands = DemandProfile::batch_mariadb();
            database.engine = EngineSpec::Mariadb(settings);
        }
        let (job, seconds) = until_done(&alone(database), &device("dc500m-1920"));
        let rows: u64 = seconds.iter().map(|it| it.databases[0].types[0].committed).sum();
        assert_eq!(rows, u64::from(ROWS), "{mode}");
        let commits: u64 = seconds.iter().map(|it| it.databases[0].log.commits).sum();
        let expected = if mode == Mode::Implicit { u64::from(ROWS) } else { 4 };
        assert_eq!(commits, expected, "commits, {mode}");
        // Nobody reads a page that is made.
        let reads: u64 = seconds.iter().map(|it| it.databases[0].io.read.arrivals).sum();
        assert_eq!(reads, 0, "{mode}");
        job.ended.expect("done").as_secs_f64()
    };
    for engine in [None, Some(InnodbSettings::default())] {
        let of = |mode, place| took((mode, place), engine.clone());
        let times = [Mode::Implicit, Mode::Explicit, Mode::Bulk].map(|it| of(it, Loop::Client));
        assert!(times[0] > 2.0 * times[1] && times[1] > 1.5 * times[2], "{times:?}");
        // A loop inside the server spares statements, not waits for the log.
        let [implicit, explicit] = [Mode::Implicit, Mode::Explicit].map(|it| of(it, Loop::Server));
        assert!(explicit < 0.5 * times[1] && implicit > 0.5 * times[0], "{implicit} {explicit}");
    }
}

#[test]
fn a_loop_inside_the_server_needs_its_client_once_per_call() {
    const ROWS: u32 = 5_000;
    let took = |place, round_trip, client_cpu| {
        let mut database = tpcc(1, 1, 4, Bytes::from_mib(256)).databases.remove(0);
        let mode = Mode::Explicit;
        database.workload = WorkloadSpec::Batch(BatchSpec { rows: ROWS, mode, place });
        database.load = Load::Job { sessions: 1 };
        database.demands = DemandProfile { client_cpu, ..DemandProfile::batch_postgresql() };
        database.client.host = Some(0);
        database.client.round_trip = round_trip;
        let (job, _) = until_done(&alone(database), &device("dc500m-1920"));
        job.ended.expect("done").as_secs_f64()
    };
    let millisecond = Nanos::from_millis(1);
    for (place, calls) in [(Loop::Client, 5.0), (Loop::Server, 0.02)] {
        let least = took(place, Nanos::ZERO, Nanos::ZERO);
        let of_messages = took(place, millisecond, Nanos::ZERO) - least;
        let of_client = took(place, Nanos::ZERO, millisecond) - least;
        assert!((of_messages / calls - 1.0).abs() < 0.02, "{place}: {of_messages} s");
        assert!((of_client / calls - 1.0).abs() < 0.02, "{place}: {of_client} s");
    }
}

#[test]
fn a_job_has_no_users_and_needs_room() {
    let mut scenario = alone(backup(1, true));
    assert!(scenario.problems().is_empty());
    scenario.databases[0].data.length = Bytes::from_gib(1);
    scenario.databases[0].load = Load::Closed { users: 4, pacing: 0.0 };
    let said: Vec<String> = scenario.problems().iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|it| it.contains("a job has no users")), "{said:?}");
    assert!(said.iter().any(|it| it.contains("database and copy")), "{said:?}");
    let users = tpcc(1, 4, 4, Bytes::from_mib(64));
    assert!(users.problems().is_empty());
}
