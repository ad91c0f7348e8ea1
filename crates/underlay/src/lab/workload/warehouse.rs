//! The data warehouse in a study: a job. A power run, then a throughput run.

use serde_json::{Value, json};
use std::time::Instant;
use underlay_core::{Nanos, RootSeed};
use underlay_database::warehouse::{
    Measured, Step, WarehouseError, check, describe, load, power_run_watched,
    throughput_run_watched,
};
use underlay_database::{Engine, Target};
use underlay_driver::DriveSpec;
use underlay_record::CheckMoment;
use underlay_study::WarehousePlan;
use underlay_workload::identity::identity_of;
use underlay_workload::warehouse::{
    Population, SHAPE, Scale, composite_per_hour, power_per_hour, throughput_per_hour,
};

use super::cause::stopped;
use super::checked::Checked;
use super::loaded::{Loaded, Progress};
use super::subject::{Access, Loadable, Subject};
use crate::lab::abort::Abort;
use crate::lab::job::{JobProgress, JobRunner};
use crate::stop::Stop;

/// A warehouse of some size.
pub struct WarehouseSubject {
    /// Size and seed.
    pub population: Population,
    /// Power runs, one after the other.
    pub power_runs: u32,
    /// Query streams of the throughput run; 0 = there is none, `None` = what the specification asks for.
    pub streams: Option<u32>,
}

/// What the runs took.
pub struct Asked {
    /// Power runs, in their order.
    pub power: Vec<Measured>,
    /// The throughput run.
    pub throughput: Option<Measured>,
}

impl Asked {
    /// Whether a run was stopped before its end.
    pub fn is_stopped(&self) -> bool {
        self.power.iter().chain(&self.throughput).any(|run| run.is_stopped)
    }
}

impl WarehouseSubject {
    /// As the plan has it.
    pub fn new(plan: &WarehousePlan, seed: RootSeed) -> WarehouseSubject {
        let population = Population { scale: plan.scale, seed };
        WarehouseSubject { population, power_runs: 1, streams: Some(plan.streams) }
    }

    /// Query streams of the throughput run.
    pub fn streams(&self) -> u32 {
        self.streams.unwrap_or(self.population.scale.least_streams())
    }
}

impl Loadable for WarehouseSubject {
    fn database(&self) -> &'static str {
        "warehouse"
    }

    fn population(&self) -> String {
        format!("warehouse-{}", self.population.scale)
    }

    fn population_identity(&self, engine: Engine) -> String {
        let Population { scale, seed } = self.population;
        let numbers = format!("{scale} {}", seed.0);
        identity_of(&["underlay warehouse population 1", &format!("{engine}"), &numbers])
    }

    fn identity(&self, engine: Engine) -> String {
        let population = self.population_identity(engine);
        identity_of(&["underlay warehouse 1", &population, &self.streams().to_string()])
    }

    fn load(
        &self,
        access: Access<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Loaded, Stop> {
        progress(Progress { share: 0.0, rows: 0 });
        let loaded = load(access.target, &self.population, access.parallel);
        loaded.map(Loaded::from).map_err(|error| stopped("load the population", error))
    }
}

impl Subject for WarehouseSubject {
    type Load = JobRunner<Result<Asked, WarehouseError>>;
    type Accounting = Option<Result<Asked, WarehouseError>>;
    type Before = ();

    fn before(&self, _: Access<'_>, _: u32) -> Result<(), Stop> {
        Ok(())
    }

    fn check(
        &self,
        Access { target, .. }: Access<'_>,
        _: CheckMoment,
        _: Option<(&(), &Self::Accounting)>,
    ) -> Result<Vec<Checked>, Stop> {
        let described =
            describe(target).map_err(|error| stopped("read what the warehouse holds", error))?;
        let results = check(target, &described)
            .map_err(|error| stopped("make the consistency checks", error))?;
        let checked = results.into_iter().enumerate().map(|(number, result)| {
            Checked::simple(&format!("w{}", number + 1), &result.title, result.violation)
        });
        Ok(checked.collect())
    }

    fn start(
        &self,
        _: DriveSpec,
        target: Target,
        origin: Instant,
        (): &(),
    ) -> Result<Self::Load, Stop> {
        let (population, power_runs, streams) = (self.population, self.power_runs, self.streams());
        let job = JobRunner::start(&SHAPE, streams.max(1), origin, move |progress| {
            ask(&target, &population, (power_runs, streams), progress)
        });
        job.map_err(|error| Stop::host(format!("could not start a thread: {error}")))
    }

    fn outcome(&self, accounting: &Self::Accounting) -> Result<Option<Value>, Abort> {
        let asked = match accounting {
            None => return Ok(None),
            Some(Ok(asked)) => asked,
            Some(Err(error)) => {
                return Err(Abort::failed("the warehouse's run ended early", error));
            }
        };
        let power = asked.power.last().filter(|_| !asked.is_stopped());
        let streams = self.streams();
        Ok(power.and_then(|power| {
            outcome(self.population.scale, streams, power, asked.throughput.as_ref())
        }))
    }
}

/// The record's document of a power run and a throughput run of so many streams; `None` of a power
/// run without steps.
pub fn outcome(
    scale: Scale,
    streams: u32,
    power: &Measured,
    throughput: Option<&Measured>,
) -> Option<Value> {
    let mean = power.geometric_mean()?;
    let power_rate = power_per_hour(scale, mean.as_secs_f64());
    let throughput_rate =
        throughput.map(|run| throughput_per_hour(scale, streams, run.duration.as_secs_f64()));
    Some(json!({
        "value": composite_per_hour(power_rate, throughput_rate),
        "power_per_hour": power_rate,
        "throughput_per_hour": throughput_rate,
        "geometric_mean_ns": Nanos::from(mean).0,
        "power": run_json(power),
        "throughput": throughput.map(run_json),
    }))
}

fn ask(
    target: &Target,
    population: &Population,
    (power_runs, streams): (u32, u32),
    progress: &JobProgress,
) -> Result<Asked, WarehouseError> {
    let stop = || progress.is_to_stop();
    let took = |step, time| progress.completed(index(step), 1, Some(time));
    let mut power = Vec::new();
    for _ in 0..power_runs {
        power.push(power_run_watched(target, population, &stop, &took)?);
    }
    let throughput = match streams {
        0 => None,
        _ if power.iter().any(|run| run.is_stopped) => None,
        streams => Some(throughput_run_watched(target, population, streams, (&stop, &took))?),
    };
    Ok(Asked { power, throughput })
}

/// The place of a step among the types of [`SHAPE`].
fn index(step: Step) -> usize {
    match step {
        Step::Query(number) => usize::from(number) - 1,
        Step::Insert => 22,
        Step::Delete => 23,
    }
}

fn run_json(run: &Measured) -> Value {
    let step = |(stream, step, time, rows): &(u32, Step, std::time::Duration, usize)| {
        json!({
            "stream": stream,
            "step": step.to_string(),
            "duration_ns": Nanos::from(*time).0,
            "rows": rows,
        })
    };
    json!({
        "duration_ns": Nanos::from(run.duration).0,
        "queries": run.queries(),
        "steps": run.steps.iter().map(step).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::index;
    use underlay_database::warehouse::Step;
    use underlay_workload::warehouse::SHAPE;

    #[test]
    fn every_step_is_counted_under_its_name() {
        for step in Step::all() {
            assert_eq!(SHAPE.types[index(step)], step.to_string().to_lowercase());
        }
    }
}
