//! One rung of a ladder in virtual time: warmed caches, a warm-up, and a window that is cut into
//! seconds.
//!
//! The window ends before its time where throughput is known precisely enough. The rule looks at
//! ten equal parts of it, after every ten seconds and not more often: looking all the time would
//! end windows at lucky moments.

use std::collections::BTreeMap;
use underlay_core::{Nanos, RootSeed};
use underlay_engine::{
    EngineRun, EngineSpec, JobResult, Scenario, ScenarioProblem, Simulation, Window,
};
use underlay_model::cluster::HostUse;
use underlay_study::ProcedurePlan;

use super::storage::DesignTarget;

/// Parts of a window whose means are compared.
const BATCHES: usize = 10;
/// Student's t for 95 % of the means of ten batches.
const T_95: f64 = 2.262;
const SECOND: Nanos = Nanos::from_secs(1);
/// Load that a rung finds traces of, at least where its run had as much: the kernel writes pages back that have been dirty
/// for 30 s, and rounds of that take seconds.
const LEAVES_TRACES: Nanos = Nanos::from_secs(60);

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Half the width of the 95 % interval of throughput, as a share of it, at which a window ends;
    /// `None` = at its time.
    pub precision: Option<f64>,
    /// Load before the window of a rung lasts no longer than this.
    pub warm_up_at_most: Nanos,
    /// Transactions that caches are filled with at most, where more load came before a rung than is simulated.
    pub cached_at_most: u64,
}

impl Effort {
    /// Windows that end within 1 %: of what demands are fitted to.
    pub const PRECISE: Effort =
        Effort { precision: Some(0.01), warm_up_at_most: LEAVES_TRACES, cached_at_most: 400_000 };

    /// Windows that end within 3 %: of studies, whose repeats narrow their answers further.
    pub const OF_STUDIES: Effort =
        Effort { precision: Some(0.03), warm_up_at_most: Nanos::from_secs(20), ..Effort::PRECISE };

    /// Every phase as long as the study says.
    pub const FULL_LENGTH: Effort =
        Effort { precision: None, warm_up_at_most: Nanos(u64::MAX), cached_at_most: 2_000_000 };
}

/// Where a rung is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not measured.
    WarmUp,
    /// Measured.
    Measure,
}

/// A scenario that cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RungError(pub Vec<ScenarioProblem>);

/// What a rung came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// Measured time.
    pub measured: Nanos,
    /// Whether that is less than planned, because throughput was known.
    pub ended_early: bool,
    /// Mean of the headline over all databases, in its unit.
    pub headline: f64,
    /// Half the width of its 95 % interval, as a share; `None` of windows below ten seconds, and of
    /// jobs.
    pub precision: Option<f64>,
    /// By the number of its database: what a job came to.
    pub jobs: BTreeMap<usize, JobResult>,
    /// Transactions that each database would have made in the phases that are the rung's own, at
    /// their full lengths, on average over the databases.
    pub transactions: u64,
}

/// The databases whose headlines make that of the rung: those with users, or the jobs where nobody
/// has users.
pub fn counted(scenario: &Scenario) -> Vec<usize> {
    let of = |is_job| {
        let all = scenario.databases.iter().enumerate();
        all.filter(move |(_, it)| it.workload.is_job() == is_job).map(|(number, _)| number)
    };
    let users: Vec<usize> = of(false).collect();
    if users.is_empty() { of(true).collect() } else { users }
}

/// Adds what jobs did in a second.
fn add_jobs(jobs: &mut BTreeMap<usize, JobResult>, run: &EngineRun) {
    for (number, database) in run.databases.iter().enumerate() {
        if let Some(job) = &database.job {
            jobs.entry(number).or_default().add(job);
        }
    }
}

/// Load of a run before the ramp-up of the rung with so many users: its warm-up, and the rungs before.
fn load_before(procedure: &ProcedurePlan, users: u32) -> Nanos {
    let earlier = procedure.users.iter().take_while(|other| **other != users).count() as u64;
    let rung = procedure.ramp_up.0.saturating_add(procedure.measure.0);
    Nanos(procedure.warm_up.0.saturating_add(rung.saturating_mul(earlier)))
}

/// A second of a rung.
#[derive(Clone, Debug)]
pub struct Second {
    /// What the databases did.
    pub run: EngineRun,
    /// For how long requests occupied what each host of a cluster has in this second; empty of single devices.
    pub hosts: Vec<(String, HostUse)>,
}

/// Simulates the rung of so many users. `each` is given every second, and ends the rung by `false`.
///
/// First the storage is alone for the phase `settle`. Caches begin empty, as those of a server that has just been started. What the run would have left behind before the
/// rung comes from load of the rung's own users, which is not measured. Where there was more load than is simulated,
/// caches are filled first: with the transactions that were made, or until they are full where that is not known.
///
/// # Errors
/// A scenario that cannot be simulated.
pub fn simulate_rung(
    (target, scenario): (DesignTarget, &Scenario),
    (procedure, users): (&ProcedurePlan, u32),
    effort: Effort,
    seed: RootSeed,
    each: &mut dyn FnMut(Stage, &Second) -> bool,
) -> Result<Rung, RungError> {
    let mut simulation = Simulation::new(scenario, target, seed).map_err(RungError)?;
    simulation.rest(procedure.settle);
    let all_before = load_before(procedure, users);
    let before = all_before.min(procedure.warm_up.max(LEAVES_TRACES));
    let ramp_up = |before: Nanos| Nanos(before.0.saturating_add(procedure.ramp_up.0));
    let warm_up = ramp_up(before).min(effort.warm_up_at_most);
    if procedure.cache_warm_up > Nanos::ZERO {
        simulation.warm_caches(transactions_to_fill(scenario).min(effort.cached_at_most));
    } else if warm_up < ramp_up(all_before) {
        let made = scenario.databases.iter().map(|database| database.transactions_before).max();
        let made = made.filter(|made| *made > 0).unwrap_or(u64::MAX);
        let transactions = made.min(transactions_to_fill(scenario)).min(effort.cached_at_most);
        simulation.warm_caches(transactions);
    }
    let mut goes_on = true;
    let mut used = simulation.target_mut().host_uses();
    let mut pass = |length: Nanos,
                    stage,
                    each: &mut dyn FnMut(Stage, &Second) -> bool,
                    counted: &mut dyn FnMut(&EngineRun) -> bool| {
        let mut left = length;
        while goes_on && left > Nanos::ZERO {
            let measure = left.min(SECOND);
            let run = simulation.run(&Window { warm_up: Nanos::ZERO, measure });
            left = left.saturating_sub(measure);
            let now = simulation.target_mut().host_uses();
            let since = |((name, now), (_, then)): (&(String, HostUse), &(String, HostUse))| {
                (name.clone(), now.since(*then))
            };
            let second = Second { run, hosts: now.iter().zip(&used).map(since).collect() };
            used = now;
            goes_on = each(stage, &second);
            if !counted(&second.run) {
                return true;
            }
        }
        false
    };
    let mut jobs = BTreeMap::new();
    let counted = counted(scenario);
    let has_users = counted.iter().any(|number| !scenario.databases[*number].workload.is_job());
    pass(warm_up, Stage::WarmUp, each, &mut |run| {
        add_jobs(&mut jobs, run);
        true
    });
    let (mut measured, mut seconds, mut weighted) = (Nanos::ZERO, Vec::new(), 0.0);
    let mut ended = 0;
    let ended_early = pass(procedure.measure, Stage::Measure, each, &mut |run| {
        add_jobs(&mut jobs, run);
        let headline: f64 = counted.iter().map(|number| run.headline(*number)).sum();
        measured = Nanos(measured.0 + run.length().0);
        weighted += headline * run.length().as_secs_f64();
        let types = run.databases.iter().flat_map(|database| &database.types);
        ended += types.map(|of| of.committed + of.rolled_back).sum::<u64>();
        if run.length() == SECOND {
            seconds.push(headline);
        }
        if !has_users {
            return jobs.values().any(|job| job.ended.is_none());
        }
        // A job beside users has shown itself when one of its operations has ended.
        let has_shown = |job: &JobResult| job.ended.is_some() || !job.operations.is_empty();
        let is_due = seconds.len().is_multiple_of(BATCHES)
            && measured < procedure.measure
            && jobs.values().all(has_shown);
        let known = |limit| precision(&seconds).is_some_and(|share| share <= limit);
        !(is_due && effort.precision.is_some_and(known))
    });
    // The warm-up belongs to the run's first rung.
    let first = if all_before == procedure.warm_up { procedure.warm_up } else { Nanos::ZERO };
    let own = [first, procedure.ramp_up, procedure.measure];
    let planned = own.iter().map(|phase| phase.0 as f64).sum::<f64>();
    let times = planned / (measured.0.max(1) as f64 * scenario.databases.len() as f64);
    Ok(Rung {
        transactions: (ended as f64 * times) as u64,
        measured,
        ended_early: ended_early && has_users,
        headline: weighted / measured.as_secs_f64().max(f64::MIN_POSITIVE),
        precision: if has_users { precision(&seconds) } else { None },
        jobs,
    })
}

/// Transactions after which caches are about full: each touches some pages that the others do not.
pub(super) fn transactions_to_fill(scenario: &Scenario) -> u64 {
    const NEW_PAGES: u64 = 8;
    let pages = scenario.databases.iter().map(|database| {
        let cache = match &database.engine {
            EngineSpec::Postgresql(settings) => settings.shared_buffers.0 + settings.page_cache.0,
            EngineSpec::Mariadb(settings) => settings.buffer_pool_size.0,
        };
        cache / u64::from(database.engine.page_bytes())
    });
    pages.max().unwrap_or(0) / NEW_PAGES + 20_000
}

/// Half the width of the 95 % interval of the mean, as a share of it, from the means of ten
/// batches.
fn precision(seconds: &[f64]) -> Option<f64> {
    let size = seconds.len() / BATCHES;
    if size == 0 {
        return None;
    }
    let used = &seconds[seconds.len() - size * BATCHES..];
    let means: Vec<f64> =
        used.chunks(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = means.iter().map(|it| (it - mean).powi(2)).sum();
    let error = (squares / (BATCHES - 1) as f64 / BATCHES as f64).sqrt();
    (mean > 0.0).then(|| T_95 * error / mean)
}

#[cfg(test)]
mod tests {
    use super::{load_before, precision};
    use underlay_core::Nanos;
    use underlay_study::ProcedurePlan;

    #[test]
    fn a_rung_follows_those_before_it() {
        let procedure = ProcedurePlan {
            users: vec![4, 16, 8],
            warm_up: Nanos::from_secs(10),
            ramp_up: Nanos::from_secs(2),
            measure: Nanos::from_secs(8),
            ..ProcedurePlan::empty()
        };
        let before = [4, 16, 8].map(|users| load_before(&procedure, users));
        assert_eq!(before, [10, 20, 30].map(Nanos::from_secs));
    }

    #[test]
    fn the_interval_is_that_of_batch_means() {
        assert_eq!(precision(&[5.0; 9]), None);
        assert_eq!(precision(&[5.0; 20]), Some(0.0));
        assert_eq!(precision(&[0.0; 20]), None);
        // Standard deviation of 1 to 10 is 3.0277, that of their mean 0.9574.
        let rising: Vec<f64> = (1..=10).map(f64::from).collect();
        let share = precision(&rising).expect("ten seconds");
        assert!((share - 2.262 * 0.957_427 / 5.5).abs() < 1e-6, "{share}");
    }
}
