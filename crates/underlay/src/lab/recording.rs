//! Writing the record while a run goes on: one recorder, shared by the lab and a thread that stores what
//! the collector sends.
//!
//! Samples arrive at their own pace and are committed once per second, so that a killed run loses at
//! most the last second. Milestones (runs, phases, checks) are written by the lab's own thread.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use underlay_record::{
    Event, Interval, Recorder, RunId, Source, SourceStatus, WaitCount, WaitKey, WaitWindow,
    WriteError,
};
use underlay_telemetry::{Item, SourceInfo, Status};

use crate::lab::design_time::DesignTime;
use crate::lab::run_log::RunLog;
use crate::lab::session_windows::SessionWindows;

pub use crate::lab::shared_recorder::SharedRecorder;

/// Stores what a collector sends for one run.
pub struct TelemetryWriter {
    sender: Sender<Item>,
    thread: JoinHandle<Result<(), WriteError>>,
}

/// How often samples are committed.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

impl TelemetryWriter {
    /// Starts the thread for the sessions of so many servers. What it is sent is in the host's time.
    pub fn start(log: RunLog<'_>, servers: usize) -> std::io::Result<TelemetryWriter> {
        let (sender, receiver) = channel();
        let (recorder, run) = (log.recorder.clone(), log.run);
        let (design_time, sessions) = (DesignTime::new(log.dilation), SessionWindows::of(servers));
        let thread = std::thread::Builder::new()
            .name("record".to_string())
            .spawn(move || store(&recorder, run, (design_time, sessions), &receiver))?;
        Ok(TelemetryWriter { sender, thread })
    }

    /// Where the collector sends to.
    pub fn sink(&self) -> Sender<Item> {
        self.sender.clone()
    }

    /// Waits until everything sent is stored. The collector must have stopped.
    pub fn finish(self) -> Result<(), WriteError> {
        drop(self.sender);
        self.thread.join().unwrap_or(Ok(()))
    }
}

fn store(
    recorder: &SharedRecorder,
    run: RunId,
    (mut design_time, mut sessions): (DesignTime, SessionWindows),
    items: &Receiver<Item>,
) -> Result<(), WriteError> {
    let mut pending = Vec::new();
    let mut next_commit = Instant::now() + COMMIT_EVERY;
    let mut first_error = None;
    loop {
        let wait = next_commit.saturating_duration_since(Instant::now());
        let ended = match items.recv_timeout(wait) {
            Ok(item) => {
                pending.extend(sessions.take(design_time.translate(item)));
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if ended || Instant::now() >= next_commit {
            let mut recorder = recorder.lock();
            for item in pending.drain(..) {
                // The samplers must not be stopped by a full disk under the record: remember the
                // first error for the end of the run, and go on taking from the channel.
                if let Err(error) = write(&mut recorder, run, item) {
                    first_error.get_or_insert(error);
                }
            }
            if let Err(error) = recorder.commit() {
                first_error.get_or_insert(error);
            }
            next_commit = Instant::now() + COMMIT_EVERY;
        }
        if ended {
            return first_error.map_or(Ok(()), Err);
        }
    }
}

fn write(recorder: &mut Recorder, run: RunId, item: Item) -> Result<(), WriteError> {
    match item {
        Item::Source(index, info) => recorder.source(run, &source(index, info)),
        Item::Tick { source, begin, end, values } => {
            recorder.tick(run, index_of(source), Interval { begin, end }, &values)
        }
        Item::Waits {
            begin,
            end,
            counts,
            samples,
            holders,
            holder_samples,
            background,
            log_holders,
            page_holders,
        } => recorder.waits(
            run,
            &WaitWindow {
                interval: Interval { begin, end },
                samples,
                clients: wait_counts(counts),
                holder_samples,
                holders: wait_counts(holders),
                background: wait_counts(background),
                log_holders: wait_counts(log_holders),
                page_holders: wait_counts(page_holders),
            },
        ),
        Item::Note { at, source, text } => recorder.event(&Event {
            run: Some(run),
            at,
            kind: underlay_record::conventions::event::NOTE.to_string(),
            text,
            data: source
                .map_or(serde_json::Value::Null, |index| serde_json::json!({ "source": index })),
        }),
    }
}

fn index_of(source: usize) -> u32 {
    u32::try_from(source).expect("a collector has a handful of sources")
}

fn source(index: usize, info: SourceInfo) -> Source {
    Source {
        index: index_of(index),
        name: info.name,
        layer: info.layer,
        status: match info.status {
            Status::Available => SourceStatus::Available,
            Status::Degraded(reason) => SourceStatus::Degraded(reason),
            Status::Absent(reason) => SourceStatus::Absent(reason),
        },
        series: info.series,
    }
}

fn wait_counts(counts: Vec<(underlay_telemetry::WaitKey, u32)>) -> Vec<WaitCount> {
    // Two raw keys may differ in nothing the record keeps; counts of equal keys add up.
    let mut merged: BTreeMap<WaitKey, u32> = BTreeMap::new();
    for (key, sessions) in counts {
        let key = WaitKey {
            state: key.state,
            class: key.class,
            event: key.event,
            backend_type: key.backend_type,
        };
        *merged.entry(key).or_default() += sessions;
    }
    merged.into_iter().map(|(key, sessions)| WaitCount { key, sessions }).collect()
}
