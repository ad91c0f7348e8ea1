//! The texts of MariaDB and MySQL.

use super::dialect::{Calls, Dialect};
use crate::connection::Input::{Digits, Value};
use crate::connection::Sql;

/// Text is compared and sent as the tables hold it: otherwise the server would convert it, perhaps a column at a time. For
/// the isolation see `mariadb/procedures.sql`.
pub(super) const DIALECT: Dialect = Dialect {
    schema: include_str!("mariadb/schema.sql"),
    keys: include_str!("mariadb/keys.sql"),
    procedures: include_str!("mariadb/procedures.sql"),
    marker: "CREATE TABLE underlay_population ( \
    format int NOT NULL, warehouses int NOT NULL, seed bigint NOT NULL, entropy smallint NOT NULL, \
    identity varchar(100) NOT NULL, complete boolean NOT NULL, made_database boolean NOT NULL) ENGINE=InnoDB",
    settings: &[
        "SET NAMES latin1 COLLATE latin1_bin",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION autocommit = 1, time_zone = '+00:00', group_concat_max_len = 65536, \
     sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    ],
    definitions,
    calls: Calls {
        new_order: Sql::formed(
            "CALL new_order_transaction(?, ?, ?, ?)",
            // Each line: number, item, supplying warehouse, quantity.
            &[Value(0), Value(1), Value(2), Digits(&[(3, 2), (4, 6), (5, 10), (6, 2)])],
        ),
        payment: Sql::new("CALL payment_transaction(?, ?, ?, ?, ?, ?, ?)"),
        order_status: Sql::new("CALL order_status_transaction(?, ?, ?, ?)"),
        delivery: Sql::new("CALL delivery_transaction(?, ?)"),
        stock_level: Sql::new("CALL stock_level_transaction(?, ?, ?)"),
    },
    drawn_new_order: Sql::formed(
        include_str!("mariadb/drawn_new_order.sql"),
        &[Value(0), Value(1), Value(2), Value(0), Value(4), Value(3)],
    ),
};

/// The statements of a text, with the remarks before them.
fn definitions(text: &str) -> Vec<String> {
    if text.contains("CREATE TABLE") {
        let tables = text.split(";\n").filter(|sql| sql.contains("CREATE TABLE"));
        return tables.map(str::to_string).collect();
    }
    text.split("\n$$\n").map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::{DIALECT, definitions};

    #[test]
    fn texts_are_cut_into_statements() {
        assert_eq!(definitions(DIALECT.schema).len(), 9);
        assert_eq!(definitions(DIALECT.procedures).len(), 5);
    }
}
