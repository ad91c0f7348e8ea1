//! Reads: command stage, units, service, variation, base and the slow class from random reads at a few depths.
//!
//! A coarse grid first, then local refinement from the best places of the grid. The unit service is a share of
//! the single read's median and the base is what remains of it, so that the median of a single read
//! fits by construction; what the search looks for is how the latency grows and spreads with depth.

use super::measurements::{DepthPoint, Figures};
use super::search::{Parameter, refine};
use crate::closed_loop::{ClosedLoop, Pattern, run};
use crate::device::Device;
use crate::profile::{Basis, DeviceProfile, Flash, Medium};
use underlay_core::{Bytes, Nanos, RootSeed};

/// The unit's share of a single read.
const SHARES: [f64; 5] = [0.3, 0.45, 0.6, 0.75, 0.9];
/// The command stage as a share of the time per read at the highest rate.
const COMMANDS: [f64; 4] = [0.3, 0.6, 0.8, 1.0];
/// Parallel units.
const UNITS: [f64; 12] = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 160.0];
/// Coefficients of variation.
const VARIATIONS: [f64; 4] = [0.03, 0.1, 0.25, 0.6];
/// Slow class: probability, and addition as a multiple of the single read's median.
const SLOW: [(f64, f64); 4] = [(0.0, 0.7), (0.005, 0.7), (0.015, 0.7), (0.01, 4.0)];

/// Requests per queue depth for the grid and for the refinement.
const GRID_REQUESTS: u32 = 1_200;
const FINE_REQUESTS: u32 = 10_000;
/// Places of the grid from which the refinement starts.
const STARTS: usize = 3;
/// Below this a coefficient of variation or probability means nothing.
const TINY: f64 = 1e-4;

/// The parameters of a candidate.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    share: f64,
    command: f64,
    units: f64,
    variation: f64,
    slow_probability: f64,
    slow_multiple: f64,
}

/// The flash whose reads come nearest to the points.
pub(super) fn fit(points: &[DepthPoint], single: &Figures, seed: RootSeed) -> Flash {
    let highest = points.iter().map(|point| point.figures.iops).fold(0.0, f64::max);
    let scale = Scale { single_ns: single.p50_ns, command_ns: 1e9 / highest };
    let mut ranked: Vec<(f64, Candidate)> = grid()
        .map(|candidate| (error(&scale.flash(&candidate), points, GRID_REQUESTS, seed), candidate))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut starts: Vec<Candidate> = Vec::new();
    for (_, candidate) in &ranked {
        if starts.len() < STARTS && starts.iter().all(|start| start.units != candidate.units) {
            starts.push(*candidate);
        }
    }
    // Each start with the slow class that suits it best.
    let starts = starts.into_iter().map(|start| {
        let with = |(slow_probability, slow_multiple)| Candidate {
            slow_probability,
            slow_multiple,
            ..start
        };
        let error_of = |c: &Candidate| error(&scale.flash(c), points, 4 * GRID_REQUESTS, seed);
        let mut classes = SLOW.map(|class| (error_of(&with(class)), with(class)));
        classes.sort_by(|a, b| a.0.total_cmp(&b.0));
        classes[0].1
    });
    let refined = starts.map(|start| refine_from(start, &scale, points, seed));
    let best = refined.min_by(|a, b| a.1.total_cmp(&b.1)).expect("the grid is not empty");
    scale.flash(&best.0)
}

fn grid() -> impl Iterator<Item = Candidate> {
    SHARES.into_iter().flat_map(|share| {
        COMMANDS.into_iter().flat_map(move |command| {
            UNITS.into_iter().flat_map(move |units| {
                VARIATIONS.into_iter().map(move |variation| Candidate {
                    share,
                    command,
                    units,
                    variation,
                    slow_probability: 0.0,
                    slow_multiple: SLOW[0].1,
                })
            })
        })
    })
}

fn refine_from(
    start: Candidate,
    scale: &Scale,
    points: &[DepthPoint],
    seed: RootSeed,
) -> (Candidate, f64) {
    let of = |v: &[f64]| Candidate {
        share: v[0],
        command: v[1],
        units: v[2],
        variation: v[3],
        slow_probability: if v[4] <= TINY { 0.0 } else { v[4] },
        slow_multiple: v[5],
    };
    let parameter = |value: f64, min, max, factor| Parameter { value, min, max, factor };
    let parameters = vec![
        parameter(start.share, 0.02, 0.99, 1.2),
        parameter(start.command, 0.01, 1.0, 1.3),
        parameter(start.units, 1.0, 1024.0, 1.3),
        parameter(start.variation, 0.01, 3.0, 1.7),
        parameter(start.slow_probability.max(TINY), TINY, 0.1, 2.0),
        parameter(start.slow_multiple, 0.2, 100.0, 1.7),
    ];
    let (values, error) =
        refine(parameters, |v| error(&scale.flash(&of(v)), points, FINE_REQUESTS, seed));
    (of(&values), error)
}

/// What turns shares into times.
struct Scale {
    single_ns: f64,
    command_ns: f64,
}

impl Scale {
    fn flash(&self, candidate: &Candidate) -> Flash {
        // A command stage cannot take longer than a whole read.
        let command = (candidate.command * self.command_ns).min(0.5 * self.single_ns).max(1.0);
        let service = (candidate.share * self.single_ns).max(1.0);
        // The median of a lognormal lies below its mean.
        let median = service / (1.0 + candidate.variation.powi(2)).sqrt();
        Flash {
            read_command: Nanos(command.round() as u64),
            write_command: Nanos(command.round() as u64),
            base: Nanos((self.single_ns - median - command).max(0.0).round() as u64),
            units: (candidate.units.round() as u32).max(1),
            unit_bytes: 4 << 10,
            read_service: Nanos(service.round() as u64),
            read_service_cv: candidate.variation,
            slow_probability: candidate.slow_probability,
            slow: Nanos((candidate.slow_multiple * self.single_ns).round() as u64),
            program: Nanos::ZERO,
            program_bytes: 64 << 10,
        }
    }
}

/// The mean size of the relative errors over all depths: rate, mean, median, 99th percentile.
fn error(flash: &Flash, points: &[DepthPoint], requests: u32, seed: RootSeed) -> f64 {
    let extent = Bytes::from_gib(16);
    let profile = DeviceProfile {
        name: "candidate".to_string(),
        description: String::new(),
        source: String::new(),
        basis: Basis::Fitted,
        fit_error_percent: None,
        capacity: extent,
        medium: Medium::Flash(flash.clone()),
        link: None,
        write_buffer: None,
        flush: Nanos::ZERO,
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    };
    let device = Device::new(&profile, seed, "candidate");
    let errors = points.iter().map(|point| {
        let spec = ClosedLoop {
            queue_depth: point.queue_depth,
            block_bytes: 4096,
            read_share: 1.0,
            pattern: Pattern::Random,
            extent,
            warm_up: 2 * point.queue_depth,
            measured: requests,
        };
        let result = run(&mut device.clone(), &spec, seed);
        let shown = Figures::of(&result.read, result.duration).expect("requests were measured");
        let target = &point.figures;
        let off = |shown: f64, target: f64| (shown / target - 1.0).abs();
        off(shown.iops, target.iops)
            + off(shown.mean_ns, target.mean_ns)
            + off(shown.p50_ns, target.p50_ns)
            + off(shown.p99_ns, target.p99_ns)
    });
    errors.sum::<f64>() / (4 * points.len()) as f64
}
