//! PostgreSQL's texts. The tables are in the first schema of the search path, where sysbench looks for them.

use super::dialect::{Bulk, Count, Dialect};
use crate::connection::Kind::{Char, Int, Ints};
use crate::connection::Sql;
use crate::sysbench::statement::Kind;

pub(super) const DIALECT: Dialect = Dialect {
    table: "CREATE TABLE sbtest# (id SERIAL NOT NULL, \
    k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL)",
    keys: "ALTER TABLE sbtest# ADD PRIMARY KEY (id); CREATE INDEX k_# ON sbtest# (k)",
    sequence: Some("SELECT setval(pg_get_serial_sequence('sbtest#', 'id'), {rows})"),
    marker: "CREATE TABLE underlay_sysbench (format integer NOT NULL, \
    tables integer NOT NULL, table_size integer NOT NULL, seed bigint NOT NULL, \
    distribution text NOT NULL, complete boolean NOT NULL)",
    tables_of_marker: "SELECT tables, false FROM underlay_sysbench",
    describe: "SELECT format, tables, table_size, seed, distribution, complete FROM underlay_sysbench",
    settings: &[],
    statement,
    bulk: Bulk::Array,
    bulk_table: &[
        "CREATE TABLE IF NOT EXISTS {table} (id INTEGER NOT NULL PRIMARY KEY, k INTEGER DEFAULT 0 NOT NULL)",
        "COMMENT ON TABLE {table} IS '{comment}'",
        "TRUNCATE {table}",
    ],
    bulk_of_ours: "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relname ~ '^sbtest_bulk[0-9]+$' \
        AND pg_table_is_visible(oid) AND obj_description(oid, 'pg_class') = '{comment}'",
    bulk_of_others: "SELECT relname::text FROM pg_class WHERE relname ~ '^sbtest_bulk[0-9]+$' \
        AND pg_table_is_visible(oid) AND obj_description(oid, 'pg_class') IS DISTINCT FROM '{comment}' ORDER BY 1",
    columns: "SELECT relname::text, attname::text FROM pg_class LEFT JOIN pg_attribute \
          ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped \
        WHERE relname ~ '^sbtest[1-9][0-9]*$' AND relkind IN ('r', 'p', 'v', 'm', 'f') \
          AND pg_table_is_visible(pg_class.oid) ORDER BY 1",
    tally: "SELECT count(*), coalesce(sum(k), 0)::bigint FROM sbtest#",
    texts: "SELECT count(*), coalesce(min(id), 0) FROM sbtest# \
        WHERE c !~ '^[0-9]{11}(-[0-9]{11}){9} *$' OR pad !~ '^[0-9]{11}(-[0-9]{11}){4} *$'",
    // This makes the planner use the index on k; every k is an integer, so the range includes all
    // of them.
    by_index: Count {
        settings: "SET LOCAL enable_seqscan = off",
        sql: "SELECT count(k) FROM sbtest# WHERE k >= -2147483648",
    },
    by_table: Count {
        settings: "SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; \
            SET LOCAL enable_bitmapscan = off",
        sql: "SELECT count(k) FROM sbtest# WHERE k >= -2147483648",
    },
};

fn statement(kind: Kind) -> Sql<'static> {
    match kind {
        Kind::Point => Sql::typed("SELECT c FROM sbtest# WHERE id = $1", &[Int]),
        Kind::Simple => Sql::typed("SELECT c FROM sbtest# WHERE id BETWEEN $1 AND $2", &[Int, Int]),
        Kind::Sum => {
            Sql::typed("SELECT SUM(k) FROM sbtest# WHERE id BETWEEN $1 AND $2", &[Int, Int])
        }
        Kind::Order => {
            Sql::typed("SELECT c FROM sbtest# WHERE id BETWEEN $1 AND $2 ORDER BY c", &[Int, Int])
        }
        Kind::Distinct => Sql::typed(
            "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN $1 AND $2 ORDER BY c",
            &[Int, Int],
        ),
        Kind::IndexUpdate => Sql::typed("UPDATE sbtest# SET k = k + 1 WHERE id = $1", &[Int]),
        Kind::NonIndexUpdate => Sql::typed("UPDATE sbtest# SET c = $2 WHERE id = $1", &[Int, Char]),
        Kind::Delete => Sql::typed("DELETE FROM sbtest# WHERE id = $1", &[Int]),
        Kind::InsertAgain => Sql::typed(
            "INSERT INTO sbtest# (id, k, c, pad) VALUES ($1, $2, $3, $4)",
            &[Int, Int, Char, Char],
        ),
        Kind::Insert => {
            Sql::typed("INSERT INTO sbtest# (k, c, pad) VALUES ($1, $2, $3)", &[Int, Char, Char])
        }
        Kind::Bulk => Sql::typed(
            "INSERT INTO sbtest_bulk# (id, k) SELECT id, id FROM unnest($1::integer[]) AS id",
            &[Ints],
        ),
    }
}
