//! The engines that Underlay measures.

use std::fmt;

/// A database engine, by the protocol and SQL that it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Engine {
    /// PostgreSQL.
    Postgresql,
    /// MariaDB; also MySQL, which speaks the same protocol and, as far as the workloads go, the same
    /// SQL.
    Mariadb,
}

impl Engine {
    /// All engines.
    pub const ALL: [Engine; 2] = [Engine::Postgresql, Engine::Mariadb];

    /// The word used in files and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Engine::Postgresql => "postgresql",
            Engine::Mariadb => "mariadb",
        }
    }
}

impl fmt::Display for Engine {
    /// Its name, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Postgresql => "PostgreSQL",
            Engine::Mariadb => "MariaDB",
        })
    }
}
