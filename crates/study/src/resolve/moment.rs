//! When something scheduled happens, and in which designs: the keys that faults and background work share.

use std::ops::Range;

use underlay_core::Nanos;

use super::design_names;
use super::procedure_choice::{Ladder, Phases, ProcedureChoice};
use super::resolver::Resolver;
use crate::entry::Entry;
use crate::exact;
use crate::fault_plan::FaultPhase;
use crate::plan::{DesignPlan, ProcedurePlan};
use crate::scale;
use crate::suggest::{listed, nearest};

/// The keys of a moment.
pub(super) struct MomentKeys<'a> {
    /// What is scheduled, with its article, for messages: `a fault`.
    pub what: &'static str,
    pub at: &'a Entry<Nanos>,
    pub phase: &'a Entry<FaultPhase>,
    pub users: &'a Entry<u32>,
}

/// The phase and the rung, if the moment lies within them. What of the procedure is refused is not judged by.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    keys: &MomentKeys<'_>,
    procedure: &ProcedureChoice,
) -> Option<(FaultPhase, Option<u32>)> {
    let what = keys.what;
    let phase = match keys.phase {
        Entry::Refused => return None,
        Entry::Absent => FaultPhase::Measure,
        Entry::Given { value, .. } => *value,
    };
    if !phase.is_per_rung()
        && let Some(span) = keys.users.span()
    {
        resolver.report.at(
            &span,
            "conflict",
            format!("`users` does not belong to {what} in the phase {}", phase.as_str()),
            "this phase comes once per run",
            "remove `users`, or choose phase = \"measure\"",
        );
    }
    let users = match (phase.is_per_rung(), keys.users) {
        (_, Entry::Refused) => None,
        (false, _) => Some(None),
        (true, Entry::Absent) => procedure.ladder.as_ref().map(|l| l.users.last().copied()),
        (true, Entry::Given { value, span }) => {
            let ladder = procedure.ladder.as_ref();
            ladder.and_then(|ladder| rung(resolver, *value, span, ladder)).map(Some)
        }
    };
    if let Some(length) = procedure.phases.length(phase)
        && let Entry::Given { value: at, span } = keys.at
        && *at >= length
    {
        let subject = what.replacen("a ", "the ", 1);
        resolver.report.at(
            span,
            "out-of-range",
            format!("{subject} comes after the end of its phase, {}", phase.as_str()),
            format!("the phase lasts {}", exact::time(length)),
            match length {
                Nanos::ZERO => format!("give procedure.{} a length", phase.as_str()),
                _ => {
                    format!("write less than \"{}\", or make the phase longer", exact::time(length))
                }
            },
        );
    }
    Some((phase, users?))
}

/// The planned rung of a number of users, which is written at full size.
fn rung(
    resolver: &mut Resolver<'_>,
    users: u32,
    span: &Range<usize>,
    ladder: &Ladder,
) -> Option<u32> {
    if ladder.full.contains(&users) {
        return Some(match &resolver.options.users {
            Some(_) => users,
            None => scale::count(users, resolver.scale),
        });
    }
    let rungs: Vec<String> = ladder.full.iter().map(u32::to_string).collect();
    let whose = if resolver.options.users.is_some() { "`--users`" } else { "the ladder" };
    resolver.report.at(
        span,
        "unknown-name",
        format!("{whose} has no rung of {users} users"),
        format!("the rungs are {}", rungs.join(", ")),
        "name one of them, or leave `users` out for the last one",
    );
    None
}

/// The designs that are concerned, by position; all, when none is named.
pub(super) fn designs_named(
    resolver: &mut Resolver<'_>,
    what: &str,
    names: &Entry<Vec<String>>,
    designs: &[DesignPlan],
) -> Vec<usize> {
    let indices = 0..designs.len();
    match names {
        Entry::Refused => Vec::new(),
        Entry::Absent => indices.collect(),
        Entry::Given { value: names, span } => {
            check_designs(resolver, what, names, span);
            indices.filter(|index| names.contains(&designs[*index].name)).collect()
        }
    }
}

/// Whether any of the names is of no design of the study.
pub(super) fn names_unknown_designs(resolver: &Resolver<'_>, names: &Entry<Vec<String>>) -> bool {
    let known = design_names::design_names(resolver);
    names.get().is_some_and(|names| names.iter().any(|name| !known.contains(&Some(name.clone()))))
}

fn check_designs(resolver: &mut Resolver<'_>, what: &str, names: &[String], span: &Range<usize>) {
    let known: Vec<String> = design_names::design_names(resolver).into_iter().flatten().collect();
    let words = || known.iter().map(String::as_str);
    if names.is_empty() {
        resolver.report.at(
            span,
            "empty",
            format!("{what} concerns no design"),
            "an empty list",
            format!("name one of {}, or leave `designs` out", listed(words())),
        );
    }
    for name in names.iter().filter(|name| !known.contains(name)) {
        let label = match nearest(name, words()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "not a design of this study".to_string(),
        };
        resolver.report.at(
            span,
            "unknown-name",
            format!("{what} names `{name}`, which is not a design of this study"),
            label,
            format!("use one of {}", listed(words())),
        );
    }
}

impl Phases {
    /// How long a phase lasts, where that is decided.
    fn length(&self, phase: FaultPhase) -> Option<Nanos> {
        match phase {
            FaultPhase::Settle => self.settle,
            FaultPhase::WarmUp => self.warm_up,
            FaultPhase::RampUp => self.ramp_up,
            FaultPhase::Measure => self.measure,
        }
    }
}

/// How long a phase lasts.
pub(super) fn phase_length(procedure: &ProcedurePlan, phase: FaultPhase) -> Nanos {
    match phase {
        FaultPhase::Settle => procedure.settle,
        FaultPhase::WarmUp => procedure.warm_up,
        FaultPhase::RampUp => procedure.ramp_up,
        FaultPhase::Measure => procedure.measure,
    }
}
