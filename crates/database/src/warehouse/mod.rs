//! The data warehouse derived from TPC-H, on any engine.
//!
//! [`load`] makes and fills the tables, [`power_run`] and [`throughput_run`] ask the queries and carry out the refresh
//! functions, [`check`] compares what is there, and the answers to all 22 queries, with the rows and answers that the
//! crate `workload` computes without SQL. The SQL is the same for both engines but for a few types; what differs is how
//! rows are streamed in and how results come back (`connection`).

mod answer;
mod check;
mod connection;
mod error;
mod load;
mod mariadb;
mod marker;
mod postgres;
mod refresh;
mod rows;
mod run;
mod schema;
mod sql;

pub use crate::load_report::LoadReport;
pub use check::{Checked, check};
pub use error::WarehouseError;
pub use load::load;
pub use marker::Described;
pub(crate) use rows::TABLE_NAMES;
pub use run::{
    Measured, Step, Took, power_run, power_run_watched, throughput_run, throughput_run_watched,
};
pub use schema::{describe, drop_schema};
