//! PostgreSQL on a cluster whose hosts die under load. What the clients were told is committed stays committed, the
//! consistency conditions hold after each fault; without redundancy the loss is reported.

use crate::common::stand::Stand;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_database::tpcc::OrderNumbers;
use underlay_datastore::{ClusterFault, ClusterStorage, DatastoreSpec};
use underlay_driver::{DriveSummary, Driver};
use underlay_model::cluster::{ClusterSettings, ClusterSpec, HostSpec, NetworkSpec, Policy};
use underlay_model::{DiskGroupSpec, builtin};
use underlay_workload::tpcc::TpccAccounting;

/// Hosts `h0`, `h1`, ... with a disk group of an NVMe cache device and a SATA capacity device.
fn spec(hosts: usize, failures_to_tolerate: u8) -> DatastoreSpec {
    let device = |name: &str, gibibytes| {
        let mut profile = builtin::find(name).expect("a profile");
        profile.capacity = Bytes::from_gib(gibibytes);
        profile
    };
    let host = |index: usize| HostSpec {
        name: format!("h{index}"),
        fault_domain: None,
        groups: vec![DiskGroupSpec::new(
            &format!("g{index}"),
            device("dc1500m-960", 4),
            vec![device("dc500m-1920", 16)],
        )],
    };
    DatastoreSpec::Cluster {
        storage: Box::new(ClusterStorage {
            spec: ClusterSpec {
                hosts: (0..hosts).map(host).collect(),
                network: NetworkSpec {
                    latency: Nanos::from_micros(20),
                    bytes_per_second: 1_250_000_000,
                    divisor: 1,
                },
                settings: ClusterSettings {
                    failure_detection: Nanos::from_millis(200),
                    repair_delay: Nanos::from_secs(1),
                    ..ClusterSettings::default()
                },
            },
            policy: Policy { failures_to_tolerate, ..Policy::DEFAULT },
            policies: BTreeMap::new(),
            fill_percent: None,
        }),
        seed: RootSeed(5),
        backing_directory: None,
    }
}

fn value(stand: &mut Stand, name: &str) -> f64 {
    let series = stand.datastore.series();
    let at = series.iter().position(|series| series.name == name).expect("a declared series");
    stand.datastore.counters().expect("counters")[at]
}

/// Waits until nothing is left to be copied.
fn wait_for_copies(stand: &mut Stand) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let left: f64 = ["repair", "stale"]
            .iter()
            .map(|reason| value(stand, &format!("cluster.resync.{reason}.left")))
            .sum();
        if left == 0.0 {
            return;
        }
        assert!(Instant::now() < deadline, "{left} bytes are still to be copied");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn committed(driver: &Driver<TpccAccounting>) -> u64 {
    let tick = driver.tick();
    tick.types.iter().map(|kind| kind.committed).sum()
}

#[track_caller]
fn check(stand: &Stand, summary: &DriveSummary<TpccAccounting>, before: &OrderNumbers, when: &str) {
    assert!(summary.accounting.ledger.acknowledged_count() > 0, "nothing was committed {when}");
    let report = stand.check(Some((summary, before)));
    assert!(report.is_clean(), "{when}: {:?}", report.failures().collect::<Vec<_>>());
}

#[test]
fn a_database_on_a_mirror_survives_its_hosts() {
    let Some(mut stand) = Stand::new(&spec(4, 1), 21) else { return };
    for gone in ["h0", "h1", "h2"] {
        let before = stand.numbers();
        let driver = stand.drive();
        std::thread::sleep(Duration::from_millis(1_500));
        let host = gone.to_string();
        stand.datastore.inject(&ClusterFault::HostLost { host: host.clone() }).expect("a fault");
        // The time in which the loss is noticed, and what users did before.
        std::thread::sleep(Duration::from_millis(1_000));
        committed(&driver);
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(committed(&driver) > 0, "nothing was committed after {gone} was lost");
        let summary = driver.stop();
        check(&stand, &summary, &before, &format!("after {gone} was lost"));
        // The loss is final for what it held: everything is rebuilt elsewhere before the next host goes.
        std::thread::sleep(Duration::from_millis(500));
        wait_for_copies(&mut stand);
        stand.datastore.inject(&ClusterFault::HostReturned { host }).expect("a repair");
        std::thread::sleep(Duration::from_millis(300));
        wait_for_copies(&mut stand);
    }
    let before = stand.numbers();
    let summary = stand.drive_into_power_cut();
    stand.recover().expect("the database recovers");
    check(&stand, &summary, &before, "after the power cut");
    assert_eq!(value(&mut stand, "cluster.data.lost"), 0.0);
    let errors =
        ["data", "wal"].map(|name| value(&mut stand, &format!("cluster.volume.{name}.errors")));
    assert_eq!(errors, [0.0, 0.0], "the database was told of errors");
    stand.close();
}

/// One copy, and its device is replaced by an empty one: nobody may believe that all is well.
#[test]
fn without_redundancy_the_loss_is_reported() {
    let Some(mut stand) = Stand::new(&spec(1, 0), 22) else { return };
    let before = stand.numbers();
    let driver = stand.drive();
    std::thread::sleep(Duration::from_secs(2));
    let device = "h0/g0/disk0".to_string();
    stand.datastore.inject(&ClusterFault::DeviceLost { device: device.clone() }).expect("a fault");
    std::thread::sleep(Duration::from_secs(1));
    // Whatever the database makes of it, the datastore says what happened.
    let told = stand.datastore.notices().expect("notices");
    assert!(told.iter().any(|notice| notice.text.contains("I/O errors")), "{told:#?}");
    stand.server.kill().expect("the server is gone");
    let summary = driver.stop();
    assert!(
        summary.accounting.ledger.acknowledged_count() > 0,
        "nothing was committed before the loss"
    );
    stand.datastore.inject(&ClusterFault::DeviceReplaced { device }).expect("a repair");
    stand.datastore.power_cut().expect("a power cut");
    let noticed = match stand.recover() {
        Err(_) => true,
        Ok(()) => !stand.check(Some((&summary, &before))).is_clean(),
    };
    assert!(noticed, "the only copy is gone, and nobody noticed");
    stand.close();
}
