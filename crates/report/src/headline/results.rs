//! What the headline is made from, and the two designs that it is about.
//!
//! What it deliberately does not do: decide or word anything. The sentences are made by the other files of this folder.

use crate::analysis::{
    Agreement, Bottleneck, CausalCheck, Comparison, Design, Finding, Peak, RateSearch, Ratio, Rung,
    RungValidity, Scope, Validity,
};
use crate::axes::Axes;
use crate::plan_view::PlanView;
use crate::validity::ignoring_ceiling;
use crate::workload_view::WorkloadView;

/// What a search found whose load generator was saturated first.
const AT_LEAST: &str = "at-least";
/// What is said of a ratio without an interval.
pub(super) const ONE_RUN_EACH: &str = "in one run each: the difference may be chance";

/// What the headline is made from.
pub(crate) struct Results<'a> {
    pub(crate) designs: &'a [Design],
    pub(crate) rungs: &'a [Rung],
    pub(crate) peaks: &'a [Peak],
    pub(crate) comparisons: &'a [Comparison],
    pub(crate) bottlenecks: &'a [Bottleneck],
    pub(crate) causal_checks: &'a [CausalCheck],
    pub(crate) validity: &'a [RungValidity],
    pub(crate) findings: &'a [Finding],
    pub(crate) searches: &'a [RateSearch],
    pub(crate) workload: &'a WorkloadView,
    pub(crate) axes: &'a Axes,
    pub(crate) plan: PlanView<'a>,
    /// 1 = real time.
    pub(crate) time_dilation: u32,
}

/// Two designs at the rung of the headline; `best` has the higher mean.
#[derive(Clone, Copy)]
pub(super) struct Contest {
    pub(super) best: usize,
    pub(super) next: usize,
    pub(super) users: u32,
    /// The axis along which they are compared; `None` between designs.
    pub(super) axis: Option<usize>,
}

impl<'a> Results<'a> {
    /// What a design is called in sentences about a contest. Along an axis its points are the subject, and the rest is where
    /// they are compared.
    pub(super) fn title_in(&self, contest: Contest, design: usize) -> &str {
        match contest.axis {
            Some(axis) => self.axes.phrase(design, axis),
            None => &self.designs[design].title,
        }
    }

    /// What may be read from a rung; `None` of what is not emulated.
    pub(super) fn validity_of(&self, design: usize, users: u32) -> Option<&RungValidity> {
        self.validity.iter().find(|row| (row.design, row.users) == (design, users))
    }

    /// What may be read from the rungs of a contest: the graver of the two. Along an axis the better point may reach the host's
    /// ceiling, unless the other one does, too.
    pub(super) fn outcome_of(&self, contest: Contest) -> Option<Validity> {
        let Contest { best, next, users, axis } = contest;
        let may_reach_ceiling = axis.is_some() && !self.is_host_limited(next, users);
        let best = self.validity_of(best, users).map(|row| match may_reach_ceiling {
            true => ignoring_ceiling(row),
            false => row.outcome,
        });
        let next = self.validity_of(next, users).map(|row| row.outcome);
        best.into_iter().chain(next).max()
    }

    /// What sampling says of a rung.
    pub(super) fn bottleneck_of(&self, design: usize, users: u32) -> Option<&'a Bottleneck> {
        self.bottlenecks.iter().find(|it| (it.design, it.users) == (design, users))
    }

    /// What an experiment at a rung says.
    pub(super) fn check_of(&self, design: usize, users: u32) -> Option<&'a CausalCheck> {
        self.causal_checks.iter().find(|it| (it.design, it.users) == (design, users))
    }

    /// What limits a rung: what sampling names, or what an experiment does in its place. `None` where nothing is known, or where
    /// the experiment does not confirm what sampling names.
    pub(super) fn limit_of(&self, design: usize, users: u32) -> Option<&'a str> {
        let sampled = self.bottleneck_of(design, users).map(|it| it.class.as_str());
        match self.check_of(design, users) {
            Some(check) if check.agreement == Agreement::ByExperiment => check.class.as_deref(),
            Some(check) if check.agreement == Agreement::NotConfirmed => None,
            _ => sampled,
        }
    }

    pub(super) fn is_host_limited(&self, design: usize, users: u32) -> bool {
        self.validity_of(design, users).is_some_and(|row| row.outcome == Validity::HostLimited)
    }

    /// Whether a design has no device.
    pub(super) fn has_no_device(&self, design: usize) -> bool {
        self.validity.iter().any(|row| row.design == design && row.no_device)
    }

    /// Whether a search ended before this design's highest rate was found, so that its headline says at least how much.
    pub(super) fn is_lower_bound(&self, design: usize) -> bool {
        self.searches.iter().any(|search| search.design == design && search.found == AT_LEAST)
    }
}

/// The comparison of two designs by a metric: at a number of users, or at their peaks.
pub(super) fn find<'a>(
    results: &Results<'a>,
    x: usize,
    y: usize,
    metric: &str,
    users: Option<u32>,
) -> Option<&'a Comparison> {
    results.comparisons.iter().find(|comparison| {
        (comparison.a, comparison.b) == (x.min(y), x.max(y))
            && comparison.metric == metric
            && comparison.users == users
            && (comparison.scope == Scope::Peak) == users.is_none()
    })
}

/// The ratio of a comparison, with `over` as the numerator.
pub(super) fn oriented(comparison: &Comparison, over: usize) -> Option<Ratio> {
    let value = comparison.ratio?;
    let Comparison { low, high, host_low, host_high, .. } = *comparison;
    if comparison.b == over {
        return Some(Ratio { value, low, high, host_low, host_high });
    }
    let inverse = |end: Option<f64>| end.map(f64::recip);
    Some(Ratio {
        value: 1.0 / value,
        low: inverse(high),
        high: inverse(low),
        host_low: inverse(host_high),
        host_high: inverse(host_low),
    })
}

/// Whether the host's share may be the whole difference.
pub(super) fn host_explains(comparison: &Comparison) -> bool {
    let interval = comparison.host_low.zip(comparison.host_high);
    interval.is_some_and(|(low, high)| low <= 1.0 && high >= 1.0)
}
