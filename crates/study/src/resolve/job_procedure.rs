//! The procedure of a job: it has no users, is not warmed up, and is measured from its begin to its end.

use std::ops::Range;

use underlay_core::Nanos;

use super::chosen::Chosen;
use super::procedure_choice::{Ladder, Phases, ProcedureChoice, plan};
use super::procedure_keys::{self, Load};
use super::repeats::{self, RepeatsChoice};
use super::resolver::Resolver;
use crate::limits::MEASURE;
use crate::plan::{Origin, Setting};

/// A job that does not say how long it may take may take as long as anything.
const LONGEST: Nanos = *MEASURE.end();

/// How long a job may take.
const MEASURE_PATH: &str = "procedure.measure";

/// What sets how much goes on at once, where a study tries it with what users have.
const CONCURRENCY: &str =
    "remove it; `sessions` or `streams` of the workload say how much goes on at once";

/// Sessions of a job are not driven: nobody could slow them down.
const UNDILATED: &str = "remove it; only the sessions of virtual users can be slowed down";

/// Decides about the procedure of a job of so many sessions.
pub(super) fn resolve(resolver: &mut Resolver<'_>, sessions: u32) -> ProcedureChoice {
    refuse_what_users_have(resolver);
    let mut keys = procedure_keys::plain_keys(resolver, Load::Job);
    if let Some(measure) = keys.measure.as_mut().filter(|it| it.origin == Origin::Default) {
        measure.value = LONGEST;
    }
    procedure_keys::check_times(resolver, &keys, &MEASURE);
    let repeats = repeats::resolve(resolver);
    resolver.provenance.extend(repeats.iter().flat_map(RepeatsChoice::settings));
    let is_said =
        |setting: &Setting| setting.path != MEASURE_PATH || setting.origin != Origin::Default;
    resolver.provenance.extend(keys.settings().into_iter().filter(is_said));
    let phases =
        Phases { warm_up: Some(Nanos::ZERO), ramp_up: Some(Nanos::ZERO), ..Phases::of(&keys) };
    let top = Chosen {
        value: sessions,
        path: "workload".to_string(),
        origin: Origin::Default,
        span: None,
    };
    let ladder = Ladder { users: vec![sessions], full: vec![sessions], top };
    let parts = (Some(None), Some(None), Some(None));
    let plan = plan(keys.plan(), Some(&ladder), parts, repeats.as_ref());
    ProcedureChoice {
        plan,
        phases,
        ladder: Some(ladder),
        repeats,
        time_dilation: None,
        warm_up_users: None,
    }
}

/// All keys and options that have no meaning for a job.
fn refuse_what_users_have(resolver: &mut Resolver<'_>) {
    let file = &resolver.file.procedure;
    let first = |sections: &crate::entry::Entry<Vec<crate::entry::Section<_>>>| {
        sections.get().and_then(|list| list.first()).and_then(|one| one.span.clone())
    };
    let mut written: Vec<(&str, Option<Range<usize>>)> = vec![
        ("procedure.users", file.users.span()),
        ("procedure.warm-up-users", file.warm_up_users.span()),
        ("procedure.search", file.search.span.clone()),
        ("procedure.causal-check", file.causal_check.span()),
        ("procedure.what-if", file.what_if.span()),
        ("procedure.cool-down", file.cool_down.span()),
        ("weights", first(&resolver.file.weights)),
    ];
    let plain = procedure_keys::meaningless_keys(resolver, Load::Job);
    written.extend(plain.into_iter().map(|(key, span)| (key, Some(span))));
    for (key, span) in written {
        if span.is_some() {
            let remedy = match key {
                "procedure.time-dilation" => UNDILATED,
                "procedure.users"
                | "procedure.warm-up"
                | "procedure.warm-up-users"
                | "procedure.ramp-up"
                | "procedure.search" => concurrency(resolver),
                _ => "remove it",
            };
            refuse_for_job(resolver, &format!("`{key}`"), span, remedy);
        }
    }
    let options = [
        (resolver.options.users.is_some(), "`--users`"),
        (resolver.options.warm_up.is_some(), "`--warm-up`"),
        (resolver.options.ramp_up.is_some(), "`--ramp-up`"),
    ];
    for (_, option) in options.into_iter().filter(|(is_given, _)| *is_given) {
        refuse_for_job(resolver, option, None, concurrency(resolver));
    }
    if resolver.options.time_dilation.is_some_and(|dilation| !dilation.is_none()) {
        refuse_for_job(resolver, "`--time-dilation`", None, UNDILATED);
    }
}

fn concurrency(resolver: &Resolver<'_>) -> &'static str {
    // One program at a time takes a backup.
    if resolver.file.workload.backup.is_present() { "remove it" } else { CONCURRENCY }
}

fn refuse_for_job(
    resolver: &mut Resolver<'_>,
    what: &str,
    span: Option<Range<usize>>,
    remedy: &str,
) {
    resolver.report.add(
        span,
        "conflict",
        format!("{what} has no meaning for a job"),
        "a job has no users: it runs until it is done",
        remedy,
    );
}
