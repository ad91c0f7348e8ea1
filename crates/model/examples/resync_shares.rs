//! Virtual machines beside a backlogged resynchronisation on one SATA device, by policy, load and slice.
//!
//! Reads of 8 KiB with Poisson arrivals on the capacity device of a group, and eight outstanding MiB of
//! resynchronisation reads; virtual time. Run with `cargo run --release -p underlay-model --example resync_shares`.

#[path = "../tests/it/common/mod.rs"]
mod common;

use common::{Load, Plan, Stream, group_spec, run};
use underlay_core::{Bytes, RootSeed};
use underlay_model::{DiskGroup, IoClass, Policy, SchedulerSpec};

const SEED: RootSeed = RootSeed(1);
/// What one SATA device reads at most in pieces of 8 KiB: 540 MB/s.
const SATA_PAGES_PER_SECOND: f64 = 540e6 / 8192.0;

fn main() {
    println!(
        "policy               slice   load   VM p50      VM p99   VM MB/s  resync MB/s  resync share"
    );
    for (name, policy) in
        [("adaptive, 20 % floor", Policy::ADAPTIVE), ("order of arrival", Policy::None)]
    {
        for slice_kib in [64, 256, 1024] {
            for load in [0.3, 0.6, 0.9] {
                let mut spec = group_spec("dc1500m-960", &["5200eco-1920"]);
                let slice = Bytes::from_kib(slice_kib);
                spec.scheduler = SchedulerSpec { policy, slice, ..SchedulerSpec::DEFAULT };
                let arrivals = Load::Open(load * SATA_PAGES_PER_SECOND);
                let vm = Stream::random(IoClass::Vm, 1.0, 8192, arrivals);
                // Without a scheduler pieces are as large as they come.
                let (bytes, depth) = match policy {
                    Policy::None => (slice.0 as u32, 8),
                    _ => (1 << 20, 8),
                };
                let resync = Stream::random(IoClass::Resync, 1.0, bytes, Load::Closed(depth))
                    .within((1 << 40, 64 << 30));
                let mut group = DiskGroup::new(spec, SEED);
                let outcome = run(&mut group, &[vm, resync], Plan::millis(500, 5_500), SEED);
                let (vm, resync) = (outcome.bytes_per_second(0), outcome.bytes_per_second(1));
                println!(
                    "{name:20} {slice_kib:4} KiB {:4.0} % {:7.0} us {:8.0} us {:8.0} {:12.0} {:12.2}",
                    load * 100.0,
                    outcome.quantile_us(0, 0.5),
                    outcome.quantile_us(0, 0.99),
                    vm / 1e6,
                    resync / 1e6,
                    resync / (vm + resync),
                );
            }
        }
    }
}
