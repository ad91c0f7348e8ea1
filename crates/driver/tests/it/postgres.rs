//! The driver with a real PostgreSQL that is killed under it: what was acknowledged exists, what the
//! driver reports is what happened, and users work again when the server does.

use std::time::{Duration, Instant};

use underlay_core::{Nanos, RootSeed};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, LoadOptions, Mode, OrderNumbers, TableNames, TpccConnector, check,
    load, order_numbers,
};
use underlay_database::{Engine, ErrorClass, Target};
use underlay_driver::{
    Arrivals, Delivery, DeliveryVerdict, DriveSpec, DriveSummary, Driver, Pacing,
};
use underlay_testbed::{NoServer, TestServer, or_skip};
use underlay_workload::tpcc::{Entropy, Parameters, Profile, TpccAccounting, TransactionType};

use crate::support::small;

const WAREHOUSES: u32 = 1;

/// A loaded server; dropping it leaves nothing behind.
struct Bench {
    host: TestServer,
    parameters: Parameters,
}

impl Bench {
    fn set_up() -> Result<Bench, NoServer> {
        let host = TestServer::start(Engine::Postgresql, small(Engine::Postgresql))?;
        let parameters = Parameters::new(WAREHOUSES, RootSeed(3), Entropy::FULL).unwrap();
        let options = LoadOptions { parallel: 2, progress: &|_| {} };
        load(&host.target(), &parameters, &options).unwrap();
        Ok(Bench { host, parameters })
    }

    fn target(&self) -> Target {
        self.host.target()
    }

    /// Users that pause for some 30 ms: what is shown needs no processor for itself alone.
    fn spec(&self, users: u32) -> DriveSpec {
        let pacing = Pacing::Closed { key_think: 0.001 };
        DriveSpec { pacing, ..DriveSpec::new(self.parameters.seed, users) }
    }

    fn connector(&self, mode: Mode) -> TpccConnector {
        TpccConnector::new(self.target(), self.parameters, mode)
    }

    fn order_numbers(&self) -> OrderNumbers {
        let (target, tables) = (self.target(), TableNames::underlay());
        self.host.bed.runtime.block_on(order_numbers(&target, &tables)).unwrap()
    }

    /// All conditions, and the ledger against the order numbers before the run.
    fn assert_clean(&self, summary: &DriveSummary<TpccAccounting>, before: &OrderNumbers) {
        let options = CheckOptions {
            warehouses: WAREHOUSES,
            parallel: 1,
            moment: CheckMoment::AfterRun,
            ledger: Some((&summary.accounting.ledger, before)),
            tables: &TableNames::underlay(),
        };
        let report = self.host.bed.runtime.block_on(check(&self.target(), options)).unwrap();
        let failures: Vec<_> = report.failures().collect();
        assert!(failures.is_empty(), "{failures:#?}");
        let orders = summary.totals.of(TransactionType::NewOrder);
        assert_eq!(summary.accounting.ledger.acknowledged_count(), orders.committed);
    }
}

fn wait(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// One server for all scenes, because loading it costs more than all of them.
#[test]
fn a_real_server_is_driven_killed_and_driven_again() {
    let mut bench = or_skip!(Bench::set_up());
    open_loop(&bench);
    locked_out(&bench);
    hammerdb_like(&bench);
    outage(&mut bench, Mode::Procedures);
    outage(&mut bench, Mode::Statements);
}

/// Fewer connections than users; 50 transactions per second are within reach of any host.
fn open_loop(bench: &Bench) {
    let before = bench.order_numbers();
    let pacing = Pacing::open(50.0, Arrivals::Poisson);
    let spec = DriveSpec { pacing, connections: Some(6), ..bench.spec(20) };
    let driver = Driver::start(spec, bench.connector(Mode::Procedures), Instant::now()).unwrap();
    driver.set_users(20);
    wait(2_000);
    let tick = driver.tick();
    assert_eq!(Delivery::of(&tick).unwrap().verdict, DeliveryVerdict::Delivered, "{tick:?}");
    assert!(tick.users.sessions <= 6);
    bench.assert_clean(&driver.stop(), &before);
}

/// Lines and rollbacks drawn by the database: the client's orders and the database's numbers agree, and
/// every condition holds.
fn hammerdb_like(bench: &Bench) {
    let before = bench.order_numbers();
    let connector = bench.connector(Mode::Procedures).with_profile(Profile::HammerdbLike);
    let driver = Driver::start(bench.spec(4), connector, Instant::now()).unwrap();
    driver.set_users(4);
    wait(2_500);
    let summary = driver.stop();
    let orders = summary.totals.of(TransactionType::NewOrder);
    assert!(orders.committed > 50, "{:?}", summary.totals.samples);
    // 1 % on average: of some hundred orders none may roll back, but never many.
    assert!(orders.rolled_back * 20 < orders.committed, "{} rolled back", orders.rolled_back);
    assert_eq!((orders.failed, orders.unknown), (0, 0), "{:?}", summary.totals.samples);
    let added = bench.order_numbers().sum() - before.sum();
    assert_eq!(added, orders.committed);
    bench.assert_clean(&summary, &before);
    let statements = bench.connector(Mode::Statements).with_profile(Profile::HammerdbLike);
    let refused = Driver::start(bench.spec(1), statements, Instant::now()).err().unwrap();
    assert!(refused.to_string().contains("use procedures"), "{refused}");
}

/// While somebody holds a lock that most transactions need, the server cancels them: known not to be
/// committed, they are tried again until the lock is gone.
fn locked_out(bench: &Bench) {
    let statement_timeout = Duration::from_millis(300);
    let spec = DriveSpec { statement_timeout, ..bench.spec(4) };
    let driver = Driver::start(spec, bench.connector(Mode::Procedures), Instant::now()).unwrap();
    driver.set_users(4);
    wait(500);
    driver.tick();
    let tick = bench.host.bed.runtime.block_on(async {
        let mut client = bench.target().connect().await.unwrap();
        let lock = client.transaction().await.unwrap();
        lock.batch_execute("LOCK TABLE tpcc.district IN ACCESS EXCLUSIVE MODE").await.unwrap();
        wait(1_000);
        lock.rollback().await.unwrap();
        driver.tick()
    });
    let errors: u64 = tick.types.iter().map(|kind| kind.errors.of(ErrorClass::Timeout)).sum();
    assert!(errors >= 4, "{:?}", tick.samples);
    wait(1_500);
    let summary = driver.stop();
    let [outage] = &summary.outages[..] else { panic!("{:?}", summary.outages) };
    assert!(outage.restored.is_some() && outage.silence.is_some(), "{outage:?}");
    assert_eq!((outage.users_affected, summary.commits_unknown), (4, 0));
    assert_eq!(summary.totals.connects.lost, 0, "a cancelled statement costs no session");
}

fn outage(bench: &mut Bench, mode: Mode) {
    let before = bench.order_numbers();
    let target = bench.target();
    let origin = Instant::now();
    let now = || Nanos::from(origin.elapsed());
    let driver = Driver::start(bench.spec(8), bench.connector(mode), origin).unwrap();
    driver.set_users(8);
    wait(1_000);
    let calm = driver.tick();
    assert!(calm.of(TransactionType::NewOrder).committed > 20, "{mode}: {:?}", calm.samples);
    assert_eq!(calm.samples.iter().count(), 0, "{mode}: {:?}", calm.samples);
    let killed = now();
    bench.host.server.kill().unwrap();
    wait(500);
    let away = driver.tick();
    assert_eq!(away.users.sessions, 0, "sessions of a dead server are given up");
    assert_eq!(driver.outages().len(), 1);
    bench.host.server.start().unwrap();
    assert_eq!(bench.target(), target, "the server comes back under the same address");
    let back = now();
    // On a crowded host the last users are back later.
    let end = Instant::now() + Duration::from_secs(20);
    while driver.outages()[0].restored.is_none() && Instant::now() < end {
        wait(200);
    }
    wait(1_000);
    let summary = driver.stop();
    let [outage] = &summary.outages[..] else { panic!("{mode}: {:?}", summary.outages) };
    assert!(
        outage.first_error >= killed && outage.first_error < back,
        "{outage:?}, back at {back}"
    );
    let (recovered, restored) = (outage.recovered.unwrap(), outage.restored.unwrap());
    assert!(recovered > killed, "{outage:?}");
    assert!(restored >= recovered && outage.users_affected == 8, "{outage:?}");
    let silence = outage.silence.unwrap();
    assert!(silence.length() >= Nanos::from_millis(500), "{outage:?}");
    assert_eq!(summary.commits_unknown, outage.commits_unknown);
    assert!(summary.commits_unknown <= 8);
    bench.assert_clean(&summary, &before);
}
