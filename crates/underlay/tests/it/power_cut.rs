//! A power cut under a real database: what was flushed survives, and a device that lies about flushes loses
//! commits. The oracle is TPC-C's consistency conditions and the clients' commit ledger.

use crate::common::stand::Stand;
use underlay_core::RootSeed;
use underlay_datastore::{DatastoreSpec, Durability};
use underlay_model::builtin;

/// A device without delays.
fn spec(durability: Durability, seed: u64) -> DatastoreSpec {
    let profile = builtin::find("null").expect("a profile");
    DatastoreSpec::Emulated {
        devices: vec![("disk".to_string(), profile)],
        seed: RootSeed(seed),
        backing_directory: None,
        durability,
        link: None,
    }
}

#[test]
fn flushed_commits_survive_power_cuts() {
    let Some(mut stand) = Stand::new(&spec(Durability::Flushed, 11), 11) else { return };
    let mut before = stand.numbers();
    for round in 1..=2 {
        let summary = stand.drive_into_power_cut();
        assert!(
            summary.accounting.ledger.acknowledged_count() > 0,
            "nothing was committed before cut {round}"
        );
        stand.recover().expect("the database recovers");
        let report = stand.check(Some((&summary, &before)));
        assert!(
            report.is_clean(),
            "after cut {round}: {:?}",
            report.failures().collect::<Vec<_>>()
        );
        before = stand.numbers();
    }
    stand.close();
}

#[test]
fn a_device_that_lies_about_flushes_loses_commits() {
    // What is lost depends on the moment; over several cuts a lying device cannot stay unnoticed.
    for seed in 1..=5 {
        let Some(mut stand) = Stand::new(&spec(Durability::Lying, seed), seed) else { return };
        let before = stand.numbers();
        let summary = stand.drive_into_power_cut();
        let noticed = match stand.recover() {
            Err(_) => true,
            Ok(()) => !stand.check(Some((&summary, &before))).is_clean(),
        };
        stand.close();
        if noticed {
            return;
        }
    }
    panic!(
        "five power cuts of a lying device lost nothing: the loss is not modelled, or the checks see nothing"
    );
}
