//! TPC-C on a real PostgreSQL: load, transactions, checks.
//!
//! One server and one loaded database serve all tests; a test that changes data works on a copy.

mod harness;

pub(crate) mod breakages;
mod broken;
mod concurrency;
mod errors;
mod load;
mod modes;
mod schema;
mod transactions;
