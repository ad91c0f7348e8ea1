//! `underlay size`: the smallest cluster of a family that sustains a rate within a latency target.
//!
//! Everything it prints is simulated. What a family is, and which of its designs need no simulation,
//! is `simulation::databases`'s; here are the request and the table.

mod arguments;
mod basis;
mod sized;
mod text;

pub use arguments::Arguments;

use crate::cli::complaints::Complaints;
use crate::cli::cores::cores_of;
use crate::cli::designs::{design_named, without_stack};
use crate::cli::target_options::main_transactions;
use crate::lab::simulated::seed_of;
use crate::stop::Stop;
use basis::Basis;
use serde_json::{Value, json};
use sized::{Sized, margin, outcome};
use underlay_host::return_large_blocks;
use underlay_simulation::databases::{Answer, Bed, Demand, Effort, Family, Row, SinglePlan, sized};
use underlay_study::VolumePlan;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    return_large_blocks();
    let sized = answer(arguments)?;
    if arguments.json {
        outln!("{:#}", json(&sized));
    } else {
        out!("{}", text::render(&sized));
    }
    match sized.smallest {
        Some(_) => Ok(()),
        None => Err(Stop::target_missed(format!(
            "none of the {} designs sustains {}/s with {}",
            sized.rows.len(),
            sized.demand.rate_per_second,
            sized.demand.target.objective
        ))
        .with_hint("vary more, lower the rate, or look at the bottlenecks of the table")),
    }
}

fn answer(arguments: &Arguments) -> Result<Sized, Stop> {
    let mut complaints = Complaints::default();
    basis::check_choice(arguments, &mut complaints);
    arguments.target.check(&mut complaints);
    if !(arguments.rate > 0.0 && arguments.rate <= 1e7) {
        complaints.add("--rate must lie above 0, at most at 10000000");
    }
    if !(arguments.full_at_most > 0.0 && arguments.full_at_most <= 100.0) {
        complaints.add("--full-at-most must lie above 0, at most at 100");
    }
    let cores = cores_of(arguments.cores);
    if let Err(stop) = &cores {
        complaints.add(stop.to_string());
    }
    complaints.settle()?;
    let objective = arguments.slo.ok_or_else(|| Stop::bad_input("--slo is missing"))?;

    let basis = Basis::of(arguments, cores?)?;
    let plan = &basis.plan;
    let own = &plan.designs[basis.design];
    let base = match &arguments.design {
        None => own.clone(),
        Some(name) => design_named(name, own, &plan.designs)?.design,
    };
    let mut complaints = Complaints::default();
    let family = Family::new(&base, &arguments.vary);
    for problem in family.as_ref().err().into_iter().flatten() {
        complaints.add(problem.to_string());
    }
    let single = SinglePlan::new(plan);
    if let Err(error) = &single {
        complaints.add(format!("the workload cannot be sized: {error}"));
    }
    complaints.settle()?;
    basis.require()?;
    let (Ok(family), Ok(single)) = (family, single) else {
        return Err(Stop::bad_input("no family of designs"));
    };

    let demand = Demand {
        rate_per_second: arguments.rate,
        target: arguments.target.target(objective, basis.sessions, Effort::PRECISE.cached_at_most),
        full_at_most_percent: arguments.full_at_most,
        every_design: arguments.all,
    };
    let seed = seed_of(plan, 0);
    let rows = sized(single, family, &demand, (&basis.assumed, seed), &mut |member| {
        errln!("simulating: {}", member.name());
    })
    .map_err(Stop::bad_input)?;
    let smallest = match rows.iter().position(Row::meets) {
        None => None,
        Some(position) => {
            let member = &rows[position].member;
            errln!("simulating: {}, its highest rate", member.name());
            let bed = Bed { plan: single, design: &member.design, assumed: &basis.assumed, seed };
            let highest = bed.highest_rate(&demand.target, demand.rate_per_second);
            Some((position, highest.map_err(Stop::bad_input)?))
        }
    };
    let shape = plan.workload.kind.shape();
    let base_name = arguments.design.clone().unwrap_or_else(|| own.title.clone());
    Ok(Sized {
        study: plan.name.clone(),
        left_out: without_stack([(&*base_name, &base)]),
        base: base_name,
        transactions: main_transactions(shape),
        unit: shape.headline.unit,
        demands: basis.demands.clone(),
        errors: basis.errors,
        cores: basis.assumed.cores,
        volumes: base.volumes,
        demand,
        rows,
        smallest,
    })
}

fn json(sized: &Sized) -> Value {
    let Demand { rate_per_second, target, full_at_most_percent, .. } = sized.demand;
    let row = |row: &Row| {
        let at = match &row.answer {
            Answer::Simulated(at) => Some(at),
            Answer::NoRoom(_) | Answer::Contains(_) => None,
        };
        let (reason, contains) = match &row.answer {
            Answer::NoRoom(why) => (Some(why), None),
            Answer::Contains(position) => (None, Some(position)),
            Answer::Simulated(_) => (None, None),
        };
        let bottleneck = at.and_then(|at| at.bottleneck);
        json!({
            "evidence": "simulated",
            "devices": row.member.devices(),
            "hosts": row.member.hosts,
            "disk_groups": row.member.groups,
            "capacity_drives": row.member.capacity_drives,
            "cache_device": row.member.cache,
            "capacity_device": row.member.capacity,
            "failures_to_tolerate": row.member.failures,
            "stored_bytes": row.space.stored.0,
            "device_bytes": row.space.devices.0,
            "full_percent": row.space.full_percent(),
            "outcome": outcome(row),
            "reason": reason,
            "contains": contains,
            "verdict": at.map(|at| at.judgement.verdict.as_str()),
            "observed_ns": at.and_then(|at| at.judgement.observed).map(|time| time.0),
            "margin": margin(sized, row),
            "late_share": at.map(|at| at.judgement.late_share),
            "delivered_per_second": at.map(|at| at.judgement.delivered_per_second),
            "headline": at.map(|at| at.observation.headline),
            "bottleneck": bottleneck.map(|it| it.name()),
            "bottleneck_share": bottleneck.map(|it| it.share),
            "cpu_busy": bottleneck.map(|it| it.cpu_busy),
        })
    };
    let volume = |volume: &VolumePlan| json!({ "name": volume.name, "bytes": volume.capacity.0 });
    json!({
        "evidence": "simulated",
        "study": sized.study,
        "base": sized.base,
        "unit": sized.unit,
        "demands": sized.demands,
        "cores": sized.cores,
        "model_factors": sized.errors.map(|it| json!({
            "throughput": it.headline.exp(), "p95": it.p95.exp(),
        })),
        "left_out": sized.left_out,
        "volumes": sized.volumes.iter().map(volume).collect::<Vec<_>>(),
        "rate_per_second": rate_per_second,
        "target": target.objective.to_string(),
        "quantile": target.objective.quantile,
        "limit_ns": target.objective.limit.0,
        "transactions": sized.transactions,
        "sessions": target.sessions,
        "settle_ns": target.settle.0,
        "measure_ns": target.measure.0,
        "full_at_most_percent": full_at_most_percent,
        "designs": sized.rows.iter().map(row).collect::<Vec<_>>(),
        "smallest": sized.smallest.as_ref().map(|(position, highest)| json!({
            "design": position,
            "highest_rate_per_second": highest.rate(),
            "rate_margin": highest.rate().map(|rate| rate / rate_per_second),
            "bottleneck": highest.bottleneck.map(|it| it.name()),
        })),
    })
}
