//! `underlay predict`: a recorded workload on other designs, never without the model's error on the
//! recorded one.

mod answer;
mod highest_rates;
mod text;

use crate::cli::complaints::Complaints;
use crate::cli::designs::{Named, design_named, without_stack};
use crate::cli::own_row::{ModelErrors, OwnRow, p95_ns, range};
use crate::cli::recorded_workload::{Profiled, RecordedWorkload, Taken, at_rungs, demands_of};
use crate::cli::target_options::TargetOptions;
use crate::cli::whole_number::whole_number;
use crate::lab::simulated::seed_of;
use crate::stop::Stop;
use answer::{Answer, Predicted, Row, WhatIf};
use clap::Args;
use highest_rates::HighestRates;
use serde_json::{Value, json};
use std::path::PathBuf;
use underlay_host::return_large_blocks;
use underlay_simulation::databases::{
    Assumptions, Change, Effort, NoMeaning, Observation, Prediction, SinglePlan, predicted_rate,
    predicted_time,
};
use underlay_workload::objective::Objective;

/// Arguments of `underlay predict`.
#[derive(Debug, Args)]
#[command(
    after_help = "Everything predicted is simulated. Its interval includes the model's error on \
    the recorded design.\n\nExamples:\n  underlay predict record.sqlite --design \
    kingston-sata-5200eco\n  underlay predict record.sqlite --design my-nvme.toml --json\n  underlay \
    predict record.sqlite --design my-nvme.toml --slo p99=10ms\n  underlay predict \
    real-disk.sqlite --measured-as my-disk.toml --design my-nvme.toml"
)]
pub struct Arguments {
    /// The record of a study with one database.
    record: PathBuf,
    /// A design to predict: another one of the study, a built-in design or device, or a file. May
    /// be repeated.
    #[arg(long = "design", value_name = "DESIGN", required = true)]
    designs: Vec<String>,
    /// The design of the record that was measured; by default the first of the study.
    #[arg(long, value_name = "NAME")]
    measured: Option<String>,
    /// What the storage of that design is like: a design, a device, or a file, such as one that
    /// `underlay calibrate` wrote. Needed if it is real storage.
    #[arg(long, value_name = "DESIGN")]
    measured_as: Option<String>,
    /// What transactions cost, as `underlay profile` writes it. By default it is taken from the
    /// record.
    #[arg(long, value_name = "FILE")]
    demands: Option<PathBuf>,
    /// Cores of hosts without a CPU limit. Default: those of the host that made the record.
    #[arg(long, value_name = "N", value_parser = whole_number)]
    cores: Option<u64>,
    /// Every phase is as long as the study says. Otherwise a window ends when its throughput is
    /// known within 1 %, and a warm-up after 60 s.
    #[arg(long)]
    full_length: bool,
    /// Also search the highest rate of each design within a latency target, such as p99=10ms: an open
    /// loop, in which response times count from the intended start. The target applies to the
    /// workload's main transactions, such as New-Order of TPC-C; the rate is the total of all.
    #[arg(long, value_name = "QUANTILE=TIME")]
    slo: Option<Objective>,
    #[command(flatten)]
    target: TargetOptions,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    return_large_blocks();
    let answer = answer(arguments)?;
    if arguments.json {
        outln!("{:#}", json(&answer));
    } else {
        out!("{}", text::render(&answer));
    }
    Ok(())
}

fn answer(arguments: &Arguments) -> Result<Answer, Stop> {
    let mut complaints = Complaints::default();
    arguments.target.check(&mut complaints);
    complaints.settle()?;
    let taken = Taken {
        design: arguments.measured.as_deref(),
        storage: arguments.measured_as.as_deref(),
        cores: arguments.cores,
    };
    let workload = RecordedWorkload::read(&arguments.record, taken)?;
    let cores = workload.cores;
    let plan = &workload.plan;
    let own = &plan.designs[workload.design];
    // All of them, before the first is simulated.
    let designs = arguments
        .designs
        .iter()
        .map(|name| design_named(name, own, &plan.designs))
        .collect::<Result<Vec<_>, Stop>>()?;
    let effort = if arguments.full_length { Effort::FULL_LENGTH } else { Effort::PRECISE };
    let rungs = workload.rungs();
    let (assumed, source) = match &arguments.demands {
        Some(path) => {
            let demands = Some(demands_of(path, plan)?);
            let assumed = Assumptions { demands, ..Assumptions::defaults(cores) };
            (assumed, path.display().to_string())
        }
        None => {
            let Profiled { demands, cpu_scales, .. } = workload.profile(&rungs, effort)?;
            let (cpu, log) = (demands.cpu_factor, demands.log_factor);
            let source = format!(
                "the record: {cpu:.2} times the default's processor time, {log:.2} times its log"
            );
            (Assumptions { cores, demands: Some(demands), cpu_scales }, source)
        }
    };
    let simulated = workload.own_simulated(&rungs, &assumed, effort)?;
    let own_rows = OwnRow::all(simulated, &workload.measured);
    let single = SinglePlan::new(plan).map_err(|error| Stop::bad_input(error.to_string()))?;
    let seed = seed_of(plan, 0);
    let errors = ModelErrors::of(&own_rows);
    let mut all = Vec::new();
    for Named { name, design } in &designs {
        errln!("simulating: {name}");
        let simulated = single.simulate(design, &assumed, effort, seed);
        let simulated = at_rungs(simulated.map_err(Stop::bad_input)?, &rungs);
        let rows =
            own_rows.iter().zip(simulated).map(|(own, it)| row_of(own, it, &errors)).collect();
        all.push(Predicted { name: name.clone(), rows });
    }
    let mut what_ifs = Vec::new();
    let most = own_rows.last().map_or(1, |row| row.users);
    // More memory shows where caches are full.
    let full = Effort { fills_caches: true, ..effort };
    let at_most_users = |rungs: Vec<Observation>| {
        let at = rungs.into_iter().find(|it| it.users == most);
        at.expect("the same rungs as the record")
    };
    let others = designs.iter().map(|named| (&named.name, &named.design));
    for (name, design) in std::iter::once((&own.name, own)).chain(others) {
        errln!("simulating: what if, {name}");
        let base = single.simulate(design, &assumed, full, seed).map_err(Stop::bad_input)?;
        let base = at_most_users(base);
        for change in Change::ALL {
            let changed = single.what_if((design, change), &assumed, full, seed);
            let changed = changed.map_err(Stop::bad_input)?;
            let ratios = changed.map(|rungs| {
                let it = at_most_users(rungs);
                let p99 = it.p99.zip(base.p99).map(|(a, b)| a.0 as f64 / b.0.max(1) as f64);
                (it.headline / base.headline.max(f64::MIN_POSITIVE), p99)
            });
            what_ifs.push(WhatIf { design: name.clone(), change, ratios });
        }
    }
    let highest_rates = match arguments.slo {
        None => None,
        Some(objective) => {
            let target = arguments.target.target(objective, most, effort.cached_at_most);
            let own = Named { name: own.name.clone(), design: own.clone() };
            let of = own_rows
                .last()
                .map(|row| highest_rates::of(single, (&own, row, &errors), &assumed, seed));
            of.map(|searching| searching.search(&designs, target)).transpose()?
        }
    };
    let named = designs.iter().map(|it| (&*it.name, &it.design));
    Ok(Answer {
        study: plan.name.clone(),
        left_out: without_stack(std::iter::once((&*own.name, own)).chain(named)),
        own: own.name.clone(),
        measured_as: arguments.measured_as.clone(),
        evidence: workload.evidence.as_str(),
        unit: plan.workload.kind.shape().headline.unit,
        demands: source,
        cores,
        own_rows,
        designs: all,
        what_ifs,
        highest_rates,
    })
}

fn row_of(own: &OwnRow, simulated: Observation, errors: &ModelErrors) -> Row {
    Row {
        users: own.users,
        headline: predicted_rate(
            simulated.headline,
            own.simulated.headline,
            &own.headlines(),
            errors.headline,
        ),
        p95: p95_ns(&simulated)
            .zip(p95_ns(&own.simulated))
            .and_then(|(simulated, at)| predicted_time(simulated, at, &own.p95s(), errors.p95)),
        simulated,
    }
}

fn json(answer: &Answer) -> Value {
    let prediction = |it: &Option<Prediction>| {
        it.map(|it| json!({ "value": it.value, "low": it.low, "high": it.high }))
    };
    let three = |it: Option<[f64; 3]>| {
        it.map(|[value, low, high]| json!({ "value": value, "low": low, "high": high }))
    };
    let own = |row: &OwnRow| {
        let headline = range(row, |it| Some(it.headline));
        json!({
            "users": row.users,
            "measured": three(headline),
            "simulated": row.simulated.headline,
            "error": headline.map(|[value, ..]| row.simulated.headline / value - 1.0),
            "p95_ns": three(range(row, p95_ns)),
            "simulated_p95_ns": row.simulated.p95.map(|time| time.0),
        })
    };
    let row = |row: &Row| {
        json!({
            "users": row.users,
            "predicted": prediction(&row.headline),
            "simulated": row.simulated.headline,
            "p95_ns": prediction(&row.p95),
            "simulated_p95_ns": row.simulated.p95.map(|time| time.0),
            "bottleneck": row.simulated.bottleneck.map(|it| it.name()),
        })
    };
    let what_if = |it: &WhatIf| {
        json!({
            "design": it.design,
            "change": it.change.as_str(),
            "throughput_ratio": it.ratios.as_ref().ok().map(|(ratio, _)| ratio),
            "p99_ratio": it.ratios.as_ref().ok().and_then(|(_, ratio)| *ratio),
            "no_meaning": it.ratios.as_ref().err().map(|NoMeaning(why)| why),
        })
    };
    json!({
        "evidence": "simulated",
        "study": answer.study,
        "unit": answer.unit,
        "demands": answer.demands,
        "cores": answer.cores,
        "left_out": answer.left_out,
        "own": {
            "design": answer.own,
            "measured_as": answer.measured_as,
            "evidence": answer.evidence,
            "rungs": answer.own_rows.iter().map(own).collect::<Vec<_>>(),
        },
        "designs": answer.designs.iter().map(|it| json!({
            "design": it.name,
            "rungs": it.rows.iter().map(row).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "what_if": answer.what_ifs.iter().map(what_if).collect::<Vec<_>>(),
        "slo": answer.highest_rates.as_ref().map(HighestRates::json),
    })
}
