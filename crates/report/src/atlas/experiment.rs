//! One experiment of the atlas: published ratios and figures, with ours and those of a simulation.
//!
//! What it deliberately does not do: compute a number (`build`). It only merges what a run and a simulation of the same
//! experiment say.

use serde::{Deserialize, Serialize};

use crate::analysis::{EvidenceKind, Workload};

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AtlasExperiment {
    /// Name of the study, as it is given to commands: `kingston/k2`.
    pub name: String,
    /// Title for readers.
    pub title: String,
    /// The question it asks.
    pub question: String,
    /// What kind of evidence its run is; `null` without a run.
    pub evidence: Option<EvidenceKind>,
    /// The workload; `null` without a run.
    pub workload: Option<Workload>,
    /// Scale of the run: `1/16`.
    pub scale: String,
    /// Why it has no run, or why that ended early.
    pub problem: Option<String>,
    /// File of the record; empty without a run.
    pub record: String,
    /// Our answer.
    pub answer: String,
    /// What the run says about itself: by how much, how sure, why.
    pub reasons: Vec<String>,
    /// What differs from the publication.
    pub deviations: Vec<String>,
    /// Documents and figures of the published numbers, with what to know about them.
    pub sources: Vec<String>,
    /// Published ratios with ours.
    pub ratios: Vec<AtlasRatio>,
    /// Published values with ours, on the same axes.
    pub figures: Vec<AtlasFigure>,
    /// Rate curves; `null` where no point of one is published, and in older atlases.
    pub curves: Option<AtlasCurves>,
    /// Where the two disagree, in words.
    pub disagreements: Vec<String>,
}

impl AtlasExperiment {
    fn is_simulated(&self) -> bool {
        self.evidence == Some(EvidenceKind::Simulated)
    }

    fn is_run(&self) -> bool {
        self.evidence.is_some() && !self.is_simulated()
    }

    fn has_simulation(&self) -> bool {
        self.ratios.iter().any(|ratio| ratio.simulated.is_some())
    }

    /// What takes the place of an earlier entry of the same experiment.
    pub(super) fn after(mut self, earlier: &AtlasExperiment) -> AtlasExperiment {
        // What could not be run or simulated says nothing against what was.
        if self.evidence.is_none() && earlier.evidence.is_some() {
            return earlier.clone();
        }
        if self.is_simulated() && earlier.is_run() {
            let mut run = earlier.clone();
            run.take_simulation(&self);
            return run;
        }
        if self.is_run() && !self.has_simulation() {
            self.take_simulation(earlier);
        }
        self
    }

    /// Puts the simulated numbers of another entry of the same experiment beside its own. What it had of simulations goes.
    fn take_simulation(&mut self, other: &AtlasExperiment) {
        for ratio in &mut self.ratios {
            (ratio.simulated, ratio.simulated_error) = (None, None);
        }
        for from in other.ratios.iter().filter(|ratio| ratio.simulated.is_some()) {
            let is_same =
                |to: &&mut AtlasRatio| (&to.text, &to.metric) == (&from.text, &from.metric);
            match self.ratios.iter_mut().find(is_same) {
                Some(to) => {
                    (to.simulated, to.simulated_error) = (from.simulated, from.simulated_error);
                    to.is_given |= from.is_given;
                }
                // Without a ratio of a run there is nothing that a host limited.
                None => self.ratios.push(AtlasRatio {
                    is_host_limited: false,
                    ours: None,
                    low: None,
                    high: None,
                    error: None,
                    agreement: Agreement::Unknown,
                    ..from.clone()
                }),
            }
        }
        for to in &mut self.figures {
            let is_same =
                |from: &&AtlasFigure| (&from.title, &from.users) == (&to.title, &to.users);
            let from = other.figures.iter().find(is_same);
            to.lines.retain(|line| line.origin != LineOrigin::Simulated);
            let lines = from.into_iter().flat_map(|from| &from.lines);
            to.lines.extend(lines.filter(|line| line.origin == LineOrigin::Simulated).cloned());
        }
        if let Some((to, from)) = self.curves.as_mut().zip(other.curves.as_ref()) {
            to.lines.retain(|line| line.origin != LineOrigin::Simulated);
            let lines = from.lines.iter().filter(|line| line.origin == LineOrigin::Simulated);
            to.lines.extend(lines.cloned());
        }
    }
}

/// A ratio of two published numbers, with ours. It is written so that the published one is 1 or more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AtlasRatio {
    /// Whether it is the experiment's main result: what the workload counts, at the highest number of users.
    pub is_headline: bool,
    /// Whether agreement says nothing: the model was fitted to one of the two numbers, or the study sets it. Older atlases have
    /// none.
    #[serde(default)]
    pub is_given: bool,
    /// Whether the run says that this host was measured instead of one of the two designs: agreement or its lack says nothing
    /// about storage. Older atlases have none.
    #[serde(default)]
    pub is_host_limited: bool,
    /// What is divided: `NVMe over SATA at 89 users`.
    pub text: String,
    /// What was measured, for readers.
    pub metric: String,
    /// The published ratio.
    pub published: f64,
    /// Ours; `null` where a run lacks it.
    pub ours: Option<f64>,
    /// Lower end of its 95 % interval, with the host's share; `null` where there is none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// That of the simulation.
    pub simulated: Option<f64>,
    /// Ours over the published one, less 1.
    pub error: Option<f64>,
    /// The same of the simulation.
    pub simulated_error: Option<f64>,
    /// How well ours agrees.
    pub agreement: Agreement,
}

/// How well a ratio of ours agrees with a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "AtlasAgreement"))]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The published ratio lies in our interval.
    Within,
    /// It differs by a quarter at most.
    Close,
    /// The same design is ahead, by another factor.
    SameDirection,
    /// One of the two shows no difference (less than 5 %).
    NoDifference,
    /// Another design is ahead.
    Opposite,
    /// There is no ratio of ours.
    Unknown,
}

impl Agreement {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Agreement::Within => "within the interval",
            Agreement::Close => "within 25 %",
            Agreement::SameDirection => "same direction",
            Agreement::NoDifference => "one shows no difference",
            Agreement::Opposite => "opposite",
            Agreement::Unknown => "not measured",
        }
    }
}

/// One published metric of an experiment, with ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AtlasFigure {
    /// What was measured, for readers.
    pub title: String,
    /// Unit of the values: `1/min`, `ns`, `share`.
    pub unit: String,
    /// Users of each value, at the size of the publication.
    pub users: Vec<u32>,
    /// Where each line is 1: `NVMe at 89 users`. Empty where there is no such place.
    pub reference: String,
    /// Unit of the published values, where it is not that of the figure; else empty, as in older atlases.
    #[serde(default)]
    pub published_unit: String,
    /// The lines.
    pub lines: Vec<AtlasLine>,
}

/// One line of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AtlasLine {
    /// Position of its design among those of the figure.
    pub design: usize,
    /// Title of the design.
    pub title: String,
    /// Whose numbers they are.
    pub origin: LineOrigin,
    /// The values in the unit of the figure, or of the publication, one per number of users.
    pub values: Vec<Option<f64>>,
    /// The same as multiples of this origin's value at the reference.
    pub shape: Vec<Option<f64>>,
}

/// Whose numbers a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum LineOrigin {
    /// The publication's.
    Published,
    /// A run's.
    Ours,
    /// A simulation's.
    Simulated,
}

/// Mean latency against the delivered rate of block loads: the points that are published, with ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AtlasCurves {
    /// The latency up to which published rates are printed, nanoseconds.
    pub limit_ns: u64,
    /// The design whose maximum is 1, of each origin. Empty where not every origin has one.
    pub reference: String,
    /// The lines.
    pub lines: Vec<AtlasCurve>,
}

/// One line: a design of one origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AtlasCurve {
    /// Position of its design among those of the study.
    pub design: usize,
    /// Title of the design.
    pub title: String,
    /// Whose numbers they are.
    pub origin: LineOrigin,
    /// The points.
    pub points: Vec<AtlasCurvePoint>,
}

/// One point of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AtlasCurvePoint {
    /// `maximum`, `at 1 ms`, or the share of the maximum that was offered: `70 %`.
    pub label: String,
    /// Whether it is the maximum.
    pub is_maximum: bool,
    /// I/Os completed per second.
    pub rate: f64,
    /// The same as a multiple of this origin's maximum at the reference.
    pub multiple: Option<f64>,
    /// Mean latency, nanoseconds.
    pub latency_ns: f64,
}
