//! A thousand virtual users in one process stay small. A file of its own, so that no other test
//! shares the process whose memory is measured.

use std::time::{Duration, Instant};

use underlay_core::{Bytes, RootSeed};
use underlay_driver::noop::Noop;
use underlay_driver::{DriveSpec, Driver, Pacing};
use underlay_workload::tpcc::{Entropy, Parameters, Tpcc};

#[test]
fn a_thousand_users_need_less_than_200_mb() {
    let parameters = Parameters::new(100, RootSeed(1), Entropy::FULL).unwrap();
    // A hundredth of the specified keying and think times: about 5,000 transactions per second.
    let spec = DriveSpec {
        pacing: Pacing::Closed { key_think: 0.01 },
        ..DriveSpec::new(RootSeed(1), 1_000)
    };
    let driver = Driver::start(spec, Noop(Tpcc::new(parameters)), Instant::now()).unwrap();
    driver.set_users(1_000);
    std::thread::sleep(Duration::from_secs(2));
    let tick = driver.tick();
    let response = &tick.types[0].response;
    eprintln!(
        "resident {}, {} new orders, response p50 {:?} ns, p99 {:?} ns, lag p99 {:?} ns",
        tick.memory,
        tick.types[0].committed,
        response.quantile(0.5),
        response.quantile(0.99),
        tick.dispatch_lag.quantile(0.99),
    );
    assert_eq!(tick.users.ready, 1_000);
    assert!(tick.types[0].committed > 2_000);
    assert!(tick.memory > Bytes::ZERO && tick.memory < Bytes(100_000_000), "{}", tick.memory);
    // Nothing but the driver takes time here, so the response is the driver's own lateness.
    assert!(response.quantile(0.5).unwrap() < 2_000_000);
}
