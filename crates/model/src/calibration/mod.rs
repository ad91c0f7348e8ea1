//! From measurements of a device to its profile: the fit, and how well it fits.
//!
//! In reading order: what was measured ([`Measurements`]), the same measured on a modelled device in virtual
//! time ([`measure_device`]), the search for the parameters of reads and of writes, and [`calibrate`],
//! which puts a profile together, measures *it*, and compares point by point.
//!
//! A profile is judged by its behaviour, not by its parameters: several sets of parameters behave
//! alike, and only behaviour was measured. What is deliberately not here: measuring a real device,
//! files, clocks.

mod measurements;

mod virtual_measurement;

mod search;

mod read_fit;

mod write_fit;

mod rounding;

pub use measurements::{
    DepthPoint, Figures, MeasuredPoint, Measurements, MixedPoint, PointKind, Sustained,
    WriteMeasurements,
};
pub use virtual_measurement::{MeasurementPlan, Sequential, WritePlan, measure_device};

use crate::profile::{Basis, DeviceProfile, Duplex, Flash, Link, Medium, ProfileProblem};
use underlay_core::{Bytes, Nanos, RootSeed};

/// Random reads move at most this share of the link, so that the link never is what limits them.
const LINK_HEADROOM: f64 = 1.05;
/// A block read alone needs this much more from the units than the sequential rate.
const UNIT_HEADROOM: f64 = 1.3;
const UNIT_BYTES_MIN: u32 = 16 << 10;
const UNIT_BYTES_MAX: u32 = 1 << 20;

/// What is known of the device beside the measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// Name of the profile: lower case letters, digits, `-` and `.`.
    pub name: String,
    /// The device in words.
    pub description: String,
    /// Where and how it was measured.
    pub source: String,
    /// Its capacity.
    pub capacity: Bytes,
}

/// One figure, as measured and as the profile gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitPoint {
    /// Which figure.
    pub kind: PointKind,
    /// As measured; nanoseconds, requests or bytes per second, as its kind says.
    pub measured: f64,
    /// As the fitted profile gives it in virtual time.
    pub modelled: f64,
}

impl FitPoint {
    /// The error relative to the measurement, in percent; negative = the model is too low.
    pub fn error_percent(&self) -> f64 {
        (self.modelled / self.measured - 1.0) * 100.0
    }
}

/// A fitted profile and how well it fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The profile; `fit_error_percent` is the mean of the errors' sizes.
    pub profile: DeviceProfile,
    /// Each measured figure beside the modelled one.
    pub points: Vec<FitPoint>,
    /// Figures that nothing measured stands behind, in words.
    pub assumptions: Vec<String>,
}

impl Calibration {
    /// The mean of the errors' sizes, in percent.
    pub fn mean_error_percent(&self) -> f64 {
        let sum: f64 = self.points.iter().map(|point| point.error_percent().abs()).sum();
        sum / self.points.len().max(1) as f64
    }

    /// The point that fits worst.
    pub fn worst(&self) -> Option<&FitPoint> {
        let size = |point: &FitPoint| point.error_percent().abs();
        self.points.iter().max_by(|a, b| size(a).total_cmp(&size(b)))
    }
}

/// Why no profile can be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// Too little was measured.
    #[error(
        "random reads were measured at {0} queue depths; measure at queue depth 1 and at least one more"
    )]
    TooFewDepths(usize),
    /// Not one request at a time among the depths.
    #[error("no random reads one at a time were measured; add queue depth 1")]
    NoSingleReads,
    /// A figure no device can have.
    #[error("{kind} is {value}, which is impossible; measure again")]
    Impossible {
        /// Which figure.
        kind: PointKind,
        /// Its value.
        value: f64,
    },
    /// The fitted profile would violate a rule of profiles.
    #[error("the profile is not usable: {0}")]
    Unusable(ProfileProblem),
}

/// Fits a profile to measurements. Takes a second or two of processor time.
///
/// # Errors
/// When the measurements do not say enough, or say what cannot be.
pub fn calibrate(
    measured: &Measurements,
    identity: &DeviceIdentity,
    seed: RootSeed,
) -> Result<Calibration, CalibrationError> {
    let single = check(measured)?;
    let mut assumptions = Vec::new();
    let mut flash = read_fit::fit(&measured.reads, &single, seed);
    let sequential = measured.sequential_read_bytes_per_second;
    if sequential.is_none() {
        assumptions.push("sequential reads were not measured: no link limits them".to_string());
    }
    widen_units(&mut flash, sequential);
    let mut profile = DeviceProfile {
        name: identity.name.clone(),
        description: identity.description.clone(),
        source: identity.source.clone(),
        basis: Basis::Fitted,
        fit_error_percent: None,
        capacity: identity.capacity,
        medium: Medium::Flash(flash),
        link: sequential.map(|rate| link(measured, rate)),
        write_buffer: None,
        flush: Nanos::ZERO,
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    };
    write_fit::fit(&mut profile, measured.writes.as_ref(), seed, &mut assumptions);
    // Before it is judged, so that the errors are those of what is written.
    rounding::round(&mut profile);
    if let Some(problem) = profile.problems().pop() {
        return Err(CalibrationError::Unusable(problem));
    }
    let plan = MeasurementPlan::like(measured);
    let modelled = measure_device(&profile, &plan, seed);
    let points: Vec<FitPoint> = measured
        .points()
        .into_iter()
        .zip(modelled.points())
        .map(|(measured, modelled)| {
            assert_eq!(measured.kind, modelled.kind, "the plan measures the same figures");
            FitPoint { kind: measured.kind, measured: measured.value, modelled: modelled.value }
        })
        .collect();
    let mut calibration = Calibration { profile, points, assumptions };
    let rounded = (calibration.mean_error_percent() * 10.0).round() / 10.0;
    calibration.profile.fit_error_percent = Some(rounded);
    Ok(calibration)
}

/// The single reads, if everything measured can be.
fn check(measured: &Measurements) -> Result<Figures, CalibrationError> {
    if measured.reads.len() < 2 {
        return Err(CalibrationError::TooFewDepths(measured.reads.len()));
    }
    for MeasuredPoint { kind, value } in measured.points() {
        if !(value.is_finite() && value > 0.0) {
            return Err(CalibrationError::Impossible { kind, value });
        }
    }
    let single = measured.reads.iter().find(|point| point.queue_depth == 1);
    single.map(|point| point.figures).ok_or(CalibrationError::NoSingleReads)
}

/// The link is as fast as sequential reads, and never what limits random ones.
fn link(measured: &Measurements, sequential_read: f64) -> Link {
    let random = measured.reads.iter().map(|point| point.figures.iops).fold(0.0, f64::max);
    let random = random * f64::from(measured.block_bytes) * LINK_HEADROOM;
    let read = sequential_read.max(random).max(1e6);
    let written = measured.writes.as_ref().map_or(0.0, |writes| {
        let peak = writes.sustained.rates().fold(0.0, f64::max);
        writes.sequential_bytes_per_second.max(peak)
    });
    Link {
        read_bytes_per_second: read as u64,
        write_bytes_per_second: read.max(written * LINK_HEADROOM) as u64,
        duplex: Duplex::Full,
    }
}

/// Makes the units large enough for sequential reads: together they must deliver more than the link.
fn widen_units(flash: &mut Flash, sequential_read: Option<f64>) {
    flash.unit_bytes = UNIT_BYTES_MIN;
    let Some(rate) = sequential_read else { return };
    let per_second = f64::from(flash.units) / (flash.read_service.0 as f64 / 1e9);
    while f64::from(flash.unit_bytes) * per_second < UNIT_HEADROOM * rate
        && flash.unit_bytes < UNIT_BYTES_MAX
    {
        flash.unit_bytes *= 2;
    }
}
