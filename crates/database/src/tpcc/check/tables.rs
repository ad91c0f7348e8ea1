//! The names of the nine tables: a parameter of the checks, so that a database that another tool loaded can
//! be judged.

use crate::Engine;
use crate::dispatch::with_engine;
use crate::schema_ownership::WorkloadTables;
use crate::schema_ownership::state::SchemaOwner;

/// The names of the nine tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableNames {
    names: Vec<(&'static str, String)>,
}

const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "orders",
    "new_order",
    "order_line",
    "stock",
    "item",
];

impl TableNames {
    /// The names that Underlay uses on PostgreSQL.
    pub fn underlay() -> TableNames {
        TableNames::of(Engine::Postgresql)
    }

    /// The names that Underlay uses: in a schema of their own, or in the database that the session is in,
    /// which is MariaDB's schema.
    pub fn of(engine: Engine) -> TableNames {
        let ours = WorkloadTables::Tpcc;
        with_engine!(engine, C => TableNames::mapped(|table| C::table(ours, table)))
    }

    /// Other names: `name` is asked for each of `warehouse`, `district`, `customer`, `history`, `orders`,
    /// `new_order`, `order_line`, `stock`, `item`.
    pub fn mapped(name: impl Fn(&str) -> String) -> TableNames {
        TableNames { names: TABLES.iter().map(|table| (*table, name(table))).collect() }
    }

    /// A text with each `{table}` replaced by its name.
    pub(crate) fn insert_into(&self, sql: &str) -> String {
        self.names
            .iter()
            .fold(sql.to_string(), |sql, (table, name)| sql.replace(&format!("{{{table}}}"), name))
    }
}
