//! The collector as a whole: against a real kernel, a real PostgreSQL under load, a server that dies
//! and comes back, and a host on which nothing can be read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use underlay_core::Nanos;
use underlay_core::series::SeriesKind;
use underlay_database::{Engine, Target};
use underlay_telemetry::{
    CATALOGUE, CgroupTarget, Collector, Item, Roots, SamplingRates, SourceInfo, Status, Targets,
    VolumeTarget, WaitKey,
};
use underlay_testbed::{NoServer, TestServer, execute, or_skip, runtime, text, texts};

const HOT_CLIENTS: usize = 6;

/// Sessions of one second: counts, samples, holders, holder samples.
type Waits = (Vec<(WaitKey, u32)>, u32, Vec<(WaitKey, u32)>, u32);

/// Everything a collector sent, sorted.
#[derive(Default)]
struct Heard {
    sources: BTreeMap<usize, SourceInfo>,
    ticks: BTreeMap<usize, Vec<(Nanos, Nanos, Vec<f64>)>>,
    waits: Vec<Waits>,
    notes: Vec<String>,
}

impl Heard {
    fn all(items: &Receiver<Item>) -> Heard {
        let mut heard = Heard::default();
        for item in items.try_iter() {
            match item {
                Item::Source(number, info) => {
                    heard.sources.insert(number, info);
                }
                Item::Tick { source, begin, end, values } => {
                    let info = &heard.sources[&source];
                    assert_eq!(values.len(), info.series.len(), "{}: one value each", info.name);
                    assert!(begin <= end);
                    heard.ticks.entry(source).or_default().push((begin, end, values));
                }
                Item::Waits { begin, end, counts, samples, holders, holder_samples, .. } => {
                    assert!(begin <= end);
                    heard.waits.push((counts, samples, holders, holder_samples));
                }
                Item::Note { text, .. } => heard.notes.push(text),
            }
        }
        heard
    }

    fn number(&self, name: &str) -> usize {
        let found = self.sources.iter().find(|(_, info)| info.name == name);
        *found.unwrap_or_else(|| panic!("source {name} was announced")).0
    }

    fn status(&self, name: &str) -> &Status {
        &self.sources[&self.number(name)].status
    }

    /// The values of one series over all ticks.
    fn series(&self, source: &str, name: &str) -> Vec<f64> {
        let number = self.number(source);
        let info = &self.sources[&number];
        let index = info.series.iter().position(|series| series.name == name);
        let index = index.unwrap_or_else(|| panic!("{source} has {name}: {:?}", info.series));
        let at = |values: &Vec<f64>| values.get(index).copied().unwrap_or(f64::NAN);
        self.ticks.get(&number).into_iter().flatten().map(|(_, _, values)| at(values)).collect()
    }

    fn growth(&self, source: &str, name: &str) -> f64 {
        let values = self.series(source, name);
        values.last().expect("ticks") - values.first().expect("ticks")
    }
}

/// Clients that fight for one row, holding it while they sleep, and clients that read and insert.
struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(target: &Target) -> Load {
        const HOT: &str = "BEGIN; UPDATE hot SET n = n + 1; SELECT pg_sleep(0.01); COMMIT";
        const COLD: &str = "INSERT INTO cold SELECT g, repeat('x', 200) FROM generate_series(1, 20) g; \
                            SELECT count(*) FROM cold";
        let stop = Arc::new(AtomicBool::new(false));
        let connected = Arc::new(Barrier::new(HOT_CLIENTS + 2));
        let statements = std::iter::repeat_n(HOT, HOT_CLIENTS).chain([COLD]);
        let clients = statements
            .map(|sql| {
                let (target, stop, connected) = (target.clone(), stop.clone(), connected.clone());
                std::thread::spawn(move || {
                    runtime().block_on(async {
                        let client = target.connect().await.expect("the server answers");
                        connected.wait();
                        while !stop.load(Ordering::Relaxed) {
                            client.batch_execute(sql).await.expect("the statements run");
                        }
                    });
                })
            })
            .collect();
        connected.wait();
        Load { stop, clients }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("a client ends well");
        }
    }
}

/// A volume that is a folder of a file system.
fn folder(name: &str, path: &str) -> VolumeTarget {
    VolumeTarget { name: name.to_string(), place: path.to_string(), owns_device: false }
}

fn targets(server: Option<&TestServer>) -> Targets {
    Targets {
        databases: Vec::new(),
        origin: Instant::now(),
        database: server.map(TestServer::target),
        processes: server.map(|server| ("postgres".to_string(), pid(server))).into_iter().collect(),
        cgroup: None,
        volumes: Vec::new(),
        extra: Vec::new(),
    }
}

fn server() -> Result<TestServer, NoServer> {
    let small = [("fsync", "off"), ("shared_buffers", "32MB"), ("max_connections", "50")];
    TestServer::start(Engine::Postgresql, &small)
}

/// Its first process.
fn pid(server: &TestServer) -> u32 {
    server.server.pid().expect("the server runs")
}

/// Views that this server may be too old to have, with columns of versions 16, 17 and 18.
const VIEWS_OF_LATER_VERSIONS: &str = "
    SET allow_system_table_mods = on;
    DO $$ BEGIN
    IF to_regclass('pg_catalog.pg_stat_io') IS NULL THEN
        CREATE VIEW pg_catalog.pg_stat_io AS
            SELECT * FROM (VALUES
                ('client backend', 'relation', 'normal', 40::int8, 1.5::float8, NULL::int8, 327680::numeric, now()),
                ('client backend', 'relation', 'vacuum', 2, 0.5, NULL, 16384, now()),
                ('logical replication worker', 'relation', 'normal', 7, 0, 5, 8192, now()),
                ('slotsync worker', 'relation', 'normal', 1, 0, 1, 8192, now()),
                ('walwriter', 'wal', 'normal', NULL, NULL, 3, NULL, now())
            ) AS t (backend_type, object, context, reads, read_time, fsyncs, read_bytes, stats_reset);
    END IF;
    IF to_regclass('pg_catalog.pg_stat_checkpointer') IS NULL THEN
        CREATE VIEW pg_catalog.pg_stat_checkpointer AS
            SELECT 3::int8 AS num_timed, 4::int8 AS num_done, 7.25::float8 AS write_time;
    END IF;
    END $$";

#[test]
fn a_loaded_server_is_observed_from_all_sides() {
    let server = or_skip!(server());
    execute(
        &server.target(),
        "CREATE TABLE hot (n int8); INSERT INTO hot VALUES (0); CREATE TABLE cold (k int8, t text)",
    );
    let is_old =
        text(&server.target(), "SELECT to_regclass('pg_catalog.pg_stat_io') IS NULL") == "t";
    execute(&server.target(), VIEWS_OF_LATER_VERSIONS);
    let load = Load::start(&server.target());
    let (sink, items) = channel();
    let mut targets = targets(Some(&server));
    targets.volumes.push(folder("data", env!("CARGO_MANIFEST_DIR")));
    let collector = Collector::start(targets, Duration::from_secs(1), sink);
    std::thread::sleep(Duration::from_millis(4300));
    let report = collector.stop();
    load.stop();
    let heard = Heard::all(&items);

    ticks_lie_on_whole_seconds(&heard);
    everything_was_declared(&heard);
    sessions_close_to_the_number_of_clients(&heard);
    lock_waits_are_led_to_the_sleeping_holder(&heard);

    assert_eq!(*heard.status("postgres"), Status::Available, "{:?}", heard.notes);
    assert_eq!(*heard.status("waits"), Status::Available);
    assert!(heard.growth("postgres", "database.xact_commit") > 10.0);
    assert!(heard.growth("postgres", "user_tables.n_tup_ins") > 10.0);
    assert!(heard.growth("postgres", "wal.position") > 1000.0);
    assert!(heard.growth("postgres", "slru.blks_hit") >= 0.0);
    assert!(heard.growth("process", "postgres.on_cpu") > 1e6);
    assert!(heard.growth("process", "postgres.write.calls") > 10.0);
    assert!(heard.growth("host_cpu", "cpu.idle") >= 0.0);
    assert!(heard.series("process", "postgres.processes").iter().all(|n| *n >= 10.0));
    assert!(heard.notes.iter().any(|note| note.starts_with("server_version = ")));
    if is_old {
        later_versions_are_discovered(&heard);
    }
    assert!(report.tiers.iter().all(|tier| tier.ticks >= 3), "{report:?}");
    assert!(report.cpu() > Nanos::ZERO);
}

fn ticks_lie_on_whole_seconds(heard: &Heard) {
    for (number, ticks) in &heard.ticks {
        let name = &heard.sources[number].name;
        assert!(ticks.len() >= 3, "{name} has {} ticks", ticks.len());
        for pair in ticks.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{name}: windows do not overlap");
        }
        let early = ticks.iter().filter(|(begin, _, _)| begin.0 % 1_000_000_000 > 500_000_000);
        assert_eq!(early.count(), 0, "{name}: a tick begins at its second or soon after");
    }
}

fn everything_was_declared(heard: &Heard) {
    for info in heard.sources.values() {
        let doc = CATALOGUE.iter().find(|doc| doc.name == info.name).expect("declared");
        assert_eq!(doc.layer, info.layer);
        for series in &info.series {
            assert!(
                doc.series.iter().any(|doc| doc.declares(series)),
                "{}: {series:?} is not declared",
                info.name
            );
        }
    }
    for (number, ticks) in &heard.ticks {
        let info = &heard.sources[number];
        let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else { continue };
        for (index, series) in info.series.iter().enumerate() {
            let (before, after) = (first.2.get(index), last.2.get(index));
            let may_step_back = series.name.ends_with("idle") || series.name.ends_with("iowait");
            if let (SeriesKind::Counter, Some(before), Some(after), false) =
                (series.kind, before, after, may_step_back)
            {
                let fell = after < before;
                assert!(!fell, "{}.{}: {before} -> {after}", info.name, series.name);
            }
        }
    }
}

fn sessions_close_to_the_number_of_clients(heard: &Heard) {
    let full: Vec<&Waits> = heard.waits.iter().filter(|waits| waits.1 >= 10).collect();
    assert!(full.len() >= 2, "two seconds with samples");
    for (counts, samples, _, _) in full {
        // The server's own workers, such as autovacuum, come and go.
        let of_clients = counts.iter().filter(|(key, _)| key.backend_type == "client backend");
        let sessions: u32 = of_clients.map(|(_, count)| count).sum();
        let mean = f64::from(sessions) / f64::from(*samples);
        let clients = (HOT_CLIENTS + 1) as f64;
        assert!((mean - clients).abs() < 0.1, "{mean} sessions instead of {clients}: {counts:?}");
        assert!(counts.iter().all(|(key, _)| !key.backend_type.is_empty()));
    }
}

fn lock_waits_are_led_to_the_sleeping_holder(heard: &Heard) {
    let mut holders: BTreeMap<&WaitKey, u32> = BTreeMap::new();
    let (mut waiting, mut samples) = (0, 0);
    for (counts, taken, found, _) in &heard.waits {
        samples += taken;
        waiting += counts
            .iter()
            .filter(|(key, _)| key.class == "Lock")
            .map(|(_, count)| count)
            .sum::<u32>();
        for (key, count) in found {
            *holders.entry(key).or_default() += count;
        }
    }
    let mean_waiting = f64::from(waiting) / f64::from(samples);
    assert!(mean_waiting > 3.0, "most hot clients wait on the lock: {mean_waiting}");
    let all: u32 = holders.values().sum();
    let sleeping: u32 =
        holders.iter().filter(|(key, _)| key.event == "PgSleep").map(|(_, count)| *count).sum();
    assert!(all > 20, "locks were followed: {holders:?}");
    assert!(sleeping * 2 > all, "the holder sleeps most of the time: {holders:?}");
    assert!(holders.keys().all(|key| key.class != "Lock"), "a root waits on no lock");
}

fn later_versions_are_discovered(heard: &Heard) {
    let last = |name: &str| *heard.series("postgres", name).last().expect("ticks");
    assert_eq!(last("io.client_backend.relation.reads"), 42.0, "contexts are added up");
    assert_eq!(last("io.client_backend.relation.read_bytes"), 344064.0);
    assert_eq!(last("io.other.relation.fsyncs"), 6.0, "rare actors are added up");
    assert_eq!(last("io.walwriter.wal.fsyncs"), 3.0);
    assert_eq!(last("checkpointer.write_time"), 7.25);
    let info = &heard.sources[&heard.number("postgres")];
    let has = |name: &str| info.series.iter().any(|series| series.name == name);
    assert!(!has("io.client_backend.relation.fsyncs"), "what an actor never does is no series");
    assert!(!has("io.walwriter.wal.reads"));
}

#[test]
fn a_crash_is_missing_values_and_then_recovery() {
    let mut server = or_skip!(server());
    let (sink, items) = channel();
    let rates =
        SamplingRates { waits_per_second: 50, ..SamplingRates::every(Duration::from_millis(100)) };
    let collector = Collector::start_with(targets(Some(&server)), &rates, sink);
    std::thread::sleep(Duration::from_millis(700));
    server.server.kill().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    server.server.start().unwrap();
    assert!(collector.set_process("postgres", pid(&server)));
    assert!(!collector.set_process("ghost", 1));
    std::thread::sleep(Duration::from_millis(1500));
    let began_to_stop = Instant::now();
    collector.stop();
    assert!(began_to_stop.elapsed() < Duration::from_secs(2));
    let heard = Heard::all(&items);

    // Present, missing, present: the pattern of a crash in one series.
    let commits = heard.series("postgres", "database.xact_commit");
    let mut pattern: Vec<bool> = commits.iter().map(|value| value.is_nan()).collect();
    pattern.dedup();
    assert!(
        pattern.starts_with(&[false, true]) && pattern.ends_with(&[true, false]),
        "{commits:?}"
    );
    assert_eq!(*heard.status("postgres"), Status::Available);
    for source in ["postgres", "waits"] {
        let failed =
            heard.series(source, if source == "waits" { "sessions" } else { "wal.position" });
        assert!(failed.iter().any(|value| value.is_nan()), "{source}");
        assert!(!failed.last().expect("ticks").is_nan(), "{source}: {failed:?}");
    }
    let count = |text: &str| heard.notes.iter().filter(|note| note.contains(text)).count();
    assert!(count("works again") >= 2, "{:?}", heard.notes);
    assert_eq!(count("does not answer"), count("works again"), "{:?}", heard.notes);
    assert!(heard.growth("waits", "samples.failed") > 3.0);

    // The sums of the process tree go on over the change of the root.
    let cpu = heard.series("process", "postgres.on_cpu");
    assert!(cpu.windows(2).all(|pair| pair[1] >= pair[0]), "{cpu:?}");
    assert!(
        heard.series("process", "postgres.processes").contains(&0.0),
        "{:?}",
        heard.series("process", "postgres.processes")
    );
}

#[test]
fn a_frozen_session_is_given_up_and_replaced() {
    use rustix::process::{Pid, Signal, kill_process};

    let server = or_skip!(server());
    execute(&server.target(), "CREATE ROLE plain LOGIN");
    let (sink, items) = channel();
    let mut targets = targets(Some(&server));
    targets.database = Some(Target { user: "plain".to_string(), ..server.target() });
    let collector = Collector::start(targets, Duration::from_millis(200), sink);
    std::thread::sleep(Duration::from_millis(1000));
    let sessions = texts(
        &server.target(),
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'underlay-telemetry'",
    );
    let sessions: Vec<i32> = sessions.iter().map(|pid| pid.parse().expect("a number")).collect();
    assert_eq!(sessions.len(), 2, "one for statistics, one for waits");
    let signal = |signal| {
        for pid in sessions.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            kill_process(pid, signal).expect("a session of this test's server");
        }
    };
    signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(3000));
    let began_to_stop = Instant::now();
    let report = collector.stop();
    assert!(began_to_stop.elapsed() < Duration::from_secs(2));
    signal(Signal::CONT);
    let heard = Heard::all(&items);
    let host = report.tiers.iter().find(|tier| tier.name == "proc").expect("it has a tier");
    let sql = report.tiers.iter().find(|tier| tier.name == "postgres").expect("it has a tier");
    assert!(sql.missed >= 4, "{sql:?}");
    assert!(host.missed < sql.missed / 2, "a frozen server does not delay {host:?}");
    for (source, series) in [("postgres", "wal.position"), ("waits", "sessions")] {
        let values = heard.series(source, series);
        assert!(values.iter().any(|value| value.is_nan()), "{source}: {values:?}");
        assert!(!values.last().expect("ticks").is_nan(), "{source}: {values:?}");
    }
    assert!(heard.notes.iter().any(|note| note.contains("no answer in 1.5s")), "{:?}", heard.notes);
    let hidden = heard.status("waits");
    assert!(matches!(hidden, Status::Degraded(why) if why.contains("pg_read_all_stats")));
    assert_eq!(*heard.status("postgres"), Status::Available, "statistics need no such role");
}

/// In a database where nobody else commits, all transactions are the observer's: a reader can take
/// them out. Without a maintenance database the sessions are sampled from the observed one.
#[test]
fn the_observer_knows_its_own_transactions() {
    let server = or_skip!(server());
    execute(&server.target(), "CREATE DATABASE quiet");
    let quiet = server.target().with_database("quiet");
    const DATABASES: &str = "SELECT datname FROM pg_stat_activity \
         WHERE application_name = 'underlay-telemetry' ORDER BY 1";
    let observed = |seconds| {
        let (sink, items) = channel();
        let mut targets = targets(None);
        targets.database = Some(quiet.clone());
        let collector = Collector::start(targets, Duration::from_millis(250), sink);
        std::thread::sleep(Duration::from_secs(seconds));
        let used = texts(&quiet, DATABASES);
        collector.stop();
        (Heard::all(&items), used)
    };
    let (heard, used) = observed(4);
    assert_eq!(used, ["postgres", "quiet"]);
    // The server hands in its counts up to a second late: compare totals, not differences.
    let last = |name: &str| *heard.series("postgres", name).last().expect("ticks");
    let (counted, own) = (last("database.xact_commit"), last("observer.transactions"));
    assert!(own > 80.0, "{own}");
    assert!((own - counted).abs() < 35.0, "the server counts {counted}, the observer {own}");

    execute(&quiet, "ALTER DATABASE postgres RENAME TO gone");
    let (heard, used) = observed(1);
    assert_eq!(used, ["quiet", "quiet"]);
    assert_eq!(*heard.status("waits"), Status::Available);
}

#[test]
fn what_cannot_be_read_says_why() {
    let nowhere = PathBuf::from("/nonexistent");
    let (sink, items) = channel();
    let mut targets = targets(None);
    targets.database = Some(Target::unix_socket(nowhere.clone(), 1, "nobody"));
    targets.cgroup =
        Some(CgroupTarget { memory: Some(nowhere.join("group")), ..CgroupTarget::default() });
    targets.volumes = vec![folder("data", "/nonexistent/volume")];
    targets.processes = vec![("ghost".to_string(), 1)];
    let rates = SamplingRates {
        roots: Roots { proc: nowhere.clone(), sys: nowhere },
        ..SamplingRates::every(Duration::from_millis(50))
    };
    let collector = Collector::start_with(targets, &rates, sink);
    std::thread::sleep(Duration::from_millis(400));
    let report = collector.stop();
    let heard = Heard::all(&items);
    for name in
        ["host_cpu", "memory", "pressure", "network", "block", "cgroup", "postgres", "waits"]
    {
        let status = heard.status(name);
        assert!(
            matches!(status, Status::Absent(why) if why.contains("/nonexistent") || why.contains("%2Fnonexistent")),
            "{name}: {status:?}"
        );
        assert!(!heard.ticks.contains_key(&heard.number(name)), "{name} has nothing to say");
    }
    assert!(matches!(heard.status("process"), Status::Degraded(why) if why.contains("ghost")));
    assert!(matches!(heard.status("underlay"), Status::Degraded(why) if why.contains("statm")));
    assert!(heard.growth("underlay", "tier.proc.ticks") >= 2.0);
    assert_eq!(report.tiers.len(), 3);
}

#[test]
fn a_slow_sampler_delays_only_itself_and_misses_are_counted() {
    use underlay_core::series::{Layer, SeriesSpec};
    use underlay_telemetry::{SampleError, Sampler};

    struct Slow(Vec<SeriesSpec>);
    impl Sampler for Slow {
        fn name(&self) -> &str {
            "slow"
        }
        fn layer(&self) -> Layer {
            Layer::Datastore
        }
        fn status(&self) -> &Status {
            &Status::Available
        }
        fn series(&self) -> &[SeriesSpec] {
            &self.0
        }
        fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
            std::thread::sleep(Duration::from_millis(250));
            values.push(1.0);
            Ok(())
        }
    }

    let (sink, items) = channel();
    let mut targets = targets(None);
    targets.extra.push(Box::new(Slow(vec![SeriesSpec::counter("x", "events")])));
    let collector = Collector::start(targets, Duration::from_millis(100), sink);
    std::thread::sleep(Duration::from_millis(1250));
    let report = collector.stop();
    let heard = Heard::all(&items);
    let slow = report.tiers.iter().find(|tier| tier.name == "slow").expect("it has a tier");
    let host = report.tiers.iter().find(|tier| tier.name == "proc").expect("it has a tier");
    assert!(slow.missed >= 2 * slow.ticks - 2, "{slow:?}");
    assert!(host.ticks >= 2 * slow.ticks, "{host:?} is not delayed by {slow:?}");
    assert!(heard.notes.iter().any(|note| note.contains("tier slow missed")), "{:?}", heard.notes);
    let ticks = &heard.ticks[&heard.number("slow")];
    assert_eq!(ticks.len() as u64, slow.ticks, "no tick is made up");
    assert!(ticks.iter().all(|(begin, end, _)| end.0 - begin.0 >= 250_000_000));
}
