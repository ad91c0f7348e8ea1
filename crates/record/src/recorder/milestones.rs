//! Milestones of an execution: designs, runs, phases.

use rusqlite::{OptionalExtension, params};
use underlay_core::Nanos;

use super::{Recorder, stored};
use crate::entities::{Design, NewPhase, NewRun, PhaseId, RunEnd, RunId};
use crate::error::WriteError;
use crate::words::{PhaseStatus, RunStatus};

impl Recorder {
    /// Adds a design, or replaces its description.
    pub fn add_design(&mut self, design: &Design) -> Result<(), WriteError> {
        self.milestone("a design", |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO design VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (design) DO UPDATE SET name = excluded.name,
                     title = excluded.title, description = excluded.description,
                     evidence = excluded.evidence, detail = excluded.detail",
                )?
                .execute(params![
                    design.index,
                    design.name,
                    design.title,
                    design.description,
                    design.evidence.as_str(),
                    design.detail.to_string(),
                ])
        })?;
        Ok(())
    }

    /// Begins a run. Unfinished runs of the same design and repeat are marked as superseded by it.
    pub fn begin_run(&mut self, new: &NewRun) -> Result<RunId, WriteError> {
        if let Some(finished) = self.finished_run(new.design, new.repeat)? {
            let NewRun { design, repeat, .. } = *new;
            return Err(WriteError::AlreadyFinished { design, repeat, finished });
        }
        let begin = stored("the begin of a run", new.at.0)?;
        let origin = stored("a wall clock time", new.origin_wall_ns)?;
        self.milestone("a run", |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO run (design, repeat, sequence, begin_ns, origin_wall_ns, status)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'running')",
                )?
                .execute(params![new.design, new.repeat, new.order, begin, origin])?;
            let id = connection.last_insert_rowid();
            debug_assert!(id > 0, "0 stands for `no run` in the index of documents");
            connection
                .prepare_cached(
                    "UPDATE run SET superseded_by = ?1 WHERE design = ?2 AND repeat = ?3
                     AND run <> ?1 AND superseded_by IS NULL",
                )?
                .execute(params![id, new.design, new.repeat])?;
            Ok(RunId(id))
        })
    }

    /// Ends a run. Its unfinished phases get the same end and status.
    pub fn end_run(&mut self, run: RunId, end: &RunEnd) -> Result<(), WriteError> {
        let at = stored("the end of a run", end.at.0)?;
        let phase_status = match end.status {
            RunStatus::Running => return Err(not_running("run", run.0)),
            RunStatus::Finished => PhaseStatus::Finished,
            RunStatus::Failed => PhaseStatus::Failed,
            RunStatus::Interrupted => PhaseStatus::Interrupted,
        };
        let changed = self.milestone("the end of a run", |connection| {
            connection
                .prepare_cached(
                    "UPDATE phase SET end_ns = ?2, status = ?3
                     WHERE run = ?1 AND status = 'running'",
                )?
                .execute(params![run.0, at, phase_status.as_str()])?;
            connection
                .prepare_cached(
                    "UPDATE run SET end_ns = ?2, status = ?3, reason = ?4
                     WHERE run = ?1 AND status = 'running'",
                )?
                .execute(params![run.0, at, end.status.as_str(), end.reason])
        })?;
        assert!(changed <= 1, "a run's id is unique");
        if changed == 1 { Ok(()) } else { Err(not_running("run", run.0)) }
    }

    /// Begins a phase.
    pub fn begin_phase(&mut self, new: &NewPhase) -> Result<PhaseId, WriteError> {
        let begin = stored("the begin of a phase", new.at.0)?;
        self.milestone("a phase", |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO phase (run, kind, label, users, begin_ns, status)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'running')",
                )?
                .execute(params![
                    new.run.map(|run| run.0),
                    new.kind.as_str(),
                    new.label,
                    new.users,
                    begin,
                ])?;
            Ok(PhaseId(connection.last_insert_rowid()))
        })
    }

    /// Ends a phase.
    pub fn end_phase(
        &mut self,
        phase: PhaseId,
        at: Nanos,
        status: PhaseStatus,
    ) -> Result<(), WriteError> {
        if status == PhaseStatus::Running {
            return Err(not_running("phase", phase.0));
        }
        let at = stored("the end of a phase", at.0)?;
        let changed = self.milestone("the end of a phase", |connection| {
            connection
                .prepare_cached(
                    "UPDATE phase SET end_ns = ?2, status = ?3
                     WHERE phase = ?1 AND status = 'running'",
                )?
                .execute(params![phase.0, at, status.as_str()])
        })?;
        assert!(changed <= 1, "a phase's id is unique");
        if changed == 1 { Ok(()) } else { Err(not_running("phase", phase.0)) }
    }

    fn finished_run(&self, design: u32, repeat: u32) -> Result<Option<RunId>, WriteError> {
        self.connection
            .query_row(
                "SELECT run FROM run WHERE design = ?1 AND repeat = ?2 AND status = 'finished'
                 AND superseded_by IS NULL",
                params![design, repeat],
                |row| row.get(0).map(RunId),
            )
            .optional()
            .map_err(|source| WriteError::Sqlite { what: "a run", source })
    }
}

fn not_running(what: &'static str, id: i64) -> WriteError {
    WriteError::NotRunning { what, id }
}
