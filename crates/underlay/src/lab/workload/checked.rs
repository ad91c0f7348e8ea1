//! A check of a workload's data, and what it found, in words. The checks themselves are made in `underlay_database`.

use serde_json::Value;
use underlay_record::CheckOutcome;

/// A check and what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its short identity.
    pub id: String,
    /// What it verifies.
    pub title: String,
    /// What it found.
    pub outcome: CheckOutcome,
    /// More of it, for programs.
    pub detail: Value,
}

impl Checked {
    /// A check that knows only whether something is wrong.
    pub(super) fn simple(id: &str, title: &str, violation: Option<String>) -> Checked {
        let outcome = match violation {
            None => CheckOutcome::Ok,
            Some(example) => CheckOutcome::Violated { rows: 0, example },
        };
        Checked { id: id.to_string(), title: title.to_string(), outcome, detail: Value::Null }
    }

    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.outcome == CheckOutcome::Ok
    }

    /// In one line.
    pub fn describe(&self) -> String {
        let Checked { id, title, outcome, .. } = self;
        match outcome {
            CheckOutcome::Ok => format!("{id} ({title}) holds"),
            // Checks over sums know no row that is wrong.
            CheckOutcome::Violated { rows: 0, example } => {
                format!("{id} ({title}) is violated: {example}")
            }
            CheckOutcome::Violated { rows, example } => {
                format!("{id} ({title}) is violated by {rows} rows, for example {example}")
            }
            CheckOutcome::Failed { error } => {
                format!("{id} ({title}) could not be checked: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Checked;
    use underlay_record::CheckOutcome;

    #[test]
    fn a_check_says_what_it_found() {
        let says = |outcome| {
            let (id, title) = ("c1".to_string(), "sums".to_string());
            Checked { id, title, outcome, detail: serde_json::Value::Null }.describe()
        };
        let example = "warehouse 1".to_string();
        assert_eq!(says(CheckOutcome::Ok), "c1 (sums) holds");
        assert_eq!(
            says(CheckOutcome::Violated { rows: 2, example: example.clone() }),
            "c1 (sums) is violated by 2 rows, for example warehouse 1"
        );
        assert_eq!(
            says(CheckOutcome::Violated { rows: 0, example }),
            "c1 (sums) is violated: warehouse 1"
        );
        assert_eq!(
            says(CheckOutcome::Failed { error: "no table".to_string() }),
            "c1 (sums) could not be checked: no table"
        );
    }
}
