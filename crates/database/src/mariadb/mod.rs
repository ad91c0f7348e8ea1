//! MariaDB 10.6 and newer, and MySQL 8 and newer: servers that Underlay creates itself, and what it runs
//! on them.
//!
//! In reading order: [`install`] finds the server programs, [`settings`] decides and checks the
//! configuration, `initial` makes a new database, [`server`] is the life of one server, [`template`] keeps
//! a loaded one, `backup` copies a running one; [`connection`] opens sessions with any server;
//! `workload_connection` is what the workloads of this crate, such as [`crate::tpcc`], run over.
//!
//! MySQL differs from MariaDB in how it is initialised and in some settings; what is the same is said
//! once. Where the text says MariaDB, it means both.

pub mod connection;
mod direct;
mod help_text;
pub mod install;
pub mod settings;

mod backup;
mod configuration;
mod initial;
mod log;
pub mod server;
mod spec;
pub mod template;

mod infile;
mod link;
mod loader;
pub(crate) mod ownership;
mod pinned_key;
mod text_rows;
mod tls;
pub(crate) mod url;
mod workload_connection;

mod error;

pub(crate) use backup::backup_problem;
pub(crate) use error::DENIALS;
pub(crate) use workload_connection::MariadbConnection;

pub use connection::connect;
pub use install::{Flavour, Install, capability, find_installs};
pub use server::Server;
pub use settings::check_settings;
pub use spec::ServerSpec;
pub use template::Template;
