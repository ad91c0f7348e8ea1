//! What the kernel's block layer counts for a device: requests and the time they took.
//!
//! Seen from here, a request's latency includes everything the host adds on the way to the server and back,
//! which the server itself cannot see. The kernel counts wall time; what is returned here is design time.

use std::fs;
use std::iter::Sum;

use underlay_core::{Dilation, Nanos};

use underlay_export::path_cost::{ByDirection, Counted};

/// Reads and writes of one or several block devices. The kernel rounds the sums of latencies to milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockCounters(pub(crate) ByDirection);

impl BlockCounters {
    /// The counters of a device such as `loop3`; zero when it has none.
    pub(crate) fn read(device: &str, dilation: Dilation) -> BlockCounters {
        let text = fs::read_to_string(format!("/sys/block/{device}/stat")).unwrap_or_default();
        BlockCounters::parse(&text, dilation)
    }

    /// Fields as documented in the kernel's `Documentation/block/stat.rst`: read I/Os, merges, sectors,
    /// ticks, then the same for writes.
    fn parse(text: &str, dilation: Dilation) -> BlockCounters {
        let fields: Vec<u64> =
            text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        let design_ns = |ticks: u64| dilation.design(Nanos(ticks * 1_000_000)).0;
        let counted = |ios, ticks| Counted { ios: at(ios), ns: design_ns(at(ticks)) };
        BlockCounters(ByDirection { reads: counted(0, 3), writes: counted(4, 7) })
    }

    /// The difference to an earlier reading.
    pub(crate) fn since(self, earlier: BlockCounters) -> BlockCounters {
        BlockCounters(ByDirection {
            reads: self.0.reads.since(earlier.0.reads),
            writes: self.0.writes.since(earlier.0.writes),
        })
    }
}

impl Sum for BlockCounters {
    fn sum<I: Iterator<Item = BlockCounters>>(counters: I) -> BlockCounters {
        counters.fold(BlockCounters::default(), |BlockCounters(sum), BlockCounters(one)| {
            BlockCounters(ByDirection {
                reads: sum.reads.plus(one.reads),
                writes: sum.writes.plus(one.writes),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::BlockCounters;
    use underlay_core::Dilation;
    use underlay_export::path_cost::{ByDirection, Counted};

    #[test]
    fn reads_and_writes_are_told_apart() {
        let text = "  100  1  800  12  50  2  400  8  0  20  20  0 0 0 0 3 1\n";
        let counters = BlockCounters::parse(text, Dilation::NONE);
        let reads = Counted { ios: 100, ns: 12_000_000 };
        let writes = Counted { ios: 50, ns: 8_000_000 };
        assert_eq!(counters, BlockCounters(ByDirection { reads, writes }));
        assert_eq!(counters.0.total(), Counted { ios: 150, ns: 20_000_000 });
        let slowed = BlockCounters::parse(text, Dilation::new(4).unwrap());
        assert_eq!(slowed.0.total(), Counted { ios: 150, ns: 5_000_000 });
        assert_eq!(BlockCounters::parse("", Dilation::NONE), BlockCounters::default());
        assert_eq!(BlockCounters::default().since(counters), BlockCounters::default());
    }
}
