//! The texts of MariaDB and MySQL. The tables are in the database that the URL names, `warehouse` where it names none.

use super::dialect::Dialect;

pub(super) const DIALECT: Dialect = Dialect {
    table: "CREATE TABLE {table} ({columns}, PRIMARY KEY ({key})) \
        ENGINE=InnoDB CHARACTER SET latin1 COLLATE latin1_bin",
    primary_key: None,
    // That of the table.
    collation: "",
    marker: "CREATE TABLE underlay_warehouse (format integer NOT NULL, \
        hundredths integer NOT NULL, seed bigint NOT NULL, inserted integer NOT NULL, \
        deleted integer NOT NULL, is_complete integer NOT NULL, made_database integer NOT NULL) \
        ENGINE=InnoDB CHARACTER SET latin1 COLLATE latin1_bin",
    // Quotients with enough digits to tell right from nearly right; rows refused, not shortened.
    settings: &[
        "SET NAMES latin1 COLLATE latin1_bin",
        "SET SESSION autocommit = 1, time_zone = '+00:00', div_precision_increment = 10, \
         sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
        "SET SESSION innodb_lock_wait_timeout = 3600 /*M!100100 , max_statement_time = 0 */ \
         /*!50708 , max_execution_time = 0 */",
    ],
    check_settings: &[],
};
