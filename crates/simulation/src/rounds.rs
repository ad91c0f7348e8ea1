//! Whether a measured window was steady: its completions in five equal parts.
//!
//! The end of a window is not known while it lasts (a limit of requests ends it), so completions are counted in slices
//! that are joined in pairs, and made twice as long, whenever they become too many. The parts are judged by the rule by
//! which real devices are ([`underlay_workload::block::steady_state`]). Deliberately not here: what to do about it.

use underlay_core::Nanos;
use underlay_workload::block::steady_state::WINDOW_ROUNDS;

/// Slices at most: from half of them on, an edge between parts falls into less than a hundredth of a part.
const SLICES_MAX: usize = 1_280;

/// Completions over time.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    width_ns: u64,
    counts: Vec<u64>,
}

impl Slices {
    pub(crate) fn new() -> Slices {
        Slices { width_ns: 1, counts: Vec::with_capacity(SLICES_MAX) }
    }

    /// Something completed so long after the window began, at its end at the latest.
    pub(crate) fn record(&mut self, since: Nanos) {
        let last_ns = since.0.saturating_sub(1);
        let mut index = last_ns / self.width_ns;
        while index >= SLICES_MAX as u64 {
            self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width_ns *= 2;
            index = last_ns / self.width_ns;
        }
        let index = index as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Completions per second in the equal parts of a window so long. A slice across an edge is shared.
    pub(crate) fn rounds(&self, window: Nanos) -> [f64; WINDOW_ROUNDS] {
        let part_ns = window.0.max(1) as f64 / WINDOW_ROUNDS as f64;
        let mut counts = [0.0; WINDOW_ROUNDS];
        for (index, count) in self.counts.iter().enumerate() {
            let from = index as f64 * self.width_ns as f64;
            // The last slice ends with the window.
            let until = (from + self.width_ns as f64).min(window.0 as f64).max(from + 1.0);
            for (part, sum) in counts.iter_mut().enumerate() {
                let (begin, end) = (part as f64 * part_ns, (part + 1) as f64 * part_ns);
                let shared = (until.min(end) - from.max(begin)).max(0.0);
                *sum += *count as f64 * shared / (until - from);
            }
        }
        counts.map(|count| count * 1e9 / part_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::Slices;
    use underlay_core::Nanos;
    use underlay_workload::block::steady_state;

    /// Completions `gap` apart in the first half of the window, twice as far apart in the second.
    fn slowing(gap: u64) -> (Slices, Nanos) {
        let mut slices = Slices::new();
        let half = 1_000 * gap;
        for n in 1..=1_000 {
            slices.record(Nanos(n * gap));
        }
        for n in 1..=500 {
            slices.record(Nanos(half + n * 2 * gap));
        }
        (slices, Nanos(2 * half))
    }

    #[test]
    fn parts_are_right_whatever_the_length_of_the_window() {
        for gap in [1_000, 77_777, 5_000_000] {
            let (slices, window) = slowing(gap);
            let rounds = slices.rounds(window);
            let rate = 1e9 / gap as f64;
            for (round, share) in rounds.into_iter().zip([1.0, 1.0, 0.75, 0.5, 0.5]) {
                assert!((round / (rate * share) - 1.0).abs() < 0.02, "{gap}: {rounds:?}");
            }
            let total: f64 = rounds.iter().sum::<f64>() * window.as_secs_f64() / 5.0;
            assert!((total - 1_500.0).abs() < 2.0, "{total}");
            assert!(steady_state(&rounds).is_some_and(|state| !state.is_steady()));
        }
    }

    #[test]
    fn an_even_rate_is_steady_and_nothing_is_not_judged() {
        let mut slices = Slices::new();
        for n in 1..=5_000 {
            slices.record(Nanos(n * 12_345));
        }
        let rounds = slices.rounds(Nanos(5_000 * 12_345));
        assert!(steady_state(&rounds).is_some_and(|state| state.is_steady()), "{rounds:?}");
        assert_eq!(steady_state(&Slices::new().rounds(Nanos(1_000))), None);
    }
}
