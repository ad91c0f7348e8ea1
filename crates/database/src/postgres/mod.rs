//! PostgreSQL 13 to 18: servers that Underlay creates itself, and what it runs on them.
//!
//! In reading order: [`install`] finds the server programs, [`settings`] decides and checks the
//! configuration, [`server`] is the life of one cluster, `backup` and [`template`] are its two
//! kinds of copies; `connection` is what the workloads of this crate, such as [`crate::tpcc`], run
//! over.

pub mod install;
pub mod settings;

mod cluster;
mod configuration;
mod log;
mod query;
pub mod server;
mod spec;

mod backup;
mod control_data;
pub mod template;

mod client;
mod connection;
mod direct;
mod loader;
mod numeric;
pub(crate) mod ownership;
mod settling;
pub mod tls;
pub(crate) mod url;

pub use crate::managed::{
    CopyReport, Listen, Liveness, LogCause, LogTail, RestoreOptions, ServerError, SettingInForce,
    SettingProblem, StartReport, StopMode, TemplateManifest,
};
pub(crate) use connection::PostgresConnection;
pub use install::{Install, SUPPORTED_MAJORS, capability, find_installs};
pub use server::Server;
pub use settings::check_settings;
pub use spec::ServerSpec;
pub use template::Template;

/// Settings of the connections that check. Little memory, an eighth of the server's cache (4 to 64 MiB) for each
/// sort or hash: the server may be limited to some hundred MiB in all and must not be killed for being checked, and
/// what does not fit goes to disk. One process per connection; no compilation of queries that run once; and no limit
/// that a role may have for its work.
pub(crate) const CHECK_SETTINGS: &str = "SET temp_buffers = '8MB'; SET jit = off; \
    SET max_parallel_workers_per_gather = 0; SET statement_timeout = 0; SET lock_timeout = 0; \
    SET idle_in_transaction_session_timeout = 0; \
    SELECT set_config('work_mem', greatest(4096, least(65536, setting::bigint))::text, false) \
      FROM pg_settings WHERE name = 'shared_buffers'";
