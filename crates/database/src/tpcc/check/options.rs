//! What is checked, when, and how. What is found is in `result`.

use underlay_workload::tpcc::Ledger;

use super::ledger::OrderNumbers;
use super::tables::TableNames;

/// When a check is made: some conditions can be stated only for a population that was never used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMoment {
    /// Directly after the load.
    AfterLoad,
    /// After transactions have run.
    AfterRun,
}

/// What is checked, and how.
#[derive(Clone, Copy)]
pub struct CheckOptions<'a> {
    /// Number of warehouses in the database.
    pub warehouses: u32,
    /// Connections that check at the same time, each some of the warehouses. At least 1.
    pub parallel: usize,
    /// When.
    pub moment: CheckMoment,
    /// What the clients know, and what the order numbers were before they ran.
    pub ledger: Option<(&'a Ledger, &'a OrderNumbers)>,
    /// The names of the tables.
    pub tables: &'a TableNames,
}
