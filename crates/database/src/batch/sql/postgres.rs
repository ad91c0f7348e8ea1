//! PostgreSQL's texts. The schema `batch` has the table and its marker.

use std::fmt::Write as _;

use underlay_workload::batch::Row;

use super::dialect::Dialect;
use crate::batch::columns::columns;

pub(super) const DIALECT: Dialect = Dialect {
    marker: "CREATE TABLE batch.underlay_batch (format integer NOT NULL, rows integer NOT NULL, seed bigint NOT NULL, \
      sessions integer NOT NULL, mode text NOT NULL, is_rollback boolean NOT NULL, is_complete boolean NOT NULL)",
    describe: "SELECT format, rows, seed, sessions, mode, is_rollback, is_complete FROM batch.underlay_batch",
    // `clock_timestamp` is the moment of the insertion; `CURRENT_TIMESTAMP` would be that of the transaction's begin, the
    // same for all rows of an explicit transaction.
    table: "CREATE TABLE batch.test (rec_num integer PRIMARY KEY, date char(8), time char(8), reff char(10), acc char(10), \
      stock char(6), bs char(1), price char(8), qty char(8), status char(1), owflag char(3), ordrec char(8), \
      firmid char(5), checkord bytea, branchid char(5), \
      sj timestamp DEFAULT (clock_timestamp() AT TIME ZONE 'UTC'))",
    settings: &[],
    placeholder: |number| format!("${number}"),
    loop_over,
    second: "floor(extract(epoch FROM sj))::bigint",
};

/// A block over an array of rows. Nothing in a row is or contains a quote, a comma or a parenthesis.
fn loop_over(rows: &[Row], commits: bool) -> String {
    let mut array = String::new();
    for row in rows {
        let separator = if array.is_empty() { "" } else { "," };
        let _ = write!(array, "{separator}\"({}", row.rec_num);
        let (branch, others) = row.texts.split_last().expect("a row has texts");
        others.iter().for_each(|text| {
            let _ = write!(array, ",{}", text.as_str());
        });
        array.push_str(",\\\\\\\\x");
        row.checkord.iter().for_each(|byte| {
            let _ = write!(array, "{byte:02x}");
        });
        // The moment of the insertion is not of the row.
        let _ = write!(array, ",{},)\"", branch.as_str());
    }
    let columns = columns();
    let values: Vec<String> = columns.split(", ").map(|column| format!("r.{column}")).collect();
    let commit = if commits { "COMMIT; " } else { "" };
    format!(
        "DO $$ DECLARE r batch.test; BEGIN FOREACH r IN ARRAY '{{{array}}}'::batch.test[] LOOP \
         INSERT INTO batch.test ({columns}) VALUES ({}); {commit}END LOOP; END $$",
        values.join(", ")
    )
}
