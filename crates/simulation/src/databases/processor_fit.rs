//! What transactions of a published test bed cost its processors: one factor on the default times,
//! fitted to one published number.
//!
//! Nothing is fitted where storage limits throughput below the number, where background work shares
//! it, and where users pause or arrive at a rate: their number says what they ask for, not what
//! processors do. Not here: which number it is, and how a batch insertion is tried; factors on log
//! bytes; and demands that were measured, which need no fit.

use underlay_core::{Nanos, RootSeed};
use underlay_engine::{Load, Scenario};
use underlay_study::Plan;

use super::batch_fit::{fit_batch, rows_of_batch};
use super::fit_point::FitPoint;
use super::ladder::{Effort, Ladder, LadderError};
use super::next_factor::{Found, NEAR, TRIALS, next};
use super::storage::DesignTarget;
use super::{Assumptions, scenario};

/// A trial begins with so much time for its factor to show, and as much that is measured.
const ROUGH: Nanos = Nanos::from_secs(1);
/// This near to the published number, as a share, it goes on: up to this length, or until it is
/// precise.
const GOES_ON: f64 = 0.15;
const TRIAL: Nanos = Nanos::from_secs(30);

/// Processor times of a study with a published number that they can be fitted to.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessorFit {
    /// To what.
    pub point: FitPoint,
    /// `None` where no factor of [`FACTORS`](super::FACTORS) leads there.
    pub found: Option<Found>,
}

impl FitPoint {
    /// The factor at which what is simulated is what is published; `None` where users pause or
    /// arrive at a rate, and beside background work. Nothing is found when `goes_on`, asked after every simulated second, says no.
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
            Ok(made) if !made.background.is_empty() => return Ok(None),
            Ok(made) if rows_of_batch(&made).is_some() => {
                let found = fit_batch(&self, plan, (&made, seed), goes_on)?;
                return Ok(Some(ProcessorFit { point: self, found }));
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
        Ok(Some(ProcessorFit { point: self, found }))
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
    /// The factor with which the published number is simulated.
    fn find(&mut self) -> Option<Found> {
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

/// Multiplies all processor times.
pub fn scale(scenario: &mut Scenario, factor: f64) {
    for database in &mut scenario.databases {
        database.demands.cpu_factor *= factor;
    }
}

#[cfg(test)]
mod tests {
    use super::{Assumptions, FitPoint, Found, ProcessorFit, asks_at_once, scenario};
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

    fn fitted(plan: &Plan) -> Option<ProcessorFit> {
        let point = FitPoint::of(plan).expect("a published number");
        point.fit(plan, &ASSUMED, RootSeed(1), &|| true).expect("simulated")
    }

    fn found(plan: &Plan) -> (FitPoint, Found) {
        let fit = fitted(plan).expect("users ask at once");
        (fit.point, fit.found.expect("processors are the limit"))
    }

    #[test]
    fn processor_times_follow_the_published_number_of_the_most_users() {
        let fit = |value: &str| {
            let published = format!("metric = \"nopm\"\nusers = [2, 8]\nvalues = [1.0, {value}]\n");
            found(&plan("", &published))
        };
        let ((point, slow), (_, fast)) = (fit("15000"), fit("60000"));
        assert_eq!((point.users, point.value), (8, 15000.0));
        assert!((slow.simulated / 15000.0 - 1.0).abs() < 0.04, "{slow:?}");
        assert!((fast.simulated / 60000.0 - 1.0).abs() < 0.04, "{fast:?}");
        assert!(slow.factor > 3.0 * fast.factor, "{slow:?} {fast:?}");
    }

    #[test]
    fn a_number_that_only_an_absurd_processor_gives_is_not_fitted() {
        let plan = plan("", "metric = \"nopm\"\nusers = [8]\nvalues = [300.0]\n");
        let fit = fitted(&plan).expect("users ask at once");
        assert_eq!((fit.point.value, fit.found), (300.0, None));
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
        let fit = fit.expect("simulated").expect("users ask at once");
        assert_eq!((fit.found, asked.get()), (None, 1));
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
        let (point, fit) = found(&plan);
        assert_eq!(plan.designs[point.design].title, "one transaction");
        assert_eq!(point.value, 166_666.7);
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
        let relative =
            plan("", "metric = \"result\"\nunit = \"%\"\nusers = [8]\nvalues = [100.0]\n");
        assert_eq!(FitPoint::of(&relative), None, "a percentage of another run");
    }
}
