//! A run in virtual time: the storage at rest, the warm-up, then rung by rung, on databases that go on working.
//!
//! A window ends before its time where throughput is known precisely enough. The rule looks at
//! ten equal parts of it, after every ten seconds and not more often: looking all the time would
//! end windows at lucky moments. A phase in which the clock begins or ends background work is as long
//! as the study says, because the share of the work in it would be another one.

use std::collections::BTreeMap;
use underlay_core::{Nanos, RootSeed};
use underlay_engine::{
    EngineRun, EngineSpec, JobResult, Scenario, ScenarioProblem, Simulation, Skip, Window,
};
use underlay_model::cluster::HostUse;
use underlay_study::{FaultPhase, ProcedurePlan};

use super::background::{BackgroundSchedule, Beginning};
use super::storage::DesignTarget;

/// Parts of a window whose means are compared.
const BATCHES: usize = 10;
/// Student's t for 95 % of the means of ten batches.
const T_95: f64 = 2.262;
const SECOND: Nanos = Nanos::from_secs(1);

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Half the width of the 95 % interval of throughput, as a share of it, at which a window ends;
    /// `None` = at its time.
    pub precision: Option<f64>,
    /// A window of users lasts no longer than this, where throughput does not become known: a trend has no end.
    pub window_at_most: Nanos,
    /// The warm-up lasts no longer than this; each ramp-up no longer than the last quarter of such a
    /// warm-up, in which all users work.
    pub warm_up_at_most: Nanos,
    /// Transactions that caches are filled with at most, where they are.
    pub cached_at_most: u64,
    /// Whether caches are filled before the first phase also where the study does not ask for it, and its warm-up is not cut.
    pub fills_caches: bool,
    /// About how many transactions of all databases stand at most for what is left of a warm-up that was cut.
    pub skipped_at_most: u64,
}

impl Effort {
    /// Windows that end within 1 %: of what demands are fitted to.
    pub const PRECISE: Effort = Effort {
        precision: Some(0.01),
        window_at_most: Nanos(u64::MAX),
        warm_up_at_most: Nanos::from_secs(60),
        cached_at_most: 400_000,
        fills_caches: false,
        skipped_at_most: 0,
    };

    /// Windows that end within 3 %: of studies, whose repeats narrow their answers further.
    pub const OF_STUDIES: Effort = Effort {
        precision: Some(0.03),
        window_at_most: Nanos::from_secs(60),
        warm_up_at_most: Nanos::from_secs(20),
        skipped_at_most: 200_000,
        ..Effort::PRECISE
    };

    /// Every phase as long as the study says.
    pub const FULL_LENGTH: Effort = Effort {
        precision: None,
        window_at_most: Nanos(u64::MAX),
        warm_up_at_most: Nanos(u64::MAX),
        cached_at_most: 2_000_000,
        fills_caches: false,
        skipped_at_most: 0,
    };
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Users rise, before the first rung.
    WarmUp,
    /// The users of a rung work, not measured.
    RampUp,
    /// They are measured.
    Measure,
}

/// A scenario that cannot be simulated.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct LadderError(pub Vec<ScenarioProblem>);

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

/// A second of a run.
#[derive(Clone, Debug)]
pub struct Second {
    /// What the databases did.
    pub run: EngineRun,
    /// For how long requests occupied what each host of a cluster has in this second; empty of single devices.
    pub hosts: Vec<(String, HostUse)>,
}

/// Is given every second of a phase with so many active users; ends the phase by `false`.
pub type Each<'a> = dyn FnMut(Stage, u32, &Second) -> bool + 'a;

/// A run: databases with the users of its largest phase, of whom each rung lets some work.
pub struct Ladder<'a> {
    simulation: Simulation<DesignTarget>,
    background: BackgroundSchedule<'a>,
    procedure: &'a ProcedurePlan,
    effort: Effort,
    /// How long users warm up.
    warm_up: Nanos,
    /// Where the cycle of checkpoints of each database is after the warm-up; none where it is not cut.
    places: Vec<f64>,
    /// The end of the last second.
    now: Nanos,
    /// What the cluster's hosts had been used by the end of the last second.
    used: Vec<(String, HostUse)>,
    /// The databases whose headlines count.
    counted: Vec<usize>,
    has_users: bool,
    jobs: BTreeMap<usize, JobResult>,
}

impl<'a> Ladder<'a> {
    /// A run before its warm-up: the storage had the phase `settle` to itself. Caches begin empty, as those of a server that
    /// has just been started. Where the warm-up is cut, they are filled with transactions until they are about full, and
    /// what is left of it is skipped at its end.
    ///
    /// `scenario` has [`ProcedurePlan::users_at_once`] users. Its background work never begins.
    ///
    /// # Errors
    /// A scenario that cannot be simulated.
    pub fn new(
        on: (DesignTarget, &Scenario),
        procedure: &'a ProcedurePlan,
        effort: Effort,
        seed: RootSeed,
    ) -> Result<Ladder<'a>, LadderError> {
        Ladder::with_background(on, BackgroundSchedule::default(), procedure, effort, seed)
    }

    /// The same with background work that begins when the schedule says.
    ///
    /// # Errors
    /// A scenario that cannot be simulated.
    pub fn with_background(
        (target, scenario): (DesignTarget, &Scenario),
        background: BackgroundSchedule<'a>,
        procedure: &'a ProcedurePlan,
        effort: Effort,
        seed: RootSeed,
    ) -> Result<Ladder<'a>, LadderError> {
        let mut simulation = Simulation::new(scenario, target, seed).map_err(LadderError)?;
        simulation.rest(procedure.settle);
        let used = simulation.target_mut().host_uses();
        let counted = counted(scenario);
        let is_user = |number: &usize| !scenario.databases[*number].workload.is_job();
        let has_users = counted.iter().any(is_user);
        let mut ladder = Ladder {
            simulation,
            background,
            procedure,
            effort,
            warm_up: procedure.warm_up,
            places: Vec::new(),
            now: Nanos::ZERO,
            used,
            counted,
            has_users,
            jobs: BTreeMap::new(),
        };
        let is_timed = ladder.phase_began(FaultPhase::WarmUp, procedure.warm_up_users());
        let to_fill = transactions_to_fill(scenario).min(effort.cached_at_most);
        if procedure.warm_up > effort.warm_up_at_most && !is_timed {
            ladder.warm_up = effort.warm_up_at_most;
            ladder.places = cycle_places(scenario.databases.len(), seed);
            ladder.simulation.warm_by_load(to_fill);
        } else if procedure.cache_warm_up > Nanos::ZERO || effort.fills_caches {
            ladder.simulation.warm_caches(to_fill);
        }
        Ok(ladder)
    }

    /// Lets background work begin that belongs to a phase. Whether the clock begins or ends such work
    /// later, so that the phase has to be as long as the study says.
    fn phase_began(&mut self, phase: FaultPhase, users: u32) -> bool {
        for Beginning { number, after, lasts } in
            self.background.phase_began(phase, users, self.now)
        {
            self.simulation.begin_background(number, after, lasts);
        }
        self.background.is_timed(self.now)
    }

    /// Warms up: users rise, and for the last quarter all of them work, as on a host. Whether `each` let it go on.
    pub fn warm_up(&mut self, each: &mut Each<'_>) -> bool {
        let length = self.warm_up;
        let top = self.procedure.warm_up_users();
        let mut passed = Nanos::ZERO;
        let mut last = LastQuarter::default();
        while passed < length {
            let share = passed.as_secs_f64() / length.as_secs_f64();
            let users = (f64::from(top) * share / 0.75).ceil() as u32;
            self.simulation.set_users(users.clamp(1, top));
            let second = self.second(length.saturating_sub(passed));
            passed = Nanos(passed.0 + second.run.length().0);
            if share >= 0.75 {
                last.add(&second.run);
            }
            if !each(Stage::WarmUp, top, &second) {
                return false;
            }
        }
        self.skip(&last);
        true
    }

    /// Skips the rest of a warm-up that was cut.
    fn skip(&mut self, last: &LastQuarter) {
        let skips = self.places.iter().zip(&last.transactions).map(|(place, transactions)| {
            let rate_per_second = *transactions as f64 / last.length.as_secs_f64();
            let transactions_at_most = self.effort.skipped_at_most / self.places.len() as u64;
            Skip { place: *place, rate_per_second, transactions_at_most }
        });
        let skips: Vec<Skip> = skips.collect();
        self.simulation.skip(&skips);
    }

    /// Lets so many users of each database work, and measures them.
    pub fn rung(&mut self, users: u32, each: &mut Each<'_>) -> Rung {
        let planned = self.procedure.ramp_up;
        let ramp_up = match self.phase_began(FaultPhase::RampUp, users) {
            true => planned,
            false => planned.min(Nanos(self.effort.warm_up_at_most.0 / 4)),
        };
        self.window(users, (ramp_up, self.procedure.measure), each)
    }

    /// The same with a ramp-up and a window of these lengths.
    pub fn window(
        &mut self,
        users: u32,
        (ramp_up, planned): (Nanos, Nanos),
        each: &mut Each<'_>,
    ) -> Rung {
        self.simulation.set_users(users);
        let mut left = ramp_up;
        let mut goes_on = true;
        while goes_on && left > Nanos::ZERO {
            let second = self.second(left);
            left = left.saturating_sub(second.run.length());
            goes_on = each(Stage::RampUp, users, &second);
        }
        let (mut seconds, mut weighted) = (Vec::new(), 0.0);
        let mut measured = Nanos::ZERO;
        let is_timed = self.phase_began(FaultPhase::Measure, users);
        let planned = match self.has_users && !is_timed {
            true => planned.min(self.effort.window_at_most),
            // Jobs end by themselves.
            false => planned,
        };
        let mut is_known = false;
        while goes_on && !is_known && measured < planned {
            let second = self.second(planned.saturating_sub(measured));
            let length = second.run.length();
            let headline: f64 = self.counted.iter().map(|it| second.run.headline(*it)).sum();
            measured = Nanos(measured.0 + length.0);
            weighted += headline * length.as_secs_f64();
            if length == SECOND {
                seconds.push(headline);
            }
            goes_on = each(Stage::Measure, users, &second);
            is_known = self.is_known(&seconds) && !(self.has_users && is_timed);
        }
        Rung {
            measured,
            ended_early: is_known && self.has_users && measured < planned,
            headline: weighted / measured.as_secs_f64().max(f64::MIN_POSITIVE),
            precision: if self.has_users { precision(&seconds) } else { None },
        }
    }

    /// Processor times of the servers are multiplied by `scale` from now on.
    pub fn scale_cpu(&mut self, scale: f64) {
        self.simulation.scale_cpu(scale);
    }

    /// By the number of its database: what a job has come to.
    pub fn jobs(&self) -> &BTreeMap<usize, JobResult> {
        &self.jobs
    }

    /// Whether a window with these seconds need not go on.
    fn is_known(&self, seconds: &[f64]) -> bool {
        if !self.has_users {
            return self.jobs.values().all(|job| job.ended.is_some());
        }
        let is_due = seconds.len().is_multiple_of(BATCHES);
        let known = |limit| precision(seconds).is_some_and(|share| share <= limit);
        is_due && self.effort.precision.is_some_and(known)
    }

    /// The next second, or what is left of a phase.
    fn second(&mut self, left: Nanos) -> Second {
        let window = Window { warm_up: Nanos::ZERO, measure: left.min(SECOND) };
        let run = self.simulation.run(&window);
        self.now = run.until;
        for (number, database) in run.databases.iter().enumerate() {
            if let Some(job) = &database.job {
                self.jobs.entry(number).or_default().add(job);
            }
        }
        let now = self.simulation.target_mut().host_uses();
        let since = |((name, now), (_, then)): (&(String, HostUse), &(String, HostUse))| {
            (name.clone(), now.since(*then))
        };
        let hosts = now.iter().zip(&self.used).map(since).collect();
        self.used = now;
        Second { run, hosts }
    }
}

/// What databases did in the last quarter of the warm-up, in which all users work.
#[derive(Default)]
struct LastQuarter {
    length: Nanos,
    /// Per database.
    transactions: Vec<u64>,
}

impl LastQuarter {
    fn add(&mut self, run: &EngineRun) {
        self.length += run.length();
        self.transactions.resize(run.databases.len(), 0);
        for (sum, database) in self.transactions.iter_mut().zip(&run.databases) {
            *sum += database.types.iter().map(|it| it.committed + it.rolled_back).sum::<u64>();
        }
    }
}

/// Places in the cycle of checkpoints, from a random one on: those of several databases are as far from each other as can
/// be, so that together they are like a whole cycle.
fn cycle_places(databases: usize, seed: RootSeed) -> Vec<f64> {
    let first = seed.child("ladder.cycle", 0).0 as f64 / u64::MAX as f64;
    (0..databases).map(|number| (number as f64 + first) / databases as f64).collect()
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
    use super::precision;

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
