//! Whether the second of two records is worse than allowed: for use as a regression gate.
//!
//! Decided by the interval of the main ratio (throughput at the highest number of users that both have), with the host's
//! share of it, and by nothing else. Two designs of which one cannot be told from the host have none. A record that is
//! compared with itself, or that lacks a design, does not pass. Deliberately not here: exit codes.

use serde::Serialize;

use crate::analysis::{Comparison, Validity};
use crate::compare::{MISSING_DESIGN, RecordComparison, SAME_RECORD};
use crate::comparisons::main_position;
use crate::wording::{factor, factor_interval, percent};

/// What a gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateOutcome {
    /// The interval excludes anything worse than allowed.
    Passed,
    /// The interval includes both.
    Undecided,
    /// The interval excludes anything better than what is just allowed.
    Worse,
}

/// The gate of two records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    /// The least ratio that is allowed: 0.95 where 5 % may be lost.
    pub least_ratio: f64,
    /// Worse if one pair of designs is; otherwise undecided if one is.
    pub outcome: GateOutcome,
    /// The same in words, one sentence per pair of designs.
    pub reasons: Vec<String>,
    /// One per pair of designs, in the order of the comparison.
    pub pairs: Vec<GatePair>,
    /// Whether chance alone keeps a pair undecided, so that more repeats may decide it.
    pub repeats_may_decide: bool,
}

/// The gate of one pair of designs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GatePair {
    /// Title of the design in the first record.
    pub a: String,
    /// Title of the design in the second record.
    pub b: String,
    /// Users of the rung; `null` without a common one.
    pub users: Option<u32>,
    /// b over a.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % interval, with the host's share.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// What follows.
    pub outcome: GateOutcome,
}

/// Judges a comparison: `allowed` is the share of throughput that may be lost, in `0.0..1.0`.
pub fn gate(comparison: &RecordComparison, allowed: f64) -> Gate {
    let least_ratio = 1.0 - allowed;
    let mut reasons = Vec::new();
    let mut pairs = Vec::new();
    let mut repeats_may_decide = false;
    for (pair, headline) in comparison.pairs.iter().zip(&comparison.headlines) {
        let main = main_position(&pair.comparisons).map(|top| &pair.comparisons[top]);
        let interval = main.and_then(with_host);
        let is_of_host = pair.validity == Some(Validity::HostLimited);
        let outcome = match interval {
            _ if pair.invalid.is_some() || is_of_host => GateOutcome::Undecided,
            Some((_, high)) if high < least_ratio => GateOutcome::Worse,
            Some((low, _)) if low >= least_ratio => GateOutcome::Passed,
            _ => GateOutcome::Undecided,
        };
        let is_tried = pair.invalid.is_none() && !is_of_host && main.is_some();
        repeats_may_decide |= is_tried && outcome == GateOutcome::Undecided;
        let limit = format!("{} is allowed", factor(least_ratio));
        reasons.push(match (&pair.invalid, main.and_then(|main| main.ratio).zip(interval)) {
            (Some(why), _) => format!("{}: cannot tell, {why}", pair.b),
            _ if is_of_host => format!("{}: cannot tell, this host was measured", pair.b),
            (None, None) => format!("{}: cannot tell without an interval. {headline}", pair.b),
            (None, Some((ratio, (low, high)))) => {
                let verdict = match outcome {
                    GateOutcome::Passed => format!("not more than {} worse", percent(allowed)),
                    GateOutcome::Worse => format!("more than {} worse", percent(allowed)),
                    GateOutcome::Undecided => {
                        format!("cannot tell whether it is more than {} worse", percent(allowed))
                    }
                };
                format!(
                    "{}: {verdict}: {} {}, {limit}",
                    pair.b,
                    factor(ratio),
                    factor_interval(low, high)
                )
            }
        });
        pairs.push(GatePair {
            a: pair.a.clone(),
            b: pair.b.clone(),
            users: main.and_then(|main| main.users),
            ratio: main.and_then(|main| main.ratio),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            outcome,
        });
    }
    let of_all = comparison.findings.iter();
    let of_all = of_all.filter(|it| [SAME_RECORD, MISSING_DESIGN].contains(&it.code.as_str()));
    let of_all: Vec<String> = of_all.map(|it| format!("cannot tell, {}", it.text)).collect();
    let at_least = match of_all.is_empty() && !pairs.is_empty() {
        true => GateOutcome::Passed,
        false => GateOutcome::Undecided,
    };
    reasons.extend(of_all);
    let outcome = pairs.iter().map(|pair| pair.outcome).fold(at_least, GateOutcome::max);
    Gate { least_ratio, outcome, reasons, pairs, repeats_may_decide }
}

/// The interval of a ratio, by chance and with what the host may have changed.
fn with_host(comparison: &Comparison) -> Option<(f64, f64)> {
    let (low, high) = comparison.low.zip(comparison.high)?;
    let host = comparison.host_low.zip(comparison.host_high);
    Some(host.map_or((low, high), |(from, to)| (low.min(from), high.max(to))))
}
