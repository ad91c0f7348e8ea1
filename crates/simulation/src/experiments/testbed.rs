//! What an experiment is: a load on a system, and how its result is read.

use underlay_core::Bytes;

/// A test bed of a publication.
#[derive(Clone, Debug, PartialEq)]
pub struct Testbed {
    /// Name: `kingston-nvme`.
    pub name: &'static str,
    /// The publication it belongs to, as in the tables of published numbers.
    pub publication: &'static str,
    /// One line for people.
    pub title: &'static str,
    /// The experiment whose rate fits the stack; none where nothing is fitted.
    pub fitted: Option<(&'static str, &'static str)>,
    /// What the publication leaves open, and what was taken.
    pub assumptions: &'static [&'static str],
    /// Its experiments.
    pub experiments: Vec<Experiment>,
}

/// One experiment on one system.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// As in the table of published numbers: `KH1-4k`.
    pub id: &'static str,
    /// As in that table: `nvme`.
    pub variant: &'static str,
    /// What is loaded.
    pub system: System,
    /// With what.
    pub load: Load,
    /// How.
    pub shape: Shape,
}

/// What is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A built-in cluster design.
    Cluster {
        /// Its name.
        design: &'static str,
        /// A smaller write buffer per disk group, so that destaging is steady within seconds of virtual
        /// time; none = the real one, which seconds do not fill.
        write_buffer: Option<Bytes>,
    },
    /// Two single drives, whose results are divided by each other.
    Drives {
        /// The profile above the line.
        numerator: &'static str,
        /// The profile below it.
        denominator: &'static str,
    },
}

/// The load on each of some equal volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// A built-in block workload.
    pub workload: &'static str,
    /// Number of volumes.
    pub volumes: u32,
    /// Threads per volume.
    pub threads: u32,
    /// Requests in flight per thread.
    pub queue_depth: u32,
    /// Bytes used of each volume.
    pub working_set: Bytes,
    /// What was written before.
    pub prefill: Prefill,
}

/// What is in the write buffer when the measurement begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefill {
    /// Nothing: reads come from the capacity devices.
    Nothing,
    /// The whole working set, so that reads come from the buffer.
    Everything,
}

/// How the load is applied and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As fast as it goes.
    Closed,
    /// A rate curve up to 120 % of the maximum; the peak and the highest rate below 1 ms are read.
    Curve,
}
