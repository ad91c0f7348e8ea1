//! The results of background work for one window.
//!
//! Counts and distributions, as in [`crate::result`].

use crate::station::Station;
use underlay_core::{Histogram, Nanos};
use underlay_model::Operation;

/// Requests of a kind of background work on a part of a volume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackgroundIo {
    /// Requests.
    pub station: Station,
    /// Bytes of those that were done.
    pub bytes: u64,
    /// From their intended starts, in nanoseconds.
    pub response: Histogram,
}

/// Background work on a part of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundPart {
    /// The volume, by its number in the target.
    pub volume: usize,
    /// What was read.
    pub read: BackgroundIo,
    /// What was written.
    pub write: BackgroundIo,
    /// Flushes.
    pub flush: BackgroundIo,
}

impl BackgroundPart {
    /// A part of a volume of which nothing was counted.
    pub(crate) fn of(volume: usize) -> BackgroundPart {
        let [read, write, flush] = <[BackgroundIo; 3]>::default();
        BackgroundPart { volume, read, write, flush }
    }

    /// All kinds.
    pub fn all(&self) -> [&BackgroundIo; 3] {
        [&self.read, &self.write, &self.flush]
    }

    /// The kind of an operation.
    pub(crate) fn of_kind(&mut self, operation: Operation) -> &mut BackgroundIo {
        match operation {
            Operation::Read => &mut self.read,
            Operation::Write | Operation::Discard => &mut self.write,
            Operation::Flush => &mut self.flush,
        }
    }
}

/// What background work did in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundResult {
    /// Its name.
    pub name: String,
    /// By the parts of volumes that it uses.
    pub parts: Vec<BackgroundPart>,
    /// When it began, in this window or before.
    pub began: Option<Nanos>,
    /// When its last request was done, after it had been stopped or had done everything.
    pub ended: Option<Nanos>,
    /// Whether it did all that it had to do: a load has no end of its own.
    pub is_complete: bool,
}

impl BackgroundResult {
    /// Requests that were done.
    pub fn requests(&self) -> u64 {
        let all = self.parts.iter().flat_map(BackgroundPart::all);
        all.map(|io| io.station.departures).sum()
    }

    /// Counts its times from a later moment, at which nothing had begun.
    pub(crate) fn count_from(&mut self, moment: Nanos) {
        for time in [&mut self.began, &mut self.ended] {
            *time = time.map(|time| time - moment);
        }
    }
}
