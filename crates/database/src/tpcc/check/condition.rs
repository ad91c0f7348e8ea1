//! A condition: a query that returns the number of violating rows, and a description of one of them.

use underlay_core::CheckOutcome;

use super::{CheckMoment, CheckResult};

/// One condition.
pub struct Condition {
    /// `c1`, ...
    pub id: &'static str,
    /// What it verifies.
    pub title: &'static str,
    /// The query: number of violating rows, one of them in words.
    pub sql: &'static str,
    /// When it can be stated.
    pub moments: &'static [CheckMoment],
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

/// Of every population.
pub(super) const ALWAYS: &[CheckMoment] = &[CheckMoment::AfterLoad, CheckMoment::AfterRun];
/// Of one that was never used.
pub(super) const AFTER_LOAD: &[CheckMoment] = &[CheckMoment::AfterLoad];

/// Declares an engine's conditions.
macro_rules! conditions {
    ($($id:literal $moments:ident $title:literal: $sql:literal;)+) => {
        /// All conditions, in the order of their report.
        pub const CONDITIONS: &[$crate::tpcc::check::Condition] = &[$(
            $crate::tpcc::check::Condition {
                id: $id,
                title: $title,
                moments: $crate::tpcc::check::condition::$moments,
                sql: $sql,
            },
        )+];
    };
}
pub(crate) use conditions;
