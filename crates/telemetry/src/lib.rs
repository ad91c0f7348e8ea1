//! Samplers: every layer of the system, every second, with what each costs and why it is absent.
//!
//! A [`Collector`] runs samplers on a few threads and sends what they read to one channel. A sampler
//! reads raw counters and gauges and knows neither clock nor record; a *tier* is a thread that calls
//! its samplers at whole seconds since the origin of the run and stamps each reading with the window
//! in which it was taken. Slow SQL has tiers of its own, so it never delays `/proc`.
//!
//! What it deliberately does not do: compute rates, percentages or percentiles (readers do, with the
//! pure helpers of [`derive`]), store anything, decide what is a bottleneck, invent values for ticks
//! it missed.
//!
//! **Invariants:** values are cumulative or instantaneous as read; a value that could not be read is
//! `NAN`; a source that cannot work says why; `[begin, end]` always contains the moment of reading.
//!
//! # What it costs
//!
//! Measured with the example `cost` (release build, 1 Hz, 20 Hz session samples) on 2 virtual CPUs of
//! a shared host with load average 6 to 12, PostgreSQL 15 under pgbench; percent of one core:
//!
//! | sessions | host tier | statistics | session samples | all | resident | in the server |
//! |---|---|---|---|---|---|---|
//! | 64 | 0.12 % | 0.02 % | 0.25 % | 0.39 % | 4.2 MiB | 0.59 % |
//! | 64, one hot row | 0.11 % | 0.02 % | 0.37 % | 0.50 % | 4.4 MiB | 0.92 % |
//! | 250 | 0.25 % | 0.02 % | 0.18 % | 0.45 % | 4.5 MiB | 0.83 % |
//! | 1,000 | 0.91 % | 0.03 % | 0.22 % | 1.16 % | 5.4 MiB | 2.87 % |
//!
//! The aim of 1 % of a core is missed with a thousand server processes, not with hundreds. Resident
//! memory is that of the whole example program. A sweep of the host tier takes 0.3 ms plus 11 us per
//! observed process, 8 us in a tree of more than 256. Above 128 sessions samples are taken at 10 Hz.

mod declare;
mod source;

mod item;
mod targets;

mod announcer;
mod catalogue;
mod collector;
mod common;
mod schedule;
mod stop;
mod tier;

pub mod derive;

mod identity;
mod kernel_file;
mod keyed;
mod mariadb_session;
mod of_database;
mod samplers;
mod sql_session;

pub use catalogue::{CATALOGUE, reference_page};
pub use collector::{Collector, CollectorReport, TierReport};
pub use declare::{SamplerDoc, SeriesDoc};
pub use item::{Item, WaitKey};
pub use source::{SampleError, Sampler, SourceInfo, Status};
pub use targets::{CgroupTarget, Roots, SamplingRates, Targets, VolumeTarget};
