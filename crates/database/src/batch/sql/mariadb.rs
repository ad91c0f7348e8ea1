//! The texts of MariaDB and MySQL. The table and its marker are in the database that the URL names, `batch` where it
//! names none.

use std::fmt::Write as _;

use underlay_workload::batch::{CHECKORD_BYTES, Row, TEXT_COLUMNS};

use super::dialect::Dialect;
use crate::batch::columns::columns;

pub(super) const DIALECT: Dialect = Dialect {
    marker: "CREATE TABLE underlay_batch (format int NOT NULL, rows_wanted int NOT NULL, \
    seed bigint NOT NULL, sessions int NOT NULL, mode varchar(20) NOT NULL, is_rollback boolean NOT NULL, \
    is_complete boolean NOT NULL, made_database boolean NOT NULL) ENGINE=InnoDB",
    describe: "SELECT format, rows_wanted, seed, sessions, mode, is_rollback, is_complete FROM underlay_batch",
    // The moment of the insertion is that of its statement.
    table: "CREATE TABLE test (rec_num int NOT NULL PRIMARY KEY, `date` char(8), `time` char(8), \
    reff char(10), acc char(10), stock char(6), bs char(1), price char(8), qty char(8), status char(1), \
    owflag char(3), ordrec char(8), firmid char(5), checkord binary(16), branchid char(5), \
    sj datetime DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB",
    // Rows must be refused, not shortened.
    settings: &[
        "SET NAMES latin1 COLLATE latin1_bin",
        "SET SESSION autocommit = 1, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    ],
    placeholder: |_| "?".to_string(),
    loop_over,
    second: "unix_timestamp(sj)",
};

/// A block over rows that it reads from JSON. Nothing in a row is or contains a quote.
fn loop_over(rows: &[Row], commits: bool) -> String {
    let mut json = String::new();
    for row in rows {
        let separator = if json.is_empty() { "" } else { "," };
        let _ = write!(json, "{separator}[{}", row.rec_num);
        row.texts.iter().for_each(|text| {
            let _ = write!(json, ",\"{}\"", text.as_str());
        });
        json.push_str(",\"");
        row.checkord.iter().for_each(|byte| {
            let _ = write!(json, "{byte:02x}");
        });
        json.push_str("\"]");
    }
    let texts = TEXT_COLUMNS
        .iter()
        .enumerate()
        .map(|(index, (name, width))| format!(", `{name}` char({width}) PATH '$[{}]'", index + 1));
    let fields = texts.collect::<String>();
    let values = TEXT_COLUMNS.map(|(name, _)| format!("r.`{name}`")).join(", ");
    let commit = if commits { "COMMIT; " } else { "" };
    format!(
        "BEGIN NOT ATOMIC FOR r IN (SELECT * FROM JSON_TABLE('[{json}]', '$[*]' COLUMNS (rec_num int PATH '$[0]'{fields}, \
         checkord char({}) PATH '$[{}]')) AS given) DO \
         INSERT INTO test ({}) VALUES (r.rec_num, {values}, UNHEX(r.checkord)); {commit}END FOR; END",
        2 * CHECKORD_BYTES,
        TEXT_COLUMNS.len() + 1,
        columns()
    )
}
