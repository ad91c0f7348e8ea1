//! What one worker counts, and how it hands it over once a second.

use super::outcome::{KindResult, Part};
use underlay_core::Histogram;

/// One second of one worker.
#[derive(Debug)]
pub(super) struct WorkerTick {
    pub(super) worker: usize,
    pub(super) part: Part,
    /// Number of the second within the part.
    pub(super) second: u64,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Per kind of the worker.
    pub(super) kinds: Vec<KindResult>,
    pub(super) lag: Histogram,
    pub(super) backlog: u64,
    pub(super) processor: u64,
}

/// The seconds of a load: those of the warm-up, then those of the measured time, then the rest. Of this host's time: under a
/// dilation they are shorter in design time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seconds {
    pub(super) warm_up: u64,
    pub(super) end: u64,
    /// Length of one, at least 1 ns.
    pub(super) length: u64,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Second {
    pub(super) part: Part,
    pub(super) number: u64,
    pub(super) begin: u64,
    pub(super) end: u64,
}

impl Seconds {
    /// The same when the load is ended at `stop`. What was measured begins where the warm-up ends, or not at all.
    pub(super) fn until(self, stop: u64) -> Seconds {
        Seconds { end: stop.max(self.warm_up).min(self.end), ..self }
    }

    /// The second that `now`, in ns since the load began, lies in.
    pub(super) fn at(self, now: u64) -> Second {
        let (part, from, to) = if now < self.warm_up {
            (Part::WarmUp, 0, self.warm_up)
        } else if now < self.end {
            (Part::Measure, self.warm_up, self.end)
        } else {
            return Second { part: Part::Drain, number: 0, begin: self.end, end: u64::MAX };
        };
        let number = (now - from) / self.length;
        let begin = from + number * self.length;
        Second { part, number, begin, end: (begin + self.length).min(to) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Seconds};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        /// Seconds follow each other without gaps, never span two parts, and are never longer than one.
        #[test]
        fn seconds_cover_the_load(
            warm_up in 0u64..5_000_000_000, measure in 1u64..5_000_000_000, length in 500_000_000u64..1_500_000_000,
        ) {
            let seconds = Seconds { warm_up, end: warm_up + measure, length };
            let mut now = 0;
            loop {
                let second = seconds.at(now);
                prop_assert_eq!(second.begin, now);
                if second.part == Part::Drain {
                    prop_assert_eq!(now, seconds.end);
                    break;
                }
                prop_assert!(second.end > now && second.end - now <= length);
                prop_assert!(second.end <= warm_up || second.begin >= warm_up);
                prop_assert_eq!(seconds.at(second.end - 1), second);
                now = second.end;
            }
        }

        /// Whenever a load is stopped, its measured time ends there, and never before it began.
        #[test]
        fn a_load_that_is_stopped_ends_there(
            warm_up in 0u64..3_000_000_000, measure in 1u64..3_000_000_000, stop in 0u64..7_000_000_000,
        ) {
            let whole = Seconds { warm_up, end: warm_up + measure, length: 1_000_000_000 };
            let seconds = whole.until(stop);
            prop_assert_eq!(seconds.end, stop.clamp(whole.warm_up, whole.end));
            prop_assert_eq!(seconds.at(seconds.end).part, Part::Drain);
            if seconds.end > warm_up {
                let last = seconds.at(seconds.end - 1);
                prop_assert_eq!((last.part, last.end), (Part::Measure, seconds.end));
                prop_assert_eq!(last.begin, whole.at(seconds.end - 1).begin);
            }
        }
    }
}
