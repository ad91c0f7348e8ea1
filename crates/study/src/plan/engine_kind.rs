//! The database engines that a study can name. What the planner knows about each is its dialect.

use underlay_core::words;

words! {
    /// The engines a study can name.
    #[derive(Default)]
    pub enum EngineKind: "engine" {
        /// PostgreSQL.
        #[default]
        Postgresql = "postgresql",
        /// MariaDB.
        Mariadb = "mariadb",
        /// MySQL.
        Mysql = "mysql",
    }
}
