//! What a load is made of.

use crate::gauge::IoGauge;
use crate::target::Target;
use crate::verify::Verifier;
use std::time::Duration;
use underlay_core::{Bytes, Dilation, RootSeed};
use underlay_workload::block::{BlockWorkload, Concurrency, Content, Pace};

/// A load on one or more targets.
#[derive(Debug)]
pub struct LoadSpec<'a> {
    /// What is done to, by number.
    pub targets: Vec<&'a Target>,
    /// Marks and checks blocks: one per target, or none at all.
    pub verifiers: &'a [Verifier],
    /// What runs concurrently.
    pub jobs: Vec<LoadJob<'a>>,
    /// What written bytes look like.
    pub content: Content,
    /// How many times as long everything takes. Times and rates of this specification and of what comes out are in design
    /// time; processor times are this host's.
    pub dilation: Dilation,
    /// Load that is not measured.
    pub warm_up: Duration,
    /// Load that is.
    pub measure: Duration,
    /// Of addresses, sizes and arrivals.
    pub seed: RootSeed,
    /// Threads of the operating system per job and target, at most as many as the job has threads;
    /// 0 = one per processor.
    pub workers_max: u32,
    /// What an error ends.
    pub on_error: OnError,
    /// An open-loop worker stops sleeping so long before the next arrival and waits awake: exact, but it costs
    /// a processor. Of this host's time. Zero = it always sleeps.
    pub spin: Duration,
    /// Counts requests as they complete, for observers; [`super::SecondTick`]s come when a second is over.
    pub gauge: Option<&'a IoGauge>,
}

/// One workload on one target.
#[derive(Clone, Debug)]
pub struct LoadJob<'a> {
    /// Number of the target.
    pub target: usize,
    /// Of the profile, for names: unique among the jobs of a target.
    pub name: String,
    /// What is asked.
    pub workload: &'a BlockWorkload,
    /// Bytes used, from the beginning of the target.
    pub working_set: Bytes,
    /// Requests in flight on the target.
    pub concurrency: Concurrency,
    /// What makes the next request start.
    pub pace: Pace,
}

/// What an error of a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// The load; what was measured so far is kept.
    Stop,
    /// Nothing: it is counted.
    Continue,
}
