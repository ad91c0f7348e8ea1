//! What limits a rung: time budget, gates, verdict.

use serde::Serialize;

use super::verdict::Confidence;

/// Where the sessions' time went at one rung, and what limits throughput.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Bottleneck {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// What limits: a [`TimeClass`] word, or `load-generator`, `offered-load`, `network`,
    /// `connections`, `cpu-starved`, `mixed`, `inconclusive`. `cpu` includes `run-queue`.
    pub class: String,
    /// The same in words, with the numbers.
    pub sentence: String,
    /// How it limits.
    pub mode: LimitMode,
    /// How sure that is.
    pub confidence: Confidence,
    /// Session-seconds per second by class, largest first; they sum up to about the number of users.
    pub budget: Vec<BudgetPart>,
    /// Sum of the budget over the number of users, or of the connections that they share: 1 when it closes; `null` without a budget.
    pub closure: Option<f64>,
    /// What lock holders were doing while others waited for them; empty when unknown.
    pub lock_holders: Vec<BudgetPart>,
    /// What was ruled out, and by which number.
    pub ruled_out: Vec<RuledOut>,
    /// The conditions for a verdict.
    pub gates: Vec<Gate>,
}

/// Exclusive classes of session time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum TimeClass {
    /// The load generator's own CPU and run-queue time.
    Driver,
    /// Stopped by the CPU limit of the load generator.
    DriverLimit,
    /// The client otherwise: think time, waking up, a network that is not modelled.
    Client,
    /// On the modelled network of a remote client.
    ClientNetwork,
    /// Server on CPU.
    Cpu,
    /// Server waiting for a CPU.
    RunQueue,
    /// Stopped by the CPU limit of the server.
    CpuLimit,
    /// I/O beyond what the emulated device takes: this host's share of it.
    HostIo,
    /// Waiting for the log (WAL).
    Log,
    /// Waiting for the log, whose I/O waits for data writes of the same device.
    LogBehindData,
    /// Waiting for data to be read.
    DataRead,
    /// Waiting for data to be written.
    DataWrite,
    /// Waiting for a lock of another transaction.
    Lock,
    /// Waiting for a short internal lock.
    Latch,
    /// Everything else.
    Other,
}

/// How a resource limits throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum LimitMode {
    /// Throughput grows with the number of users: a faster resource or more users help.
    Latency,
    /// Throughput does not grow with the number of users: only more of it, or less work, helps.
    Capacity,
    /// Not known.
    Unknown,
}

/// One class of a time budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct BudgetPart {
    /// The class.
    pub class: TimeClass,
    /// Mean number of sessions in it (session-seconds per second).
    pub sessions: f64,
    /// Its share of the budget.
    pub share: f64,
    /// Its part of the mean transaction, nanoseconds.
    pub per_transaction_ns: Option<f64>,
}

/// Something that does not limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RuledOut {
    /// The class, in the words of [`Bottleneck::class`].
    pub class: String,
    /// The number that rules it out.
    pub reason: String,
}

/// A condition for a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Gate {
    /// `G1` to `G8`.
    pub id: String,
    /// What it demands.
    pub title: String,
    /// How it came out.
    pub state: GateState,
    /// The number that was found and the limit.
    pub text: String,
}

/// How a gate came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum GateState {
    /// Met.
    Passed,
    /// Nearly met: a verdict is given with low confidence.
    Soft,
    /// Not met: no verdict.
    Failed,
    /// Does not apply, or cannot be measured here.
    NotJudged,
}
