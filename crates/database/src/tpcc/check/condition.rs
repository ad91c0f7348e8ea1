//! A condition: a query that returns the number of violating rows, and a description of one of them. Which conditions there
//! are is in `conditions`.

use underlay_core::CheckOutcome;

use super::{CheckMoment, CheckResult};
use crate::connection::{Cells, RequestError};

/// One condition.
pub(super) struct Condition {
    /// `c1`, ...
    pub id: &'static str,
    /// What it verifies.
    pub title: &'static str,
    /// When it can be stated.
    pub moments: &'static [CheckMoment],
    /// The query: number of violating rows, one of them in words.
    pub sql: &'static str,
}

impl Condition {
    /// Whether it can be stated at this moment.
    pub fn applies(&self, moment: CheckMoment) -> bool {
        self.moments.contains(&moment)
    }

    /// Whether it reads this temporary table.
    pub fn reads(&self, table: &str) -> bool {
        self.sql.contains(table)
    }

    /// It with an outcome.
    pub fn result(&self, outcome: CheckOutcome) -> CheckResult {
        CheckResult { id: self.id, title: self.title, outcome }
    }
}

/// What the answer to a condition's query, or the server's error, says of it.
pub(super) fn outcome(answer: Result<Vec<Cells>, RequestError>) -> CheckOutcome {
    let row = match answer {
        Ok(rows) => rows.into_iter().next(),
        Err(error) => return CheckOutcome::Failed { error: error.message().to_string() },
    };
    let mut cells = row.into_iter().flatten();
    match cells.next().flatten().and_then(|count| count.parse().ok()) {
        Some(0) => CheckOutcome::Ok,
        Some(rows) => CheckOutcome::Violated {
            rows,
            example: cells.next().flatten().unwrap_or_else(|| "a row of nulls".to_string()),
        },
        None => CheckOutcome::Failed { error: "the query has no answer".to_string() },
    }
}

#[cfg(test)]
mod tests {
    use underlay_core::CheckOutcome;

    use super::outcome;

    #[test]
    fn a_count_of_rows_and_one_of_them_is_an_outcome() {
        let cells = |cells: &[Option<&str>]| {
            Ok(vec![cells.iter().map(|cell| cell.map(str::to_string)).collect()])
        };
        let violated = |rows, example: &str| {
            let example = example.to_string();
            CheckOutcome::Violated { rows, example }
        };
        assert_eq!(outcome(cells(&[Some("0"), None])), CheckOutcome::Ok);
        assert_eq!(outcome(cells(&[Some("2"), Some("row 1")])), violated(2, "row 1"));
        assert_eq!(outcome(cells(&[Some("1"), None])), violated(1, "a row of nulls"));
        assert!(matches!(outcome(Ok(Vec::new())), CheckOutcome::Failed { .. }));
    }
}
