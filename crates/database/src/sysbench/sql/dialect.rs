//! What texts an engine has. The texts themselves are in the file of each engine.

use crate::connection::Sql;
use crate::sysbench::statement::Kind;

/// The texts of an engine. `#` stands for the number of a table, `{table}` for its name.
pub(crate) struct Dialect {
    /// A table as `sysbench` creates it.
    pub table: &'static str,
    /// Its keys that are created after the rows.
    pub keys: &'static str,
    /// Lets the next inserted row have the id after `{rows}`, where the server does not see to it.
    pub sequence: Option<&'static str>,
    /// Creates the marker.
    pub marker: &'static str,
    /// Reads number of tables, and whether Underlay created the database.
    pub tables_of_marker: &'static str,
    /// Reads format, number of tables, rows of each, seed, distribution, and whether the load is complete.
    pub describe: &'static str,
    /// Settings of a session; part of the workload's identity.
    pub settings: &'static [&'static str],
    /// The statements of transactions.
    pub statement: fn(Kind) -> Sql<'static>,
    /// How a bulk insert has its rows.
    pub bulk: Bulk,
    /// Creates an empty table for bulk inserts; `{comment}` says that Underlay created it.
    pub bulk_table: &'static [&'static str],
    /// Names of tables for bulk inserts with `{comment}`.
    pub bulk_of_ours: &'static str,
    /// Names of such tables without it, in order.
    pub bulk_of_others: &'static str,
    /// Names of visible tables `sbtest<number>` and their columns, in the order of the tables.
    pub columns: &'static str,
    /// Rows and the sum of `k`.
    pub tally: &'static str,
    /// Rows with texts of another form, and the first such id.
    pub texts: &'static str,
    /// Rows by the index on `k`.
    pub by_index: Count,
    /// Rows by the table itself.
    pub by_table: Count,
}

/// How a bulk insert has its rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bulk {
    /// As an array of ids.
    Array,
    /// Written behind the text of the statement.
    Written,
}

/// Counts rows in a certain way.
pub(crate) struct Count {
    /// Settings for this statement, in a transaction that is rolled back.
    pub settings: &'static str,
    /// The statement.
    pub sql: &'static str,
}
