//! How many front-end I/Os of a disk group one second of processor time simulates, the load included.
//!
//! Virtual time passes as the model says; processor time is that of this process. Run with
//! `cargo run --release -p underlay-model --example simulation_rate`.

#[path = "../tests/it/common/mod.rs"]
mod common;

use common::{Load, Plan, Stream, group_spec, run};
use underlay_core::{Bytes, RootSeed};
use underlay_model::{DiskGroup, IoClass, Reduction, ReductionCosts};

fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    println!(
        "load                                     front-end I/Os  processor s  million per processor s"
    );
    let resync =
        Stream::random(IoClass::Resync, 1.0, 65_536, Load::Closed(8)).within((1 << 40, 64 << 30));
    let vm = |read_share| Stream::random(IoClass::Vm, read_share, 8192, Load::Closed(64));
    for (name, streams, reduction, end_ms) in [
        ("reads of capacity devices", vec![vm(1.0)], Reduction::Off, 20_000),
        ("70 % reads, full buffer, destaging", vec![vm(0.7)], Reduction::Off, 20_000),
        ("writes, full buffer, destaging", vec![vm(0.0)], Reduction::Off, 40_000),
        ("70 % reads during resync", vec![vm(0.7), resync], Reduction::Off, 20_000),
        (
            "70 % reads, deduplicating",
            vec![vm(0.7)],
            Reduction::DedupeCompress(ReductionCosts::DEFAULT),
            20_000,
        ),
    ] {
        let mut spec =
            group_spec("pm1725a-1600", &["5200eco-1920", "5200eco-1920", "5200eco-1920"]);
        spec.write_buffer.usable = Bytes::from_gib(1);
        spec.reduction = reduction;
        let mut group = DiskGroup::new(spec, RootSeed(1));
        let begin = processor_seconds();
        let outcome = run(&mut group, &streams, Plan::millis(0, end_ms), RootSeed(1));
        let spent = processor_seconds() - begin;
        let requests: u64 = outcome.streams.iter().map(|stream| stream.requests).sum();
        println!("{name:40} {requests:14} {spent:12.2} {:24.2}", requests as f64 / spent / 1e6);
    }
}
