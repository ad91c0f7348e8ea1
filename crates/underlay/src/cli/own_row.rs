//! The record's own design, measured and simulated, and how far the model is off there: shared by `predict` and `size`.
//! Predicts nothing.

use underlay_core::Nanos;
use underlay_simulation::databases::{Observation, error_of};

/// The record's own design at a number of users.
pub struct OwnRow {
    pub users: u32,
    pub measured: Vec<Observation>,
    pub simulated: Observation,
}

/// The largest errors of the model on the record's own design, as logarithms of factors.
#[derive(Clone, Copy)]
pub struct ModelErrors {
    pub headline: f64,
    pub p95: f64,
}

impl ModelErrors {
    pub fn of(rows: &[OwnRow]) -> ModelErrors {
        let headlines = rows.iter().map(|row| error_of(row.simulated.headline, &row.headlines()));
        let p95s =
            rows.iter().filter_map(|row| Some(error_of(p95_ns(&row.simulated)?, &row.p95s())));
        ModelErrors { headline: headlines.fold(0.0, f64::max), p95: p95s.fold(0.0, f64::max) }
    }
}

impl OwnRow {
    /// Those of a simulation beside what was measured at the same users.
    pub fn all(simulated: Vec<Observation>, measured: &[Observation]) -> Vec<OwnRow> {
        let row = |simulated: Observation| {
            let at = |window: &&Observation| window.users == simulated.users;
            let measured = measured.iter().filter(at).cloned().collect();
            OwnRow { users: simulated.users, measured, simulated }
        };
        simulated.into_iter().map(row).collect()
    }

    pub fn headlines(&self) -> Vec<f64> {
        self.measured.iter().map(|it| it.headline).collect()
    }

    pub fn p95s(&self) -> Vec<f64> {
        self.measured.iter().filter_map(p95_ns).collect()
    }
}

/// Median, least and greatest of what was measured.
pub fn range(row: &OwnRow, of: impl Fn(&Observation) -> Option<f64>) -> Option<[f64; 3]> {
    let range = underlay_simulation::databases::Range::of(row.measured.iter().filter_map(of))?;
    Some([range.value, range.low, range.high])
}

pub fn p95_ns(observation: &Observation) -> Option<f64> {
    observation.p95.map(|Nanos(ns)| ns as f64)
}
