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

mod declare;
mod source;

mod item;
mod targets;

mod announcer;
mod catalogue;
mod collector;
mod schedule;
mod stop;
mod tier;

pub mod derive;

mod identity;
mod kernel_file;
mod keyed;
mod samplers;
mod sql_session;

pub use catalogue::{CATALOGUE, reference_page};
pub use collector::{Collector, CollectorReport, TierReport};
pub use declare::{SamplerDoc, SeriesDoc};
pub use item::{Item, WaitKey};
pub use source::{SampleError, Sampler, SourceInfo, Status};
pub use targets::{CgroupTarget, Pace, Roots, Targets};
