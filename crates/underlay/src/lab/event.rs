//! What the lab says while it works, as typed events.
//!
//! The lab prints nothing. The terminal, and machine output, are consumers of these events; the record
//! is written separately, because it must also contain what no consumer shows.

use std::path::Path;
use underlay_core::{Bytes, Dilation, Nanos};
use underlay_record::{CheckMoment, PhaseKind, RunStatus, Severity};

/// One thing that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// The execution of the study began or goes on.
    Began {
        /// Where the record is.
        record: &'a Path,
        /// Runs that an earlier, killed execution had finished.
        runs_done: usize,
        /// Runs of the whole schedule.
        runs: usize,
        /// Expected wall time of what is left.
        expected: Nanos,
        /// How many times longer than what it stands for.
        dilation: Dilation,
        /// Whether the workload is a job, which has sessions and no users.
        is_job: bool,
        /// Whether the workload is a block load: what are users elsewhere are requests in flight per volume.
        is_block_load: bool,
    },
    /// Something a killed run had left was removed before anything began.
    CleanedUp(&'a str),
    /// The database that all runs start from is being loaded.
    TemplateLoading {
        /// Share done, `0.0..=1.0`.
        share: f64,
        /// Rows written so far.
        rows: u64,
    },
    /// The database that all runs start from is there.
    TemplateReady {
        /// Whether an earlier execution had loaded it.
        reused: bool,
        /// Its size.
        size: Bytes,
        /// What making or verifying it took.
        elapsed: Nanos,
    },
    /// A run began.
    RunBegan {
        /// Position in the schedule, from 1.
        position: usize,
        /// Runs of the schedule.
        runs: usize,
        /// Title of the design.
        design: &'a str,
        /// Repeat, from 1.
        repeat: u32,
    },
    /// A phase of the run began.
    PhaseBegan {
        /// What it does.
        kind: PhaseKind,
        /// Virtual users, in phases with load.
        users: Option<u32>,
        /// How long it is planned to take, if that is known.
        expected: Option<Nanos>,
    },
    /// A second of load went by.
    Second {
        /// The workload's headline in that second: for TPC-C new orders per minute.
        headline: f64,
        /// Its unit.
        unit: &'static str,
        /// What is counted, in the plural.
        counted: &'static str,
        /// So many of it per second: of a job, whose headline is not made of seconds.
        counted_per_second: f64,
        /// Virtual users active, of a job its sessions.
        users: u32,
        /// p99 response time of what the headline counts, in that second.
        response_p99: Option<Nanos>,
        /// Errors in that second.
        errors: u64,
    },
    /// The consistency checks were made.
    Checked {
        /// Before or after the load.
        moment: CheckMoment,
        /// Checks made.
        checks: usize,
        /// Checks violated, or that could not be made.
        failed: usize,
    },
    /// Something that the study scheduled happened, or ended.
    Happened {
        /// What.
        text: &'a str,
    },
    /// Something the reader of the result must know.
    Found {
        /// How grave.
        severity: Severity,
        /// The sentence.
        text: &'a str,
    },
    /// A run ended.
    RunEnded {
        /// How.
        status: RunStatus,
        /// The unit of the headline: `NOPM`.
        unit: &'a str,
        /// The headline at each rung.
        rungs: &'a [(u32, f64)],
        /// The cause, when it did not finish.
        reason: Option<&'a str>,
    },
    /// Everything is over; the record is closed.
    Ended,
}

/// Who is told.
pub trait Observer {
    /// Called in order, from one thread.
    fn notice(&mut self, event: &Event<'_>);
}
