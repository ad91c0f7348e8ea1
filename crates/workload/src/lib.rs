//! What users do: workloads as pure state machines, their data generators and invariants.
//!
//! Pure: no I/O, no clock, no thread, no global source of randomness. A workload turns a seed and a
//! user number into a sequence of transactions; a population turns a seed and a warehouse number
//! into rows. Who sends the transactions, when, and to which engine is decided elsewhere (`driver`,
//! `database`).
//!
//! What is here: [`transactional`], what the load generator needs of a workload of database
//! transactions; [`tpcc`], an order-entry workload derived from TPC-C; [`sysbench`], transactions compatible
//! with sysbench's OLTP scripts; [`dvdstore`], a web shop after DVD Store 3; [`batch`], insertion of
//! many rows; [`warehouse`], decision support derived from TPC-H; [`backup`], backup and restore cycles; [`block`], streams of reads
//! and writes on volumes; [`arrivals`], when open-loop work is due; [`objective`], a latency target, with [`judgement`] and
//! [`rate_search`]. What is deliberately not here:
//! SQL, connections, devices, measured times.

// Pure: clippy.toml lists what is denied, and why.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod arrivals;

pub mod objective;

pub mod judgement;

pub mod rate_search;

pub mod identity;

pub mod block;

mod draw;

mod zipf;

pub mod transactional;

pub mod tpcc;

pub mod sysbench;

pub mod dvdstore;

pub mod backup;

pub mod batch;

pub mod warehouse;
