//! A data warehouse, derived from TPC-H: its population, its refresh functions, its 22 queries and their answers.
//!
//! Results are not comparable with published TPC-H results: this is a derived work. It keeps the specification's
//! schema, cardinalities, rules of population, questions and their ranges; it deviates, declared, in the text of
//! comments and addresses (our own words, so rows are not those of the specification's generator), in scale factors
//! below 1, and in refresh sets (orders go in the order of their keys).
//!
//! In reading order: [`Scale`] says how much, [`Population`] makes every row from its key, [`Refreshed`] what refresh
//! functions did, [`Query`] is a question with its values, [`order_of_stream`] is the order of queries in each
//! stream, [`answers`] computes the answers from the rows alone, without SQL. What is deliberately not here: SQL,
//! clocks.

pub mod answers;
mod date;
mod query;
mod refresh;
mod rows;
mod scale;
mod stream;
mod text;
pub mod words;

use underlay_core::Nanos;

use crate::transactional::{Headline, Shape};

pub use date::Day;
pub use query::Query;
pub use refresh::Refreshed;
pub use rows::{
    Customer, Line, Nation, Order, Part, PartSupplier, Population, Region, Supplier,
    retail_price_cents,
};
pub use scale::{REFRESH_SETS, Scale, ScaleError};
pub use stream::order_of_stream;

/// The names of the workload: queries are counted, refresh functions run concurrently.
pub const SHAPE: Shape = Shape {
    name: "warehouse",
    types: &[
        "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14",
        "q15", "q16", "q17", "q18", "q19", "q20", "q21", "q22", "rf1", "rf2",
    ],
    headline: Headline {
        types: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21],
        counted: "queries",
        unit: "queries/h",
        period: Nanos::from_secs(3600),
    },
    notice: NOTICE,
};

/// Queries per hour of one stream, from the geometric mean of the 22 queries and 2 refresh functions of a power run: 3600 s
/// over the mean, times the scale factor (TPC-H specification, clause 5.4.1).
pub fn power_per_hour(scale: Scale, geometric_mean_s: f64) -> f64 {
    3600.0 / geometric_mean_s * scale.factor()
}

/// Queries per hour of `streams` side by side that took `duration_s` together, times the scale factor (clause 5.4.2).
pub fn throughput_per_hour(scale: Scale, streams: u32, duration_s: f64) -> f64 {
    f64::from(streams) * 22.0 * 3600.0 / duration_s * scale.factor()
}

/// One number of both: their geometric mean (clause 5.4.3); the power alone where there was no throughput run.
pub fn composite_per_hour(power: f64, throughput: Option<f64>) -> f64 {
    throughput.map_or(power, |throughput| (power * throughput).sqrt())
}

/// Said with every result.
pub const NOTICE: &str = "Derived from TPC-H: not comparable with published TPC-H results. Deviations: text of \
    comments and addresses, scale factors below 1, order of deletions, ties in answers broken by key.";

#[cfg(test)]
mod tests {
    use super::{SHAPE, Scale, composite_per_hour, power_per_hour, throughput_per_hour};

    #[test]
    fn numbers_per_hour_follow_from_times() {
        let scale = Scale::from_hundredths(50).unwrap();
        let power = power_per_hour(scale, 2.0);
        let throughput = throughput_per_hour(scale, 2, 792.0);
        assert_eq!((power, throughput), (900.0, 100.0));
        assert_eq!(composite_per_hour(power, Some(throughput)), 300.0);
        assert_eq!(composite_per_hour(power, None), 900.0);
        assert_eq!((SHAPE.types.len(), SHAPE.headline.types.len()), (24, 22));
    }
}
