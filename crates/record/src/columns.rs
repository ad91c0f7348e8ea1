//! The ticks of one source, turned into columns: one per series.

use underlay_core::series::{SeriesKind, SeriesSpec};

use crate::entities::{Interval, Source};

/// All ticks of one source in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The source as declared last.
    pub source: Source,
    /// The windows in which the values were read, ascending.
    pub ticks: Vec<Interval>,
    /// One per series of the source, in the same order.
    pub columns: Vec<Column>,
}

/// The values of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name, unit and kind.
    pub spec: SeriesSpec,
    /// One raw value per tick; NaN = missing.
    pub values: Vec<f64>,
}

impl Table {
    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.spec.name == name)
    }
}

impl Column {
    /// The increase per tick of a counter: `result[i]` is from tick `i - 1` to tick `i`.
    ///
    /// The first is NaN; so is every one next to a missing value, and every decrease, because a
    /// counter that decreases was reset and how far it had come is unknown. For a gauge the values
    /// themselves are returned.
    pub fn increments(&self) -> Vec<f64> {
        if self.spec.kind == SeriesKind::Gauge {
            return self.values.clone();
        }
        let mut increments = vec![f64::NAN; self.values.len()];
        for (i, pair) in self.values.windows(2).enumerate() {
            let increase = pair[1] - pair[0];
            if increase >= 0.0 {
                increments[i + 1] = increase;
            }
        }
        increments
    }
}

#[cfg(test)]
mod tests {
    use super::Column;
    use underlay_core::series::SeriesSpec;

    #[test]
    fn resets_and_gaps_are_missing_increments() {
        let column = Column {
            spec: SeriesSpec::counter("x", "ios"),
            values: vec![1.0, 4.0, 2.0, 3.0, f64::NAN, 9.0],
        };
        let increments = column.increments();
        assert!(increments[0].is_nan());
        assert_eq!(increments[1], 3.0);
        assert!(increments[2].is_nan(), "a reset");
        assert_eq!(increments[3], 1.0);
        assert!(increments[4].is_nan() && increments[5].is_nan(), "a gap");
    }
}
