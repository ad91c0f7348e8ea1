//! The data warehouse in a study: a job. A power run, then a throughput run.

use serde_json::{Value, json};
use std::time::Instant;
use tokio::runtime::Runtime;
use underlay_core::{Nanos, RootSeed};
use underlay_database::load_report::LoadReport;
use underlay_database::warehouse::{
    Measured, Step, WarehouseError, check, describe, load, power_run_watched,
    throughput_run_watched,
};
use underlay_database::{Engine, Target};
use underlay_driver::DriveSpec;
use underlay_record::{CheckMoment, CheckOutcome};
use underlay_study::WarehousePlan;
use underlay_workload::identity::identity_of;
use underlay_workload::warehouse::{
    Population, SHAPE, composite_per_hour, power_per_hour, throughput_per_hour,
};

use super::{Checked, Progress, Subject};
use crate::lab::abort::{Abort, During};
use crate::lab::job::{JobProgress, JobRunner};

/// A warehouse of some size.
pub struct WarehouseSubject {
    population: Population,
    streams: u32,
}

/// What the two runs took.
pub struct Asked {
    power: Measured,
    throughput: Option<Measured>,
}

impl WarehouseSubject {
    /// As the plan has it.
    pub fn new(plan: &WarehousePlan, seed: RootSeed) -> WarehouseSubject {
        let population = Population { scale: plan.scale, seed };
        WarehouseSubject { population, streams: plan.streams }
    }
}

impl Subject for WarehouseSubject {
    type Load = JobRunner<Result<Asked, WarehouseError>>;
    type Accounting = Option<Result<Asked, WarehouseError>>;
    type Before = ();

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
        identity_of(&["underlay warehouse 1", &population, &self.streams.to_string()])
    }

    fn load(
        &self,
        target: &Target,
        parallel: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<LoadReport, Abort> {
        progress(Progress { share: 0.0, rows: 0 });
        load(target, &self.population, parallel).during("load the population")
    }

    fn before(&self, _: &Runtime, _: &Target, _: u32) -> Result<(), Abort> {
        Ok(())
    }

    fn check(
        &self,
        _: &Runtime,
        target: &Target,
        _: CheckMoment,
        _: Option<(&(), &Self::Accounting)>,
    ) -> Result<Vec<Checked>, Abort> {
        let described = describe(target).during("read what the warehouse holds")?;
        let results = check(target, &described).during("make the consistency checks")?;
        let checked = results.into_iter().enumerate().map(|(number, result)| Checked {
            id: format!("w{}", number + 1),
            title: result.title,
            outcome: match result.violation {
                None => CheckOutcome::Ok,
                Some(example) => CheckOutcome::Violated { rows: 0, example },
            },
        });
        Ok(checked.collect())
    }

    fn start(&self, _: DriveSpec, target: Target, origin: Instant) -> Result<Self::Load, Abort> {
        let (population, streams) = (self.population, self.streams);
        let job = JobRunner::start(&SHAPE, streams.max(1), origin, move |progress| {
            ask(&target, &population, streams, progress)
        });
        job.during("start the job")
    }

    fn outcome(&self, accounting: &Self::Accounting) -> Result<Option<Value>, Abort> {
        let asked = match accounting {
            None => return Ok(None),
            Some(Ok(asked)) => asked,
            Some(Err(error)) => {
                return Err(Abort::failed("the warehouse's run ended early", error));
            }
        };
        let scale = self.population.scale;
        let Asked { power, throughput } = asked;
        let stopped = power.is_stopped || throughput.as_ref().is_some_and(|run| run.is_stopped);
        let Some(mean) = power.geometric_mean().filter(|_| !stopped) else { return Ok(None) };
        let power_rate = power_per_hour(scale, mean.as_secs_f64());
        let throughput_rate = throughput
            .as_ref()
            .map(|run| throughput_per_hour(scale, self.streams, run.duration.as_secs_f64()));
        Ok(Some(json!({
            "value": composite_per_hour(power_rate, throughput_rate),
            "power_per_hour": power_rate,
            "throughput_per_hour": throughput_rate,
            "geometric_mean_ns": Nanos::from(mean).0,
            "power": run_json(power),
            "throughput": throughput.as_ref().map(run_json),
        })))
    }
}

fn ask(
    target: &Target,
    population: &Population,
    streams: u32,
    progress: &JobProgress,
) -> Result<Asked, WarehouseError> {
    let stop = || progress.is_to_stop();
    let took = |step, time| progress.completed(index(step), 1, Some(time));
    let power = power_run_watched(target, population, &stop, &took)?;
    let throughput = match streams {
        0 => None,
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
