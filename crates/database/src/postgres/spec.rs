//! What a cluster of PostgreSQL is made from. Its life is in `server`.

use super::install::Install;

/// A cluster: which programs, where, with what.
pub type ServerSpec = crate::managed::ServerSpec<Install>;
