//! What the kernel's block layer counts for a device: requests and the time they took.
//!
//! Seen from here, a request's latency includes everything the host adds on the way to the server and back,
//! which the server itself cannot see.

use std::fs;
use std::iter::Sum;

/// Reads and writes of one or several block devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockCounters {
    pub(crate) ios: u64,
    /// Sum of latencies. The kernel rounds it to milliseconds.
    pub(crate) ns: u64,
}

impl BlockCounters {
    /// The counters of a device such as `loop3`; zero when it has none.
    pub(crate) fn read(device: &str) -> BlockCounters {
        let text = fs::read_to_string(format!("/sys/block/{device}/stat")).unwrap_or_default();
        BlockCounters::parse(&text)
    }

    /// Fields as documented in the kernel's `Documentation/block/stat.rst`: read I/Os, merges, sectors,
    /// ticks, then the same for writes.
    fn parse(text: &str) -> BlockCounters {
        let fields: Vec<u64> =
            text.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        BlockCounters { ios: at(0) + at(4), ns: (at(3) + at(7)) * 1_000_000 }
    }

    /// The difference to an earlier reading.
    pub(crate) fn since(self, earlier: BlockCounters) -> BlockCounters {
        BlockCounters {
            ios: self.ios.saturating_sub(earlier.ios),
            ns: self.ns.saturating_sub(earlier.ns),
        }
    }
}

impl Sum for BlockCounters {
    fn sum<I: Iterator<Item = BlockCounters>>(counters: I) -> BlockCounters {
        counters.fold(BlockCounters::default(), |sum, one| BlockCounters {
            ios: sum.ios + one.ios,
            ns: sum.ns + one.ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::BlockCounters;

    #[test]
    fn reads_and_writes_are_added() {
        let text = "  100  1  800  12  50  2  400  8  0  20  20  0 0 0 0 3 1\n";
        let counters = BlockCounters::parse(text);
        assert_eq!(counters, BlockCounters { ios: 150, ns: 20_000_000 });
        assert_eq!(BlockCounters::parse(""), BlockCounters::default());
        assert_eq!(BlockCounters::default().since(counters), BlockCounters::default());
    }
}
