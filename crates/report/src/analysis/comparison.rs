//! Designs against each other.

use serde::Serialize;

/// Design `b` against design `a`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Comparison {
    /// The base.
    pub a: usize,
    /// What is compared with it.
    pub b: usize,
    /// Where they are compared.
    pub scope: Scope,
    /// Users of the rung; `null` at the peaks, which may lie at different numbers of users.
    pub users: Option<u32>,
    /// Name of the metric (see [`crate::analysis::Method::metrics`]).
    pub metric: String,
    /// b over a; `null` when one of the two has no value.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % interval of the ratio, which is not corrected for the number of comparisons.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Lower end of the interval with the host's share of emulated designs; equal to `low` where nothing is emulated, `null` where
    /// the share is unknown. With a single pair it is the host's share alone.
    pub host_low: Option<f64>,
    /// Upper end.
    pub host_high: Option<f64>,
    /// Pairs of runs (same repeat) behind it.
    pub pairs: usize,
    /// How the interval was computed.
    pub method: RatioMethod,
    /// Two-sided p of "no difference".
    pub p: Option<f64>,
    /// The same after the correction for all comparisons of the study (or of the two records).
    pub p_adjusted: Option<f64>,
    /// p of the sign-flip permutation test, which assumes no distribution; its smallest possible value
    /// is `2 / 2^pairs`.
    pub p_permutation: Option<f64>,
    /// p of the test for equivalence (TOST): small = shown to be equal within the margin.
    pub p_equivalence: Option<f64>,
    /// Repeats (pairs, or runs of each record) after which the interval would be within 5 % of the ratio, if they vary
    /// as those so far; `null` where it is as narrow already, or where that would take more than 1,000.
    pub repeats_needed: Option<usize>,
    /// The same ratio in published results; `null` where there is none.
    pub published: Option<f64>,
    /// Whether one of its two numbers was fitted to the publication, or is set by the study: then agreement shows nothing.
    pub published_given: bool,
    /// What follows.
    pub outcome: Outcome,
    /// The same in words.
    pub text: String,
}

impl Comparison {
    /// How far the interval reaches from the ratio, as a share of it: 0.05 = from ratio / 1.05 to ratio * 1.05.
    pub fn half_width(&self) -> Option<f64> {
        Some(self.high? / self.ratio? - 1.0)
    }
}

/// Where two designs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// At the same number of users.
    Rung,
    /// Each at its own best rung.
    Peak,
}

/// How the interval of a ratio was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum RatioMethod {
    /// Student's t over the logarithms of the ratios of paired runs, no narrower than what varied within the runs.
    PairedLogRatio,
    /// Welch's t over the logarithms of the runs' means.
    Welch,
    /// A single pair: no interval.
    Single,
}

/// What a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// b is better than a.
    Better,
    /// b is worse than a.
    Worse,
    /// The same within the margin of equivalence.
    Equivalent,
    /// No difference shown.
    Undecided,
    /// The interval excludes 1, but so would one of so many by chance: not confirmed after the
    /// correction for the number of comparisons.
    Suggested,
    /// One pair: nothing can be said about chance.
    Single,
    /// One of the two has no value here.
    Missing,
}
