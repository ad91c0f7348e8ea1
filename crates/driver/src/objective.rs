//! A latency target, and what a measured window says about it. Pure.
//!
//! "p99 = 10 ms" means: at most 1 % of the transactions respond later than 10 ms after their intended start. So the
//! share of late transactions is what is estimated, and its uncertainty is known: the window is cut into
//! [`BATCHES`] batches of consecutive ticks, whose shares are nearly independent even though neighbouring
//! transactions are not (batch means; Law and Kelton, "Simulation Modeling and Analysis", chapter 9), and
//! a one-sided 95 % interval follows from Student's t with [`BATCHES`] - 1 degrees of freedom.

use underlay_core::Nanos;
pub use underlay_workload::objective::{Objective, ObjectiveError};

use crate::saturation::{Saturation, SaturationVerdict};
use crate::summary::{Delivery, DeliveryVerdict};
use crate::tick::{ConnectTick, DriveTick};

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

/// Judges the ticks of one window; `before` is what became of sessions in the unmeasured time before it, whose queues
/// the window would inherit.
pub fn judge(objective: &Objective, before: &ConnectTick, ticks: &[DriveTick]) -> Judgement {
    let mut window = DriveTick::default();
    for tick in ticks {
        if window.types.is_empty() {
            window.begin = tick.begin;
        }
        window.append(tick);
    }
    let response = window.response();
    let transactions = response.count();
    let late_share = share(response.count_above(objective.limit.0), transactions);
    let late_share_bounds = bounds(objective, ticks, late_share);
    let allowed = objective.late_share_allowed();
    let delivered = Delivery::of(&window).map(|delivery| delivery.verdict);
    let verdict = if Saturation::of(&window).verdict != SaturationVerdict::Clear {
        Verdict::GeneratorSaturated
    } else if delivered == Some(DeliveryVerdict::Missed) || transactions == 0 {
        Verdict::NotDelivered
    } else if late_share_bounds.1 <= allowed {
        Verdict::Met
    } else if late_share_bounds.0 > allowed {
        Verdict::Exceeded
    } else {
        Verdict::Undecided
    };
    Judgement {
        verdict,
        transactions,
        delivered_per_second: transactions as f64 / window.length().as_secs_f64().max(1e-9),
        observed: response.quantile(objective.quantile).map(Nanos),
        late_share,
        late_share_bounds,
        connections_lost: has_lost(before) || has_lost(&window.connects),
    }
}

fn has_lost(connects: &ConnectTick) -> bool {
    connects.lost > 0 || connects.errors.total() > 0
}

/// The interval of the share of late transactions: a ratio of two sums over batches, with the variance
/// of its linearisation.
fn bounds(objective: &Objective, ticks: &[DriveTick], share_of_all: f64) -> (f64, f64) {
    let batches: Vec<(f64, f64)> = ticks
        .chunks(ticks.len().div_ceil(BATCHES).max(1))
        .map(|batch| {
            batch.iter().map(DriveTick::response).fold((0.0, 0.0), |(late, all), response| {
                let above = response.count_above(objective.limit.0) as f64;
                (late + above, all + response.count() as f64)
            })
        })
        .collect();
    let number = batches.len() as f64;
    let all: f64 = batches.iter().map(|(_, all)| all).sum();
    if batches.len() < BATCHES / 2 || all == 0.0 {
        return (0.0, 1.0);
    }
    let mean = all / number;
    let squares: f64 = batches.iter().map(|(late, all)| (late - share_of_all * all).powi(2)).sum();
    let deviation = (squares / (number - 1.0) / number).sqrt() / mean;
    // Without any late transaction the variance is 0 by accident: the rule of three bounds the share.
    let floor = if share_of_all == 0.0 { 3.0 / all } else { 0.0 };
    let margin = (T_95 * deviation).max(floor);
    ((share_of_all - margin).max(0.0), (share_of_all + margin).min(1.0))
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

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::{Objective, Verdict, judge};
    use crate::tick::{ArrivalTick, ConnectTick, DriveTick, TypeTick};
    use underlay_core::Nanos;

    fn objective() -> Objective {
        "p99=10ms".parse().unwrap()
    }

    /// A second of a thousand transactions of which `late` were late.
    fn second(number: u64, late: u64) -> DriveTick {
        let mut kind = TypeTick { committed: 1_000, ..TypeTick::default() };
        kind.response.record_n(1_000_000, 1_000 - late);
        kind.response.record_n(50_000_000, late);
        DriveTick {
            begin: Nanos::from_secs(number),
            end: Nanos::from_secs(number + 1),
            types: vec![kind],
            arrivals: ArrivalTick { due: 1_000, taken: 1_000, ..ArrivalTick::default() },
            ..DriveTick::default()
        }
    }

    fn verdict(late: &[u64]) -> Verdict {
        let ticks: Vec<DriveTick> =
            late.iter().enumerate().map(|(at, late)| second(at as u64, *late)).collect();
        judge(&objective(), &ConnectTick::default(), &ticks).verdict
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
    }

    #[test]
    fn undelivered_load_and_a_busy_generator_are_no_answer() {
        let mut ticks: Vec<DriveTick> = (0..20).map(|at| second(at, 0)).collect();
        let judge = |ticks: &[DriveTick]| judge(&objective(), &ConnectTick::default(), ticks);
        ticks[4].arrivals.overflowed = 1;
        assert_eq!(judge(&ticks).verdict, Verdict::NotDelivered);
        ticks[4].arrivals.overflowed = 0;
        for tick in &mut ticks {
            tick.busiest.cpu_ns = 950_000_000;
        }
        assert_eq!(judge(&ticks).verdict, Verdict::GeneratorSaturated);
        assert_eq!(judge(&[]).verdict, Verdict::NotDelivered);
    }
    #[test]
    fn lost_sessions_are_noticed_in_the_window_and_before_it() {
        let lost = ConnectTick { lost: 1, ..ConnectTick::default() };
        let quiet: Vec<DriveTick> = (0..20).map(|at| second(at, 30)).collect();
        let seen = |before: &ConnectTick, ticks: &[DriveTick]| {
            judge(&objective(), before, ticks).connections_lost
        };
        assert!(!seen(&ConnectTick::default(), &quiet));
        assert!(seen(&lost, &quiet));
        let mut cut = quiet;
        cut[7].connects = lost;
        assert!(seen(&ConnectTick::default(), &cut));
    }
}
