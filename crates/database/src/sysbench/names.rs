//! The names of tables for bulk inserts, and texts with the number of their table. Which tables there are is not known here.

/// The comment on a table for bulk inserts, which distinguishes it from foreign tables.
pub(crate) const BULK_COMMENT: &str = "made by underlay for bulk inserts";

/// The names of the tables for bulk inserts of so many users.
pub(crate) fn bulk_tables(users: u32) -> Vec<String> {
    (1..=users).map(|user| format!("sbtest_bulk{user}")).collect()
}

/// A text with the number of its table.
pub(crate) fn numbered(sql: &str, table: u32) -> String {
    sql.replace('#', &table.to_string())
}
