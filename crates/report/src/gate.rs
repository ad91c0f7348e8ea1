//! Whether the second of two records is worse than allowed: for use as a regression gate.
//!
//! Decided by the interval of the main ratio (throughput at the highest number of users that both have), with the host's
//! share of it, and by nothing else. Two designs of which one cannot be told from the host have none. Deliberately not
//! here: exit codes.

use serde::Serialize;

use crate::analysis::{Comparison, FindingSeverity, Validity};
use crate::compare::RecordComparison;
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
    let invalid = comparison.findings.iter().find(|f| f.severity == FindingSeverity::Invalid);
    let mut reasons = Vec::new();
    let mut pairs = Vec::new();
    for pair in &comparison.pairs {
        let main = main_position(&pair.comparisons).map(|top| &pair.comparisons[top]);
        let interval = main.and_then(with_host);
        let is_of_host = pair.validity == Some(Validity::HostLimited);
        let outcome = match interval {
            _ if invalid.is_some() || is_of_host => GateOutcome::Undecided,
            Some((_, high)) if high < least_ratio => GateOutcome::Worse,
            Some((low, _)) if low >= least_ratio => GateOutcome::Passed,
            _ => GateOutcome::Undecided,
        };
        let limit = format!("{} is allowed", factor(least_ratio));
        reasons.push(match (invalid, main.and_then(|main| main.ratio).zip(interval)) {
            (Some(finding), _) => format!("{}: cannot tell, {}", pair.b, finding.text),
            _ if is_of_host => format!("{}: cannot tell, this host was measured", pair.b),
            (None, None) => format!("{}: cannot tell without an interval", pair.b),
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
    let outcome = pairs.iter().map(|pair| pair.outcome).max().unwrap_or(GateOutcome::Undecided);
    Gate { least_ratio, outcome, reasons, pairs }
}

/// The interval of a ratio, by chance and with what the host may have changed.
fn with_host(comparison: &Comparison) -> Option<(f64, f64)> {
    let (low, high) = comparison.low.zip(comparison.high)?;
    let host = comparison.host_low.zip(comparison.host_high);
    Some(host.map_or((low, high), |(from, to)| (low.min(from), high.max(to))))
}
