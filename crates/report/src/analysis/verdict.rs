//! The answer to the study's question, and how sure it is.

use serde::Serialize;

use super::validity::Validity;

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Verdict {
    /// The answer in one sentence of plain words.
    pub headline: String,
    /// Which kind of answer it is.
    pub answer: Answer,
    /// Sentences that support it: by how much, how sure, why.
    pub support: Vec<String>,
    /// What each sentence of `support` is about, in their order.
    pub support_aspects: Vec<Aspect>,
    /// How sure the answer is.
    pub confidence: Confidence,
    /// What the confidence rests on, or what keeps it from being higher; one clause each.
    pub confidence_reasons: Vec<String>,
    /// The winning design; `null` unless `answer` is `winner`.
    pub winner: Option<usize>,
    /// The design it is compared with in the headline: the next best one.
    pub against: Option<usize>,
    /// New orders per minute of `winner` over those of `against`, in the headline's rung.
    pub ratio: Option<Ratio>,
    /// Whether the designs or this host were measured: the graver outcome of the designs in the headline; `null` where none
    /// of them is emulated.
    pub validity: Option<Validity>,
    /// Users of the headline's rung.
    pub users: Option<u32>,
}

impl Verdict {
    /// Adds sentences about an aspect to those that support the answer.
    pub(crate) fn say(&mut self, aspect: Aspect, sentences: impl IntoIterator<Item = String>) {
        self.support.extend(sentences);
        self.support_aspects.resize(self.support.len(), aspect);
    }
}

/// What a sentence about an answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// The numbers, and by how much they differ.
    HowMuch,
    /// What makes the difference, and what limits.
    Why,
    /// Chance, and the host's part.
    HowSure,
    /// What the better design spares.
    Savings,
    /// What others published of these designs.
    Published,
}

/// The kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// One design is ahead of all others, and the intervals say so.
    Winner,
    /// The interval includes 1.
    NoDifferenceShown,
    /// The designs were shown to be equal within the margin of equivalence.
    Equivalent,
    /// A difference was seen, but one run per design allows no interval.
    NotRepeated,
    /// This host was measured, or may explain the difference: the designs cannot be told from it.
    HostLimited,
    /// The numbers may not be compared; the headline says why.
    NotComparable,
    /// The results are invalid: a consistency check failed or the load was not what was asked for.
    Invalid,
    /// Only one design was executed.
    SingleDesign,
    /// No measurements yet.
    NoData,
}

/// How sure a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Nothing can be said.
    None,
    /// A hint.
    Low,
    /// Likely.
    Medium,
    /// As sure as this method gets.
    High,
}

impl Confidence {
    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Confidence::None => "none",
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// A ratio with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Lower end; `null` with a single pair.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Lower end with the host's share of emulated designs; `null` where that is unknown.
    pub host_low: Option<f64>,
    /// Upper end.
    pub host_high: Option<f64>,
}
