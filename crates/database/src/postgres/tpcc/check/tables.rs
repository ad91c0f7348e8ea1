//! The names of the nine tables: a parameter of the checks, so that a database that another tool loaded can
//! be judged.

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
    /// The names that Underlay uses.
    pub fn underlay() -> TableNames {
        TableNames::mapped(|table| format!("tpcc.{table}"))
    }

    /// Other names: `name` is asked for each of `warehouse`, `district`, `customer`, `history`, `orders`,
    /// `new_order`, `order_line`, `stock`, `item`.
    pub fn mapped(name: impl Fn(&str) -> String) -> TableNames {
        TableNames { names: TABLES.iter().map(|table| (*table, name(table))).collect() }
    }

    /// A text with each `{table}` replaced by its name.
    pub(super) fn insert_into(&self, sql: &str) -> String {
        self.names
            .iter()
            .fold(sql.to_string(), |sql, (table, name)| sql.replace(&format!("{{{table}}}"), name))
    }
}
