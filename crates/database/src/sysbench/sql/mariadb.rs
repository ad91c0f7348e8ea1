//! The texts of MariaDB and MySQL. The tables are in the target's database; where it names none, in `sbtest`, which is what
//! sysbench assumes. The isolation level is the server's default, as with sysbench.

use super::dialect::{Bulk, Count, Dialect};
use crate::connection::{Input, Sql};
use crate::sysbench::statement::Kind;

pub(super) const DIALECT: Dialect = Dialect {
    // Types, defaults and names are those that sysbench gives it; the character set is the server's choice, as there.
    table: "CREATE TABLE sbtest# (id INTEGER NOT NULL AUTO_INCREMENT, \
    k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, \
    PRIMARY KEY (id)) ENGINE=InnoDB",
    keys: "CREATE INDEX k_# ON sbtest# (k)",
    sequence: None,
    marker: "CREATE TABLE underlay_sysbench (format int NOT NULL, tables_made int NOT NULL, \
    table_size int NOT NULL, seed bigint NOT NULL, distribution varchar(20) NOT NULL, complete boolean NOT NULL, \
    made_database boolean NOT NULL) ENGINE=InnoDB",
    tables_of_marker: "SELECT tables_made, made_database FROM underlay_sysbench",
    describe: "SELECT format, tables_made, table_size, seed, distribution, complete FROM underlay_sysbench",
    // Texts come as the table holds them: without this the server would convert each of them.
    settings: &["SET SESSION character_set_results = NULL, autocommit = 1"],
    statement,
    bulk: Bulk::Written,
    bulk_table: &[
        "CREATE TABLE IF NOT EXISTS {table} (id INTEGER NOT NULL PRIMARY KEY, \
         k INTEGER DEFAULT 0 NOT NULL) ENGINE=InnoDB COMMENT='{comment}'",
        "TRUNCATE TABLE {table}",
    ],
    bulk_of_ours: "SELECT table_name FROM information_schema.tables WHERE table_schema = database() \
        AND table_name REGEXP '^sbtest_bulk[0-9]+$' AND table_comment = '{comment}'",
    bulk_of_others: "SELECT table_name FROM information_schema.tables WHERE table_schema = database() \
        AND table_name REGEXP '^sbtest_bulk[0-9]+$' AND table_comment <> '{comment}' ORDER BY 1",
    columns: "SELECT table_name, lower(column_name) FROM information_schema.columns \
        WHERE table_schema = database() AND table_name REGEXP '^sbtest[1-9][0-9]*$' ORDER BY table_name",
    tally: "SELECT count(*), cast(coalesce(sum(k), 0) AS signed) FROM sbtest#",
    texts: "SELECT count(*), coalesce(min(id), 0) FROM sbtest# \
        WHERE c NOT REGEXP '^[0-9]{11}(-[0-9]{11}){9} *$' OR pad NOT REGEXP '^[0-9]{11}(-[0-9]{11}){4} *$'",
    // This makes the server use the index on k; every k is an integer, so the range includes all of
    // them.
    by_index: Count {
        settings: "",
        sql: "SELECT count(k) FROM sbtest# FORCE INDEX (k_#) WHERE k >= -2147483648",
    },
    by_table: Count {
        settings: "",
        sql: "SELECT count(k) FROM sbtest# FORCE INDEX (PRIMARY) WHERE k >= -2147483648",
    },
};

fn statement(kind: Kind) -> Sql<'static> {
    match kind {
        Kind::Point => Sql::new("SELECT c FROM sbtest# WHERE id = ?"),
        Kind::Simple => Sql::new("SELECT c FROM sbtest# WHERE id BETWEEN ? AND ?"),
        Kind::Sum => Sql::new("SELECT SUM(k) FROM sbtest# WHERE id BETWEEN ? AND ?"),
        Kind::Order => Sql::new("SELECT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c"),
        Kind::Distinct => {
            Sql::new("SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c")
        }
        Kind::IndexUpdate => Sql::new("UPDATE sbtest# SET k = k + 1 WHERE id = ?"),
        Kind::NonIndexUpdate => Sql::formed(
            "UPDATE sbtest# SET c = ? WHERE id = ?",
            &[Input::Value(1), Input::Value(0)],
        ),
        Kind::Delete => Sql::new("DELETE FROM sbtest# WHERE id = ?"),
        Kind::InsertAgain => Sql::new("INSERT INTO sbtest# (id, k, c, pad) VALUES (?, ?, ?, ?)"),
        Kind::Insert => Sql::new("INSERT INTO sbtest# (k, c, pad) VALUES (?, ?, ?)"),
        Kind::Bulk => Sql::new("INSERT INTO sbtest_bulk# (id, k) VALUES "),
    }
}
