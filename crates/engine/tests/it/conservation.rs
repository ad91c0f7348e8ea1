//! Conservation laws: Little's law for every queue, the utilisation law for every resource, pages,
//! bytes and requests in balance. Over random scenarios: both engines, all workloads of users, one
//! or two threads per core, devices and a cluster.
//!
//! Windows follow each other from the first moment on: a few with all users, then some without,
//! until all that the users began has ended. So sums over all windows are complete, and what is
//! under way at the end of a window is known: laws hold exactly, not but for the ends of a window.

use crate::cluster;
use crate::dvdstore::shop;
use crate::mariadb::mariadb;
use crate::scenario::{device, postgresql, store, tpcc};
use crate::sysbench::workload;
use proptest::prelude::{ProptestConfig, proptest};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::result::{Place, Unwritten};
use underlay_engine::station::Station;
use underlay_engine::{
    DatabaseResult, DemandProfile, EngineRun, EngineSpec, HostResult, HostSpec, InnodbSettings,
    Scenario, Simulation, Window,
};
use underlay_model::cluster::Stack;
use underlay_model::target::{ClusterTarget, Target, TargetFinished, TargetOutcome};
use underlay_model::{DeviceProfile, Medium, Operation, Request};
use underlay_workload::sysbench::Script;

/// No multiple of the rounds of the writers, so that windows do not end when a round begins.
const WINDOW: Nanos = Nanos::from_millis(437);
/// In which users end what they began.
const WINDOWS_WITHOUT_USERS_MAX: u32 = 80;
const DEVICES: [&str; 4] = ["5200eco-1920", "extreme-pro-480", "p4500-2000", "null"];
/// Of the cluster's hosts, per I/O.
const STACK: Nanos = Nanos::from_micros(5);
/// What a request may occupy of a cluster's stage after it was answered.
const BACKLOG: Nanos = Nanos::from_millis(10);
/// Longer than any request.
const REQUEST_BYTES_MAX: u128 = 2 << 20;

/// Requests of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traffic {
    requests: u64,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    written_bytes: u64,
}

impl Traffic {
    fn add(&mut self, request: &Request) {
        let bytes = u64::from(request.length_bytes);
        self.requests += 1;
        match request.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Operation::Write => {
                self.writes += 1;
                self.written_bytes += bytes;
            }
            _ => {}
        }
    }
}

/// What passes to a volume and back, as the volume sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flow {
    submitted: Traffic,
    completed: Traffic,
    in_flight: u64,
    /// Of those that are completed.
    stay_ns: u128,
}

/// A target that counts what passes to the volumes of data and log. It knows nothing of what the
/// engine counts.
struct Counted<T> {
    inner: T,
    flows: [Flow; 2],
    /// By slot: volume, request and time of submission of what is in flight.
    slots: Vec<Option<(usize, Request, Nanos)>>,
}

impl<T> Counted<T> {
    fn complete(&mut self, now: Nanos, finished: &[TargetFinished]) {
        for done in finished {
            let slot = self.slots[done.slot as usize].take();
            let (volume, request, since) = slot.expect("what completes was in flight");
            assert!(since <= done.at && done.at <= now, "{done:?} of {since} at {now}");
            assert_eq!(done.outcome, TargetOutcome::Ok);
            let flow = &mut self.flows[volume];
            flow.completed.add(&request);
            flow.in_flight -= 1;
            flow.stay_ns += u128::from((now - since).0);
        }
    }
}

impl<T: Target> Target for Counted<T> {
    fn submit(&mut self, now: Nanos, volume: usize, request: &Request, slot: u32) {
        let place = slot as usize;
        if place >= self.slots.len() {
            self.slots.resize(place + 1, None);
        }
        let before = self.slots[place].replace((volume, *request, now));
        assert!(before.is_none(), "slot {slot} is in use");
        self.flows[volume].submitted.add(request);
        self.flows[volume].in_flight += 1;
        self.inner.submit(now, volume, request, slot);
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.inner.next_wakeup()
    }

    fn advance(&mut self, now: Nanos, finished: &mut Vec<TargetFinished>) {
        let before = finished.len();
        self.inner.advance(now, finished);
        self.complete(now, &finished[before..]);
    }

    fn advance_to_finish(&mut self, limit: Nanos, finished: &mut Vec<TargetFinished>) -> Nanos {
        let before = finished.len();
        let now = self.inner.advance_to_finish(limit, finished);
        self.complete(now, &finished[before..]);
        now
    }
}

/// A station since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Little {
    arrivals: u64,
    departures: u64,
    present: u64,
    present_ns: u128,
    stay_ns: u128,
}

impl Little {
    /// Little's law: the integral of the number present is the sum of the stays, but for how long
    /// those present have been there, which is at most `elapsed` each.
    fn add(&mut self, name: &str, station: &Station, elapsed: Nanos) {
        self.arrivals += station.arrivals;
        self.departures += station.departures;
        self.present = station.present();
        self.present_ns += station.present_ns;
        self.stay_ns += station.stay_ns;
        assert_eq!(self.arrivals, self.departures + self.present, "{name}: {station:?}");
        let most = u128::from(self.present) * u128::from(elapsed.0);
        let ages = self.present_ns.checked_sub(self.stay_ns);
        assert!(ages.is_some_and(|ages| ages <= most), "{name} at {elapsed}: {self:?}");
    }
}

/// Stations of I/O: those of the data volume, then those of the log volume.
const IO: [&str; 8] = [
    "read",
    "page write",
    "data flush",
    "doublewrite",
    "analyze",
    "read ahead",
    "log write",
    "log flush",
];
const DATA_STATIONS: usize = 6;

fn io(database: &DatabaseResult) -> [Station; IO.len()] {
    let io = &database.io;
    [
        io.read,
        io.page_write,
        io.data_flush,
        io.doublewrite,
        io.analyze,
        io.read_ahead,
        io.log_write,
        io.log_flush,
    ]
}

/// Sums over all windows.
#[derive(Debug, Default)]
struct Ledger {
    elapsed: Nanos,
    places: [Little; Place::COUNT],
    io: [Little; IO.len()],
    bursts: Little,
    responses_ns: u128,
    /// At the end of the last window.
    unwritten: Unwritten,
    /// Misses of the buffer pool that need a read.
    missed_pages: u64,
    /// Pages that the kernel reads ahead, and those that autovacuum reads.
    read_pages: u64,
    written_pages: u64,
    doublewrite_pages: u64,
    inserted: u64,
    log_written: u64,
    log_flushes: u64,
    demanded_ns: u128,
    done_ns: f64,
}

impl Ledger {
    fn add(&mut self, run: &EngineRun, engine: &EngineSpec, flows: &[Flow; 2]) {
        let database = &run.databases[0];
        self.elapsed += run.length();
        for place in Place::ALL {
            let number = place as usize;
            let station = &database.places[number];
            self.places[number].add(place.as_str(), station, self.elapsed);
        }
        let stations = io(database).into_iter().zip(IO);
        for (sum, (station, name)) in self.io.iter_mut().zip(stations) {
            sum.add(name, &station, self.elapsed);
        }
        let response = database.response();
        let ended: u64 = database.types.iter().map(|kind| kind.committed + kind.rolled_back).sum();
        assert_eq!(ended, response.count());
        self.responses_ns += response.sum();
        self.add_pages(database, engine);
        self.add_log(database);
        self.add_volumes(engine, flows);
        self.add_processors(database, &run.hosts[0], run.length());
        self.unwritten = database.unwritten;
    }

    /// Pages that became dirty are written, or still dirty; nothing is lost on the way through the
    /// kernel, and nothing is written twice.
    fn add_pages(&mut self, database: &DatabaseResult, engine: &EngineSpec) {
        let (pool, writers, unread) = (&database.pool, &database.writers, &database.unread);
        let (before, now) = (&self.unwritten, &database.unwritten);
        let left_pool = match engine {
            EngineSpec::Postgresql(_) => {
                assert_eq!(writers.session_pages, pool.dirty_evictions + unread.created);
                let of_writers = writers.checkpoint_pages + writers.background_pages;
                assert_eq!(
                    before.kernel_pages + of_writers + writers.session_pages,
                    writers.merged_pages + writers.written_pages + now.kernel_pages,
                    "{writers:?}"
                );
                assert_eq!(writers.checkpoints, database.io.data_flush.departures);
                of_writers - writers.analyze_pages + pool.dirty_evictions
            }
            EngineSpec::Mariadb(_) => {
                assert_eq!((writers.session_pages, pool.dirty_evictions), (0, 0));
                // A page is dirty until its write is done.
                database.io.page_write.departures
            }
        };
        let (dirtied, still) = (before.pool_pages + pool.dirtied, now.pool_pages);
        assert_eq!(dirtied, left_pool + still, "{pool:?} {writers:?}");
        assert_eq!(writers.write_requests, database.io.page_write.arrivals);
        self.written_pages += writers.written_pages;
        self.doublewrite_pages += writers.doublewrite_pages;
        if let EngineSpec::Mariadb(settings) = engine
            && settings.doublewrite
        {
            // Pages of a batch that others have written since are not written again.
            assert!(self.written_pages <= self.doublewrite_pages, "{writers:?}");
        }

        self.missed_pages += pool.misses - unread.created - unread.cached;
        let reads = self.io[0].arrivals;
        self.read_pages += database.ahead_pages + database.io.analyze.arrivals;
        assert!(reads <= self.missed_pages, "{reads} reads, {pool:?}, {unread:?}");
    }

    fn add_log(&mut self, database: &DatabaseResult) {
        let log = &database.log;
        let (before, now) = (self.unwritten.log_bytes, database.unwritten.log_bytes);
        assert_eq!(before + log.inserted, log.durable + now, "{log:?}");
        assert!(log.images <= log.inserted);
        assert_eq!(log.writes, database.io.log_write.arrivals);
        assert_eq!(log.flushes, database.io.log_flush.departures);
        self.inserted += log.inserted;
        self.log_written += log.written;
        self.log_flushes += log.flushes;
        assert!(self.log_written + now >= self.inserted, "{log:?}");
        // A flush writes whole blocks, the first and the last of which are partly filled. One is
        // under way.
        let blocks = 2 * 8_192 * (self.log_flushes + 1);
        assert!(self.log_written <= self.inserted + blocks, "{log:?}");
    }

    /// Requests and bytes are the same on both sides of the interface of volumes.
    fn add_volumes(&self, engine: &EngineSpec, [data, log]: &[Flow; 2]) {
        let (of_data, of_log) = self.io.split_at(DATA_STATIONS);
        for (stations, flow) in [(of_data, data), (of_log, log)] {
            let sum = |of: fn(&Little) -> u64| -> u64 { stations.iter().map(of).sum() };
            assert_eq!(sum(|station| station.arrivals), flow.submitted.requests, "{stations:?}");
            assert_eq!(sum(|station| station.departures), flow.completed.requests, "{stations:?}");
            assert_eq!(sum(|station| station.present), flow.in_flight, "{stations:?}");
            let stays: u128 = stations.iter().map(|station| station.stay_ns).sum();
            assert_eq!(stays, flow.stay_ns, "{stations:?}");
            let Flow { submitted, completed, in_flight, .. } = flow;
            assert_eq!(submitted.requests, completed.requests + in_flight);
        }
        let page = u64::from(engine.page_bytes());
        let written = self.written_pages + self.doublewrite_pages;
        assert_eq!(data.submitted.written_bytes, written * page, "{data:?}");
        // Who is on the processor before its read has not asked for what is read ahead with it.
        let pages = self.read_pages + self.io[0].arrivals;
        assert!(data.submitted.read_bytes <= pages * page, "{data:?}, {pages} pages");
        assert_eq!((log.submitted.written_bytes, log.submitted.reads), (self.log_written, 0));
    }

    /// The utilisation law: processors are busy for as long as the work takes that they do.
    fn add_processors(&mut self, database: &DatabaseResult, host: &HostResult, length: Nanos) {
        let used = &host.used;
        self.bursts.add("bursts", &used.bursts, self.elapsed);
        let (length, threads) = (length.0 as f64, f64::from(host.threads));
        // Of rounding: virtual time is a floating-point number.
        let (more, margin) = (1.0 + 1e-9, 10.0);
        assert!(used.busy_thread_ns <= threads * length * more + margin, "{used:?}");
        assert!(used.done_ns <= host.full_capacity * length * more + margin, "{used:?}");
        // No more threads are busy than have something to do, and a session that is on the
        // processor has a burst.
        assert!(used.busy_thread_ns <= used.bursts.present_ns as f64 * more + margin, "{used:?}");
        let of_sessions = database.places[Place::Cpu as usize].present_ns;
        assert!(of_sessions <= used.bursts.present_ns, "{of_sessions} {used:?}");
        // A thread alone on its core works at speed 1, one with another at half of a core's yield.
        let slowest = host.full_capacity / threads;
        assert!(used.done_ns <= used.busy_thread_ns * more + margin, "{used:?}");
        assert!(used.done_ns * more + margin >= used.busy_thread_ns * slowest, "{used:?}");

        self.demanded_ns += used.demanded_ns;
        self.done_ns += used.done_ns;
        // A burst ends at a whole nanosecond.
        let rounding = self.bursts.arrivals as f64 + margin;
        let left = self.demanded_ns as f64 * more + rounding - self.done_ns;
        assert!(left >= 0.0, "more work is done than was demanded: {left} {used:?}");
        if self.bursts.present == 0 {
            let difference = (self.done_ns - self.demanded_ns as f64).abs();
            assert!(difference <= rounding + self.done_ns * 1e-9, "{difference} {used:?}");
        }
    }

    /// Users have ended what they began.
    fn close(&self, engine: &EngineSpec, data: &Flow) {
        // Response times are stays, and each page that was missed was read.
        let stays: u128 = self.places.iter().map(|place| place.stay_ns).sum();
        assert_eq!(self.responses_ns, stays);
        assert_eq!(self.io[0].departures, self.missed_pages);
        let pages = self.read_pages + self.io[0].arrivals;
        assert_eq!(data.submitted.read_bytes, pages * u64::from(engine.page_bytes()));
    }
}

/// Whether all that users began has ended, and no burst is on the processors.
fn is_quiet(run: &EngineRun) -> bool {
    let database = &run.databases[0];
    let io = [database.io.read, database.io.read_ahead];
    let stations = database.places.iter().chain(&io).chain([&run.hosts[0].used.bursts]);
    database.unwritten.log_bytes == 0 && stations.map(Station::present).sum::<u64>() == 0
}

/// Runs so many windows with users, then until they have ended what they began, and checks the laws
/// after each window. `check_use` is given the target, what it was asked, and the time.
fn simulate<T: Target>(
    scenario: &Scenario,
    target: T,
    windows: u32,
    check_use: impl Fn(&T, &[Flow; 2], Nanos),
) -> Vec<EngineRun> {
    let target = Counted { inner: target, flows: [Flow::default(); 2], slots: Vec::new() };
    let mut simulation = Simulation::new(scenario, target, RootSeed(3)).expect("a valid scenario");
    simulation.warm_caches(4_000);
    let database = &scenario.databases[0];
    let window = Window { warm_up: Nanos::ZERO, measure: WINDOW };
    let (mut ledger, mut runs) = (Ledger::default(), Vec::new());
    for number in 0..windows + WINDOWS_WITHOUT_USERS_MAX {
        if number == windows {
            simulation.set_users(0);
        }
        let run = simulation.run(&window);
        let target: &Counted<T> = simulation.target_mut();
        ledger.add(&run, &database.engine, &target.flows);
        check_use(&target.inner, &target.flows, ledger.elapsed);
        if number < windows {
            // Without pauses, every user is somewhere all the time.
            let places = run.databases[0].places.iter();
            let present: u128 = places.map(|place| place.present_ns).sum();
            let users = u128::from(database.load.users());
            assert_eq!(present, users * u128::from(run.length().0));
        }
        let is_over = number >= windows && is_quiet(&run);
        runs.push(run);
        if is_over {
            ledger.close(&database.engine, &target.flows[0]);
            return runs;
        }
    }
    panic!("users do not end what they began: {:?}", runs.last());
}

/// The stages of a device that serve one request at a time are busy for at most as long as time
/// passes.
fn check_device(profile: &DeviceProfile, [data, log]: &[Flow; 2], elapsed: Nanos) {
    let sum = |of: fn(&Traffic) -> u64| of(&data.completed) + of(&log.completed);
    if let Medium::Flash(flash) = &profile.medium {
        let reads = sum(|done| done.reads) * flash.read_command.0;
        let writes = sum(|done| done.writes) * flash.write_command.0;
        assert!(reads + writes <= elapsed.0, "commands took {reads} and {writes} of {elapsed}");
    }
    if let Some(link) = profile.link {
        let directions = [
            (sum(|done| done.read_bytes), link.read_bytes_per_second),
            (sum(|done| done.written_bytes), link.write_bytes_per_second),
        ];
        for (bytes, rate) in directions {
            let most = u128::from(rate) * u128::from(elapsed.0) / 1_000_000_000;
            // The last request's transfer may end after the request.
            assert!(u128::from(bytes) <= most + REQUEST_BYTES_MAX, "{bytes} in {elapsed}");
        }
    }
}

/// The same of the hosts of a cluster. What one host sends another one receives, and every request
/// passes a stack.
fn check_cluster(target: &ClusterTarget, [data, log]: &[Flow; 2], elapsed: Nanos) {
    let cluster = target.cluster();
    let [mut stack, mut sent, mut received] = [Nanos::ZERO; 3];
    for host in cluster.hosts() {
        let used = cluster.host_use(host).expect("a host of the cluster");
        for busy in [used.stack_busy, used.send_busy, used.receive_busy] {
            assert!(busy <= elapsed + BACKLOG, "{used:?} in {elapsed}");
        }
        stack += used.stack_busy;
        sent += used.send_busy;
        received += used.receive_busy;
    }
    assert_eq!(sent, received);
    let requests = [data, log].map(|flow| flow.completed.reads + flow.completed.writes);
    assert!(stack.0 >= requests.iter().sum::<u64>() * STACK.0, "{stack} for {requests:?}");
}

/// What is the same for all engines, workloads and targets of a case.
#[derive(Clone, Copy, Debug)]
struct Case {
    users: u32,
    cores: u32,
    threads_per_core: u32,
    memory: Bytes,
    /// Whether the log makes checkpoints often.
    has_small_log: bool,
    script: Script,
}

/// A scenario of an engine and of workload 0, 1 or 2.
fn scenario(case: Case, is_innodb: bool, number: usize) -> Scenario {
    let mut scenario = if is_innodb {
        let log_mib = if case.has_small_log { 8 } else { 256 };
        let settings = InnodbSettings {
            buffer_pool_size: case.memory,
            log_file_size: Bytes::from_mib(log_mib),
            ..InnodbSettings::default()
        };
        mariadb(8, case.users, settings)
    } else {
        let mut scenario = tpcc(8, case.users, case.cores, case.memory);
        let settings = postgresql(&mut scenario);
        settings.max_wal_size = Bytes::from_mib(if case.has_small_log { 16 } else { 1_024 });
        settings.autovacuum_naptime = Some(Nanos::from_secs(1));
        settings.autovacuum_analyze_scale_factor = 0.001;
        scenario
    };
    let database = &mut scenario.databases[0];
    let by_engine = |postgresql: fn() -> DemandProfile, mariadb: fn() -> DemandProfile| {
        if is_innodb { mariadb() } else { postgresql() }
    };
    match number {
        0 => {}
        1 => {
            database.workload = workload(case.script);
            database.demands =
                by_engine(DemandProfile::sysbench_postgresql, DemandProfile::sysbench_mariadb);
        }
        _ => {
            database.workload = shop();
            database.demands =
                by_engine(DemandProfile::dvdstore_postgresql, DemandProfile::dvdstore_mariadb);
        }
    }
    let smt_yield = if case.threads_per_core == 1 { 1.0 } else { 1.25 };
    scenario.hosts[0] = HostSpec {
        threads_per_core: case.threads_per_core,
        smt_yield,
        ..HostSpec::new("host", case.cores)
    };
    scenario
}

/// Simulates so many windows with users on a device, and checks all laws.
pub fn check_on(name: &str, scenario: &Scenario, windows: u32) -> Vec<EngineRun> {
    let profile = device(name);
    simulate(scenario, store(&profile, 1), windows, |_, flows, elapsed| {
        check_device(&profile, flows, elapsed);
    })
}

/// The same on a cluster.
fn check_on_cluster(scenario: &Scenario, windows: u32) -> Vec<EngineRun> {
    let stack = Stack { per_io: STACK, ..Stack::NONE };
    simulate(scenario, cluster::target(1, stack), windows, check_cluster)
}

/// The sum of a counter over all windows.
pub fn sum(runs: &[EngineRun], of: fn(&DatabaseResult) -> u64) -> u64 {
    runs.iter().map(|run| of(&run.databases[0])).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_after_each_window_and_equal_seeds_give_equal_results(
        users in 1u32..32,
        cores in 1u32..5,
        threads_per_core in 1u32..=2,
        mib in 24u64..200,
        has_small_log in proptest::bool::ANY,
        script in 0..Script::ALL.len(),
        storage in 0..=DEVICES.len(),
    ) {
        let memory = Bytes::from_mib(mib);
        let script = Script::ALL[script];
        let case = Case { users, cores, threads_per_core, memory, has_small_log, script };
        for number in 0..6 {
            let scenario = scenario(case, number % 2 == 1, number / 2);
            // All devices and the cluster have their turn in each case.
            let storage = (storage + number) % (DEVICES.len() + 1);
            let runs = [(); 2].map(|()| match DEVICES.get(storage) {
                Some(name) => check_on(name, &scenario, 2),
                None => check_on_cluster(&scenario, 2),
            });
            assert!(runs[0] == runs[1], "equal seeds give equal results: {case:?}");
        }
    }
}

#[test]
fn laws_hold_with_misses_and_evictions() {
    let runs = check_on("p4500-2000", &tpcc(20, 32, 4, Bytes::from_mib(48)), 10);
    assert!(sum(&runs, |database| database.pool.dirty_evictions) > 0);
    assert!(sum(&runs, |database| database.writers.written_pages) > 100);
}

#[test]
fn laws_hold_while_autovacuum_reads() {
    let mut scenario = tpcc(8, 16, 4, Bytes::from_mib(48));
    let settings = postgresql(&mut scenario);
    settings.autovacuum_naptime = Some(Nanos::from_secs(1));
    settings.autovacuum_analyze_scale_factor = 0.001;
    let runs = check_on("p4500-2000", &scenario, 20);
    assert!(sum(&runs, |database| database.io.analyze.departures) > 5_000);
}

#[test]
fn laws_hold_while_the_page_cleaner_frees_frames() {
    let settings =
        InnodbSettings { buffer_pool_size: Bytes::from_mib(128), ..InnodbSettings::default() };
    let runs = check_on("p4500-2000", &mariadb(16, 32, settings), 20);
    assert!(sum(&runs, |database| database.pool.evictions) > 1_000);
}
