//! What is said of volumes that have a device to themselves, and of those that have not.

use underlay_report::analysis::{Analysis, Gate, GateState};

use crate::answers::analysis;
use crate::synthetic::{Devices, nvme, scenario};

/// One design at one number of users.
fn found(devices: Devices, written_per_logged: f64) -> Analysis {
    let mut alone = scenario(vec![nvme()]);
    (alone.users, alone.repeats, alone.measure_s) = (vec![4], 1, 20);
    (alone.devices, alone.written_per_logged) = (devices, written_per_logged);
    analysis(&alone)
}

fn bytes_gate(found: &Analysis) -> &Gate {
    found.bottlenecks[0].gates.iter().find(|gate| gate.id == "G7").expect("it is always there")
}

#[test]
fn bytes_of_the_log_are_judged_in_both_directions() {
    for (ratio, expected) in [
        (0.2, GateState::Failed),
        (0.7, GateState::Soft),
        (1.4, GateState::Passed),
        (40.0, GateState::Passed),
        (100.0, GateState::Soft),
        // Once called nearly passed.
        (6_439.0, GateState::Failed),
    ] {
        let found = found(Devices::Own, ratio);
        let gate = bytes_gate(&found);
        assert_eq!(gate.state, expected, "x{ratio}: {}", gate.text);
    }
}

#[test]
fn a_device_of_several_volumes_is_nobodys() {
    for devices in [Devices::Shared, Devices::SharedUnsaid] {
        let found = found(devices, 6_439.0);
        let gate = bytes_gate(&found);
        assert_eq!(gate.state, GateState::NotJudged, "{}", gate.text);
        assert!(gate.text.contains("the log shares device vda with data"), "{}", gate.text);

        let volumes = &found.rungs[0].volumes;
        let whole = volumes.iter().find(|row| row.volume == "whole device").expect("it is shown");
        assert_eq!(whole.shared_by, ["data", "wal"]);
        assert!(whole.metrics.contains_key("read_iops"));
        for row in volumes.iter().filter(|row| row.volume != "whole device") {
            assert!(row.shared_by.is_empty());
            let of_device = row.metrics.keys().find(|name| !name.starts_with("datastore_"));
            assert_eq!(of_device, None, "the device's numbers are not those of {}", row.volume);
        }
        let lines: Vec<&str> =
            found.timelines.series.iter().map(|series| series.name.as_str()).collect();
        assert!(lines.contains(&"volume.whole-device.read_iops"), "{lines:?}");
        assert!(!lines.iter().any(|name| name.starts_with("volume.data.")), "{lines:?}");

        let warnings: Vec<&str> = found
            .findings
            .iter()
            .filter(|finding| finding.code == "shared-device")
            .map(|finding| finding.text.as_str())
            .collect();
        assert_eq!(warnings.len(), 1, "once per design: {warnings:?}");
        assert!(
            warnings[0].starts_with("volumes data and wal of NVMe are not alone on device vda"),
            "{}",
            warnings[0]
        );
    }
}

#[test]
fn volumes_with_devices_of_their_own_are_told_apart() {
    let found = found(Devices::Own, 1.4);
    assert!(!found.findings.iter().any(|finding| finding.code == "shared-device"));
    let rows: Vec<&str> = found.rungs[0].volumes.iter().map(|row| row.volume.as_str()).collect();
    assert_eq!(rows, ["data", "wal"]);
    assert!(found.rungs[0].volumes.iter().all(|row| row.shared_by.is_empty()));
}
