//! The causal check: after the last rung, one resource after another is slowed and released again under the same load.
//!
//! [`schedule`] decides what is changed when; the [`Site`](crate::lab::ladder::Site) and the load generator decide how.
//! What happened is written to the record period by period; what follows from it is computed by the report. Nothing of this
//! is a measured window.

mod changeable;
pub mod perturbation;
mod schedule;
mod server_cpu;
mod spec;

pub use changeable::Changeable;
pub use spec::CausalSpec;

use std::time::Duration;

use serde_json::{Value, json};
use underlay_core::{Nanos, Resource};
use underlay_record::PhaseKind;
use underlay_record::conventions::{document, event};

use crate::lab::abort::Abort;
use crate::lab::ladder::Ladder;
use schedule::{FASTER, Period, SLOWER, Schedule};

/// Carries out a check with so many users, who are at work.
pub fn carry_out(ladder: &mut Ladder<'_>, spec: CausalSpec, users: u32) -> Result<(), Abort> {
    let mut changeable = ladder.site.changeable();
    changeable.push(Changeable::slower(Resource::Client));
    if spec.connections.is_some_and(|connections| connections < users) {
        changeable.push(Changeable::slower(Resource::Connections));
    }
    let able = |faster: bool| -> Vec<Resource> {
        let able = changeable.iter().filter(|it| it.obstacle.is_none());
        able.filter(|it| it.can_be_faster || !faster).map(|it| it.resource).collect()
    };
    let length = spec.plan.length;
    let mut schedules = vec![Schedule::new(&able(false), SLOWER, length, spec.seed)];
    if spec.plan.what_if && !able(true).is_empty() {
        let seed = spec.seed.child("faster", 0);
        schedules.push(Schedule::new(&able(true), FASTER, length, seed));
    }
    let mut periods = Vec::new();
    ladder.phase(PhaseKind::CausalCheck, users, spec.plan.total(), |ladder| {
        let carried_out = schedules.iter().try_for_each(|schedule| {
            schedule.periods.iter().try_for_each(|period| {
                ladder.change(period.change)?;
                periods.push(one_period(ladder, schedule, period)?);
                Ok(())
            })
        });
        // Whatever happened: what follows runs on the design as it is.
        let released = ladder.change(None);
        let written = write(ladder, users, &schedules[0], &periods, &changeable);
        carried_out.and(released).and(written)
    })
}

/// Lets a period go by in which the change is in force already.
fn one_period(
    ladder: &mut Ladder<'_>,
    schedule: &Schedule,
    period: &Period,
) -> Result<Value, Abort> {
    let (reaction, rest) = (schedule.reaction, schedule.length.saturating_sub(schedule.reaction));
    let begin = ladder.log.now();
    ladder.pass(reaction, Duration::from(reaction), |_| {}, |_| true)?;
    let mut counted: Option<(Nanos, Nanos)> = None;
    ladder.pass(
        rest,
        Duration::from(rest),
        |_| {},
        |tick| {
            counted = Some((counted.map_or(tick.begin, |(first, _)| first), tick.end));
            true
        },
    )?;
    let (counted_from, until) = counted.unwrap_or((begin, begin));
    if let Some((resource, factor)) = period.change {
        let text = match factor > 1.0 {
            true => format!("{} slowed by a factor of {factor:.2}", words(resource)),
            false => format!("{} faster by a factor of {:.2}", words(resource), 1.0 / factor),
        };
        let data = json!({ "resource": resource.as_str(), "factor": factor, "until_ns": until.0 });
        ladder.log.event(event::PERTURBATION, begin, &text, data)?;
    }
    Ok(json!({
        "resource": period.change.map(|(resource, _)| resource.as_str()),
        "factor": period.change.map_or(1.0, |(_, factor)| factor),
        "begin_ns": counted_from.0,
        "end_ns": until.0,
    }))
}

fn write(
    ladder: &Ladder<'_>,
    users: u32,
    schedule: &Schedule,
    periods: &[Value],
    changeable: &[Changeable],
) -> Result<(), Abort> {
    let fixed = changeable.iter().filter_map(|it| {
        let reason = it.obstacle.as_ref()?;
        Some(json!({ "resource": it.resource.as_str(), "reason": reason }))
    });
    let content = json!({
        "users": users,
        "factor": SLOWER,
        "reaction_ns": schedule.reaction.0,
        "periods": periods,
        "not_perturbed": fixed.collect::<Vec<_>>(),
    });
    ladder.log.document(document::CAUSAL_CHECK, &content)
}

/// A resource for the time line.
fn words(resource: Resource) -> &'static str {
    match resource {
        Resource::Log => "log writes and flushes",
        Resource::Read => "reads",
        Resource::DataWrite => "data writes",
        Resource::Network => "the cluster's network",
        Resource::Cpu => "the server's processors",
        Resource::Client => "the load generator",
        Resource::Connections => "the use of shared connections",
    }
}
