//! The queries of a warehouse on the engine model: what they read, and how long they take.

use crate::jobs::until_done;
use crate::scenario::{device, tpcc};
use underlay_core::{Bytes, Nanos};
use underlay_engine::layout::warehouse::Table;
use underlay_engine::{
    DatabaseSpec, DemandProfile, EngineRun, EngineSpec, HostSpec, InnodbSettings, JobOperation,
    JobResult, Load, PostgresqlSettings, Scenario, TypeDemand, WarehouseSpec, WorkloadSpec,
};
use underlay_model::DeviceProfile;
use underlay_workload::warehouse::Scale;

/// About 200 MB with indexes.
const HUNDREDTHS: u32 = 10;
const PAGE_BYTES: u64 = 8192;
/// Queries among the types, which begin with 0.
const Q1: usize = 0;
const QUERIES: usize = 22;

fn scale() -> Scale {
    Scale::from_hundredths(HUNDREDTHS).expect("a scale")
}

/// A warehouse with so much memory beside shared buffers of 16 MiB.
fn warehouse(streams: u32, workers_per_query: u32, page_cache: Bytes) -> DatabaseSpec {
    let spec = tpcc(1, 1, 1, Bytes::from_mib(16)).databases.remove(0);
    let settings = PostgresqlSettings {
        shared_buffers: Bytes::from_mib(16),
        page_cache,
        ..PostgresqlSettings::default()
    };
    let workload = WarehouseSpec { scale: scale(), streams, workers_per_query, workers: 8 };
    DatabaseSpec {
        engine: EngineSpec::Postgresql(settings),
        workload: WorkloadSpec::Warehouse(workload),
        demands: DemandProfile::warehouse_postgresql(),
        load: Load::Job { sessions: 1 },
        ..spec
    }
}

fn alone(database: DatabaseSpec, cores: u32) -> Scenario {
    let hosts = vec![HostSpec::new("host", cores)];
    Scenario { hosts, databases: vec![database], background: Vec::new() }
}

fn done(database: DatabaseSpec, cores: u32, profile: &DeviceProfile) -> JobResult {
    until_done(&alone(database, cores), profile).0
}

/// The steps of a run: 1 is the power run.
fn of_run(job: &JobResult, run: u32) -> Vec<JobOperation> {
    job.operations.iter().filter(|it| it.cycle == run).copied().collect()
}

fn step(operations: &[JobOperation], kind: usize) -> JobOperation {
    *operations.iter().find(|it| it.kind == kind).expect("a step")
}

fn seconds(operation: &JobOperation) -> f64 {
    (operation.end - operation.begin).as_secs_f64()
}

fn duration(operations: &[JobOperation]) -> f64 {
    let begin = operations.iter().map(|it| it.begin).min().expect("steps");
    let end = operations.iter().map(|it| it.end).max().expect("steps");
    (end - begin).as_secs_f64()
}

#[test]
fn a_table_is_read_once_by_each_scan_where_memory_is_small() {
    let memory = Bytes::from_mib(4);
    let job = done(warehouse(2, 2, memory), 4, &device("p4500-2000"));
    let lines = u64::from(Table::Lines.blocks(scale())) * PAGE_BYTES;
    // But for the pages where the scan before it ended, at which it begins.
    let read = step(&of_run(&job, 1), Q1).bytes;
    assert!((lines - memory.0..=lines).contains(&read), "{read} of {lines}");
    let all: u64 = job.operations.iter().map(|operation| operation.bytes).sum();
    assert_eq!(job.volumes[0].read, all);
    // The power run, then two streams beside their refresh functions.
    let [power, throughput] = [1, 2].map(|run| of_run(&job, run));
    assert_eq!((power.len(), throughput.len()), (24, 2 * 24));
    for stream in [1, 2] {
        let queries = throughput.iter().filter(|it| it.stream == stream && it.kind < QUERIES);
        assert_eq!(queries.count(), QUERIES, "stream {stream}");
    }
    assert_eq!(job.ended, job.operations.iter().map(|it| it.end).max());
}

#[test]
fn what_fits_into_memory_is_read_once_and_not_again() {
    let (job, seconds) =
        until_done(&alone(warehouse(1, 0, Bytes::from_gib(2)), 4), &device("p4500-2000"));
    let lines = u64::from(Table::Lines.blocks(scale())) * PAGE_BYTES;
    let scans_of_lines = [Q1, 5, 17].map(|kind| step(&of_run(&job, 2), kind).bytes);
    assert_eq!(scans_of_lines, [0; 3], "{lines} bytes are in memory");
    let read: u64 = of_run(&job, 1).iter().map(|it| it.bytes).sum();
    assert!((lines..3 * lines).contains(&read), "{read} of {lines}");
    let answered = seconds.iter().flat_map(|second| &second.databases[0].types[..QUERIES]);
    assert_eq!(answered.map(|kind| kind.committed).sum::<u64>(), 2 * 22);
}

#[test]
fn no_query_is_slower_on_a_faster_device() {
    let steps = ["hdd-7200", "dc500m-1920", "dc1500m-960", "null"].map(|name| {
        let job = done(warehouse(0, 2, Bytes::from_mib(64)), 2, &device(name));
        let mut steps = of_run(&job, 1);
        steps.sort_by_key(|it| it.kind);
        steps
    });
    for pair in steps.windows(2) {
        for (slow, fast) in pair[0].iter().zip(&pair[1]) {
            let (slow_s, fast_s) = (seconds(slow), seconds(fast));
            assert!(fast_s <= slow_s * 1.001, "step {}: {slow_s} {fast_s}", slow.kind);
        }
    }
    let [disk, .., nothing] = &steps;
    assert!(duration(disk) > 2.0 * duration(nothing));
}

#[test]
fn streams_and_workers_share_the_processors() {
    let took = |streams, workers, cores| {
        let job = done(warehouse(streams, workers, Bytes::from_gib(2)), cores, &device("null"));
        [duration(&of_run(&job, 1)), duration(&of_run(&job, 2))]
    };
    let [_, alone] = took(2, 0, 3);
    let [_, crowded] = took(2, 0, 1);
    assert!((1.9..2.2).contains(&(crowded / alone)), "{crowded} {alone}");
    let [serial, _] = took(1, 0, 3);
    let [parallel, _] = took(1, 2, 3);
    assert!(parallel < 0.8 * serial && parallel > 0.33 * serial, "{parallel} {serial}");
}

/// All processor time that is demanded is done, and that is what the demands say.
#[test]
fn work_and_reads_are_conserved() {
    let mut database = warehouse(1, 2, Bytes::from_mib(64));
    let free = Nanos::ZERO;
    let demands = &mut database.demands;
    demands.cpu_per_page_read = free;
    demands.cpu_per_page_write = free;
    demands.cpu_per_log_flush = free;
    let of_unit = |kind: &TypeDemand| kind.cpu_per_unit.0;
    let units: u64 = demands.types.iter().map(of_unit).sum();
    let (_, seconds) = until_done(&alone(database, 4), &device("p4500-2000"));
    let of_host = |of: &dyn Fn(&EngineRun) -> f64| seconds.iter().map(of).sum::<f64>();
    let demanded = of_host(&|second| second.hosts[0].used.demanded_ns as f64);
    let completed = of_host(&|second| second.hosts[0].used.done_ns);
    // Two runs with a stream each.
    let expected = (2 * units * u64::from(HUNDREDTHS)) as f64;
    assert!((demanded / expected - 1.0).abs() < 0.01, "{demanded} {expected}");
    assert!((completed / demanded - 1.0).abs() < 1e-3, "{completed} {demanded}");
    let reads = seconds.iter().map(|second| second.databases[0].io.job[0].read);
    let (mut arrivals, mut departures, mut present, mut stay) = (0, 0, 0, 0);
    for station in reads {
        arrivals += station.arrivals;
        departures += station.departures;
        present += station.present_ns;
        stay += station.stay_ns;
    }
    assert!(arrivals > 1_000 && arrivals == departures, "{arrivals} {departures}");
    // Little's law, exactly, as nothing is under way at either end.
    assert_eq!(present, stay);
}

#[test]
fn equal_seeds_give_equal_results_and_other_engines_are_refused() {
    let run = || until_done(&alone(warehouse(2, 2, Bytes::from_mib(64)), 2), &device("p4500-2000"));
    assert_eq!(run(), run());
    let mut database = warehouse(0, 0, Bytes::from_mib(64));
    database.engine = EngineSpec::Mariadb(InnodbSettings::default());
    let said: Vec<String> = alone(database, 1).problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["database `db`: the queries of a warehouse are simulated on PostgreSQL only"]
    );
}
