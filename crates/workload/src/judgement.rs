//! What a window of transactions says about a latency target. Pure.
//!
//! "p99 = 10 ms" means: at most 1 % of the transactions respond later than 10 ms after their intended start. So the
//! share of late transactions is estimated, with a known uncertainty: the window is cut into [`BATCHES`] batches of
//! consecutive spans, whose shares are nearly independent even though neighbouring transactions are not (batch
//! means; Law and Kelton, "Simulation Modeling and Analysis", chapter 9), and a one-sided 95 % interval follows
//! from Student's t with [`BATCHES`] - 1 degrees of freedom.
//!
//! Not here: whether the load was delivered, which only the load generator knows.

use underlay_core::Nanos;

use crate::objective::Objective;

/// Batches of one window.
pub const BATCHES: usize = 10;
/// Student's t for a one-sided 95 % interval with 9 degrees of freedom.
const T_95: f64 = 1.833;

/// What a window says about the objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The share of late transactions is below what is allowed, with 95 % confidence.
    Met,
    /// It is above, with 95 % confidence.
    Exceeded,
    /// The window is too short to tell.
    Undecided,
    /// The requested load was not delivered: its latencies are those of another load. Counts as exceeded.
    NotDelivered,
    /// The generator was the bottleneck: nothing follows about the database.
    GeneratorSaturated,
}

/// A window judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// What follows.
    pub verdict: Verdict,
    /// Transactions that were carried out.
    pub transactions: u64,
    /// Those per second.
    pub delivered_per_second: f64,
    /// The quantile, if there was any transaction.
    pub observed: Option<Nanos>,
    /// The share that was late, of all.
    pub late_share: f64,
    /// The bounds of its 90 % two-sided interval (each 95 % one-sided).
    pub late_share_bounds: (f64, f64),
    /// Sessions were lost, or could not be opened, in the window or shortly before it: what is late may be so because
    /// the database was away, not because the rate is too high.
    pub connections_lost: bool,
}

/// Transactions of a short span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Those that were late.
    pub late: u64,
    /// All.
    pub all: u64,
}

/// The share of late transactions of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LateShare {
    /// Of all transactions; 0 without any.
    pub share: f64,
    /// The bounds of its 90 % two-sided interval; 0 and 1 where too few spans are known.
    pub bounds: (f64, f64),
}

impl LateShare {
    /// Of consecutive spans of equal length: a ratio of two sums over batches, with the variance of its linearisation.
    pub fn of(spans: &[Span]) -> LateShare {
        let batches: Vec<(f64, f64)> = spans
            .chunks(spans.len().div_ceil(BATCHES).max(1))
            .map(|batch| {
                let sum = |of: fn(&Span) -> u64| batch.iter().map(of).sum::<u64>() as f64;
                (sum(|span| span.late), sum(|span| span.all))
            })
            .collect();
        let number = batches.len() as f64;
        let all: f64 = batches.iter().map(|(_, all)| all).sum();
        let late: f64 = batches.iter().map(|(late, _)| late).sum();
        let share = if all == 0.0 { 0.0 } else { late / all };
        if batches.len() < BATCHES / 2 || all == 0.0 {
            return LateShare { share, bounds: (0.0, 1.0) };
        }
        let mean = all / number;
        let squares: f64 = batches.iter().map(|(late, all)| (late - share * all).powi(2)).sum();
        let deviation = (squares / (number - 1.0) / number).sqrt() / mean;
        // Without any late transaction the variance is 0 by accident: the rule of three bounds the share.
        let floor = if share == 0.0 { 3.0 / all } else { 0.0 };
        let margin = (T_95 * deviation).max(floor);
        LateShare { share, bounds: ((share - margin).max(0.0), (share + margin).min(1.0)) }
    }

    /// What it says about a target, of a load that was delivered.
    pub fn verdict(&self, objective: &Objective) -> Verdict {
        let allowed = objective.late_share_allowed();
        match self.bounds {
            (_, high) if high <= allowed => Verdict::Met,
            (low, _) if low > allowed => Verdict::Exceeded,
            _ => Verdict::Undecided,
        }
    }
}

impl Verdict {
    /// The word used in records and on the terminal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Exceeded => "exceeded",
            Verdict::Undecided => "undecided",
            Verdict::NotDelivered => "not delivered",
            Verdict::GeneratorSaturated => "generator saturated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LateShare, Span, Verdict};

    fn verdict(late: &[u64]) -> Verdict {
        let spans: Vec<Span> = late.iter().map(|late| Span { late: *late, all: 1_000 }).collect();
        LateShare::of(&spans).verdict(&"p99=10ms".parse().expect("an objective"))
    }

    #[test]
    fn what_is_clear_is_decided_and_what_is_not_is_not() {
        assert_eq!(verdict(&[2; 20]), Verdict::Met);
        assert_eq!(verdict(&[0; 20]), Verdict::Met);
        assert_eq!(verdict(&[30; 20]), Verdict::Exceeded);
        // On average 0.9 %, but all of it in two seconds of twenty.
        let mut bursts = [0; 20];
        (bursts[3], bursts[14]) = (90, 90);
        assert_eq!(verdict(&bursts), Verdict::Undecided);
        // Too few batches to know how much they differ.
        assert_eq!(verdict(&[0; 3]), Verdict::Undecided);
        assert_eq!(LateShare::of(&[]), LateShare { share: 0.0, bounds: (0.0, 1.0) });
    }
}
