//! A latency target and how long it is looked at: options shared by `predict --slo` and `size`.

use crate::cli::complaints::Complaints;
use crate::cli::whole_number::whole_number;
use clap::Args;
use underlay_core::Nanos;
use underlay_simulation::databases::Target;
use underlay_workload::objective::Objective;
use underlay_workload::transactional::Shape;

/// Of a search: how near the highest rate that holds and the lowest that fails come.
const RESOLUTION: f64 = 0.05;
/// Virtual time at each rate, as `[procedure.search]` of a study has it.
const SETTLE: Nanos = Nanos::from_secs(5);
const MEASURE: Nanos = Nanos::from_secs(20);
/// Below it there are no ten batches of a second.
const MEASURE_LEAST: Nanos = Nanos::from_secs(10);
const TIME_MOST: Nanos = Nanos::from_secs(3_600);
const SESSIONS_MOST: u64 = 100_000;

/// The options.
#[derive(Clone, Debug, Args)]
pub struct TargetOptions {
    /// With --slo: the largest number of transactions in service. Others wait, which counts as
    /// response time.
    #[arg(long, value_name = "N", value_parser = whole_number, requires = "slo")]
    sessions: Option<u64>,
    /// With --slo: virtual time that is measured at each rate, up to four times as long if undecided
    /// [default: 20s].
    #[arg(long, value_name = "TIME", requires = "slo")]
    measure: Option<Nanos>,
    /// With --slo: unmeasured time before it [default: 5s].
    #[arg(long, value_name = "TIME", requires = "slo")]
    settle: Option<Nanos>,
    /// With --slo: a search ends when the lowest rate that fails is at most this much above the
    /// highest that holds [default: 5%].
    #[arg(long, value_name = "PERCENT", value_parser = percent, requires = "slo")]
    resolution: Option<f64>,
}

impl TargetOptions {
    /// Notes every value that is out of range.
    pub fn check(&self, complaints: &mut Complaints) {
        if self.sessions.is_some_and(|sessions| !(1..=SESSIONS_MOST).contains(&sessions)) {
            complaints.add(format!("--sessions must lie in 1 to {SESSIONS_MOST}"));
        }
        if self.measure.is_some_and(|time| !(MEASURE_LEAST..=TIME_MOST).contains(&time)) {
            complaints.add(format!(
                "--measure must lie in {MEASURE_LEAST} to {TIME_MOST}: ten parts of it are compared"
            ));
        }
        if self.settle.is_some_and(|time| time > TIME_MOST) {
            complaints.add(format!("--settle must not exceed {TIME_MOST}"));
        }
        if self.resolution.is_some_and(|share| !(0.005..=1.0).contains(&share)) {
            complaints.add("--resolution must lie in 0.5% to 100%");
        }
    }

    /// The target; `sessions` is how many there are by default.
    pub fn target(&self, objective: Objective, sessions: u32, cached_at_most: u64) -> Target {
        Target {
            objective,
            sessions: self.sessions.and_then(|it| u32::try_from(it).ok()).unwrap_or(sessions),
            settle: self.settle.unwrap_or(SETTLE),
            measure: self.measure.unwrap_or(MEASURE),
            resolution: self.resolution.unwrap_or(RESOLUTION),
            cached_at_most,
        }
    }
}

/// The transactions that a target is about: those that the headline counts.
pub fn main_transactions(shape: &Shape) -> String {
    let names: Vec<&str> = shape.headline.types.iter().map(|kind| shape.types[*kind]).collect();
    names.join(", ")
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let share = number.filter(|percent| percent.is_finite()).map(|percent| percent / 100.0);
    share.ok_or_else(|| "write a percentage such as `5%`".to_string())
}

#[cfg(test)]
mod tests {
    use super::{main_transactions, percent};
    use underlay_workload::tpcc;

    #[test]
    fn a_resolution_is_a_percentage() {
        assert_eq!(percent("5%"), Ok(0.05));
        assert_eq!(percent("2.5 %"), Ok(0.025));
        for wrong in ["5", "%", "NaN%", "inf%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_target_of_tpcc_is_about_new_orders() {
        assert_eq!(main_transactions(&tpcc::SHAPE), "new_order");
    }
}
