//! The messages between a load generator's process and its controller.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde::{Deserialize, Serialize};
use underlay_core::{Dilation, Histogram, Nanos, RootSeed, Words};
use underlay_database::ErrorClass;
use underlay_database::session::Commits;
use underlay_workload::transactional::{Mix, RunAccounting, Shape, Weights};

use crate::activity::Span;
use crate::arrivals::Arrivals;
use crate::errors::{ErrorCounts, ErrorSample, ErrorSamples};
use crate::outage::Outage;
use crate::spec::{DriveSpec, Pacing};
use crate::summary::{Delivery, DriveSummary};
use crate::tick::{ArrivalTick, ConnectTick, DriveTick, ServerCpu, ThreadLoad, TypeTick, Users};

/// Commands to the process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Command {
    SetUsers(u32),
    SetRate {
        rate_per_second: f64,
        ramp_ns: u64,
    },
    /// None: as the workload prescribes.
    SetMix(Option<Vec<u32>>),
    SetSlowdown {
        cpu: f64,
        connections: f64,
    },
    Tick,
    /// The last command.
    Stop,
}

/// Its answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Done,
    Tick(Box<TickLine>),
    Summary(Box<SummaryLine>),
    Refused(String),
}

/// [`DriveSpec`] for another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SpecLine {
    inputs: u64,
    max_users: u32,
    connections: Option<u32>,
    threads: Option<usize>,
    pacing: PacingLine,
    statement_timeout_ns: u64,
    stop_grace_ns: u64,
    dilation: u32,
    shares_server_cpu: bool,
    server_is_here: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PacingLine {
    Closed { key_think: f64 },
    Open { rate_per_second: f64, arrivals: String, ramp_ns: u64, queue_limit: u32 },
}

impl From<&DriveSpec> for SpecLine {
    fn from(spec: &DriveSpec) -> SpecLine {
        SpecLine {
            inputs: spec.inputs.0,
            max_users: spec.max_users,
            connections: spec.connections,
            threads: spec.threads,
            pacing: match spec.pacing {
                Pacing::Closed { key_think } => PacingLine::Closed { key_think },
                Pacing::Open { rate_per_second, arrivals, ramp, queue_limit } => PacingLine::Open {
                    rate_per_second,
                    arrivals: arrivals.word().to_string(),
                    ramp_ns: ramp.0,
                    queue_limit,
                },
            },
            statement_timeout_ns: Nanos::from(spec.statement_timeout).0,
            stop_grace_ns: Nanos::from(spec.stop_grace).0,
            dilation: spec.dilation.factor(),
            shares_server_cpu: spec.shares_server_cpu,
            server_is_here: spec.server_is_here,
        }
    }
}

impl SpecLine {
    /// The specification; `None` when the line is of another program.
    pub fn spec(&self) -> Option<DriveSpec> {
        Some(DriveSpec {
            inputs: RootSeed(self.inputs),
            max_users: self.max_users,
            connections: self.connections,
            threads: self.threads,
            pacing: match &self.pacing {
                PacingLine::Closed { key_think } => Pacing::Closed { key_think: *key_think },
                PacingLine::Open { rate_per_second, arrivals, ramp_ns, queue_limit } => {
                    Pacing::Open {
                        rate_per_second: *rate_per_second,
                        arrivals: Arrivals::from_word(arrivals)?,
                        ramp: Nanos(*ramp_ns),
                        queue_limit: *queue_limit,
                    }
                }
            },
            statement_timeout: Duration::from_nanos(self.statement_timeout_ns),
            stop_grace: Duration::from_nanos(self.stop_grace_ns),
            dilation: Dilation::new(self.dilation)?,
            shares_server_cpu: self.shares_server_cpu,
            server_is_here: self.server_is_here,
        })
    }
}

/// A mix for another process.
pub(super) fn mix_line(mix: &Mix) -> Option<Vec<u32>> {
    match mix {
        Mix::Prescribed => None,
        // They were 32 bits wide when they were set.
        Mix::Weighted(weights) => {
            Some(weights.values().map(|weight| u32::try_from(weight).unwrap_or(u32::MAX)).collect())
        }
    }
}

/// The mix of a line; `None` when it is none.
pub(super) fn mix_of(line: Option<&[u32]>) -> Option<Mix> {
    match line {
        None => Some(Mix::Prescribed),
        Some(weights) => Weights::new(weights).ok().map(Mix::Weighted),
    }
}

/// [`DriveTick`], without the shape, which both ends know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TickLine {
    span: (u64, u64),
    types: Vec<TypeLine>,
    /// Due, taken, overflowed, queued, overdue.
    arrivals: [u64; 5],
    /// Opened, lost.
    connects: [u64; 2],
    connect_errors: Vec<u64>,
    /// Active, ready, in transaction, stalled, sessions.
    users: [u32; 5],
    oldest_attempt_ns: u64,
    dispatch_lag: String,
    thread_cpu_ns: Vec<u64>,
    busiest: [u64; 2],
    held_back_ns: u64,
    memory: u64,
    late_threads: u32,
    samples: Vec<SampleLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TypeLine {
    /// Committed, rolled back, failed, unknown, abandoned, retries.
    counts: [u64; 6],
    errors: Vec<u64>,
    /// Response, service, admission wait, pool wait, retry wait.
    times: [String; 5],
    /// Transactions, ns.
    server_cpu: [u64; 2],
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SampleLine {
    at_ns: u64,
    class: usize,
    sqlstate: Option<String>,
    message: String,
    is_denial: bool,
}

/// [`DriveSummary`], without what follows from the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SummaryLine {
    last_tick: TickLine,
    totals: TickLine,
    accounting: String,
    outages: Vec<OutageLine>,
    longest_silence: Option<(u64, u64)>,
    commits_unknown: u64,
    /// By type, in the order of the shape: statements that commit automatically; `None` = explicitly.
    commits: Vec<Option<u32>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OutageLine {
    first_error_ns: u64,
    last_error_ns: u64,
    recovered_ns: Option<u64>,
    restored_ns: Option<u64>,
    errors: u64,
    users_affected: u32,
    commits_unknown: u64,
    silence: Option<(u64, u64)>,
}

fn histogram_line(histogram: &Histogram) -> String {
    BASE64_STANDARD.encode(histogram.encode())
}

fn histogram_of(line: &str) -> Option<Histogram> {
    Histogram::decode(&BASE64_STANDARD.decode(line).ok()?).ok()
}

fn span_line(span: &Span) -> (u64, u64) {
    (span.begin.0, span.end.0)
}

fn span_of((begin, end): (u64, u64)) -> Span {
    Span { begin: Nanos(begin), end: Nanos(end) }
}

fn errors_line(errors: &ErrorCounts) -> Vec<u64> {
    errors.iter().map(|(_, count)| count).collect()
}

fn errors_of(line: &[u64]) -> Option<ErrorCounts> {
    Some(ErrorCounts(line.try_into().ok()?))
}

impl From<&TypeTick> for TypeLine {
    fn from(tick: &TypeTick) -> TypeLine {
        TypeLine {
            counts: [
                tick.committed,
                tick.rolled_back,
                tick.failed,
                tick.unknown,
                tick.abandoned,
                tick.retries,
            ],
            errors: errors_line(&tick.errors),
            times: [
                &tick.response,
                &tick.service,
                &tick.admission_wait,
                &tick.pool_wait,
                &tick.retry_wait,
            ]
            .map(histogram_line),
            server_cpu: [tick.server_cpu.transactions, tick.server_cpu.ns],
        }
    }
}

impl TypeLine {
    fn tick(&self) -> Option<TypeTick> {
        let [committed, rolled_back, failed, unknown, abandoned, retries] = self.counts;
        let [response, service, admission_wait, pool_wait, retry_wait] = &self.times;
        Some(TypeTick {
            committed,
            rolled_back,
            failed,
            unknown,
            abandoned,
            retries,
            errors: errors_of(&self.errors)?,
            response: histogram_of(response)?,
            service: histogram_of(service)?,
            admission_wait: histogram_of(admission_wait)?,
            pool_wait: histogram_of(pool_wait)?,
            retry_wait: histogram_of(retry_wait)?,
            server_cpu: ServerCpu { transactions: self.server_cpu[0], ns: self.server_cpu[1] },
        })
    }
}

impl From<&DriveTick> for TickLine {
    fn from(tick: &DriveTick) -> TickLine {
        let ArrivalTick { due, taken, overflowed, queued, overdue } = tick.arrivals;
        let Users { active, ready, in_transaction, stalled, oldest_attempt, sessions } = tick.users;
        TickLine {
            span: (tick.begin.0, tick.end.0),
            types: tick.types.iter().map(TypeLine::from).collect(),
            arrivals: [due, taken, overflowed, queued, overdue],
            connects: [tick.connects.opened, tick.connects.lost],
            connect_errors: errors_line(&tick.connects.errors),
            users: [active, ready, in_transaction, stalled, sessions],
            oldest_attempt_ns: oldest_attempt.0,
            dispatch_lag: histogram_line(&tick.dispatch_lag),
            thread_cpu_ns: tick.thread_cpu_ns.clone(),
            busiest: [tick.busiest.cpu_ns, tick.busiest.queue_ns],
            held_back_ns: tick.held_back_ns,
            memory: tick.memory.0,
            late_threads: tick.late_threads,
            samples: tick.samples.iter().map(SampleLine::from).collect(),
        }
    }
}

impl TickLine {
    /// The tick; `None` when the line is of another program.
    pub(super) fn tick(&self, shape: &'static Shape) -> Option<DriveTick> {
        let types: Option<Vec<_>> = self.types.iter().map(TypeLine::tick).collect();
        let types = types.filter(|types| types.len() == shape.types.len())?;
        let [due, taken, overflowed, queued, overdue] = self.arrivals;
        let [active, ready, in_transaction, stalled, sessions] = self.users;
        let mut samples = ErrorSamples::default();
        for line in &self.samples {
            let sample = line.sample()?;
            let class = sample.class.index();
            samples.0[class] = Some(sample);
        }
        Some(DriveTick {
            begin: Nanos(self.span.0),
            end: Nanos(self.span.1),
            shape,
            types,
            arrivals: ArrivalTick { due, taken, overflowed, queued, overdue },
            connects: ConnectTick {
                opened: self.connects[0],
                lost: self.connects[1],
                errors: errors_of(&self.connect_errors)?,
            },
            users: Users {
                active,
                ready,
                in_transaction,
                stalled,
                oldest_attempt: Nanos(self.oldest_attempt_ns),
                sessions,
            },
            dispatch_lag: histogram_of(&self.dispatch_lag)?,
            cpu_ns: self.thread_cpu_ns.iter().sum(),
            thread_cpu_ns: self.thread_cpu_ns.clone(),
            busiest: ThreadLoad { cpu_ns: self.busiest[0], queue_ns: self.busiest[1] },
            held_back_ns: self.held_back_ns,
            memory: underlay_core::Bytes(self.memory),
            late_threads: self.late_threads,
            samples,
        })
    }
}

impl From<&ErrorSample> for SampleLine {
    fn from(sample: &ErrorSample) -> SampleLine {
        SampleLine {
            at_ns: sample.at.0,
            class: sample.class.index(),
            sqlstate: sample.sqlstate.clone(),
            message: sample.message.clone(),
            is_denial: sample.is_denial,
        }
    }
}

impl SampleLine {
    fn sample(&self) -> Option<ErrorSample> {
        Some(ErrorSample {
            at: Nanos(self.at_ns),
            class: *ErrorClass::ALL.get(self.class)?,
            sqlstate: self.sqlstate.clone(),
            message: self.message.clone(),
            is_denial: self.is_denial,
        })
    }
}

impl From<&Outage> for OutageLine {
    fn from(outage: &Outage) -> OutageLine {
        OutageLine {
            first_error_ns: outage.first_error.0,
            last_error_ns: outage.last_error.0,
            recovered_ns: outage.recovered.map(|at| at.0),
            restored_ns: outage.restored.map(|at| at.0),
            errors: outage.errors,
            users_affected: outage.users_affected,
            commits_unknown: outage.commits_unknown,
            silence: outage.silence.as_ref().map(span_line),
        }
    }
}

impl OutageLine {
    fn outage(&self) -> Outage {
        Outage {
            first_error: Nanos(self.first_error_ns),
            last_error: Nanos(self.last_error_ns),
            recovered: self.recovered_ns.map(Nanos),
            restored: self.restored_ns.map(Nanos),
            errors: self.errors,
            users_affected: self.users_affected,
            commits_unknown: self.commits_unknown,
            silence: self.silence.map(span_of),
        }
    }
}

impl<B: RunAccounting> From<&DriveSummary<B>> for SummaryLine {
    fn from(summary: &DriveSummary<B>) -> SummaryLine {
        SummaryLine {
            last_tick: (&summary.last_tick).into(),
            totals: (&summary.totals).into(),
            accounting: BASE64_STANDARD.encode(summary.accounting.encode()),
            outages: summary.outages.iter().map(OutageLine::from).collect(),
            longest_silence: summary.longest_silence.as_ref().map(span_line),
            commits_unknown: summary.commits_unknown,
            commits: summary
                .commits
                .iter()
                .map(|(_, commits)| match commits {
                    Commits::Explicitly => None,
                    Commits::Automatically(statements) => Some(*statements),
                })
                .collect(),
        }
    }
}

impl SummaryLine {
    /// The summary; `None` when the line is of another program.
    pub(super) fn summary<B: RunAccounting>(
        &self,
        shape: &'static Shape,
    ) -> Option<DriveSummary<B>> {
        let totals = self.totals.tick(shape)?;
        let commits = self.commits.iter().map(|commits| match commits {
            None => Commits::Explicitly,
            Some(statements) => Commits::Automatically(*statements),
        });
        Some(DriveSummary {
            last_tick: self.last_tick.tick(shape)?,
            accounting: B::decode(&BASE64_STANDARD.decode(&self.accounting).ok()?)?,
            outages: self.outages.iter().map(OutageLine::outage).collect(),
            longest_silence: self.longest_silence.map(span_of),
            commits_unknown: self.commits_unknown,
            delivery: Delivery::of(&totals),
            commits: shape.types.iter().copied().zip(commits).collect(),
            totals,
        })
    }
}
