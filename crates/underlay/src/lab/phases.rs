//! Beginning and ending phases: in the record, and for the observer.

use underlay_core::Nanos;
use underlay_record::{NewPhase, PhaseId, PhaseKind, PhaseStatus};

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::run_log::RunLog;

/// The phases of one run.
pub struct Phases<'a> {
    log: RunLog<'a>,
}

impl<'a> Phases<'a> {
    /// The phases of a run.
    pub fn new(log: RunLog<'a>) -> Phases<'a> {
        Phases { log }
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
        let (run, at) = (Some(self.log.run), self.log.now());
        self.log
            .recorder
            .lock()
            .begin_phase(&NewPhase { run, kind, label, users, at })
            .during("write the record")
    }

    /// Ends a phase with the status of its result.
    pub fn end<T>(&mut self, phase: PhaseId, result: &Result<T, Abort>) -> Result<(), Abort> {
        let status = match result {
            Ok(_) => PhaseStatus::Finished,
            Err(Abort::Interrupted) => PhaseStatus::Interrupted,
            Err(Abort::Failed(_)) => PhaseStatus::Failed,
        };
        let at = self.log.now();
        self.log.recorder.lock().end_phase(phase, at, status).during("write the record")
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
