//! Beginning and ending phases: in the record, and for the observer.

use std::time::Instant;
use underlay_core::Nanos;
use underlay_record::{NewPhase, PhaseId, PhaseKind, PhaseStatus, RunId};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::recording::SharedRecorder;

/// The phases of one run.
pub struct Phases<'a> {
    recorder: &'a SharedRecorder,
    run: RunId,
    origin: Instant,
}

impl<'a> Phases<'a> {
    /// The phases of `run`, whose clock began at `origin`.
    pub fn new(recorder: &'a SharedRecorder, run: RunId, origin: Instant) -> Phases<'a> {
        Phases { recorder, run, origin }
    }

    /// Begins a phase.
    pub fn begin(
        &mut self,
        kind: PhaseKind,
        users: Option<u32>,
        expected: Option<Nanos>,
        observer: &mut dyn Observer,
    ) -> Result<PhaseId, Abort> {
        observer.notice(&Event::PhaseBegan { kind, users, expected });
        let label =
            users.map_or_else(|| kind.to_string(), |users| format!("{kind}, {users} users"));
        let at = self.origin.elapsed().into();
        self.recorder
            .lock()
            .begin_phase(&NewPhase { run: Some(self.run), kind, label, users, at })
            .during("write the record")
    }

    /// Ends a phase with the status of its result.
    pub fn end<T>(&mut self, phase: PhaseId, result: &Result<T, Abort>) -> Result<(), Abort> {
        let status = match result {
            Ok(_) => PhaseStatus::Finished,
            Err(Abort::Interrupted) => PhaseStatus::Interrupted,
            Err(Abort::Failed(_)) => PhaseStatus::Failed,
        };
        self.recorder
            .lock()
            .end_phase(phase, self.origin.elapsed().into(), status)
            .during("write the record")
    }

    /// Carries out `act` as a phase without load.
    pub fn carry_out<T>(
        &mut self,
        kind: PhaseKind,
        observer: &mut dyn Observer,
        act: impl FnOnce(&mut dyn Observer) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        let phase = self.begin(kind, None, None, observer)?;
        let result = act(observer);
        self.end(phase, &result)?;
        result
    }
}
