//! TPC-C on a real PostgreSQL: load, transactions, checks.
//!
//! Each test has a server of its own, which starts from a loaded database that is kept.

pub(crate) mod breakages;
mod broken;
mod concurrency;
mod errors;
mod load;
mod modes;
mod schema;
mod transactions;
