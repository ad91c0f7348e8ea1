//! A recorded workload on other designs, and what the model's error on the measured design means for them.
//!
//! The model is never shown alone: each prediction is corrected by what was measured on the record's own design at the
//! same number of users, next to what is simulated there. Its interval includes the model's error on that design, where it
//! is largest, and the spread of what was measured.

use underlay_core::RootSeed;
use underlay_study::{DesignPlan, Plan};

use super::ladder::{Effort, Ladder, Stage};
use super::mapping::Assumptions;
use super::observation::{Observation, Observing, Range};
use super::offered::{Offer, Offered};
use super::what_if::{Change, NoMeaning, built};

/// Transactions that a rung has to count: by chance alone their rate is off by 5 % then, one in three times by more.
/// Windows of rare transactions have fewer, such as the orders of a web shop that mostly looks at reviews.
const COUNTED_ENOUGH: u64 = 400;
/// Where a run counts next to nothing, more of them would be no answer either.
const REPEATS_AT_MOST: u64 = 16;

/// Why a record's workload cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinglePlanError {
    /// Several databases.
    #[error("it has {0} databases; a workload is predicted for one")]
    Databases(usize),
    /// Axes.
    #[error("it has axes; a workload is predicted without")]
    Axes,
    /// Storage that is not the same all the time.
    #[error(
        "its storage changes (`[[fault]]`); a workload is predicted on storage that stays as it is"
    )]
    Faults,
    /// Work alongside the users.
    #[error("it has background work (`[[background]]`); a workload is predicted without")]
    Background,
}

/// A plan of one database without axes, at the numbers of users of which its load can be repeated.
#[derive(Clone, Copy, Debug)]
pub struct SinglePlan<'a>(&'a Plan);

impl<'a> SinglePlan<'a> {
    /// Takes a plan.
    ///
    /// # Errors
    /// When it has several databases, axes, faults, or background work.
    pub fn new(plan: &'a Plan) -> Result<SinglePlan<'a>, SinglePlanError> {
        match plan.databases.len() {
            _ if !plan.points.is_empty() => Err(SinglePlanError::Axes),
            _ if !plan.faults.is_empty() => Err(SinglePlanError::Faults),
            _ if !plan.background.is_empty() => Err(SinglePlanError::Background),
            1 => Ok(SinglePlan(plan)),
            databases => Err(SinglePlanError::Databases(databases)),
        }
    }

    /// The plan.
    pub fn plan(&self) -> &'a Plan {
        self.0
    }

    /// Simulates a design: what each of its rungs shows, in their order.
    ///
    /// # Errors
    /// Designs and values that cannot be simulated.
    pub fn simulate(
        &self,
        design: &DesignPlan,
        assumed: &Assumptions,
        effort: Effort,
        seed: RootSeed,
    ) -> Result<Vec<Observation>, String> {
        self.observed((design, None), assumed, effort, seed)?.map_err(|NoMeaning(why)| why)
    }

    /// The same of a design with something changed.
    ///
    /// # Errors
    /// Designs and values that cannot be simulated.
    pub fn what_if(
        &self,
        (design, change): (&DesignPlan, Change),
        assumed: &Assumptions,
        effort: Effort,
        seed: RootSeed,
    ) -> Result<Result<Vec<Observation>, NoMeaning>, String> {
        self.observed((design, Some(change)), assumed, effort, seed)
    }

    fn users_at_once(&self) -> u32 {
        self.0.procedure.users_at_once()
    }

    /// Runs with seeds of their own, until each rung has counted enough.
    fn observed(
        &self,
        changed: (&DesignPlan, Option<Change>),
        assumed: &Assumptions,
        effort: Effort,
        seed: RootSeed,
    ) -> Result<Result<Vec<Observation>, NoMeaning>, String> {
        let procedure = &self.0.procedure;
        let mut rungs = vec![Observing::default(); procedure.users.len()];
        let is_enough = |rungs: &[Observing]| rungs.iter().all(|it| it.counted() >= COUNTED_ENOUGH);
        let mut repeat = 0;
        while repeat < REPEATS_AT_MOST && !is_enough(&rungs) {
            let seed = if repeat == 0 { seed } else { seed.child("repeat", repeat) };
            let (target, scenario) =
                match built(self.0, changed, self.users_at_once(), assumed, seed)? {
                    Ok(built) => built,
                    Err(no_meaning) => return Ok(Err(no_meaning)),
                };
            let mut ladder = Ladder::new((target, &scenario), procedure, effort, seed)
                .map_err(|error| error.to_string())?;
            ladder.warm_up(&mut |_, _, _| true);
            for (users, observing) in procedure.users.iter().zip(&mut rungs) {
                ladder.scale_cpu(assumed.cpu_scales.get(users).copied().unwrap_or(1.0));
                ladder.rung(*users, &mut |stage, _, second| {
                    if stage == Stage::Measure {
                        observing.add(&second.run, &scenario);
                    }
                    true
                });
            }
            repeat += 1;
        }
        let observations = procedure.users.iter().zip(&rungs);
        Ok(Ok(observations.map(|(users, observing)| observing.observation(*users)).collect()))
    }

    /// Offers a rate to a design, with so many transactions in service at most.
    ///
    /// # Errors
    /// Designs and values that cannot be simulated.
    pub fn offer(
        &self,
        design: &DesignPlan,
        sessions: u32,
        offer: &Offer,
        assumed: &Assumptions,
        seed: RootSeed,
    ) -> Result<Offered, String> {
        match built(self.0, (design, None), sessions, assumed, seed)? {
            Ok((target, scenario)) => Offered::new(target, scenario, offer, seed)
                .map_err(|error| format!("design `{}`: {error}", design.title)),
            Err(NoMeaning(why)) => Err(why),
        }
    }
}

/// A predicted value with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The value.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The model's error where `own` was simulated and the values `measured` were measured: how far one is from the median of
/// the others, as the logarithm of a factor. 0 without any.
pub fn error_of(own: f64, measured: &[f64]) -> f64 {
    let seen = Range::of(measured.iter().copied()).filter(|seen| seen.value > 0.0 && own > 0.0);
    seen.map_or(0.0, |seen| (seen.value / own).ln().abs())
}

/// The time that is predicted where `simulated` was simulated, if `own` was simulated where the times `measured` were
/// measured; `None` without any. The interval has at least the error `least`, which the model has elsewhere: that it is
/// right at one number of users may be chance.
///
/// The time that the simulation of the measured design lacks, or has too much, is added. Slower storage does not make more of
/// it, so there is not more of it on slower designs; on faster ones it is taken in proportion.
pub fn predicted_time(
    simulated: f64,
    own: f64,
    measured: &[f64],
    least: f64,
) -> Option<Prediction> {
    let seen = Range::of(measured.iter().copied()).filter(|seen| seen.low > 0.0)?;
    if simulated <= 0.0 || own <= 0.0 {
        return None;
    }
    let error = error_of(own, measured).max(least);
    let spread = (seen.high / seen.low).ln() / 2.0;
    let value = simulated + (seen.value - own) * (simulated / own).min(1.0);
    let width = (error + spread).exp();
    Some(Prediction { value, low: value / width, high: value * width })
}

/// The same of rates: by the time between two transactions.
pub fn predicted_rate(
    simulated: f64,
    own: f64,
    measured: &[f64],
    least: f64,
) -> Option<Prediction> {
    if simulated <= 0.0 || own <= 0.0 || measured.iter().any(|rate| *rate <= 0.0) {
        return None;
    }
    let times: Vec<f64> = measured.iter().map(|rate| 1.0 / rate).collect();
    let Prediction { value, low, high } =
        predicted_time(1.0 / simulated, 1.0 / own, &times, least)?;
    Some(Prediction { value: 1.0 / value, low: 1.0 / high, high: 1.0 / low })
}

#[cfg(test)]
mod tests {
    use super::{COUNTED_ENOUGH, Prediction, SinglePlan, error_of, predicted_rate, predicted_time};
    use crate::databases::tests::plan;
    use crate::databases::{Assumptions, Effort};
    use underlay_core::{Nanos, RootSeed};

    fn value(prediction: Option<Prediction>) -> f64 {
        prediction.expect("measured").value
    }

    #[test]
    fn a_prediction_includes_the_simulated_value_and_the_spread() {
        // Measured a quarter more than simulated: so is the prediction of a faster design, and the
        // interval reaches down to the simulated value.
        let prediction = predicted_time(40.0, 80.0, &[100.0], 0.0).expect("measured");
        assert!((prediction.value - 50.0).abs() < 1e-9, "{prediction:?}");
        assert!((prediction.low - 40.0).abs() < 1e-9, "{prediction:?}");
        assert!((prediction.high - 62.5).abs() < 1e-9, "{prediction:?}");
        let wider = predicted_time(40.0, 80.0, &[90.0, 100.0, 110.0], 0.0).expect("measured");
        assert!(wider.low < prediction.low && wider.high > prediction.high, "{wider:?}");
        assert_eq!(predicted_time(100.0, 80.0, &[], 0.0), None);
    }

    #[test]
    fn a_slower_design_has_no_more_of_the_time_that_was_not_simulated() {
        // 20 are not simulated, or 20 too many.
        assert!((value(predicted_time(800.0, 80.0, &[100.0], 0.0)) - 820.0).abs() < 1e-9);
        assert!((value(predicted_time(800.0, 80.0, &[60.0], 0.0)) - 780.0).abs() < 1e-9);
        assert!((value(predicted_time(8.0, 80.0, &[60.0], 0.0)) - 6.0).abs() < 1e-9);
        // The same as rates.
        let rate = value(predicted_rate(1.0 / 800.0, 1.0 / 80.0, &[1.0 / 100.0], 0.0));
        assert!((rate - 1.0 / 820.0).abs() < 1e-9, "{rate}");
        assert_eq!(predicted_rate(1.0, 1.0, &[0.0, 1.0], 0.0), None);
    }

    #[test]
    fn an_interval_includes_the_error_that_the_model_has_elsewhere() {
        let elsewhere = error_of(50.0, &[100.0]);
        assert_eq!(elsewhere, error_of(100.0, &[50.0]), "a factor, whatever its side");
        for predicted in [predicted_time, predicted_rate] {
            let prediction = predicted(100.0, 100.0, &[100.0], elsewhere).expect("measured");
            assert!((prediction.value - 100.0).abs() < 1e-9, "{prediction:?}");
            assert!((prediction.low - 50.0).abs() < 1e-9, "{prediction:?}");
            assert!((prediction.high - 200.0).abs() < 1e-9, "{prediction:?}");
        }
        assert_eq!(error_of(100.0, &[]), 0.0);
    }

    #[test]
    fn a_run_that_counts_little_is_repeated_and_no_other() {
        // What is counted in the windows of one run, and whether it is a whole number: a mean of several is not.
        let of_one_run = |design: &str, seconds: u64| {
            let mut plan = plan(design);
            plan.procedure.measure = Nanos::from_secs(seconds);
            let single = SinglePlan::new(&plan).expect("one database");
            let effort = Effort { precision: None, ..Effort::PRECISE };
            let assumed = Assumptions::defaults(2);
            let seen = single.simulate(&plan.designs[0], &assumed, effort, RootSeed(1));
            let count = seen.expect("a simulation")[0].headline / 60.0 * seconds as f64;
            (count, (count - count.round()).abs() < 1e-6)
        };
        let (many, is_whole) = of_one_run("kingston-nvme", 5);
        assert!(many >= COUNTED_ENOUGH as f64 && is_whole, "{many}");
        let (few, is_whole) = of_one_run("hdd", 1);
        assert!(few > 0.0 && few < COUNTED_ENOUGH as f64 / 2.0 && !is_whole, "{few}");
    }
}
