//! What texts an engine has. The texts themselves are in the file of each engine.

use crate::connection::Sql;

/// The texts of an engine.
pub(crate) struct Dialect {
    /// The tables, without the keys that follow the rows.
    pub schema: &'static str,
    /// Keys and indexes, one statement per line that ends with a semicolon.
    pub keys: &'static str,
    /// The five transactions as functions or procedures.
    pub procedures: &'static str,
    /// Creates the marker.
    pub marker: &'static str,
    /// Settings of a session.
    pub settings: &'static [&'static str],
    /// The statements of [`Dialect::schema`] or [`Dialect::procedures`].
    pub definitions: fn(&str) -> Vec<String>,
    /// The calls of the transactions, each one round trip.
    pub calls: Calls<Sql<'static>>,
    /// New-Order with lines that the database draws.
    pub drawn_new_order: Sql<'static>,
}

/// One of something for each transaction.
pub(crate) struct Calls<T> {
    pub new_order: T,
    pub payment: T,
    pub order_status: T,
    pub delivery: T,
    pub stock_level: T,
}
