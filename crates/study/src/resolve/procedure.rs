//! The procedure: merging, options of the command line, ladder and ranges.

use underlay_core::Nanos;

use super::block_procedure;
use super::chosen::{Chosen, Layer, Pick};
use super::job_procedure;
use super::procedure_choice::{Ladder, Phases, ProcedureChoice, plan};
use super::procedure_keys::{self, Load, check_times};
use super::repeats::{self, RepeatsChoice};
use super::resolver::Resolver;
use super::search;
use super::time_range::check_time;
use super::workload::WorkloadChoice;
use crate::entry::Entry;
use crate::exact;
use crate::finding::Severity;
use crate::limits::{CAUSAL_CHECK, CAUSAL_CHECK_LENGTH, MEASURE, RUNGS_MAX, UNMEASURED, USERS};
use crate::plan::{CausalPlan, CoolDownPlan, Origin, ProcedurePlan, Scale};
use crate::scale;

/// Decides about the procedure.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    workload: Option<&WorkloadChoice>,
) -> ProcedureChoice {
    if resolver.is_block_load() {
        return block_procedure::resolve(resolver, workload);
    }
    // Also a job that is refused has no users.
    let section = &resolver.file.workload;
    let jobs =
        [section.batch.is_present(), section.warehouse.is_present(), section.backup.is_present()];
    if jobs.contains(&true) {
        let sessions = workload.and_then(|workload| workload.kind().job_sessions());
        return job_procedure::resolve(resolver, sessions.unwrap_or(1));
    }
    let full = full_ladder(resolver);
    let keys = procedure_keys::plain_keys(resolver, Load::Users);
    check_times(resolver, &keys, &MEASURE);
    let warm_up_users = warm_up_users(resolver);
    let causal = causal_check(resolver);
    let cool_down = cool_down(resolver);
    let search = search::resolve(resolver, full.as_ref(), workload);
    let repeats = repeats::resolve(resolver);
    let users = full.as_ref().map(|full| scale_ladder(resolver, full));
    resolver
        .provenance
        .extend(users.iter().map(|users| users.setting(format!("{:?}", users.value))));
    resolver.provenance.extend(repeats.iter().flat_map(RepeatsChoice::settings));
    resolver.provenance.extend(keys.settings());
    resolver.provenance.extend(warm_up_users.iter().map(|c| c.setting(c.value.to_string())));
    let ladder = users.zip(full).map(|(users, full)| {
        let top = users.with(users.value.iter().copied().max().unwrap_or(0));
        Ladder { users: users.value, full: full.value, top }
    });
    if let (Some(ladder), Some(workload)) = (&ladder, workload) {
        doubt_terminals(resolver, &ladder.top, workload);
    }
    let parts = (search, causal, cool_down);
    let plan = plan(keys.plan(), ladder.as_ref(), parts, repeats.as_ref());
    let plan = plan.map(|plan| ProcedurePlan {
        warm_up_to: warm_up_users.as_ref().map(|users| users.value),
        // A search looks for the rate that the storage sustains: the rate found says nothing about the host.
        null_twin: plan.null_twin && plan.search.is_none(),
        ..plan
    });
    let phases = Phases::of(&keys);
    ProcedureChoice {
        plan,
        phases,
        ladder,
        repeats,
        time_dilation: keys.time_dilation,
        warm_up_users,
    }
}

/// Decides about `warm-up-users`, scaled like the ladder.
fn warm_up_users(resolver: &mut Resolver<'_>) -> Option<Chosen<u32>> {
    const PATH: &str = "procedure.warm-up-users";
    let file = &resolver.file.procedure.warm_up_users;
    let users = resolver.pick(PATH, &[(Layer::File, file)]).found()?;
    if !USERS.contains(&users.value) {
        let (low, high) = (USERS.start(), USERS.end());
        users.problem(
            &mut resolver.report,
            "out-of-range",
            format!("`{PATH}` is out of range"),
            format!("{} is not from {low} to {high}", users.value),
            "write how many users warm up, or remove the key",
        );
        return None;
    }
    if resolver.scale == Scale::FULL {
        return Some(users);
    }
    Some(users.scaled(scale::count(users.value, resolver.scale), users.value.to_string()))
}

/// Decides about `causal-check` and `what-if`: `Some(None)` is no check, `None` one that is refused.
fn causal_check(resolver: &mut Resolver<'_>) -> Option<Option<CausalPlan>> {
    let (file, default) = (&resolver.file.procedure, &resolver.defaults.procedure);
    let what_if = [(Layer::File, &file.what_if), (Layer::Default, &default.what_if)];
    let what_if = resolver.pick("procedure.what-if", &what_if).found()?;
    let length = match resolver.pick("procedure.causal-check", &[(Layer::File, &file.causal_check)])
    {
        Pick::Found(length) => {
            check_time(resolver, &length, &CAUSAL_CHECK);
            resolver.provenance.push(length.setting(exact::time(length.value)));
            length.value
        }
        Pick::Absent if what_if.value => CAUSAL_CHECK_LENGTH,
        Pick::Absent => return Some(None),
        Pick::Refused => return None,
    };
    resolver.provenance.push(what_if.setting(what_if.value.to_string()));
    Some(Some(CausalPlan { length, what_if: what_if.value }))
}

/// Decides about `cool-down`: `Some(None)` is none, `None` one that is refused.
fn cool_down(resolver: &mut Resolver<'_>) -> Option<Option<CoolDownPlan>> {
    const PATH: &str = "procedure.cool-down";
    let chosen = match resolver.pick(PATH, &[(Layer::File, &resolver.file.procedure.cool_down)]) {
        Pick::Found(chosen) => chosen,
        Pick::Absent => return Some(None),
        Pick::Refused => return None,
    };
    let cool_down = &chosen.value;
    let (until, at_most) = (&cool_down.until, &cool_down.at_most);
    if cool_down.refused || *until == Entry::Refused || *at_most == Entry::Refused {
        return None;
    }
    // A length is one without a condition; a table needs both.
    let is_table = at_most.span() != chosen.span;
    for (key, is_absent) in [("until", until.is_absent()), ("at-most", at_most.is_absent())] {
        if is_table && is_absent {
            chosen.problem(
                &mut resolver.report,
                "missing-key",
                format!("the cool-down does not say its `{key}`"),
                format!("`{key}` is missing"),
                "write { until = \"resync-done\", at-most = \"30min\" }, or a length such as \"5min\"",
            );
        }
    }
    if is_table && until.is_absent() {
        return None;
    }
    let longest =
        Chosen { value: *at_most.get()?, span: at_most.span(), ..chosen.with(Nanos::ZERO) };
    check_time(resolver, &longest, &UNMEASURED);
    let plan = CoolDownPlan { at_most: longest.value, until: until.get().copied() };
    resolver.provenance.push(chosen.setting(match plan.until {
        None => exact::time(plan.at_most),
        Some(until) => {
            format!("until {}, at most {}", until.as_str(), exact::time(plan.at_most))
        }
    }));
    Some(Some(plan))
}

pub(super) fn full_ladder(resolver: &mut Resolver<'_>) -> Option<Chosen<Vec<u32>>> {
    let section = &resolver.file.procedure;
    let users = match &resolver.options.users {
        Some(users) => Chosen::command_line(users.clone(), "procedure.users", "--users"),
        None => match resolver.pick("procedure.users", &[(Layer::File, &section.users)]) {
            Pick::Found(users) => users,
            Pick::Refused => return None,
            Pick::Absent => {
                if !section.refused {
                    resolver.report.add(
                        Some(section.span.clone().unwrap_or(0..0)),
                        "missing-key",
                        "the study has no user ladder",
                        "`procedure.users` is missing",
                        "add [procedure] with for example users = [1, 4, 16]",
                    );
                }
                return None;
            }
        },
    };
    check_ladder(resolver, &users).then_some(users)
}

fn check_ladder(resolver: &mut Resolver<'_>, users: &Chosen<Vec<u32>>) -> bool {
    let Some(flaw) = flaw(&users.value) else { return true };
    let message = format!("{} {}", users.called(), flaw.what);
    users.problem(&mut resolver.report, flaw.code, message, flaw.reason, flaw.remedy);
    false
}

/// A ladder from the command line is meant as it stands.
fn scale_ladder(resolver: &Resolver<'_>, full: &Chosen<Vec<u32>>) -> Chosen<Vec<u32>> {
    if resolver.scale == Scale::FULL || matches!(full.origin, Origin::CommandLine { .. }) {
        return full.clone();
    }
    full.scaled(scale::ladder(&full.value, resolver.scale), format!("{:?}", full.value))
}

/// TPC-C has ten terminals per warehouse; more users share them.
fn doubt_terminals(resolver: &mut Resolver<'_>, top: &Chosen<u32>, workload: &WorkloadChoice) {
    let Some(warehouses) = workload.warehouses() else { return };
    let terminals = u64::from(warehouses) * 10;
    if u64::from(top.value) > terminals {
        resolver.finding(
            Severity::Warning,
            "users-beyond-terminals",
            format!(
                "{} users on {terminals} terminals (10 per warehouse): several users share a \
                 district, and wait for each other's locks instead of storage",
                top.value
            ),
            "raise warehouses or lower the top of the ladder",
            top.line(resolver.text),
        );
    }
}

/// What is wrong with a ladder.
struct Flaw {
    code: &'static str,
    what: &'static str,
    reason: String,
    remedy: String,
}

/// The first flaw of a ladder; the others are mostly consequences.
fn flaw(ladder: &[u32]) -> Option<Flaw> {
    let flaw =
        |code, what, reason: String, remedy: String| Some(Flaw { code, what, reason, remedy });
    if ladder.is_empty() {
        let remedy = "write at least one number of users, such as [1, 4, 16]";
        return flaw("empty", "has no rung", "an empty list".into(), remedy.into());
    }
    if ladder.contains(&0) {
        let what = "has a rung without users";
        return flaw("out-of-range", what, "0 users do nothing".into(), "start with 1".into());
    }
    let most = USERS.end();
    if let Some(users) = ladder.iter().find(|users| *users > most) {
        let reason = format!("{users} is above {most}");
        return flaw(
            "out-of-range",
            "has a rung too high",
            reason,
            format!("write at most {most}"),
        );
    }
    if ladder.len() > RUNGS_MAX {
        let reason = format!("{} are more than {RUNGS_MAX}", ladder.len());
        return flaw("out-of-range", "has too many rungs", reason, "leave some out".into());
    }
    let twice = ladder.iter().enumerate().find(|(place, users)| ladder[..*place].contains(users));
    if let Some((_, users)) = twice {
        let mut once: Vec<u32> = Vec::new();
        ladder.iter().for_each(|users| {
            if !once.contains(users) {
                once.push(*users);
            }
        });
        let remedy = format!("write users = {once:?}; use `repeats` to measure again");
        let reason = format!("{users} stands twice");
        return flaw("same-rung", "has the same rung twice", reason, remedy);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::flaw;
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn a_ladder_without_flaw_is_a_ladder(ladder in vec(0..6u32, 0..5)) {
            let mut distinct = ladder.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let is_ladder =
                !ladder.is_empty() && distinct[0] > 0 && distinct.len() == ladder.len();
            prop_assert_eq!(flaw(&ladder).is_none(), is_ladder);
        }
    }
}
