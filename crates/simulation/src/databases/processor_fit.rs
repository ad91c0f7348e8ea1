//! What transactions of a published test bed cost its processors: one factor on the default times,
//! fitted to one published number.
//!
//! The number is the first that the study has of what its workload counts, at the largest number of
//! users: where processors matter most. Of a batch insertion it is the highest rate, for the same
//! reason. Everything else stays a prediction. Nothing is fitted where storage limits throughput
//! below the number, and where users pause or arrive at a rate: their number says what they ask for,
//! not what processors do. Not here: factors on log bytes; demands that were measured, which need no
//! fit; and other jobs, which read and write more than they compute.

use underlay_core::{Nanos, RootSeed};
use underlay_engine::{Load, Scenario, WorkloadSpec};
use underlay_study::{Plan, PublishedSeries, WorkloadKind};

use super::ladder::{Effort, Ladder, LadderError};
use super::storage::DesignTarget;
use super::{Assumptions, scenario};

/// Words of studies for what the workload counts.
const HEADLINES: [&str; 2] = ["nopm", RATE_OF_JOB];
/// The word for what a job achieves: rows per second of a batch insertion.
const RATE_OF_JOB: &str = "result";
const TRIALS: usize = 8;
/// A trial begins with so much time for its factor to show, and as much that is measured.
const ROUGH: Nanos = Nanos::from_secs(1);
/// This near to the published number, as a share, it goes on: up to this length, or until it is
/// precise.
const GOES_ON: f64 = 0.15;
const TRIAL: Nanos = Nanos::from_secs(30);
/// A trial this near is the fit.
const NEAR: f64 = 0.03;
/// Factors that are believed.
const FACTORS: (f64, f64) = (0.1, 20.0);
/// The factor of the first trials changes by at most this.
const STEP: f64 = 4.0;
/// Throughput that changes less than this power of the processor times is not theirs.
const LEAST_ELASTICITY: f64 = 0.1;

/// The published number that processor times are fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct FitPoint {
    /// Its design, by position in the plan.
    pub design: usize,
    /// Users, those of each database.
    pub users: u32,
    /// The number, in the unit of the workload.
    pub value: f64,
}

/// Processor times that were fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorFit {
    /// On the default times.
    pub factor: f64,
    /// To what.
    pub point: FitPoint,
    /// What is simulated there.
    pub simulated: f64,
}

impl FitPoint {
    /// That of a study at the size of its publication; `None` where nothing suitable is published.
    pub fn of(plan: &Plan) -> Option<FitPoint> {
        if plan.scale.divisor != 1 {
            return None;
        }
        match plan.workload.kind {
            WorkloadKind::Batch(_) => FitPoint::of_batch(plan),
            _ => FitPoint::of_users(plan),
        }
    }

    fn of_users(plan: &Plan) -> Option<FitPoint> {
        let series = plan.published.iter().find(|series| {
            let is_headline = HEADLINES.contains(&series.metric.as_str());
            is_headline && series.unit.is_empty() && series.database.is_empty()
        })?;
        let design = design_of(plan, series)?;
        let printed = series.users.iter().zip(&series.values);
        let (users, value) = printed.max_by_key(|(users, _)| **users)?;
        let point = plan.plans()[plan.point_of(design)];
        let is_rung = point.procedure.users.contains(users);
        is_rung.then_some(FitPoint { design, users: *users, value: value * series.factor })
    }

    /// The highest rate, where the least time goes by in waiting for storage.
    fn of_batch(plan: &Plan) -> Option<FitPoint> {
        let rates = plan.published.iter().filter(|series| series.metric == RATE_OF_JOB);
        let rates =
            rates.filter_map(|series| Some((series, series.values.first()? * series.factor)));
        let (series, value) = rates.max_by(|one, other| one.1.total_cmp(&other.1))?;
        let design = design_of(plan, series)?;
        let point = plan.plans()[plan.point_of(design)];
        Some(FitPoint { design, users: point.procedure.users_at_once(), value })
    }

    /// The factor at which what is simulated is what is published; `None` where throughput does not
    /// depend on processor times, and when `goes_on`, asked after every simulated second, says no.
    ///
    /// # Errors
    /// A study that cannot be simulated.
    pub fn fit(
        self,
        plan: &Plan,
        assumed: &Assumptions,
        seed: RootSeed,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<ProcessorFit>, LadderError> {
        let point = plan.plans()[plan.point_of(self.design)];
        let design = &point.designs[self.design];
        let made = match scenario(point, design, self.users, assumed) {
            Ok(made) if rows_of_batch(&made).is_some() => {
                return self.fit_batch(plan, &made, seed, goes_on);
            }
            Ok(made) if asks_at_once(&made) => made,
            // Studies that cannot be simulated are reported by the caller.
            Ok(_) | Err(_) => return Ok(None),
        };
        let Ok(target) = DesignTarget::in_study(point, self.design, seed.child("storage", 0))
        else {
            return Ok(None);
        };
        let mut procedure = point.procedure.clone();
        // Nothing but its rung, whose users the warm-up rises to.
        procedure.users = vec![self.users];
        procedure.warm_up_to = None;
        // Caches are filled once: trials follow each other on the same databases.
        let ladder = Ladder::new((target, &made), &procedure, Effort::OF_STUDIES, seed)?;
        let longest = procedure.measure;
        let found = Trials { ladder, point: &self, longest, goes_on }.find();
        Ok(found.map(|(factor, simulated)| ProcessorFit { factor, point: self, simulated }))
    }

    /// The same for a batch insertion, which each trial simulates from its beginning to its end.
    fn fit_batch(
        self,
        plan: &Plan,
        scenario: &Scenario,
        seed: RootSeed,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<ProcessorFit>, LadderError> {
        let (mut factor, mut trials) = (1.0, Vec::new());
        while trials.len() < TRIALS {
            let mut scenario = scenario.clone();
            scale(&mut scenario, factor);
            let Some(rate) = self.rate_of_batch(plan, &scenario, seed, goes_on)? else {
                return Ok(None);
            };
            trials.push((factor, rate));
            if self.off(rate) <= NEAR {
                break;
            }
            let Some(next) = next(self.value, &trials) else { return Ok(None) };
            factor = next;
        }
        let nearest = self.nearest(&trials);
        Ok(nearest.map(|(factor, simulated)| ProcessorFit { factor, point: self, simulated }))
    }

    /// Rows per second; `None` when it did not end.
    fn rate_of_batch(
        &self,
        plan: &Plan,
        scenario: &Scenario,
        seed: RootSeed,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<f64>, LadderError> {
        let point = plan.plans()[plan.point_of(self.design)];
        let Ok(target) = DesignTarget::in_study(point, self.design, seed.child("storage", 0))
        else {
            return Ok(None);
        };
        let mut ladder =
            Ladder::new((target, scenario), &point.procedure, Effort::OF_STUDIES, seed)?;
        ladder.rung(self.users, &mut |_, _, _| goes_on());
        let took = ladder.jobs().values().next().and_then(|job| job.ended);
        let rate = |(rows, took): (u32, Nanos)| f64::from(rows) / took.as_secs_f64();
        Ok(rows_of_batch(scenario).zip(took).map(rate))
    }

    /// How far from the published number, as a logarithm.
    fn off(&self, simulated: f64) -> f64 {
        (self.value / simulated).ln().abs()
    }

    fn nearest(&self, trials: &[(f64, f64)]) -> Option<(f64, f64)> {
        let off = |trial: &&(f64, f64)| self.off(trial.1);
        trials.iter().min_by(|one, other| off(one).total_cmp(&off(other))).copied()
    }
}

/// The number of the design in the plan, at its point of the axes.
fn design_of(plan: &Plan, series: &PublishedSeries) -> Option<usize> {
    plan.designs.iter().position(|design| match &design.variant {
        None => design.name == series.design,
        Some(variant) => {
            let points = plan.axes.iter().zip(&variant.coordinates);
            let at = points.map(|(axis, point)| (&axis.name, &axis.points[*point].name));
            variant.design == series.design
                && series.at.iter().map(|(axis, point)| (axis, point)).eq(at)
        }
    })
}

/// Rows of a batch insertion that a scenario consists of.
fn rows_of_batch(scenario: &Scenario) -> Option<u32> {
    match scenario.databases.as_slice() {
        [only] => match &only.workload {
            WorkloadSpec::Batch(batch) => Some(batch.rows),
            _ => None,
        },
        _ => None,
    }
}

/// Trials of one point, one after the other.
struct Trials<'a> {
    ladder: Ladder<'a>,
    point: &'a FitPoint,
    /// The longest window.
    longest: Nanos,
    goes_on: &'a dyn Fn() -> bool,
}

impl Trials<'_> {
    /// The factor with which the published number is simulated, and what was simulated.
    fn find(&mut self) -> Option<(f64, f64)> {
        // Roughly before the warm-up, so that it has about the published load: with the default
        // times users may do several times as much, which takes as much longer to simulate.
        let mut factor = 1.0;
        let mut rough = Vec::new();
        while rough.len() < TRIALS {
            let simulated = self.window(factor, ROUGH, ROUGH)?;
            rough.push((factor, simulated));
            if self.point.off(simulated) <= GOES_ON {
                break;
            }
            factor = next(self.point.value, &rough)?;
        }
        self.ladder.scale_cpu(factor);
        let goes_on = self.goes_on;
        if !self.ladder.warm_up(&mut |_, _, _| goes_on()) {
            return None;
        }
        let mut trials = Vec::new();
        while trials.len() < TRIALS {
            let mut simulated = self.window(factor, ROUGH, ROUGH)?;
            if self.point.off(simulated) <= GOES_ON {
                simulated = self.window(factor, Nanos::ZERO, TRIAL)?;
            }
            trials.push((factor, simulated));
            if self.point.off(simulated) <= NEAR {
                break;
            }
            factor = next(self.point.value, &trials)?;
        }
        self.point.nearest(&trials)
    }

    /// What is simulated with a factor, in a window no longer than the study's.
    fn window(&mut self, factor: f64, settling: Nanos, measure: Nanos) -> Option<f64> {
        self.ladder.scale_cpu(factor);
        let (window, goes_on) = ((settling, self.longest.min(measure)), self.goes_on);
        let rung = self.ladder.window(self.point.users, window, &mut |_, _, _| goes_on());
        Some(rung.headline).filter(|headline| *headline > 0.0 && goes_on())
    }
}

/// Whether there are users, and all ask again as soon as they are answered. Jobs beside them do not matter.
fn asks_at_once(scenario: &Scenario) -> bool {
    let mut loads = scenario.databases.iter().map(|database| &database.load);
    let has_users = loads.clone().any(|load| !matches!(load, Load::Job { .. }));
    let at_once = |load: &Load| match load {
        Load::Closed { pacing, .. } => *pacing == 0.0,
        Load::Open { .. } => false,
        Load::Job { .. } => true,
    };
    has_users && loads.all(at_once)
}

/// The factor to try after these, or `None` where throughput does not come to the number by processor times.
///
/// Throughput falls as the factor rises, but may not do so where storage is the limit.
fn next(wanted: f64, trials: &[(f64, f64)]) -> Option<f64> {
    let last_that = |is_too_fast: bool| {
        trials.iter().rev().find(|(_, value)| (*value > wanted) == is_too_fast).copied()
    };
    let next = match (last_that(true), last_that(false)) {
        // Where it is too slow, processors are the limit, and throughput is about the inverse of their times.
        (Some((fast, _)), Some((slow, below))) => match slow * below / wanted {
            factor if factor > fast => factor,
            _ => (fast * slow).sqrt(),
        },
        _ => beyond(wanted, trials)?,
    };
    let next = next.clamp(FACTORS.0, FACTORS.1);
    (next != trials.last()?.0).then_some(next)
}

/// The factor to try where all were too slow, or all too fast.
fn beyond(wanted: f64, trials: &[(f64, f64)]) -> Option<f64> {
    let &(factor, simulated) = trials.last()?;
    let bounded = |step: f64| Some(factor * step.clamp(1.0 / STEP, STEP));
    // As its inverse, until two trials have shown it.
    let Some((other, before)) = trials.iter().rev().nth(1) else {
        return bounded(simulated / wanted);
    };
    let elasticity = (simulated / before).ln() / (factor / other).ln();
    if elasticity < -LEAST_ELASTICITY {
        return bounded((wanted / simulated).powf(1.0 / elasticity));
    }
    // Slower processors become the limit at last, faster ones do not.
    if simulated > wanted { bounded(STEP) } else { None }
}

/// Multiplies all processor times.
pub fn scale(scenario: &mut Scenario, factor: f64) {
    for database in &mut scenario.databases {
        database.demands.cpu_factor *= factor;
    }
}

#[cfg(test)]
mod tests {
    use super::{Assumptions, FitPoint, asks_at_once, scenario};
    use underlay_core::RootSeed;
    use underlay_study::{HostView, Plan, PlanOptions, Source, check, find_study};

    const ASSUMED: Assumptions = Assumptions::defaults(2);

    fn plan(pacing: &str, published: &str) -> Plan {
        let text = format!(
            "name = \"s\"\nquestion = \"What?\"\n[engine]\ncpus = 1\nmemory-limit = \"512MiB\"\n\
             [volumes]\ndata = {{ capacity = \"2GiB\" }}\nwal = {{ capacity = \"2GiB\" }}\n\
             backup = {{ capacity = \"1GiB\" }}\n[[design]]\nuse = \"kingston-nvme\"\n\
             name = \"nvme\"\n[workload.tpcc]\nwarehouses = 2\n{pacing}[procedure]\nusers = [2, 8]\n\
             warm-up = \"1s\"\nramp-up = \"1s\"\nmeasure = \"10s\"\n\
             [[published]]\ndesign = \"nvme\"\nsource = \"a paper\"\n{published}"
        );
        checked(&Source { name: "s.toml".to_string(), text })
    }

    fn checked(source: &Source) -> Plan {
        let checked = check(source, &PlanOptions::default(), &HostView::unlimited());
        checked.unwrap_or_else(|problems| panic!("{}", problems.to_json())).1
    }

    fn fitted(plan: &Plan) -> Option<super::ProcessorFit> {
        let point = FitPoint::of(plan).expect("a published number");
        point.fit(plan, &ASSUMED, RootSeed(1), &|| true).expect("simulated")
    }

    #[test]
    fn processor_times_follow_the_published_number_of_the_most_users() {
        let fit = |value: &str| {
            let published = format!("metric = \"nopm\"\nusers = [2, 8]\nvalues = [1.0, {value}]\n");
            fitted(&plan("", &published)).expect("one processor is the limit")
        };
        let (slow, fast) = (fit("4000"), fit("16000"));
        assert_eq!((slow.point.users, slow.point.value), (8, 4000.0));
        assert!((slow.simulated / 4000.0 - 1.0).abs() < 0.04, "{slow:?}");
        assert!((fast.simulated / 16000.0 - 1.0).abs() < 0.04, "{fast:?}");
        assert!(slow.factor > 3.0 * fast.factor, "{slow:?} {fast:?}");
    }

    /// Storage carries 400 per second, processors 1,200 over the factor.
    #[test]
    fn processors_are_slowed_until_they_are_the_limit() {
        let fitted = |wanted: f64| {
            let mut trials = vec![(1.0_f64, 400.0_f64)];
            while trials.len() < super::TRIALS {
                let factor = super::next(wanted, &trials)?;
                trials.push((factor, (1200.0 / factor).min(400.0)));
                if (wanted / trials.last()?.1).ln().abs() <= super::NEAR {
                    return trials.last().map(|(factor, _)| *factor);
                }
            }
            panic!("no end: {trials:?}")
        };
        for wanted in [300.0, 385.0, 100.0] {
            let factor = fitted(wanted).expect("it is reached");
            assert!((factor * wanted / 1200.0 - 1.0).abs() < 0.04, "{wanted}: {factor}");
        }
        assert_eq!(fitted(500.0), None, "faster processors do not help");
    }

    #[test]
    fn a_fit_that_is_to_stop_simulates_one_more_second() {
        let plan = plan("", "metric = \"nopm\"\nusers = [8]\nvalues = [4000.0]\n");
        let asked = std::cell::Cell::new(0);
        let stops = || {
            asked.set(asked.get() + 1);
            false
        };
        let point = FitPoint::of(&plan).expect("a published number");
        let fit = point.fit(&plan, &ASSUMED, RootSeed(1), &stops);
        assert_eq!((fit.expect("simulated"), asked.get()), (None, 1));
    }

    #[test]
    fn jobs_beside_users_do_not_matter_and_jobs_alone_have_nobody_who_asks() {
        let asks = |study: &str| {
            let plan = checked(&find_study(study).expect("built in").source());
            // The last design has backups in both.
            let number = plan.designs.len() - 1;
            let point = plan.plans()[plan.point_of(number)];
            let made = scenario(point, &point.designs[number], 89, &ASSUMED).expect("a scenario");
            assert!(made.databases.iter().any(|it| it.workload.is_job()), "{study}");
            asks_at_once(&made)
        };
        assert_eq!((asks("kingston/k5-backups"), asks("kingston/k4")), (true, false));
    }

    #[test]
    fn a_batch_follows_the_highest_published_rate() {
        let text = include_str!("../../../study/builtin/studies/vmware/v6.toml");
        let few_rows = text.replace("rows = 1_000_000", "rows = 100_000");
        let plan = checked(&Source { name: "v6.toml".to_string(), text: few_rows });
        let fit = fitted(&plan).expect("processors are the limit of one transaction");
        assert_eq!(plan.designs[fit.point.design].title, "one transaction");
        assert_eq!(fit.point.value, 166_666.7);
        assert!((fit.simulated / 166_666.7 - 1.0).abs() < 0.04, "{fit:?}");
        // The highest rate counts, whichever point it is of.
        let slowest = text.replace("values = [166666.7]", "values = [1.0]");
        let plan = checked(&Source { name: "v6.toml".to_string(), text: slowest });
        let of = FitPoint::of(&plan).expect("a published number");
        assert_eq!(plan.designs[of.design].title, "one copy");
    }

    #[test]
    fn users_that_think_leave_nothing_to_fit() {
        let published = "metric = \"nopm\"\nusers = [8]\nvalues = [5000.0]\n";
        let thinks = plan("pacing.closed = { key-think = 0.02 }\n", published);
        assert_eq!(fitted(&thinks), None);
        let fewer = "metric = \"nopm\"\nusers = [8]\nvalues = [100.0]\n";
        assert_eq!(fitted(&plan("pacing.closed = { key-think = 0.02 }\n", fewer)), None);
        let others = plan("", "metric = \"p95\"\nunit = \"ms\"\nusers = [8]\nvalues = [50.0]\n");
        assert_eq!(FitPoint::of(&others), None, "no throughput is published");
    }
}
