//! How sequential a write stream is, from the addresses alone.
//!
//! Flash drains long sequential runs much faster than scattered blocks, because whole erase blocks become
//! free at once. A few streams are told apart (a log and a table being extended at the same
//! time), and a rewritten tail, as logs do with their last page, continues its run.

/// Streams remembered at once.
const STREAMS: usize = 8;
/// A run of this length drains entirely at the sequential rate.
const SEQUENTIAL_RUN_BYTES: u64 = 1 << 20;
/// A single block of this length, alone, drains entirely at the random rate.
const RANDOM_RUN_BYTES: u64 = 4096;
/// A write that starts at most this far before the end of a run rewrites its tail.
const TAIL_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, Default)]
struct Run {
    end: u64,
    length_bytes: u64,
    last_used: u64,
}

/// Tells how sequential each write is.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunTracker {
    runs: [Run; STREAMS],
    writes: u64,
}

impl RunTracker {
    /// Notes a write and returns its sequential share in 0..=1: 0 for a lone 4 KiB block, 1 once its run
    /// is 1 MiB long.
    pub(crate) fn sequential_share(&mut self, offset_bytes: u64, length_bytes: u64) -> f64 {
        self.writes += 1;
        let end = offset_bytes + length_bytes;
        let continued = self.runs.iter_mut().find(|run| {
            run.length_bytes > 0
                && (run.end.saturating_sub(TAIL_BYTES)..=run.end).contains(&offset_bytes)
                && end >= run.end
        });
        let run = match continued {
            Some(run) => {
                debug_assert!(end >= run.end, "a run that continues does not shrink");
                run.length_bytes += end - run.end;
                run
            }
            None => {
                let oldest = self.runs.iter_mut().min_by_key(|run| run.last_used);
                let run = oldest.expect("the array is not empty");
                run.length_bytes = length_bytes;
                run
            }
        };
        run.end = end;
        run.last_used = self.writes;
        if run.length_bytes >= SEQUENTIAL_RUN_BYTES {
            return 1.0; // As below: logs go on for ever.
        }
        let above_random = run.length_bytes.saturating_sub(RANDOM_RUN_BYTES) as f64;
        (above_random / (SEQUENTIAL_RUN_BYTES - RANDOM_RUN_BYTES) as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::RunTracker;

    #[test]
    fn scattered_blocks_are_random() {
        let mut tracker = RunTracker::default();
        for i in 0..100u64 {
            assert_eq!(tracker.sequential_share(i * 7919 * 4096 * 100, 4096), 0.0);
        }
    }

    #[test]
    fn runs_become_sequential_even_when_interleaved() {
        let mut tracker = RunTracker::default();
        let (mut log, mut table) = (0.0, 0.0);
        for i in 0..300u64 {
            log = tracker.sequential_share(i * 8192, 8192);
            table = tracker.sequential_share((1 << 40) + i * 8192, 8192);
            let _ = tracker.sequential_share((1 << 41) + i * 7919 * 65536, 4096);
        }
        assert_eq!((log, table), (1.0, 1.0));
    }

    #[test]
    fn a_rewritten_tail_continues_the_run_without_lengthening_it() {
        let mut tracker = RunTracker::default();
        let first = tracker.sequential_share(0, 512 << 10);
        let again = tracker.sequential_share((512 << 10) - 8192, 8192);
        assert_eq!(first, again);
        assert!(tracker.sequential_share(512 << 10, 8192) > first);
    }
}
