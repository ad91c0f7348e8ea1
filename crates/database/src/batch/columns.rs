//! The columns of the table in the order of the generator: number, texts, bytes. What is in them is the workload's.

use underlay_workload::batch::TEXT_COLUMNS;

/// How many there are.
pub(super) const COLUMNS: usize = TEXT_COLUMNS.len() + 2;
/// The last one, of bytes.
pub(super) const BYTES_COLUMN: &str = "checkord";

/// Their names, separated by commas.
pub(super) fn columns() -> String {
    let texts = TEXT_COLUMNS.map(|(name, _)| name).join(", ");
    format!("rec_num, {texts}, {BYTES_COLUMN}")
}
