//! Writes: the buffer and its drain, flushes, and how much writes disturb reads.
//!
//! Most parameters follow directly from a figure: the median of a single write is the buffer's latency plus
//! the command stage; the steady rates are the drain; the bytes accepted beyond the steady rate are the
//! buffer's size. Only the program operations have to be searched, by their effect on reads.

use super::measurements::{MixedPoint, WriteMeasurements};
use super::search::{Parameter, refine};
use crate::closed_loop::{ClosedLoop, Pattern, run};
use crate::device::Device;
use crate::profile::{DeviceProfile, Medium, PROGRAM_BYTES, WriteBuffer, program_bytes};
use underlay_core::{Bytes, Nanos, RootSeed};

const BUFFER_MIN: f64 = (256 << 10) as f64;
const BUFFER_MAX: f64 = (64 << 20) as f64;
/// What a buffer holds when its end was not seen.
const BUFFER_ASSUMED: f64 = (8 << 20) as f64;
/// A flush after a burst that takes this much longer than after one write waits for data.
const WAITING_FACTOR: f64 = 3.0;
/// The program operation assumed when reads during writes were not measured.
const PROGRAM_ASSUMED: Nanos = Nanos::from_micros(300);
const FINE_REQUESTS: u32 = 15_000;

/// Sets what the measured writes say; assumes the usual where nothing was measured.
pub(super) fn fit(
    profile: &mut DeviceProfile,
    measured: Option<&WriteMeasurements>,
    seed: RootSeed,
    assumptions: &mut Vec<String>,
) {
    let Some(writes) = measured else {
        assume(profile, assumptions);
        return;
    };
    let Medium::Flash(flash) = &mut profile.medium else { return };
    let sequential = writes.sequential_bytes_per_second.max(1e6);
    let steady = writes.sustained.steady_bytes_per_second().clamp(10e3, sequential);
    // Writes pass the command stage faster than any of them was seen to complete.
    let peak = writes.sustained.rates().fold(steady, f64::max);
    let command = (0.8 * 4096e9 / peak).min(0.5 * writes.single.p50_ns).max(1.0);
    flash.write_command = Nanos(command.round() as u64);
    let absorbed = writes.sustained.absorbed_bytes();
    let capacity = if absorbed > 0.0 {
        absorbed.clamp(BUFFER_MIN, BUFFER_MAX)
    } else {
        assumptions.push("the buffer never filled: its size of 8 MiB is assumed".to_string());
        BUFFER_ASSUMED
    };
    profile.write_buffer = Some(WriteBuffer {
        capacity: Bytes(capacity as u64 / 4096 * 4096),
        latency: Nanos((writes.single.p50_ns - command).max(0.0).round() as u64),
        latency_per_4k: Nanos::ZERO,
        drain_sequential_bytes_per_second: sequential as u64,
        drain_random_bytes_per_second: steady as u64,
        // What exceeds any buffer is a reserve that a fresh device fills at full speed.
        fresh_budget: Bytes((absorbed - BUFFER_MAX).max(0.0) as u64),
    });
    profile.power_loss_protected = writes.burst_flush_ns < WAITING_FACTOR * writes.flush.p50_ns;
    let waited = if profile.power_loss_protected { 0.0 } else { 4096e9 / steady };
    profile.flush = Nanos((writes.flush.p50_ns - waited).max(0.0).round() as u64);
    match &writes.mixed {
        Some(mixed) => flash_program(profile, mixed, seed),
        None => {
            set_program(profile, PROGRAM_ASSUMED);
            assumptions.push(
                "reads during writes were not measured: 300 us per program operation is assumed"
                    .to_string(),
            );
        }
    }
}

/// Typical values of a drive with power-loss protection, said to be assumed.
fn assume(profile: &mut DeviceProfile, assumptions: &mut Vec<String>) {
    let link = profile.link.map_or(500_000_000, |link| link.write_bytes_per_second);
    profile.write_buffer = Some(WriteBuffer {
        capacity: Bytes(BUFFER_ASSUMED as u64),
        latency: Nanos::from_micros(30),
        latency_per_4k: Nanos::ZERO,
        drain_sequential_bytes_per_second: link / 2,
        drain_random_bytes_per_second: link / 10,
        fresh_budget: Bytes::ZERO,
    });
    set_program(profile, PROGRAM_ASSUMED);
    profile.flush = Nanos::from_micros(20);
    assumptions.push(
        "nothing was written: write latency 30 us, flush 20 us, and drain rates of 1/2 (sequential) and 1/10 \
         (random) of the read rate are assumed"
            .to_string(),
    );
}

/// The program operations with which reads beside writes come nearest to the measured ones: how long each takes, and how much
/// it stores. The second says how much of the units' time a drain takes, of which the whole is the first guess.
fn flash_program(profile: &mut DeviceProfile, mixed: &MixedPoint, seed: RootSeed) {
    let with = |program_ns: f64, bytes: Option<f64>| {
        let mut candidate = profile.clone();
        let program = Nanos(if program_ns < 1000.0 { 0 } else { program_ns.round() as u64 });
        set_program(&mut candidate, program);
        if let (Medium::Flash(flash), Some(bytes)) = (&mut candidate.medium, bytes) {
            flash.program_bytes =
                (bytes.round() as u32).clamp(*PROGRAM_BYTES.start(), *PROGRAM_BYTES.end());
        }
        candidate
    };
    let starts = [1e3, 1e5, 3e5, 1e6, 3e6];
    let error_of = |start: &f64| mixed_error(&with(*start, None), mixed, seed);
    let best = starts.into_iter().min_by(|a, b| error_of(a).total_cmp(&error_of(b)));
    let value = best.expect("there are starts");
    let Medium::Flash(flash) = with(value, None).medium else { return };
    let parameters = vec![
        Parameter { value, min: 500.0, max: 50e6, factor: 1.8 },
        Parameter {
            value: f64::from(flash.program_bytes),
            min: f64::from(*PROGRAM_BYTES.start()),
            max: f64::from(*PROGRAM_BYTES.end()),
            factor: 1.8,
        },
    ];
    let (values, _) =
        refine(parameters, |values| mixed_error(&with(values[0], Some(values[1])), mixed, seed));
    *profile = with(values[0], Some(values[1]));
}

/// A program operation of this length, so that a drain takes all of the units' time.
fn set_program(profile: &mut DeviceProfile, program: Nanos) {
    let Some(buffer) = profile.write_buffer else { return };
    let Medium::Flash(flash) = &mut profile.medium else { return };
    let rate = buffer.drain_sequential_bytes_per_second;
    (flash.program, flash.program_bytes) = (program, program_bytes(program, rate, flash.units));
}

fn mixed_error(profile: &DeviceProfile, mixed: &MixedPoint, seed: RootSeed) -> f64 {
    let extent = Bytes(profile.capacity.0.min(16 << 30));
    let mut device = Device::with_extent(profile, extent, seed, "candidate");
    let spec = ClosedLoop {
        queue_depth: mixed.queue_depth,
        block_bytes: 4096,
        read_share: mixed.read_share,
        pattern: Pattern::Random,
        extent,
        warm_up: FINE_REQUESTS / 10,
        measured: FINE_REQUESTS,
    };
    let result = run(&mut device, &spec, seed);
    let Some(shown) = super::Figures::of(&result.read, result.duration) else { return f64::MAX };
    let off = |shown: f64, target: f64| (shown / target - 1.0).abs();
    off(shown.iops, mixed.read.iops)
        + off(shown.p50_ns, mixed.read.p50_ns)
        + off(shown.p99_ns, mixed.read.p99_ns)
}
