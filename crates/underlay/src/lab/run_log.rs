//! The part of the record that belongs to one run: its clock, and what everything that happens in the run writes.
//!
//! Ticks of samplers are written elsewhere ([`recording`](super::recording)); so are runs and phases.

use serde_json::Value;
use std::time::{Duration, Instant};
use underlay_core::{Dilation, Nanos};
use underlay_record::{Event as RecordEvent, Finding, RunId, Severity};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::shared_recorder::SharedRecorder;

/// Writes events, findings and documents of one run. Times are since the run's origin.
#[derive(Clone, Copy)]
pub struct RunLog<'a> {
    /// The record.
    pub recorder: &'a SharedRecorder,
    /// Which run.
    pub run: RunId,
    /// Zero of all times.
    pub origin: Instant,
    /// All times of a run are design time.
    pub dilation: Dilation,
    /// Which of several databases it is about; empty = the run as a whole.
    pub database: &'a str,
}

impl<'a> RunLog<'a> {
    /// The part of the run's record that belongs to one of its databases. Without a name it is that of the run.
    pub fn of(self, database: &'a str) -> RunLog<'a> {
        RunLog { database, ..self }
    }

    /// What the record calls something that each database has: `driver`, or `oltp-1/driver`.
    pub fn recorded(&self, name: &str) -> String {
        match self.database {
            "" => name.to_string(),
            database => format!("{database}/{name}"),
        }
    }

    fn said(&self, text: &str) -> String {
        match self.database {
            "" => text.to_string(),
            database => format!("{database}: {text}"),
        }
    }
    /// Now, since the run's origin.
    pub fn now(&self) -> Nanos {
        self.dilation.design(self.origin.elapsed().into())
    }

    /// When that is.
    pub fn instant(&self, at: Nanos) -> Instant {
        self.origin + Duration::from(self.dilation.wall(at))
    }

    /// Writes an event.
    pub fn event(&self, kind: &str, at: Nanos, text: &str, data: Value) -> Result<(), Abort> {
        let (kind, text) = (kind.to_string(), self.said(text));
        let event = RecordEvent { run: Some(self.run), at, kind, text, data };
        self.recorder.lock().event(&event).during("write the record")
    }

    /// Writes a document.
    pub fn document(&self, name: &str, content: &Value) -> Result<(), Abort> {
        let mut recorder = self.recorder.lock();
        let name = self.recorded(name);
        recorder.write_document(Some(self.run), &name, content).during("write the record")
    }

    /// Writes a finding, and reports it.
    pub fn find(
        &self,
        severity: Severity,
        code: &str,
        text: &str,
        observer: &mut dyn Observer,
    ) -> Result<(), Abort> {
        let text = self.said(text);
        observer.notice(&Event::Found { severity, text: &text });
        let finding = Finding {
            run: Some(self.run),
            severity,
            code: code.to_string(),
            text,
            data: Value::Null,
        };
        self.recorder.lock().finding(&finding).during("write the record")
    }
}
