//! A latency target in words and numbers: `p99=10ms`. Pure.
//!
//! "p99 = 10 ms" means: at most 1 % of the transactions respond later than 10 ms after their intended start. What a
//! measured window says about it is in [`crate::judgement`].

use std::fmt;
use std::str::FromStr;

use underlay_core::Nanos;

/// A quantile of the response time of all transactions, and the longest time it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// The quantile, above 0 and below 1: 0.99.
    pub quantile: f64,
    /// What it may be at most.
    pub limit: Nanos,
}

/// A text that is no objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a latency target; write for example p99=10ms")]
pub struct ObjectiveError(String);

impl Objective {
    /// The share of transactions that may be late.
    pub fn late_share_allowed(&self) -> f64 {
        1.0 - self.quantile
    }

    /// The quantile as it is called: `p99.9`.
    pub fn name(&self) -> String {
        format!("p{}", rounded(self.quantile * 100.0))
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <= {}", self.name(), self.limit)
    }
}

/// Without the digits that only binary fractions have.
fn rounded(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e6
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Objective, ObjectiveError> {
        let refused = || ObjectiveError(text.to_string());
        let (quantile, limit) = text.split_once('=').ok_or_else(refused)?;
        let percent: f64 = quantile
            .trim()
            .strip_prefix('p')
            .and_then(|number| number.parse().ok())
            .ok_or_else(refused)?;
        let limit: Nanos = limit.trim().parse().map_err(|_| refused())?;
        if !(percent > 0.0 && percent < 100.0) || limit == Nanos::ZERO {
            return Err(refused());
        }
        Ok(Objective { quantile: percent / 100.0, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::Objective;
    use underlay_core::Nanos;

    #[test]
    fn targets_are_read_and_refused_with_a_remedy() {
        let objective: Objective = "p99=10ms".parse().unwrap();
        assert_eq!(objective, Objective { quantile: 0.99, limit: Nanos::from_millis(10) });
        assert_eq!("p99.9=2s".parse::<Objective>().unwrap().to_string(), "p99.9 <= 2 s");
        for text in ["", "p99", "99=10ms", "p100=10ms", "p0=1ms", "p99=0s", "p99=ten"] {
            let error = text.parse::<Objective>().unwrap_err();
            assert!(error.to_string().ends_with("write for example p99=10ms"), "{error}");
        }
    }
}
