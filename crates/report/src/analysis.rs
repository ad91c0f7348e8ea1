//! The analysis of a record as plain, serialisable values: what pages, terminals and programs show.
//!
//! Conventions of the JSON form, everywhere:
//!
//! - Times are seconds since the begin of their run, latencies nanoseconds, shares lie in `0..=1`, rates are
//!   per second or per minute as their metric's unit says ([`Metric`]).
//! - A value that could not be computed is `null`, never zero.
//! - Enumerations are lower-case words with hyphens.
//! - Designs, runs and series are referred to by their position in [`Analysis::designs`],
//!   [`Analysis::runs`] and [`Timelines::series`].
//!
//! What is deliberately not here: any computation (see the other modules) and any wording of pages beyond
//! the sentences that must be the same everywhere.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// Version of the JSON form: raised when a field changes its meaning or disappears.
pub const ANALYSIS_FORMAT: u32 = 1;

/// Everything that a report shows about one record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// [`ANALYSIS_FORMAT`].
    pub format: u32,
    /// What was executed.
    pub study: Study,
    /// The answer to the study's question.
    pub verdict: Verdict,
    /// The designs, in the order of the plan.
    pub designs: Vec<Design>,
    /// Every pair of designs, per rung and at their peaks.
    pub comparisons: Vec<Comparison>,
    /// One per design and number of users, ordered by design, then users.
    pub rungs: Vec<Rung>,
    /// The best rung of each design.
    pub peaks: Vec<Peak>,
    /// Where the sessions' time went and what limits, one per rung; same order as `rungs`.
    pub bottlenecks: Vec<Bottleneck>,
    /// Response time distributions per design, users and transaction type.
    pub distributions: Vec<Distribution>,
    /// All runs, also replaced and failed ones, in the order of execution.
    pub runs: Vec<Run>,
    /// The measured windows: one per counted run and rung.
    pub windows: Vec<Window>,
    /// What happened over time in each counted run.
    pub timelines: Timelines,
    /// Consistency checks of all runs that were not replaced, also of failed ones.
    pub checks: Vec<Check>,
    /// Everything the reader must know, gravest first.
    pub findings: Vec<Finding>,
    /// Everything that differs between the designs, asked or not.
    pub confounds: Vec<Confound>,
    /// Every setting: plan, engine, datastore, host.
    pub settings: Vec<Setting>,
    /// The sources of ticks per run and whether they worked.
    pub sources: Vec<Source>,
    /// How well the emulated datastore kept its times, per counted run; empty when nothing is emulated.
    pub emulation: Vec<Emulation>,
    /// What the load generator itself cost, one per rung; same order as `rungs`.
    pub driver: Vec<DriverLoad>,
    /// Results published by others for these designs.
    pub published: Vec<Published>,
    /// Facts about the host, as recorded.
    pub host: Value,
    /// Versions, as recorded.
    pub software: Value,
    /// Definitions, the disclaimer and the deviations from the standard.
    pub method: Method,
}

/// What was executed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// Key of the study.
    pub name: String,
    /// Title for readers.
    pub title: String,
    /// The question it asks.
    pub question: String,
    /// The weakest kind of evidence among the designs.
    pub evidence: EvidenceKind,
    /// Root seed, decimal (64 bits, therefore text).
    pub seed: String,
    /// Identity of the workload.
    pub identity: String,
    /// Begin, nanoseconds since the Unix epoch (a JSON reader may round it to microseconds).
    pub started_wall_ns: u64,
    /// End; `null` while it is being executed or after its writer was killed.
    pub finished_wall_ns: Option<u64>,
    /// `running`, `finished`, `failed` or `cancelled`.
    pub status: String,
    /// Processes that wrote the record: more than 1 when the execution was resumed.
    pub sessions: u32,
}

/// The kind of evidence a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// A real database on a real datastore.
    Measured,
    /// A real database on modelled devices.
    Emulated,
    /// Virtual time.
    Simulated,
}

impl EvidenceKind {
    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            EvidenceKind::Measured => "measured",
            EvidenceKind::Emulated => "emulated",
            EvidenceKind::Simulated => "simulated",
        }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The answer in one sentence of plain words.
    pub headline: String,
    /// Which kind of answer it is.
    pub answer: Answer,
    /// Sentences that support it: by how much, how sure, why.
    pub support: Vec<String>,
    /// How sure the answer is.
    pub confidence: Confidence,
    /// What the confidence rests on, or what keeps it from being higher; one clause each.
    pub confidence_reasons: Vec<String>,
    /// The winning design; `null` unless `answer` is `winner`.
    pub winner: Option<usize>,
    /// The design it is compared with in the headline: the next best one.
    pub against: Option<usize>,
    /// New orders per minute of `winner` over those of `against`, in the headline's rung.
    pub ratio: Option<Ratio>,
    /// Users of the headline's rung.
    pub users: Option<u32>,
}

/// The kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// One design is ahead of all others, and the intervals say so.
    Winner,
    /// The interval includes 1.
    NoDifferenceShown,
    /// The designs were shown to be equal within the margin of equivalence.
    Equivalent,
    /// A difference was seen, but one run per design allows no interval.
    NotRepeated,
    /// The numbers may not be compared; the headline says why.
    NotComparable,
    /// The results are invalid: a consistency check failed or the load was not what was asked for.
    Invalid,
    /// Only one design was executed.
    SingleDesign,
    /// No measured window is there yet.
    NoData,
}

/// How sure a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Nothing can be said.
    None,
    /// A hint.
    Low,
    /// Likely.
    Medium,
    /// As sure as this method gets.
    High,
}

impl Confidence {
    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Confidence::None => "none",
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// A number with its 95 % interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// The best single number: the mean over the runs, or the quantile of the merged distribution.
    pub value: Option<f64>,
    /// Lower end of the interval; `null` when no interval is possible.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// What the interval covers.
    pub basis: Basis,
    /// The number in each run, in the order of execution; `null` where a run lacks it.
    pub runs: Vec<Option<f64>>,
}

/// What an interval covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Variation from run to run: Student's t over the runs.
    Runs,
    /// Variation within one run only (batch means): says nothing about the next run.
    WithinRun,
    /// Variation within the runs: bootstrap over blocks of 10 s of the merged histograms.
    Bootstrap,
    /// No interval.
    #[default]
    None,
}

/// A ratio with its 95 % interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Lower end; `null` with a single pair.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// One of the designs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Design {
    /// Key in the study.
    pub name: String,
    /// Name for readers.
    pub title: String,
    /// A sentence or two.
    pub description: String,
    /// What kind of evidence its numbers are.
    pub evidence: EvidenceKind,
    /// Facts for readers: name and value.
    pub facts: Vec<(String, String)>,
}

/// Design `b` against design `a`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The base.
    pub a: usize,
    /// What is compared with it.
    pub b: usize,
    /// Where they are compared.
    pub scope: Scope,
    /// Users of the rung; `null` at the peaks, which may lie at different numbers of users.
    pub users: Option<u32>,
    /// Name of the metric (see [`Method::metrics`]).
    pub metric: String,
    /// b over a; `null` when one of the two has no value.
    pub ratio: Option<f64>,
    /// Lower end of the 95 % interval of the ratio.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Pairs of runs (same repeat) behind it.
    pub pairs: usize,
    /// How the interval was computed.
    pub method: RatioMethod,
    /// Two-sided p of "no difference".
    pub p: Option<f64>,
    /// The same after Holm's correction over the rungs of this pair and metric.
    pub p_adjusted: Option<f64>,
    /// p of the sign-flip permutation test, which assumes no distribution; its smallest possible value
    /// is `2 / 2^pairs`.
    pub p_permutation: Option<f64>,
    /// p of the test for equivalence (TOST): small = shown to be equal within the margin.
    pub p_equivalence: Option<f64>,
    /// What follows.
    pub outcome: Outcome,
    /// The same in words.
    pub text: String,
}

/// Where two designs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// At the same number of users.
    Rung,
    /// Each at its own best rung.
    Peak,
}

/// How the interval of a ratio was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatioMethod {
    /// Student's t over the logarithms of the ratios of paired runs.
    PairedLogRatio,
    /// Welch's t over the logarithms of the runs' means.
    Welch,
    /// A single pair: no interval.
    Single,
}

/// What a comparison shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// b is better than a.
    Better,
    /// b is worse than a.
    Worse,
    /// Equal within the margin of equivalence.
    Equivalent,
    /// No difference shown.
    Undecided,
    /// The interval excludes 1, but so would one of so many by chance: not confirmed after the
    /// correction for the number of rungs.
    Suggested,
    /// One pair: nothing can be said about chance.
    Single,
    /// One of the two has no value here.
    Missing,
}

/// One design at one number of users, over all its counted runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rung {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// Metric name -> number; see [`Method::metrics`] for titles, units and definitions.
    pub metrics: BTreeMap<String, Estimate>,
    /// Latency per transaction type, in the order of the standard.
    pub latencies: Vec<LatencyRow>,
    /// Load and latency per volume.
    pub volumes: Vec<VolumeRow>,
}

/// The best rung of a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// The design.
    pub design: usize,
    /// Where its mean throughput is highest.
    pub users: u32,
    /// New orders per minute there.
    pub nopm: Estimate,
    /// The transaction type whose 90th percentile exceeds the limit of the standard there, if one does.
    pub exceeds_limit: Option<String>,
}

/// Latency of one transaction type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyRow {
    /// The type: `new_order`.
    pub transaction: String,
    /// Transactions counted over all runs.
    pub count: u64,
    /// Response time: nanoseconds from the intended start.
    pub p50: Estimate,
    /// 95th percentile.
    pub p95: Estimate,
    /// 99th percentile.
    pub p99: Estimate,
    /// The mean, exact.
    pub mean_ns: Option<f64>,
    /// The largest, exact.
    pub max_ns: Option<u64>,
    /// 99th percentile of the service time (from the actual start).
    pub service_p99_ns: Option<u64>,
    /// Errors of all classes.
    pub errors: u64,
}

/// Load and latency of one volume.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeRow {
    /// The volume: `data`, `wal`, ...
    pub volume: String,
    /// Metric name -> number.
    pub metrics: BTreeMap<String, Estimate>,
}

/// Where the sessions' time went at one rung, and what limits throughput.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// What limits: a [`TimeClass`] word, or `load-generator`, `offered-load`, `network`,
    /// `cpu-starved`, `mixed`, `inconclusive`.
    pub class: String,
    /// The same in words, with the numbers.
    pub sentence: String,
    /// How it limits.
    pub mode: LimitMode,
    /// How sure that is.
    pub confidence: Confidence,
    /// Session-seconds per second by class, largest first; they sum up to about the number of users.
    pub budget: Vec<BudgetPart>,
    /// Sum of the budget over the number of users: 1 when it closes; `null` without a budget.
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
#[serde(rename_all = "kebab-case")]
pub enum TimeClass {
    /// The load generator's own CPU and run-queue time.
    Driver,
    /// The client otherwise: think time, network, waking up.
    Client,
    /// Server on CPU.
    Cpu,
    /// Server waiting for a CPU.
    RunQueue,
    /// Waiting for the log (WAL).
    Log,
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
pub struct RuledOut {
    /// The class, in the words of [`Bottleneck::class`].
    pub class: String,
    /// The number that rules it out.
    pub reason: String,
}

/// A condition for a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
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

/// A response time distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// The transaction type.
    pub transaction: String,
    /// Transactions counted.
    pub count: u64,
    /// Share of the transactions that took at most the time in `nanos`; ascending, the last is 1.
    pub shares: Vec<f64>,
    /// Response times, nanoseconds; same length as `shares`.
    pub nanos: Vec<u64>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Its id in the record.
    pub id: i64,
    /// The design.
    pub design: usize,
    /// Which repeat, from 1.
    pub repeat: u32,
    /// Position in the schedule, from 1.
    pub order: u32,
    /// `running`, `finished`, `failed` or `interrupted`.
    pub status: String,
    /// Why it did not finish.
    pub reason: Option<String>,
    /// Whether its numbers are used: finished and not replaced.
    pub counted: bool,
    /// Id of the run that replaced it.
    pub superseded_by: Option<i64>,
    /// Wall clock time of its begin, nanoseconds since the Unix epoch.
    pub begin_wall_ns: u64,
    /// Its length in seconds; `null` while it runs.
    pub seconds: Option<f64>,
    /// Its phases.
    pub phases: Vec<Phase>,
    /// What happened to it: checkpoints, faults, outages.
    pub events: Vec<Event>,
    /// Remarks of samplers: facts found at the start, later failures and recoveries. Not for charts.
    pub notes: Vec<Event>,
}

/// A phase of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// `restore`, `start`, `warm-up`, `ramp-up`, `measure`, ...
    pub kind: String,
    /// For readers.
    pub label: String,
    /// Virtual users, in phases with load.
    pub users: Option<u32>,
    /// Begin, seconds since the begin of the run.
    pub begin_s: f64,
    /// End; `null` while it runs.
    pub end_s: Option<f64>,
    /// `running`, `finished`, `failed`, `interrupted` or `skipped`.
    pub status: String,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Seconds since the begin of the run.
    pub at_s: f64,
    /// End, for events that last (checkpoints); `null` for instants.
    pub until_s: Option<f64>,
    /// Stable word.
    pub kind: String,
    /// For readers.
    pub text: String,
}

/// A measured window: one rung in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Window {
    /// The run (position in [`Analysis::runs`]).
    pub run: usize,
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// Begin, seconds since the begin of the run.
    pub begin_s: f64,
    /// End.
    pub end_s: f64,
    /// New orders per minute, with its batch-means interval.
    pub nopm: Estimate,
    /// Metric name -> number in this window.
    pub metrics: BTreeMap<String, Option<f64>>,
    /// Whether throughput was steady.
    pub steady: Steady,
}

/// Whether throughput was steady over a window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steady {
    /// The judgement.
    pub state: SteadyState,
    /// The same in words, with the numbers; also what could not be judged and why.
    pub text: String,
    /// Seconds that MSER-5 would cut from the begin.
    pub trimmed_s: Option<f64>,
    /// Relative change over the window along the trend.
    pub drift: Option<f64>,
    /// Times of level changes, seconds since the begin of the run.
    pub change_points_s: Vec<f64>,
    /// Effective number of independent seconds.
    pub effective_samples: Option<f64>,
}

/// Judgements of steadiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteadyState {
    /// Nothing speaks against it.
    Steady,
    /// A trend, a step or a long warm-up lies inside the window.
    NotSteady,
    /// The window is too short to tell.
    TooShort,
}

/// What happened over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timelines {
    /// What is drawn, in the order of the layers from the user down.
    pub series: Vec<TimelineSeries>,
    /// One per run and series that has data.
    pub lines: Vec<TimelineLine>,
}

/// A derived series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineSeries {
    /// Stable name: `nopm`, `latency.new_order.p99`, `volume.data.read_iops`, `wait.log`.
    pub name: String,
    /// For readers.
    pub title: String,
    /// `driver`, `database`, `host`, `block`, `datastore` or `underlay`.
    pub layer: String,
    /// Unit of the values: `1/min`, `1/s`, `ns`, `bytes/s`, `share`, `sessions`, `bytes`, `cores`.
    pub unit: String,
    /// Series that belong into one chart have the same group: `throughput`, `latency`, `budget`.
    pub group: String,
}

/// The values of one series in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimelineLine {
    /// The run (position in [`Analysis::runs`]).
    pub run: usize,
    /// The series (position in [`Timelines::series`]).
    pub series: usize,
    /// Begin of the first bucket, seconds since the begin of the run.
    pub begin_s: f64,
    /// Length of a bucket, seconds. At most 1800 buckets.
    pub step_s: f64,
    /// Mean of each bucket.
    pub mean: Vec<Option<f64>>,
    /// Smallest and largest second of each bucket; `null` when each bucket holds one second.
    pub min: Option<Vec<Option<f64>>>,
    /// See `min`.
    pub max: Option<Vec<Option<f64>>>,
}

/// A consistency check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The run (position in [`Analysis::runs`]).
    pub run: usize,
    /// `before` or `after` the load.
    pub moment: String,
    /// Short identity.
    pub id: String,
    /// What it verifies.
    pub title: String,
    /// `ok`, `violated` or `failed`.
    pub outcome: String,
    /// Rows that violate it.
    pub rows: Option<u64>,
    /// An example, or why the check could not be made.
    pub detail: Option<String>,
}

/// Something the reader must know.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub severity: FindingSeverity,
    /// Stable word.
    pub code: String,
    /// The sentence.
    pub text: String,
    /// The design it concerns, if only one.
    pub design: Option<usize>,
    /// The run (position in [`Analysis::runs`]) it concerns, if only one.
    pub run: Option<usize>,
    /// The rung it concerns, if only one.
    pub users: Option<u32>,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingSeverity {
    /// The result is no evidence for its question.
    Invalid,
    /// Measured, but suspicious.
    Warning,
    /// Worth knowing.
    Information,
}

/// A difference between the designs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confound {
    /// Where: `engine.settings.wal_level`.
    pub path: String,
    /// The value of each design, in their order; `null` where a design has none.
    pub values: Vec<Option<String>>,
    /// Whether it belongs to what the study asks about (the storage).
    pub asked: bool,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// `plan`, `engine`, `datastore`, `host` or `software`.
    pub group: String,
    /// Where: `procedure.measure`.
    pub path: String,
    /// The value; when `design` is `null`, of all designs.
    pub value: String,
    /// Where it came from: `study.toml:12`, `default`, `command line`, `in force`.
    pub origin: String,
    /// The design it holds for, if only one.
    pub design: Option<usize>,
}

/// A source of ticks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Source {
    /// The run (position in [`Analysis::runs`]).
    pub run: usize,
    /// Its name.
    pub name: String,
    /// Its layer.
    pub layer: String,
    /// `available`, `degraded` or `absent`.
    pub status: String,
    /// Why it is not available.
    pub reason: Option<String>,
    /// Number of its series.
    pub series: usize,
    /// Ticks recorded.
    pub ticks: usize,
    /// Longest time between two ticks, seconds.
    pub longest_gap_s: Option<f64>,
}

/// How well an emulated datastore kept its times in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Emulation {
    /// The run (position in [`Analysis::runs`]).
    pub run: usize,
    /// Whether its timing can be trusted; `null` when the record does not say.
    pub valid: Option<bool>,
    /// Why not.
    pub reason: Option<String>,
    /// Share of the requests that the host itself made late.
    pub host_limited_share: Option<f64>,
    /// Median modelled latency, nanoseconds.
    pub modelled_p50_ns: Option<u64>,
    /// 99th percentile of the modelled latency.
    pub modelled_p99_ns: Option<u64>,
    /// Median of actual completion minus deadline.
    pub lateness_p50_ns: Option<u64>,
    /// Its 99th percentile.
    pub lateness_p99_ns: Option<u64>,
}

/// What the load generator cost at one rung.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriverLoad {
    /// The design.
    pub design: usize,
    /// Virtual users.
    pub users: u32,
    /// Processors it used, mean.
    pub cores: Option<f64>,
    /// The same as a share of the host's processors.
    pub share_of_host: Option<f64>,
    /// CPU-seconds per 10,000 new orders.
    pub cpu_seconds_per_10000: Option<f64>,
    /// 99th percentile of actual minus intended dispatch, nanoseconds.
    pub dispatch_lag_p99_ns: Option<u64>,
    /// Whether the generator was the limit.
    pub saturated: Option<bool>,
}

/// Results published by others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    /// The design.
    pub design: usize,
    /// `nopm`, `tpm`, `tpm_per_user`, `cpu_idle`.
    pub metric: String,
    /// Users of each value.
    pub users: Vec<u32>,
    /// The values.
    pub values: Vec<f64>,
    /// Document and figure.
    pub source: String,
    /// What to know before comparing.
    pub note: String,
}

/// How the numbers were made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// The metrics that occur in `rungs`, `windows` and `comparisons`.
    pub metrics: Vec<Metric>,
    /// Terms and what they mean here.
    pub definitions: Vec<(String, String)>,
    /// What the results must not be taken for.
    pub disclaimer: String,
    /// Where the workload deviates from the standard it is derived from.
    pub deviations: Vec<String>,
}

/// A metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Its name in maps.
    pub name: String,
    /// For readers.
    pub title: String,
    /// Unit: `1/min`, `1/s`, `ns`, `bytes/s`, `share`, `cores`, `requests`.
    pub unit: String,
    /// Which direction is better.
    pub better: Direction,
    /// How it is computed.
    pub definition: String,
}

/// Which direction of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neither,
}
