//! PostgreSQL's texts. The tables are in the schema `warehouse`.

use super::dialect::Dialect;
use crate::postgres::CHECK_SETTINGS;

pub(super) const DIALECT: Dialect = Dialect {
    table: "CREATE TABLE warehouse.{table} ({columns})",
    primary_key: Some("ALTER TABLE {table} ADD PRIMARY KEY ({key})"),
    collation: "COLLATE \"C\"",
    marker: "CREATE TABLE warehouse.underlay_warehouse (format integer NOT NULL, \
        hundredths integer NOT NULL, seed bigint NOT NULL, inserted integer NOT NULL, \
        deleted integer NOT NULL, is_complete integer NOT NULL)",
    settings: &["SET search_path = warehouse; SET statement_timeout = 0"],
    check_settings: &[CHECK_SETTINGS],
};
