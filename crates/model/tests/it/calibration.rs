//! Calibration against devices whose behaviour is known: modelled ones, whose behaviour must come back, and
//! three published drives, on which the fit must be as good as the literature says it can be.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::builtin;
use underlay_model::calibration::{
    Calibration, CalibrationError, DepthPoint, DeviceIdentity, Figures, FitPoint, MeasurementPlan,
    Measurements, PointKind, Sequential, WritePlan, calibrate, measure_device,
};
use underlay_model::profile::{Basis, DeviceProfile, Medium};

fn identity() -> DeviceIdentity {
    DeviceIdentity {
        name: "test".to_string(),
        description: "A device under test".to_string(),
        source: "A test of the calibration.".to_string(),
        capacity: Bytes::from_gib(100),
    }
}

fn plan() -> MeasurementPlan {
    MeasurementPlan {
        block_bytes: 4096,
        depths: vec![1, 8, 32, 256],
        requests: 20_000,
        sequential: Sequential::Measured,
        writes: Some(WritePlan {
            burst_bytes: 1 << 20,
            sustained_depth: 32,
            interval: Nanos::from_millis(10),
            intervals: 100,
            mixed: Some((0.7, 32)),
        }),
    }
}

fn table(calibration: &Calibration) -> String {
    let row = |point: &FitPoint| {
        let FitPoint { kind, measured, modelled } = point;
        format!("{kind}: {measured:.0} {modelled:.0} {:+.1} %\n", point.error_percent())
    };
    calibration.points.iter().map(row).collect()
}

/// Measured with one seed, fitted with another: only behaviour can come back.
fn recovered(profile: &DeviceProfile) -> Calibration {
    let measured = measure_device(profile, &plan(), RootSeed(11));
    calibrate(&measured, &identity(), RootSeed(12)).expect("everything was measured")
}

#[test]
fn the_behaviour_of_modelled_drives_comes_back() {
    for name in ["dc1500m-960", "5200eco-1920"] {
        let calibration = recovered(&builtin::find(name).expect("built in"));
        assert_eq!(calibration.profile.problems(), [], "{name}");
        assert_eq!(calibration.profile.basis, Basis::Fitted);
        let text = table(&calibration);
        assert!(calibration.mean_error_percent() < 4.0, "{name}\n{text}");
        for point in &calibration.points {
            let limit = match point.kind {
                PointKind::ReadP99(_) | PointKind::MixedReadP99 => 20.0,
                PointKind::MixedReadIops | PointKind::MixedReadP50 => 15.0,
                _ => 10.0,
            };
            assert!(point.error_percent().abs() < limit, "{name} {}\n{text}", point.kind);
        }
        assert!(calibration.profile.power_loss_protected, "{name}");
        assert_eq!(calibration.assumptions, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_fitted_profile_has_no_more_digits_than_a_measurement_means() {
    let profile = recovered(&builtin::find("dc1500m-960").expect("built in")).profile;
    let digits =
        |text: String| text.trim_matches('0').matches(|c: char| c.is_ascii_digit()).count();
    let Medium::Flash(flash) = &profile.medium else { panic!("{profile:?}") };
    for share in [flash.read_service_cv, flash.slow_probability] {
        let mantissa = format!("{share:e}").split('e').next().map(str::to_string);
        assert!(digits(mantissa.expect("a mantissa")) <= 3, "{share}");
    }
    let link = profile.link.expect("sequential reads were measured");
    let buffer = profile.write_buffer.expect("writes were measured");
    for value in [
        flash.read_command.0,
        flash.read_service.0,
        flash.slow.0,
        buffer.latency.0,
        link.read_bytes_per_second,
        buffer.drain_random_bytes_per_second,
    ] {
        assert!(digits(value.to_string()) <= 4, "{value}");
    }
}

#[test]
fn a_drive_without_protection_is_recognised_by_its_flushes() {
    let calibration = recovered(&builtin::find("extreme-pro-480").expect("built in"));
    assert!(!calibration.profile.power_loss_protected, "{}", table(&calibration));
    assert!(calibration.mean_error_percent() < 6.0, "{}", table(&calibration));
}

/// A depth with its mean, p50 and p99 in us; the rate follows from Little's law.
fn published(queue_depth: u32, mean: f64, p50: f64, p99: f64) -> DepthPoint {
    let iops = f64::from(queue_depth) / mean * 1e6;
    let figures = Figures { iops, mean_ns: mean * 1e3, p50_ns: p50 * 1e3, p99_ns: p99 * 1e3 };
    DepthPoint { queue_depth, figures }
}

/// AnandTech 11209, page 4: three very different drives at queue depths 1 and 16.
#[test]
fn three_published_drives_are_fitted() {
    let drives = [
        ("P4800X", [published(1, 8.9, 9.0, 10.0), published(16, 25.5, 25.0, 41.0)], 5.0),
        ("P3700", [published(1, 77.9, 76.0, 96.0), published(16, 93.9, 91.0, 163.0)], 6.0),
        ("9100 MAX", [published(1, 107.7, 104.0, 117.0), published(16, 116.2, 114.0, 205.0)], 5.0),
    ];
    for (name, reads, limit) in drives {
        let measured = Measurements {
            block_bytes: 4096,
            reads: reads.to_vec(),
            sequential_read_bytes_per_second: None,
            writes: None,
        };
        let calibration = calibrate(&measured, &identity(), RootSeed(1)).expect("two depths");
        let error = calibration.mean_error_percent();
        println!("{name}: {error:.1} %\n{}", table(&calibration));
        assert!(error < limit, "{name}: {error}\n{}", table(&calibration));
        assert_eq!(calibration.assumptions.len(), 2, "{:?}", calibration.assumptions);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let reads = |reads: Vec<DepthPoint>| Measurements {
        block_bytes: 4096,
        reads,
        sequential_read_bytes_per_second: None,
        writes: None,
    };
    let refused = |measured| calibrate(&measured, &identity(), RootSeed(1)).expect_err("refused");
    let single = published(1, 80.0, 80.0, 90.0);
    assert_eq!(refused(reads(vec![single])), CalibrationError::TooFewDepths(1));
    let deep = vec![published(8, 80.0, 80.0, 90.0), published(16, 90.0, 90.0, 99.0)];
    assert_eq!(refused(reads(deep)), CalibrationError::NoSingleReads);
    let mut broken = published(16, 90.0, 90.0, 99.0);
    broken.figures.p99_ns = f64::NAN;
    let error = refused(reads(vec![single, broken]));
    assert!(error.to_string().contains("queue depth 16, p99"), "{error}");
}
