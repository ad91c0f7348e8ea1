//! What is scheduled within every run: changes of the mix, work alongside the users, faults.

use underlay_core::Nanos;

use super::page::Page;
use crate::fault_plan::FaultPhase;
use crate::plan::Plan;

/// Everything scheduled, under its headings; nothing where nothing is.
pub(super) fn describe(page: &mut Page, plan: &Plan) {
    let weights = plan.weights.iter().map(|change| {
        let end = change.lasts.map_or_else(String::new, |lasts| format!(", for {lasts}"));
        let when = when(change.at, change.phase, change.users);
        format!("{when}{end}: {} ({})", change.text, names(plan, &change.designs))
    });
    list(page, "Changes of the mix, in every run", weights);
    let background = plan.background.iter().map(|work| {
        let end = work.lasts.map_or_else(String::new, |lasts| format!(", for {lasts}"));
        let when = when(work.at, work.phase, work.users);
        let designs = names(plan, &work.designs);
        format!("{}: {when}{end}, {} ({designs})", work.name, work.work.described())
    });
    list(page, "Alongside the users, in every run", background);
    let faults = plan.faults.iter().map(|fault| {
        let end = match (fault.lasts, fault.action.mended()) {
            (_, None) => String::new(),
            (Some(lasts), Some(mended)) => format!(", {lasts} later {mended}"),
            (None, Some(mended)) => format!(", and {mended} when the load has ended"),
        };
        let when = when(fault.at, fault.phase, fault.users);
        format!("{when}: {}{end} ({})", fault.action.described(), names(plan, &fault.designs))
    });
    list(page, "Faults, in every run", faults);
}

fn list(page: &mut Page, heading: &str, items: impl ExactSizeIterator<Item = String>) {
    if items.len() > 0 {
        page.heading(heading);
        items.for_each(|item| page.wrapped("  ", "    ", &item));
    }
}

/// `10 s into measure at 16 users`.
fn when(at: Nanos, phase: FaultPhase, users: Option<u32>) -> String {
    let rung = users.map_or_else(String::new, |users| match users {
        1 => " at 1 user".to_string(),
        users => format!(" at {users} users"),
    });
    format!("{at} into {}{rung}", phase.as_str())
}

/// The names of designs, by position.
fn names(plan: &Plan, designs: &[usize]) -> String {
    let names: Vec<&str> = designs.iter().map(|index| plan.designs[*index].name.as_str()).collect();
    names.join(", ")
}
