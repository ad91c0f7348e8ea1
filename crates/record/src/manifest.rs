//! The facts of an execution that are fixed when it begins, and its status.

use serde_json::Value;
use underlay_core::{Evidence, RootSeed};

use crate::words::ExecutionStatus;

/// Facts known when the execution begins. Never changed afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The study's key: `quickstart`.
    pub study_name: String,
    /// Its title for readers.
    pub title: String,
    /// The question it asks.
    pub question: String,
    /// The weakest kind of evidence among its designs.
    pub evidence: Evidence,
    /// What all random streams derive from.
    pub seed: RootSeed,
    /// Identity of the workload: hash of schema, procedures, parameters, constants, seed. Results with
    /// different identities are not comparable.
    pub identity: String,
    /// Wall clock time of the begin, in nanoseconds since the Unix epoch.
    pub started_wall_ns: u64,
    /// The resolved plan, with the origin of every value.
    pub plan: Value,
    /// Facts about the host.
    pub host: Value,
    /// Versions of Underlay, of the engine and of the tools used.
    pub software: Value,
}

/// Status of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Its status. `Running` in a file that no process writes means that the writer was killed.
    pub status: ExecutionStatus,
    /// Wall clock time of its end, in nanoseconds since the Unix epoch.
    pub finished_wall_ns: Option<u64>,
    /// How many processes wrote it: 1, and 1 more for each resumption.
    pub sessions: u32,
}
