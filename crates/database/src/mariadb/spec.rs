//! What a server of MariaDB or MySQL is made from. Its life is in `server`.

use super::install::Install;

/// A server: which programs, where, with what. `wal` is the directory of the redo log.
pub type ServerSpec = crate::managed::ServerSpec<Install>;
