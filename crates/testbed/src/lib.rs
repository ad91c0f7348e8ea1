//! Database servers for tests: a folder that removes itself, managed servers of either engine in it, statements
//! on them, and databases that are loaded once.
//!
//! A [`Bed`] is the place of a test's servers. [`TestServer`] is a running one; [`Database`] is one with a TPC-C
//! population. Neither runs `initdb` or a load if it can be avoided: a test program keeps templates of empty and
//! of loaded databases, for all processes that run it (see `templates`).
//!
//! What is deliberately not here: assertions about a server, an engine or a workload. A crate uses this in its
//! integration tests only.

mod bed;
mod database;
mod server;
mod sql;
mod templates;

pub use bed::{Bed, NoServer, passable_folder, settings, spec_in};
pub use database::{Database, ONE_WAREHOUSE, TWO_WAREHOUSES, parameters};
pub use server::TestServer;
pub use sql::{execute, number, query, runtime, text, texts};
pub use templates::folder_of_build;

pub use underlay_host::skip;

/// The value; without one the test ends and says why, as [`NoServer`] does.
#[macro_export]
macro_rules! or_skip {
    ($value:expr) => {
        match $value {
            Ok(value) => value,
            Err(reason) => $crate::skip!("{reason}"),
        }
    };
}
