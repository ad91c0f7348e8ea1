//! Writers that never stop, while the write buffer fills: throughput, fill, congestion and latency on a virtual
//! time line. Run with `cargo run --release -p underlay-model --example filling_buffer`.

#[path = "../tests/it/common/mod.rs"]
mod common;

use common::{Load, Plan, Stream, group_spec, run};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::{DiskGroup, IoClass};

fn main() {
    for depth in [8, 32, 128, 512] {
        let mut spec = group_spec("dc1500m-960", &["5200eco-1920", "5200eco-1920"]);
        spec.write_buffer.usable = Bytes::from_gib(2);
        let writes = Stream::random(IoClass::Vm, 0.0, 8192, Load::Closed(depth));
        let mut group = DiskGroup::new(spec, RootSeed(1));
        let plan = Plan {
            warm_up: Nanos::from_secs(15),
            end: Nanos::from_secs(20),
            interval: Nanos::from_millis(500),
        };
        let outcome = run(&mut group, &[writes], plan, RootSeed(1));
        println!(
            "\n{depth} writers: {:.0} MB/s in the end, p50 {:.0} us, p99 {:.0} us in the group",
            outcome.bytes_per_second(0) / 1e6,
            outcome.quantile_us(0, 0.5),
            outcome.quantile_us(0, 0.99)
        );
        println!("second     MB/s  buffer  congestion");
        for (index, bytes) in outcome.streams[0].time_line.iter().take(40).enumerate() {
            let (fill, congestion) = outcome.fill[index];
            println!(
                "{:6.1} {:8.0} {:5.0} % {congestion:11}",
                (index + 1) as f64 / 2.0,
                *bytes as f64 * 2.0 / 1e6,
                fill * 100.0
            );
        }
    }
}
