//! VMware's adaptive resync experiment on one virtual time line: resynchronisation alone (1), virtual machines join
//! and mostly read while their caches fill (2), then mostly write (3), then stop (4).
//!
//! The published time line shows resynchronisation at 5,000 IOPS alone and about 1,500 beside the load. Here one disk
//! group of the bed's kind of devices is loaded to saturation. Run with
//! `cargo run --release -p underlay-model --example four_stages`.

#[path = "../tests/it/common/mod.rs"]
mod common;

use common::{Load, Plan, Stream, group_spec, run};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::{DiskGroup, IoClass};

fn main() {
    let seconds = Nanos::from_secs;
    let mut spec = group_spec("pm1725a-1600", &["dc500m-1920", "dc500m-1920"]);
    // So small that it fills within the experiment.
    spec.write_buffer.usable = Bytes::from_gib(2);
    let vm = |read_share, from, until| {
        Stream::random(IoClass::Vm, read_share, 8192, Load::Closed(128)).between(from, until)
    };
    let streams = [
        vm(1.0, seconds(10), seconds(25)),
        vm(0.2, seconds(25), seconds(60)),
        // A rebalance within the group: as much is written as read.
        Stream::random(IoClass::Resync, 0.5, 64 << 10, Load::Closed(32))
            .within((1 << 40, 64 << 30)),
    ];
    let mut group = DiskGroup::new(spec, RootSeed(5));
    let plan = Plan { warm_up: Nanos::ZERO, end: seconds(75), interval: seconds(1) };
    let outcome = run(&mut group, &streams, plan, RootSeed(5));
    println!(
        "second  stage   VM IOPS  VM MB/s  resync IOPS  resync MB/s  resync share  buffer  congestion"
    );
    for second in 0..75 {
        let bytes = |stream: usize| {
            outcome.streams[stream].time_line.get(second).copied().unwrap_or(0) as f64
        };
        let (vm, resync) = (bytes(0) + bytes(1), bytes(2));
        let stage = match second {
            0..10 => 1,
            10..25 => 2,
            25..60 => 3,
            _ => 4,
        };
        let (fill, congestion) = outcome.fill[second];
        println!(
            "{second:6}  {stage:5} {:9.0} {:8.0} {:12.0} {:12.0} {:13.2} {:5.0} % {congestion:11}",
            vm / 8192.0,
            vm / 1e6,
            resync / 65_536.0,
            resync / 1e6,
            resync / (vm + resync).max(1.0),
            fill * 100.0,
        );
    }
}
