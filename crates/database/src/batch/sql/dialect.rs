//! What texts an engine has. The texts themselves are in the file of each engine.

use underlay_workload::batch::Row;

/// The texts of an engine.
pub(crate) struct Dialect {
    /// Creates the marker.
    pub marker: &'static str,
    /// Reads format, rows, seed, sessions, mode, whether it is undone, and whether it is complete.
    pub describe: &'static str,
    /// The study's table.
    pub table: &'static str,
    /// Settings of every session.
    pub settings: &'static [&'static str],
    /// The parameter with this number in a prepared statement, counted from 1.
    pub placeholder: fn(usize) -> String,
    /// A block that the server carries out: it inserts these rows one after the other, each in a transaction of its own if
    /// the flag is set.
    pub loop_over: fn(&[Row], bool) -> String,
    /// The second of a row's insertion: a whole number, an expression.
    pub second: &'static str,
}
