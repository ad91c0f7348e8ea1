//! A study whose workload is a block load, in virtual time: every rung or curve on each of its designs.
//!
//! The plan is that of `underlay run`, for a host without limits: sizes, volumes, threads and rates are the study's. What a real
//! run adds (filling, verifying, repeats, this host) has no meaning here.

use super::arguments::Arguments;
use super::design::{
    Load, Outcome, REQUESTS, REQUESTS_PER_POINT, Run, Setup, StudyLoad, merged, simulate_on,
};
use super::workload_text;
use crate::cli::designs::print_problems;
use crate::cli::studies;
use crate::lab::simulated::seed_of;
use crate::stop::{Stop, chain};
use serde_json::json;
use underlay_core::RootSeed;
use underlay_report::atlas::SimulatedPoint;
use underlay_simulation::block_study::{self, BlockRun, Length};
use underlay_simulation::experiments::testbeds;
use underlay_study::{
    BlockPlan, DatastoreKind, DesignPlan, HostView, Pacing, Plan, PlanOptions, check,
};
use underlay_workload::block::Concurrency;

/// One design at one rung.
struct Simulated {
    design: String,
    setup: Setup,
    outcome: Outcome,
}

/// Simulates the study of that name, or in that file.
pub fn run(arguments: &Arguments, name: &str) -> Result<(), Stop> {
    if arguments.html.is_some() {
        return Err(Stop::bad_input("--html is the page of a publication's experiments")
            .with_hint("leave it out, or name a publication"));
    }
    let source = studies::find(name).map_err(|stop| {
        let mut known: Vec<&str> = testbeds().iter().map(|testbed| testbed.publication).collect();
        known.dedup();
        let known = known.join(", ");
        stop.with_hint(format!("use a publication ({known}, or all), or a study with a block load"))
    })?;
    let planned = check(&source, &PlanOptions::default(), &HostView::unlimited());
    let (_, plan) = planned.map_err(|problems| print_problems(&problems))?;
    let Some(load) = plan.workload.kind.block() else {
        let workload = plan.workload.kind.shape().name;
        return Err(Stop::bad_input(format!(
            "`{name}` has the workload {workload}: only block loads are simulated"
        ))
        .with_hint("run it with `underlay run`, or choose a study with [workload.block]"));
    };
    let mut simulated = Vec::new();
    for design in &plan.designs {
        for threads in &load.threads {
            errln!("simulating: {}, {} per volume", design.title, threads_words(*threads));
            let how = How {
                options: &arguments.load,
                requests: arguments.requests,
                seed: RootSeed(arguments.seed),
                is_curve: !load.curve.is_empty(),
            };
            let (setup, outcome) = on_design(&how, design, load, *threads)?;
            simulated.push(Simulated { design: design.name.clone(), setup, outcome });
        }
    }
    if arguments.json {
        let designs: Vec<_> = simulated
            .iter()
            .map(|one| {
                json!({
                    "design": one.design,
                    "simulation": workload_text::json(&one.setup, &one.outcome),
                })
            })
            .collect();
        let (name, question) = (&plan.name, &plan.question);
        let page = json!({
            "evidence": "simulated", "study": name, "question": question, "simulations": designs,
        });
        outln!("{page:#}");
        return Ok(());
    }
    outln!("{}: {}\n{}\n", plan.name, plan.title, plan.question);
    for one in &simulated {
        outln!("{}", workload_text::render(&one.setup, &one.outcome));
    }
    out!("{}", ratios(&simulated, load));
    Ok(())
}

fn threads_words(threads: u32) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// What each design of a study with a block load does at each of its numbers of threads, at the size of the study; of a
/// curve the maximum.
pub fn points(plan: &Plan) -> Result<Vec<SimulatedPoint>, Stop> {
    if let Some(problem) = block_study::problems(plan).first() {
        return Err(Stop::bad_input(problem.clone()));
    }
    let points = plan.plans();
    let mut simulated = Vec::new();
    for (position, design) in plan.designs.iter().enumerate() {
        let point = points[plan.point_of(position)];
        let Some(load) = point.workload.kind.block() else { continue };
        let is_curve = !load.curve.is_empty();
        let run = BlockRun::new(point, load, position, Length::SHORT, seed_of(plan, 0));
        let mut run = run.map_err(|error| Stop::bad_input(chain(&error)))?;
        let mut threads = load.threads.iter();
        run.carry_out(&mut |one| {
            let users = if is_curve { load.threads.last() } else { threads.next() };
            let [reads, writes] = one.result.totals();
            let mean = one.result.mean_response_ns();
            let values = [
                ("headline", Some(one.result.iops())),
                ("mean", mean),
                ("read_mean", reads.response.mean()),
                ("write_mean", writes.response.mean()),
                ("bytes_per_second", Some(one.result.bytes_per_second())),
                ("latency_at_peak_ns", mean.filter(|_| is_curve)),
            ];
            for (metric, value) in values {
                let Some((users, value)) = users.copied().zip(value) else { continue };
                let (design, metric) = (design.name.clone(), metric.to_string());
                simulated.push(SimulatedPoint { design, metric, users, value });
            }
            !is_curve
        });
    }
    Ok(simulated)
}

/// How much is simulated.
struct How<'a> {
    options: &'a Load,
    requests: Option<u64>,
    seed: RootSeed,
    is_curve: bool,
}

fn on_design(
    how: &How<'_>,
    design: &DesignPlan,
    load: &BlockPlan,
    threads: u32,
) -> Result<(Setup, Outcome), Stop> {
    let profile = load.at(threads, design.volumes.len());
    let workload = merged(&profile)?;
    let volumes = u32::try_from(design.volumes.len()).unwrap_or(u32::MAX);
    let rate = match load.pacing() {
        Pacing::Open { rate_per_second, .. } if load.rate_per_second.is_some() => {
            Some(rate_per_second)
        }
        Pacing::Open { rate_per_second, .. } => Some(rate_per_second * f64::from(volumes)),
        Pacing::Closed { .. } | Pacing::Job => None,
    };
    let concurrency = match &profile.jobs[..] {
        [job] => job.concurrency,
        // Jobs become one mix with the requests in flight of all of them.
        _ => Concurrency { threads: load.in_flight(threads), queue_depth: 1 },
    };
    let study = StudyLoad {
        workload: &profile.name,
        volumes,
        size: load.working_set,
        concurrency,
        rate,
        is_curve: how.is_curve,
    };
    let options = how.options.of_study(study);
    let default = if options.is_curve() { REQUESTS_PER_POINT } else { REQUESTS };
    let devices: Vec<usize> = match &design.kind {
        DatastoreKind::Emulated { devices, .. } => {
            let number = |name: &Option<String>| {
                devices.iter().position(|(known, _)| Some(known) == name.as_ref()).unwrap_or(0)
            };
            design.volumes.iter().map(|volume| number(&volume.device)).collect()
        }
        DatastoreKind::Path { .. } | DatastoreKind::Cluster(_) => Vec::new(),
    };
    let run = Run {
        design: &design.name,
        load: &options,
        requests: how.requests.unwrap_or(default),
        seed: how.seed,
        percents: &load.curve,
        devices: &devices,
    };
    simulate_on(design.kind.clone(), workload, &run)
}

/// Each design against the first, rung by rung.
fn ratios(simulated: &[Simulated], load: &BlockPlan) -> String {
    let number = |one: &Simulated| match &one.outcome {
        Outcome::Once(result) => result.iops(),
        Outcome::Curve(curve) => curve.maximum.iops(),
    };
    let rungs = load.threads.len();
    let (first, others) = simulated.split_at(rungs.min(simulated.len()));
    let mut text = String::new();
    for (position, one) in others.iter().enumerate() {
        let base = &first[position % rungs];
        let ratio = number(one) / number(base).max(f64::MIN_POSITIVE);
        let at = match load.curve.is_empty() {
            true => format!("with {} per volume", threads_words(load.threads[position % rungs])),
            false => "at the maximum".to_string(),
        };
        text.push_str(&format!(
            "{} over {} {at}: {ratio:.2}x the I/Os per second (simulated)\n",
            one.design, base.design
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::points;
    use underlay_study::{HostView, Plan, PlanOptions, StudySize, check, find_study};

    fn planned(name: &str, size: Option<StudySize>) -> Plan {
        let source = find_study(name).expect("built in").source();
        let options = PlanOptions { size, ..PlanOptions::default() };
        let checked = check(&source, &options, &HostView::unlimited());
        checked.unwrap_or_else(|problems| panic!("{name}: {}", problems.to_json())).1
    }

    /// Similarity: at the size of a laptop a design does its part of the rate that it does at full size.
    #[test]
    fn a_study_at_laptop_size_shows_what_it_shows_at_full_size() {
        let names = ["kingston/kh1", "kingston/kh2", "vmware/v1", "storagereview/sr5"];
        for name in names {
            let laptop = planned(name, Some(StudySize::Laptop));
            let of = |plan: &Plan| points(plan).unwrap_or_else(|stop| panic!("{name}: {stop:?}"));
            let (whole, part) = (of(&planned(name, None)), of(&laptop));
            assert_eq!(whole.len(), part.len(), "{name}");
            for (whole, part) in whole.iter().zip(&part).filter(|(it, _)| it.metric == "headline") {
                let ratio = part.value * f64::from(laptop.scale.divisor) / whole.value;
                assert!((ratio - 1.0).abs() < 0.16, "{name}, {}: {ratio}", whole.design);
            }
        }
    }
}
