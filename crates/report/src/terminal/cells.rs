//! Cells and headings that several tables have.
//!
//! What it deliberately does not do: lay out a table (`text_table`).

use crate::analysis::{Analysis, Basis, Estimate};
use crate::wording::amount;
use crate::workload_view::ALL_REQUESTS;

/// What a design is called.
pub(super) fn title(analysis: &Analysis, design: usize) -> String {
    analysis.designs.get(design).map_or_else(|| "?".to_string(), |design| design.title.clone())
}

/// The interval of a number, marked where it is of a single run; `None` without one.
pub(super) fn interval(estimate: &Estimate) -> Option<String> {
    let (low, high) = (estimate.low?, estimate.high?);
    let mark = if estimate.basis == Basis::WithinRun { " (w)" } else { "" };
    Some(format!("[{}, {}]{mark}", amount(low), amount(high)))
}

/// The heading of the numbers of those at work.
pub(super) fn at_work_column(analysis: &Analysis) -> String {
    if analysis.workload.is_block_load() {
        return "in flight".to_string();
    }
    format!("{}s", at_work(analysis))
}

/// Who loads the database: a job has no users, and a block load asks for blocks.
pub(super) fn at_work(analysis: &Analysis) -> &'static str {
    if analysis.workload.is_block_load() {
        return "request";
    }
    if analysis.workload.is_job { "session" } else { "user" }
}

/// The transaction type that represents the headline.
pub(super) fn main_type(analysis: &Analysis) -> Option<&str> {
    let rows = || analysis.rungs.iter().flat_map(|rung| &rung.latencies);
    if analysis.workload.is_block_load() && rows().any(|row| row.transaction == ALL_REQUESTS) {
        return Some(ALL_REQUESTS);
    }
    let mut rows = rows();
    let counted = &analysis.workload.types;
    rows.find(|row| counted.contains(&row.transaction)).map(|row| row.transaction.as_str())
}
