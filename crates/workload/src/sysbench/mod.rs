//! Transactions, rows and distributions compatible with sysbench's OLTP scripts.
//!
//! The same tables, the same statements in the same numbers and order, ids drawn from the same families of
//! distributions, so that either program can drive what the other loaded and results can be put side by
//! side. Nothing is taken from sysbench's sources but these facts; random numbers are Underlay's own, so
//! that transaction `k` of user `u` is the same in every run.
//!
//! Reading order: [`Parameters`] say how big and how skewed; [`Distribution`] draws ids; [`Row`] is one row of a
//! table; [`Script`] names the kinds of transactions; [`Transaction`] is one of them with its inputs;
//! [`Source`] is the user; [`Sysbench`] is all of it as the load generator drives it.

mod accounting;
mod distribution;
mod identity;
mod parameters;
mod row;
mod script;
mod source;
mod transaction;
mod workload;

pub use accounting::SysbenchAccounting;
pub use distribution::{Distribution, Sampler, UnknownDistribution};
pub use identity::identity;
pub use parameters::{Composition, Parameters, ParametersError};
pub use row::{C_LENGTH, PAD_LENGTH, Row, text_of};
pub use script::{Script, UnknownScript};
pub use source::Source;
pub use transaction::{Operation, Range, Transaction};
pub use workload::{Outcome, SHAPE, Sysbench};
