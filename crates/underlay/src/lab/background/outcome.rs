//! What the record says of background work: that it began, and what it did. Of real and of simulated
//! work it says the same.
//!
//! Not here: how the work is done and counted.

use serde_json::{Value, json};
use underlay_core::{Histogram, Nanos};
use underlay_record::conventions::{event, finding, histogram_scope};
use underlay_record::{Interval, Severity};
use underlay_study::{BackgroundPlan, BackgroundWork, CopyPlan};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::run_log::RunLog;

/// What the work came to.
pub struct Done {
    /// Whether all of it was done.
    pub complete: bool,
    /// Requests that failed.
    pub errors: u64,
    /// Latencies of reads, from the intended start.
    pub read: Histogram,
    /// Latencies of writes.
    pub write: Histogram,
    /// What ended it early.
    pub failure: Option<String>,
}

/// Requests that succeeded.
#[derive(Clone, Copy)]
pub struct Moved {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub write_bytes: u64,
}

/// Work that has ended.
pub struct Ended<'a> {
    /// What was planned.
    pub plan: &'a BackgroundPlan,
    /// From its beginning to its end.
    pub interval: Interval,
    /// What it moved.
    pub moved: Moved,
    /// What it came to.
    pub done: &'a Done,
}

/// Writes that work began, and until when it is to last.
///
/// # Errors
/// A record that cannot be written.
pub fn began(
    log: &RunLog<'_>,
    plan: &BackgroundPlan,
    (at, until): (Nanos, Option<Nanos>),
    observer: &mut dyn Observer,
) -> Result<(), Abort> {
    let text = format!("{} began: {}", plan.name, plan.work.described());
    observer.notice(&Event::Found { severity: Severity::Information, text: &text });
    let data = json!({ "name": plan.name, "until_ns": until.map(|at| at.0) });
    log.event(event::BACKGROUND, at, &text, data)
}

impl Ended<'_> {
    /// Writes what it did. Returns its part of the run's document of background work.
    ///
    /// # Errors
    /// A record that cannot be written.
    pub fn keep(&self, log: &RunLog<'_>, observer: &mut dyn Observer) -> Result<Value, Abort> {
        let Ended { plan, interval, moved, done } = self;
        for (operation, histogram) in [("read", &done.read), ("write", &done.write)] {
            let name = format!("{}.{operation}", plan.name);
            let mut recorder = log.recorder.lock();
            recorder
                .histogram(log.run, *interval, histogram_scope::BACKGROUND, &name, histogram)
                .during("write the record")?;
        }
        let data = json!({ "name": plan.name });
        let ended = format!("{} ended", plan.name);
        log.event(event::BACKGROUND_END, interval.end, &ended, data)?;
        let severity = match done.errors > 0 || done.failure.is_some() {
            true => Severity::Warning,
            false => Severity::Information,
        };
        let text = said(plan, done, *moved, *interval);
        log.find(severity, finding::BACKGROUND, &text, observer)?;
        Ok(json!({
            "name": plan.name,
            "text": plan.work.described(),
            "began_ns": interval.begin.0,
            "ended_ns": interval.end.0,
            "complete": done.complete,
            "reads": moved.reads,
            "writes": moved.writes,
            "read_bytes": moved.read_bytes,
            "write_bytes": moved.write_bytes,
            "errors": done.errors,
            "failure": done.failure,
        }))
    }
}

/// What it did, in one line. A copy is told as what was copied, which is what its limit is about: its bytes are read once and
/// written once.
fn said(plan: &BackgroundPlan, done: &Done, moved: Moved, interval: Interval) -> String {
    let seconds = interval.seconds().max(f64::MIN_POSITIVE);
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let amount = |bytes: u64, word: &str| {
        let (all, rate) = (megabytes(bytes), megabytes(bytes) / seconds);
        format!("{all:.1} MB{word} in {seconds:.1} s ({rate:.1} MB/s)")
    };
    let (read, written) = (megabytes(moved.read_bytes), megabytes(moved.write_bytes));
    let amounts = match &plan.work {
        BackgroundWork::Copy(CopyPlan { to: None, .. }) => amount(moved.read_bytes, " copied"),
        BackgroundWork::Copy(_) => format!(
            "{}: {read:.1} MB read, {written:.1} MB written",
            amount(moved.read_bytes.min(moved.write_bytes), " copied")
        ),
        BackgroundWork::Load { .. } => format!(
            "{}: {read:.1} MB read, {written:.1} MB written",
            amount(moved.read_bytes + moved.write_bytes, "")
        ),
    };
    let latency = |what: &str, histogram: &Histogram| {
        let p99 = Nanos(histogram.quantile(0.99)?);
        Some(format!("99 % of the {what} took at most {p99}"))
    };
    let latencies: Vec<String> = [latency("reads", &done.read), latency("writes", &done.write)]
        .into_iter()
        .flatten()
        .collect();
    let mut text = format!("{}: {amounts}", plan.name);
    if !latencies.is_empty() {
        text.push_str(&format!("; {}", latencies.join(", ")));
    }
    if matches!(plan.work, BackgroundWork::Copy(_)) && !done.complete {
        text.push_str("; it was stopped before it finished");
    }
    if done.errors > 0 {
        text.push_str(&format!("; {} requests failed", done.errors));
    }
    if let Some(failure) = &done.failure {
        text.push_str(&format!("; it ended early: {failure}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Done, Moved, said};
    use underlay_core::{Bytes, Histogram, Nanos};
    use underlay_record::Interval;
    use underlay_study::{BackgroundPlan, BackgroundWork, CopyPlan, FaultPhase};

    fn copy(to: Option<&str>) -> BackgroundPlan {
        BackgroundPlan {
            name: "copy".to_string(),
            work: BackgroundWork::Copy(CopyPlan {
                from: "data".to_string(),
                to: to.map(str::to_string),
                space: Bytes::from_mib(16),
                block_size: Bytes::from_mib(1),
                queue_depth: 1,
                bytes_per_second: Some(10_000_000),
            }),
            phase: FaultPhase::Measure,
            users: None,
            at: Nanos::ZERO,
            lasts: None,
            designs: vec![0],
            line: 1,
        }
    }

    fn text(to: Option<&str>, read_bytes: u64, write_bytes: u64) -> String {
        let done = Done {
            complete: true,
            errors: 0,
            read: Histogram::new(),
            write: Histogram::new(),
            failure: None,
        };
        let interval = Interval { begin: Nanos::from_secs(3), end: Nanos::from_secs(11) };
        let moved = Moved { reads: 0, writes: 0, read_bytes, write_bytes };
        said(&copy(to), &done, moved, interval)
    }

    /// A copy limited to 10 MB/s that reads and writes at 10 MB/s each has kept its limit.
    #[test]
    fn what_is_copied_is_counted_once() {
        assert_eq!(
            text(Some("backup"), 80_000_000, 80_000_000),
            "copy: 80.0 MB copied in 8.0 s (10.0 MB/s): 80.0 MB read, 80.0 MB written"
        );
        // What could not be written was not copied.
        assert_eq!(
            text(Some("backup"), 80_000_000, 40_000_000),
            "copy: 40.0 MB copied in 8.0 s (5.0 MB/s): 80.0 MB read, 40.0 MB written"
        );
        assert_eq!(text(None, 80_000_000, 0), "copy: 80.0 MB copied in 8.0 s (10.0 MB/s)");
    }
}
