//! The whole driver in real time, against nothing or against sessions made for the purpose: threads,
//! kernel timers, ticks and totals.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use underlay_core::{Nanos, RootSeed};
use underlay_database::{ErrorClass, SessionError};
use underlay_driver::noop::Noop;
use underlay_driver::{
    Arrivals, Commits, Connector, Delivery, DeliveryVerdict, DriveError, DriveSpec, DriveTick,
    Driver, Pacing, Saturation, SaturationVerdict, Session, noop_ceiling,
};
use underlay_workload::tpcc::{Entropy, Outcome, Parameters, Tpcc, TpccAccounting, Transaction};

fn workload() -> Tpcc {
    Tpcc::new(Parameters::new(4, RootSeed(5), Entropy::FULL).unwrap())
}

fn spec(users: u32) -> DriveSpec {
    DriveSpec::new(RootSeed(5), users)
}

fn start(spec: DriveSpec) -> Result<Driver<TpccAccounting>, DriveError> {
    Driver::start(spec, Noop(workload()), Instant::now())
}

/// These tests measure time, so only one of them runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

fn completed(tick: &DriveTick) -> u64 {
    tick.types.iter().map(|kind| kind.completed()).sum()
}

/// A session that keeps its whole thread busy or asleep.
#[derive(Clone)]
struct Rude(Duration, Tpcc);

impl Connector for Rude {
    type Workload = Tpcc;
    type Session = Rude;

    fn workload(&self) -> &Tpcc {
        &self.1
    }

    fn commits(&self, _: usize) -> Commits {
        Commits::Automatically(1)
    }

    fn limit_statements(&mut self, _: Duration) {}

    async fn connect(&self) -> Result<Rude, SessionError> {
        Ok(self.clone())
    }
}

impl Session for Rude {
    type Workload = Tpcc;

    async fn run(&mut self, _: &Transaction) -> Result<Outcome, SessionError> {
        std::thread::sleep(self.0);
        tokio::task::yield_now().await;
        Ok(Outcome::COMMITTED)
    }
}

#[test]
fn ticks_add_up_to_the_totals() {
    let _alone = alone();
    let spec = DriveSpec { threads: Some(3), ..spec(12) };
    let driver = start(spec).unwrap();
    let mut sum: Option<DriveTick> = None;
    for users in [1, 12, 5] {
        driver.set_users(users);
        wait(50);
        let tick = driver.tick();
        assert_eq!(tick.users.active, users);
        assert_eq!(tick.thread_cpu_ns.len(), 3);
        assert!(completed(&tick) > 0);
        match &mut sum {
            Some(sum) => sum.append(&tick),
            None => sum = Some(tick),
        }
    }
    let summary = driver.stop();
    let mut sum = sum.unwrap();
    sum.append(&summary.last_tick);
    assert_eq!(sum, DriveTick { begin: sum.begin, ..summary.totals.clone() });
    assert_eq!(
        summary.accounting.variability.transactions.iter().sum::<u64>(),
        completed(&summary.totals)
    );
    assert_eq!(summary.commits_unknown, 0);
    assert!(summary.outages.is_empty() && summary.delivery.is_none());
    // The intended rollbacks: about one new order in a hundred.
    let orders = &summary.totals.types[0];
    let share = orders.rolled_back as f64 / orders.completed() as f64;
    assert!((0.007..0.013).contains(&share), "{share} of {} orders", orders.completed());
}

#[test]
fn the_ceiling_is_far_above_any_database_and_flagged_as_saturated() {
    let _alone = alone();
    let ceiling = noop_ceiling(workload(), RootSeed(5), 8, Duration::from_millis(300)).unwrap();
    assert!(ceiling.transactions_per_second > 50_000.0, "{ceiling:?}");
    assert!(ceiling.cpu_ns_per_transaction < 20_000.0, "{ceiling:?}");

    let driver = start(DriveSpec { threads: Some(1), ..spec(2) }).unwrap();
    driver.set_users(2);
    driver.tick();
    wait(300);
    let saturation = Saturation::of(&driver.tick());
    assert_eq!(saturation.verdict, SaturationVerdict::Saturated, "{saturation:?}");
}

/// Timers of the runtime would add up to a millisecond to each of these responses. On a host that is
/// busy otherwise anybody may be late, so the best of three counts.
#[test]
fn an_open_loop_starts_on_time() {
    let _alone = alone();
    let late = (0..3).map(|_| {
        let pacing = Pacing::open(500.0, Arrivals::Poisson);
        let driver = start(DriveSpec { pacing, ..spec(20) }).unwrap();
        driver.set_users(20);
        wait(500);
        driver.tick().types[0].response.quantile(0.5).unwrap()
    });
    let best = late.min().unwrap();
    assert!(best < 300_000, "half of the transactions were more than {best} ns late");
}

#[test]
fn an_open_loop_delivers_at_any_rate() {
    let _alone = alone();
    let pacing = Pacing::open(500.0, Arrivals::Poisson);
    let driver = start(DriveSpec { pacing, ..spec(20) }).unwrap();
    driver.set_users(20);
    wait(1_000);
    let tick = driver.tick();
    assert!((400..600).contains(&tick.arrivals.due), "{:?}", tick.arrivals);
    assert_eq!(Delivery::of(&tick).unwrap().verdict, DeliveryVerdict::Delivered);
    driver.set_rate(2_000.0, Nanos::ZERO).unwrap();
    wait(500);
    let tick = driver.tick();
    assert!((800..1_200).contains(&tick.arrivals.due), "{:?}", tick.arrivals);
    driver.set_users(0);
    driver.tick();
    wait(100);
    assert_eq!(driver.tick().arrivals.due, 0);
}

/// Arrivals that fall due faster than they are handed out must not keep a thread from hearing its commands, and count as
/// load that was not delivered.
#[test]
fn a_rate_that_nobody_can_keep_ends_when_it_is_told_to() {
    let _alone = alone();
    for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
        let (done, waiting) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let pacing = Pacing::open(2e9, arrivals);
            let driver = start(DriveSpec { pacing, ..spec(8) }).unwrap();
            driver.set_users(8);
            wait(300);
            let tick = driver.tick();
            let _ = done.send((tick, driver.stop()));
        });
        let (tick, summary) = waiting.recv_timeout(Duration::from_secs(20)).expect("it ends");
        assert_eq!(tick.late_threads, 0);
        assert!(completed(&summary.totals) > 0);
        assert!(tick.arrivals.overdue > 100_000_000, "{:?}", tick.arrivals);
        let delivery = summary.delivery.unwrap();
        assert_eq!(delivery.verdict, DeliveryVerdict::Missed, "{delivery:?}");
    }
}

#[test]
fn a_thread_that_is_held_up_shows_in_the_dispatch_lag() {
    let _alone = alone();
    let spec = DriveSpec { threads: Some(1), ..spec(1) };
    let driver =
        Driver::start(spec, Rude(Duration::from_millis(40), workload()), Instant::now()).unwrap();
    driver.set_users(1);
    wait(400);
    let tick = driver.tick();
    let lag = tick.dispatch_lag.quantile(0.9).unwrap();
    assert!(lag > 20_000_000, "p90 of the lag is {lag} ns");
    assert_eq!(Saturation::of(&tick).verdict, SaturationVerdict::Starved);
}

#[test]
fn what_cannot_be_driven_is_refused() {
    let refused = |spec: DriveSpec| start(spec).err().unwrap();
    let open = |rate| Pacing::open(rate, Arrivals::Uniform);
    assert!(matches!(refused(spec(0)), DriveError::NoUsers));
    assert!(matches!(
        refused(DriveSpec { connections: Some(0), ..spec(1) }),
        DriveError::NoConnections
    ));
    assert!(matches!(refused(DriveSpec { threads: Some(0), ..spec(1) }), DriveError::NoThreads));
    assert!(matches!(refused(DriveSpec { pacing: open(0.0), ..spec(1) }), DriveError::Rate(_)));
    assert!(matches!(
        refused(DriveSpec { pacing: Pacing::Closed { key_think: f64::NAN }, ..spec(1) }),
        DriveError::KeyThink(_)
    ));
    let driver = start(spec(1)).unwrap();
    assert!(matches!(driver.set_rate(1.0, Nanos::ZERO), Err(DriveError::NotOpen)));
}

#[test]
fn a_database_that_is_not_there_is_an_error_at_once() {
    #[derive(Clone)]
    struct Nowhere(Tpcc);
    impl Connector for Nowhere {
        type Workload = Tpcc;
        type Session = Rude;

        fn workload(&self) -> &Tpcc {
            &self.0
        }

        fn commits(&self, _: usize) -> Commits {
            Commits::Automatically(1)
        }

        fn limit_statements(&mut self, _: Duration) {}

        async fn connect(&self) -> Result<Rude, SessionError> {
            let message = "no such host".to_string();
            let class = ErrorClass::ConnectionLost;
            Err(SessionError { class, sqlstate: None, message, commit_unknown: false })
        }
    }
    let error = Driver::start(spec(1), Nowhere(workload()), Instant::now()).err().unwrap();
    let text = "the first session with the database could not be opened: no such host";
    assert_eq!(error.to_string(), text);
}
