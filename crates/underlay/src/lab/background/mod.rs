//! Background work: block loads on volumes and copies of volumes, started and stopped as scheduled.
//!
//! Each has a thread of its own and does its I/O through `blockio`. What it does is counted for the sampler while
//! it runs, and written to the record when it has ended. It never ends a run: failed requests are counted.

mod sampler;
mod work;

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use underlay_blockio::IoGauge;
use underlay_core::{Histogram, Nanos, RootSeed};
use underlay_datastore::MountedVolume;
use underlay_record::conventions::{document, event, finding, histogram_scope};
use underlay_record::{Interval, PhaseKind, Severity};
use underlay_study::{BackgroundPlan, BackgroundWork, CopyPlan, Plan};

use self::sampler::BackgroundSampler;
use self::work::{Done, Ready, ready, work};
use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::run_log::RunLog;
use crate::lab::schedule::{Act, Schedule};

/// All background work of one run.
pub struct Background<'a> {
    log: RunLog<'a>,
    schedule: Schedule<Entry<'a>>,
    done: Vec<Value>,
}

struct Entry<'a> {
    plan: &'a BackgroundPlan,
    gauge: Arc<IoGauge>,
    ready: Option<Ready>,
    running: Option<Running>,
}

struct Running {
    began: Nanos,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Done>,
}

impl<'a> Background<'a> {
    /// The work that `plan` has for a run.
    pub fn new(plan: &'a Plan, design: usize, log: RunLog<'a>) -> Background<'a> {
        let schedule = Schedule::new(&plan.background, design, |plan| Entry {
            plan,
            gauge: Arc::new(IoGauge::default()),
            ready: None,
            running: None,
        });
        Background { log, schedule, done: Vec::new() }
    }

    /// Creates and fills the files that it needs, and opens everything. To be called while the modelled latencies are
    /// off.
    pub fn prepare(&mut self, volumes: &[MountedVolume], seed: RootSeed) -> Result<(), Abort> {
        for (number, entry) in self.schedule.items_mut().enumerate() {
            let seed = seed.child("background", number as u64);
            let ready = ready(entry.plan, volumes, seed);
            entry.ready = Some(ready.during(&format!("prepare `{}`", entry.plan.name))?);
        }
        Ok(())
    }

    /// Counts what it does; `None` where there is no such work.
    pub fn sampler(&self) -> Option<BackgroundSampler> {
        let gauges =
            self.schedule.items().map(|entry| (&*entry.plan.name, Arc::clone(&entry.gauge)));
        (!self.schedule.is_empty()).then(|| BackgroundSampler::new(gauges))
    }

    /// Arms the work of a phase that began.
    pub fn phase_began(&mut self, kind: PhaseKind, users: u32) {
        let now = self.log.now();
        self.schedule.phase_began(kind, users, now);
    }

    /// When there is next something to do.
    pub fn next_due(&self) -> Option<Instant> {
        self.schedule.next_due().map(|at| self.log.instant(at))
    }

    /// Starts and stops what is due, and writes down what has ended by itself.
    pub fn carry_out_due(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        for number in self.schedule.in_force() {
            let running = self.schedule.item(number).running.as_ref();
            if running.is_some_and(|running| running.thread.is_finished()) {
                self.end(number, observer)?;
            }
        }
        while let Some(act) = self.schedule.due(self.log.now()) {
            match act {
                Act::Begin(number) => self.begin(number, observer)?,
                Act::End(number) => self.end(number, observer)?,
            }
        }
        Ok(())
    }

    /// Stops everything: the load is over, or is given up. What never began is over too.
    pub fn stop(&mut self, observer: &mut dyn Observer) -> Result<(), Abort> {
        let mut outcome = Ok(());
        for number in self.schedule.in_force() {
            outcome = outcome.and(self.end(number, observer));
        }
        for number in self.schedule.outstanding() {
            // Open files would keep the volumes from being unmounted.
            self.schedule.item_mut(number).ready = None;
            self.schedule.is_over(number);
        }
        if !self.done.is_empty() {
            let done = Value::Array(std::mem::take(&mut self.done));
            outcome = outcome.and(self.log.document(document::BACKGROUND, &done));
        }
        outcome
    }

    fn begin(&mut self, number: usize, observer: &mut dyn Observer) -> Result<(), Abort> {
        let now = self.log.now();
        let until = self.schedule.begun(number, now);
        let entry = self.schedule.item_mut(number);
        let Some(ready) = entry.ready.take() else {
            self.schedule.is_over(number);
            return Ok(());
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (gauge, is_to_stop) = (Arc::clone(&entry.gauge), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("background".to_string())
            .spawn(move || work(ready, &gauge, &is_to_stop))
            .during("start a thread for background work")?;
        entry.running = Some(Running { began: now, stop, thread });
        let text = format!("{} began: {}", entry.plan.name, entry.plan.work.described());
        observer.notice(&Event::Found { severity: Severity::Information, text: &text });
        let data = json!({ "name": entry.plan.name, "until_ns": until.map(|at| at.0) });
        self.log.event(event::BACKGROUND, now, &text, data)
    }

    fn end(&mut self, number: usize, observer: &mut dyn Observer) -> Result<(), Abort> {
        self.schedule.is_over(number);
        let entry = self.schedule.item_mut(number);
        let Some(Running { began, stop, thread }) = entry.running.take() else { return Ok(()) };
        stop.store(true, Ordering::Relaxed);
        let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (plan, gauge) = (entry.plan, Arc::clone(&entry.gauge));
        let now = self.log.now();
        let interval = Interval { begin: began, end: now };
        for (operation, histogram) in [("read", &done.read), ("write", &done.write)] {
            let name = format!("{}.{operation}", plan.name);
            let mut recorder = self.log.recorder.lock();
            recorder
                .histogram(self.log.run, interval, histogram_scope::BACKGROUND, &name, histogram)
                .during("write the record")?;
        }
        let bytes = Moved {
            read: gauge.read_bytes.load(Ordering::Relaxed),
            written: gauge.write_bytes.load(Ordering::Relaxed),
        };
        self.done.push(json!({
            "name": plan.name,
            "text": plan.work.described(),
            "began_ns": began.0,
            "ended_ns": now.0,
            "complete": done.complete,
            "reads": gauge.reads.load(Ordering::Relaxed),
            "writes": gauge.writes.load(Ordering::Relaxed),
            "read_bytes": bytes.read,
            "write_bytes": bytes.written,
            "errors": done.errors,
            "failure": done.failure,
        }));
        let text = said(plan, &done, bytes, interval);
        let data = json!({ "name": plan.name });
        let ended = format!("{} ended", plan.name);
        self.log.event(event::BACKGROUND_END, now, &ended, data)?;
        let severity = match done.errors > 0 || done.failure.is_some() {
            true => Severity::Warning,
            false => Severity::Information,
        };
        self.log.find(severity, finding::BACKGROUND, &text, observer)
    }
}

impl Drop for Background<'_> {
    /// Threads must not outlive the run, whatever ended it.
    fn drop(&mut self) {
        for entry in self.schedule.items_mut() {
            if let Some(Running { stop, thread, .. }) = entry.running.take() {
                stop.store(true, Ordering::Relaxed);
                let _ = thread.join();
            }
        }
    }
}

/// Bytes of the requests that succeeded.
#[derive(Clone, Copy)]
struct Moved {
    read: u64,
    written: u64,
}

/// What it did, in one line. A copy is told as what was copied, which is what its limit is about: its bytes are read once and
/// written once.
fn said(plan: &BackgroundPlan, done: &Done, bytes: Moved, interval: Interval) -> String {
    let seconds = interval.seconds().max(f64::MIN_POSITIVE);
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let amount = |bytes: u64, word: &str| {
        let (all, rate) = (megabytes(bytes), megabytes(bytes) / seconds);
        format!("{all:.1} MB{word} in {seconds:.1} s ({rate:.1} MB/s)")
    };
    let (read, written) = (megabytes(bytes.read), megabytes(bytes.written));
    let moved = match &plan.work {
        BackgroundWork::Copy(CopyPlan { to: None, .. }) => amount(bytes.read, " copied"),
        BackgroundWork::Copy(_) => format!(
            "{}: {read:.1} MB read, {written:.1} MB written",
            amount(bytes.read.min(bytes.written), " copied")
        ),
        BackgroundWork::Load { .. } => format!(
            "{}: {read:.1} MB read, {written:.1} MB written",
            amount(bytes.read + bytes.written, "")
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
    let mut text = format!("{}: {moved}", plan.name);
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
    use super::work::Done;
    use super::{Moved, said};
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

    fn text(to: Option<&str>, bytes: Moved) -> String {
        let done = Done {
            complete: true,
            errors: 0,
            read: Histogram::new(),
            write: Histogram::new(),
            failure: None,
        };
        let interval = Interval { begin: Nanos::from_secs(3), end: Nanos::from_secs(11) };
        said(&copy(to), &done, bytes, interval)
    }

    /// A copy limited to 10 MB/s that reads and writes at 10 MB/s each has kept its limit.
    #[test]
    fn what_is_copied_is_counted_once() {
        let bytes = Moved { read: 80_000_000, written: 80_000_000 };
        assert_eq!(
            text(Some("backup"), bytes),
            "copy: 80.0 MB copied in 8.0 s (10.0 MB/s): 80.0 MB read, 80.0 MB written"
        );
        // What could not be written was not copied.
        let bytes = Moved { read: 80_000_000, written: 40_000_000 };
        assert_eq!(
            text(Some("backup"), bytes),
            "copy: 40.0 MB copied in 8.0 s (5.0 MB/s): 80.0 MB read, 40.0 MB written"
        );
        let bytes = Moved { read: 80_000_000, written: 0 };
        assert_eq!(text(None, bytes), "copy: 80.0 MB copied in 8.0 s (10.0 MB/s)");
    }
}
