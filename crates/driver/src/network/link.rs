//! One direction of the link: when what is sent now will have arrived. Pure; times are nanoseconds of one clock.

use super::spec::NetworkSpec;

/// One direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    latency_ns: u64,
    bytes_per_second: Option<u64>,
    /// When everything sent so far has left the sender.
    free_at_ns: u64,
}

impl Link {
    /// A direction of a network on which nothing was sent yet.
    pub(super) fn new(spec: &NetworkSpec) -> Link {
        let round_trip_ns = u64::try_from(spec.round_trip.as_nanos()).unwrap_or(u64::MAX);
        Link {
            latency_ns: round_trip_ns / 2,
            bytes_per_second: spec.bytes_per_second,
            free_at_ns: 0,
        }
    }

    /// Sends so many bytes after all those before; when the last of them arrives. Never earlier than what was sent before.
    pub(super) fn send(&mut self, now_ns: u64, bytes: usize) -> u64 {
        let begin_ns = self.free_at_ns.max(now_ns);
        let takes_ns = self.bytes_per_second.map_or(0, |rate| {
            let ns = u128::from(bytes as u64) * 1_000_000_000 / u128::from(rate.max(1));
            u64::try_from(ns).unwrap_or(u64::MAX)
        });
        self.free_at_ns = begin_ns.saturating_add(takes_ns);
        self.free_at_ns.saturating_add(self.latency_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::Link;
    use crate::network::NetworkSpec;
    use proptest::prelude::{prop_assert, proptest};
    use std::time::Duration;

    fn link(round_trip_us: u64, bytes_per_second: Option<u64>) -> Link {
        let round_trip = Duration::from_micros(round_trip_us);
        Link::new(&NetworkSpec { round_trip, bytes_per_second })
    }

    #[test]
    fn each_way_takes_half_a_round_trip_and_the_time_of_the_bytes() {
        let mut link = link(2_000, Some(1_000_000));
        assert_eq!(link.send(0, 0), 1_000_000);
        // A thousand bytes take a millisecond, and the next thousand leave after them.
        assert_eq!(link.send(0, 1_000), 2_000_000);
        assert_eq!(link.send(500_000, 1_000), 3_000_000);
        // The link was idle in between.
        assert_eq!(link.send(10_000_000, 1_000), 12_000_000);
    }

    #[test]
    fn any_amount_passes_at_once_where_there_is_no_rate() {
        let mut link = link(0, None);
        assert_eq!(link.send(7, 1 << 30), 7);
    }

    proptest! {
        #[test]
        fn what_is_sent_later_arrives_later(
            sent in proptest::collection::vec((0u64..1_000_000, 0usize..100_000), 1..50),
            rate in 1u64..1_000_000_000,
        ) {
            let mut link = link(100, Some(rate));
            let (mut now, mut before) = (0, 0);
            for (pause, bytes) in sent {
                now += pause;
                let due = link.send(now, bytes);
                prop_assert!(due >= before && due >= now + 50_000);
                before = due;
            }
        }
    }
}
