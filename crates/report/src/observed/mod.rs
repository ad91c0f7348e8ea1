//! Reading one run of a record: its ticks as series, its measured windows, and what they say in numbers.
//!
//! Runs are read one after the other and reduced to [`WindowFacts`] and time lines before the next one
//! is read, because the raw ticks of a long study do not fit into memory together.
//!
//! What is deliberately not here: anything over several runs, and any judgement.

mod block_loads;
mod cache_fill;
mod causal;
mod client_facts;
mod commits;
mod cpu_facts;
mod devices;
mod host_parts;
mod io_facts;
mod load_facts;
mod operations;
mod process_trees;
mod rate_curve;
mod run;
mod series;
mod stages;
mod type_facts;
mod volume_facts;
mod waits;
mod window;
mod window_facts;

pub(crate) use block_loads::block_loads;
pub(crate) use cache_fill::cache_fill_event;
pub(crate) use causal::{CausalFacts, CausalPeriod};
pub(crate) use client_facts::DriverFacts;
pub(crate) use cpu_facts::CpuFacts;
pub(crate) use devices::{CountedDevice, SharedDevice, counted_devices, shared_devices};
pub(crate) use host_parts::HOST_PARTS;
pub(crate) use io_facts::IoFacts;
pub(crate) use operations::{ObservedOperation, operation_events, operations};
pub(crate) use process_trees::{DRIVER, of_server};
#[cfg(test)]
pub(crate) use rate_curve::latency_at_peak;
pub(crate) use rate_curve::{Crossing, LIMIT_NS, crossing, curve_points};
pub(crate) use run::ObservedRun;
pub(crate) use series::{Series, middle};
pub(crate) use stages::stages;
#[cfg(test)]
pub(crate) use waits::Roots;
pub(crate) use waits::{WaitSummary, class_of};
pub(crate) use window::{MeasuredWindow, merged};
pub(crate) use window_facts::WindowFacts;
