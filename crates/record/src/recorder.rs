//! The writer: everything that enters a record passes here.
//!
//! Two kinds of writes. *Milestones* (begin and end of runs and phases, checks, findings, documents) are
//! durable when the call returns. *Ticks* (values, waits, transactions, histograms, events) are collected
//! in one transaction that the caller ends once per second with [`Recorder::commit`], or that the next
//! milestone ends. Dropping a recorder commits what is pending; only a killed writer loses it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Params, params};
use serde_json::Value;
use underlay_core::series::SeriesSpec;
use underlay_core::{Histogram, Nanos};

use crate::entities::{
    Check, Design, Event, Finding, Interval, NewPhase, NewRun, Phase, PhaseId, Run, RunEnd, RunId,
    Source, TransactionTick, WaitKey, WaitWindow,
};
use crate::error::{OpenError, ReadError, WriteError};
use crate::lock::WriterLock;
use crate::manifest::Manifest;
use crate::record;
use crate::words::{CheckOutcome, ExecutionStatus, PhaseStatus, RunStatus};
use crate::{format, tick_row};

/// How long the end of an execution waits for readers, before the record keeps its WAL.
const READER_PATIENCE: Duration = Duration::from_secs(1);

/// The one writer of a record. `Send`, not `Sync`: it lives on the caller's writer thread.
#[derive(Debug)]
pub struct Recorder {
    // Dropped before the lock, so that nobody else writes while this connection is open.
    connection: Connection,
    path: PathBuf,
    manifest: Manifest,
    declared: HashMap<(RunId, u32), Declared>,
    wait_keys: HashMap<WaitKey, i64>,
    _lock: WriterLock,
}

/// What is remembered of a source to verify its ticks.
#[derive(Debug)]
struct Declared {
    name: String,
    series: Vec<SeriesSpec>,
}

impl Recorder {
    /// Creates a record for a new execution. Missing parent directories are created.
    pub fn create(path: &Path, manifest: &Manifest) -> Result<Recorder, OpenError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|source| OpenError::Directory { path: path.to_path_buf(), source })?;
        }
        let lock = WriterLock::take(path)?;
        if path.exists() {
            return Err(OpenError::Exists { path: path.to_path_buf() });
        }
        let connection = format::create(path, |connection| insert_manifest(connection, manifest))?;
        Ok(Recorder::over(connection, path, manifest.clone(), lock))
    }

    /// Opens the record of an execution that did not finish, to continue it.
    ///
    /// Runs and phases that its former writer left running are marked interrupted, at the time of
    /// the last thing recorded of them. What remains to be done follows from the plan,
    /// [`Recorder::runs`] and [`Recorder::unfinished_runs`].
    pub fn resume(path: &Path) -> Result<Recorder, OpenError> {
        if !path.is_file() {
            return Err(OpenError::NotFound { path: path.to_path_buf() });
        }
        let lock = WriterLock::take(path)?;
        let connection = format::open_to_write(path)?;
        let manifest_error =
            |source| OpenError::Manifest { path: path.to_path_buf(), source: Box::new(source) };
        let manifest = record::read_manifest(&connection).map_err(manifest_error)?;
        let execution = record::read_execution(&connection).map_err(manifest_error)?;
        if execution.status == ExecutionStatus::Finished {
            return Err(OpenError::Finished { path: path.to_path_buf() });
        }
        connection
            .execute_batch(MARK_INTERRUPTED)
            .map_err(|source| OpenError::Sqlite { path: path.to_path_buf(), source })?;
        Ok(Recorder::over(connection, path, manifest, lock))
    }

    fn over(connection: Connection, path: &Path, manifest: Manifest, lock: WriterLock) -> Recorder {
        connection.set_prepared_statement_cache_capacity(64);
        Recorder {
            connection,
            path: path.to_path_buf(),
            manifest,
            declared: HashMap::new(),
            wait_keys: HashMap::new(),
            _lock: lock,
        }
    }

    /// Where the record is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the execution is.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// All runs so far, in the order of their begin.
    pub fn runs(&self) -> Result<Vec<Run>, ReadError> {
        record::read_runs(&self.connection)
    }

    /// The runs that neither finished nor were replaced: a resumed execution repeats them.
    pub fn unfinished_runs(&self) -> Result<Vec<Run>, ReadError> {
        let unfinished =
            |run: &Run| run.status != RunStatus::Finished && run.superseded_by.is_none();
        Ok(self.runs()?.into_iter().filter(unfinished).collect())
    }

    /// The phases of a run, or (`None`) those done once for all runs, in the order of their begin.
    pub fn phases(&self, run: Option<RunId>) -> Result<Vec<Phase>, ReadError> {
        record::read_phases(&self.connection, run)
    }

    /// A document written earlier, also by a former writer.
    pub fn document(&self, run: Option<RunId>, name: &str) -> Result<Option<Value>, ReadError> {
        record::read_document(&self.connection, run, name)
    }

    /// Adds a design, or replaces what was said about it.
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
            connection
                .prepare_cached(
                    "UPDATE run SET superseded_by = ?1 WHERE design = ?2 AND repeat = ?3
                     AND run <> ?1 AND superseded_by IS NULL",
                )?
                .execute(params![id, new.design, new.repeat])?;
            Ok(RunId(id))
        })
    }

    /// Ends a run. Its phases that still run are given the same end and status.
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
        if changed == 1 { Ok(()) } else { Err(not_running("phase", phase.0)) }
    }

    /// Declares a source, or declares it again with a new status or with more series.
    pub fn source(&mut self, run: RunId, source: &Source) -> Result<(), WriteError> {
        if let Some(known) = self.declared.get(&(run, source.index)) {
            require_extension(known, source)?;
        }
        self.deferred("a source", |connection| insert_source(connection, run, source))?;
        let declared = Declared { name: source.name.clone(), series: source.series.clone() };
        self.declared.insert((run, source.index), declared);
        Ok(())
    }

    /// Adds one tick of a source: raw values in the order of its series, NaN = missing.
    ///
    /// Fewer values than series are allowed (the rest is missing). A second tick of the same source with
    /// the same begin replaces the first.
    pub fn tick(
        &mut self,
        run: RunId,
        source: u32,
        interval: Interval,
        values: &[f64],
    ) -> Result<(), WriteError> {
        let declared = self
            .declared
            .get(&(run, source))
            .ok_or(WriteError::UnknownSource { run, source_index: source })?;
        if values.len() > declared.series.len() {
            return Err(WriteError::TooManyValues {
                name: declared.name.clone(),
                values: values.len(),
                series: declared.series.len(),
            });
        }
        let (begin, end) = stored_interval(interval)?;
        let row = tick_row::encode(values);
        self.deferred("a tick", |connection| {
            connection
                .prepare_cached("INSERT OR REPLACE INTO tick VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![run.0, begin, source, end, row])
        })?;
        Ok(())
    }

    /// Adds the wait samples of one tick.
    pub fn waits(&mut self, run: RunId, window: &WaitWindow) -> Result<(), WriteError> {
        let (begin, end) = stored_interval(window.interval)?;
        self.insert(
            "wait samples",
            "INSERT OR REPLACE INTO wait_window VALUES (?1, ?2, ?3, ?4, ?5)",
            params![run.0, begin, end, window.samples, window.holder_samples],
        )?;
        let roles = [
            (record::ROLE_CLIENT, &window.clients),
            (record::ROLE_HOLDER, &window.holders),
            (record::ROLE_BACKGROUND, &window.background),
        ];
        for (role, counts) in roles {
            for count in counts {
                let key = self.wait_key(&count.key)?;
                self.insert(
                    "wait samples",
                    "INSERT INTO wait_count VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE
                     SET sessions = sessions + excluded.sessions",
                    params![run.0, begin, role, key, count.sessions],
                )?;
            }
        }
        Ok(())
    }

    /// Adds one transaction type of one tick.
    pub fn transactions(&mut self, run: RunId, tick: &TransactionTick) -> Result<(), WriteError> {
        let (begin, end) = stored_interval(tick.interval)?;
        let errors: serde_json::Map<String, Value> =
            tick.errors.iter().map(|(class, n)| (class.clone(), Value::from(*n))).collect();
        self.insert(
            "transactions",
            "INSERT OR REPLACE INTO transactions
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                run.0,
                begin,
                tick.transaction,
                end,
                stored("a count", tick.committed)?,
                stored("a count", tick.rolled_back)?,
                stored("a count", tick.failed)?,
                stored("a count", tick.unknown)?,
                Value::Object(errors).to_string(),
                stored("a count", tick.retries)?,
                tick.response.bytes(),
                tick.service.bytes(),
            ],
        )
    }

    /// Adds a distribution other than a transaction's.
    pub fn histogram(
        &mut self,
        run: RunId,
        interval: Interval,
        scope: &str,
        name: &str,
        histogram: &Histogram,
    ) -> Result<(), WriteError> {
        let (begin, end) = stored_interval(interval)?;
        self.insert(
            "a histogram",
            "INSERT OR REPLACE INTO histogram VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![run.0, begin, scope, name, end, histogram.encode()],
        )
    }

    /// Adds an event.
    pub fn event(&mut self, event: &Event) -> Result<(), WriteError> {
        let at = stored("the time of an event", event.at.0)?;
        self.insert(
            "an event",
            "INSERT INTO event (run, at_ns, kind, text, data) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![event.run.map(|run| run.0), at, event.kind, event.text, event.data.to_string()],
        )
    }

    /// Adds the outcome of a consistency check.
    pub fn check(&mut self, check: &Check) -> Result<(), WriteError> {
        let (rows, detail) = match &check.outcome {
            CheckOutcome::Ok => (None, None),
            CheckOutcome::Violated { rows, example } => {
                (Some(stored("a number of rows", *rows)?), Some(example.as_str()))
            }
            CheckOutcome::Failed { error } => (None, Some(error.as_str())),
        };
        self.milestone("a check", |connection| {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO consistency_check VALUES (?1, ?2, ?3,
                     (SELECT count(*) FROM consistency_check), ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    check.run.0,
                    check.moment.as_str(),
                    check.id,
                    check.title,
                    check.outcome.as_str(),
                    rows,
                    detail,
                ])
        })?;
        Ok(())
    }

    /// Adds a finding.
    pub fn finding(&mut self, finding: &Finding) -> Result<(), WriteError> {
        self.milestone("a finding", |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO finding (run, severity, code, text, data)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    finding.run.map(|run| run.0),
                    finding.severity.as_str(),
                    finding.code,
                    finding.text,
                    finding.data.to_string(),
                ])
        })?;
        Ok(())
    }

    /// Adds a document, in place of one with the same run and name.
    pub fn write_document(
        &mut self,
        run: Option<RunId>,
        name: &str,
        content: &Value,
    ) -> Result<(), WriteError> {
        self.milestone("a document", |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO document (run, name, content) VALUES (?1, ?2, ?3)
                     ON CONFLICT (coalesce(run, 0), name) DO UPDATE
                     SET content = excluded.content",
                )?
                .execute(params![run.map(|run| run.0), name, content.to_string()])
        })?;
        Ok(())
    }

    /// Ends the transaction of this tick. Cheap when nothing was written.
    pub fn commit(&mut self) -> Result<(), WriteError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.connection.execute_batch("COMMIT").map_err(|source| self.abandon("a tick", source))
    }

    /// Ends the execution, and turns the record into a single file without a WAL next to it.
    ///
    /// A record with an open reader keeps its WAL until that reader closes. Runs that still run must have
    /// been ended before; those that were not are marked interrupted.
    pub fn finish(mut self, status: ExecutionStatus) -> Result<(), WriteError> {
        let now = stored("a wall clock time", wall_clock_ns())?;
        self.commit()?;
        self.milestone("the end of the execution", |connection| {
            connection.execute_batch(END_RUNNING)?;
            connection.execute(
                "UPDATE execution SET status = ?1, finished_wall_ns = ?2",
                params![status.as_str(), now],
            )
        })?;
        self.connection.flush_prepared_statement_cache();
        // A reader that stays is no reason to wait long.
        if let Err(error) = self.connection.busy_timeout(READER_PATIENCE) {
            tracing::debug!(%error, "busy timeout not changed");
        }
        let mode: Result<String, _> =
            self.connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0));
        if let Err(error) = mode {
            // Complete and valid all the same: the WAL holds the rest until the last reader leaves.
            tracing::warn!(path = %self.path.display(), %error, "the record keeps its WAL");
        }
        Ok(())
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

    fn wait_key(&mut self, key: &WaitKey) -> Result<i64, WriteError> {
        if let Some(id) = self.wait_keys.get(key) {
            return Ok(*id);
        }
        let id = self.deferred("wait samples", |connection| {
            let columns = params![key.state, key.class, key.event, key.backend_type];
            connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO wait_key (state, class, event, backend_type)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(columns)?;
            connection
                .prepare_cached(
                    "SELECT wait_key FROM wait_key WHERE state = ?1 AND class = ?2
                     AND event = ?3 AND backend_type = ?4",
                )?
                .query_row(columns, |row| row.get(0))
        })?;
        self.wait_keys.insert(key.clone(), id);
        Ok(id)
    }

    fn insert(
        &mut self,
        what: &'static str,
        sql: &str,
        values: impl Params,
    ) -> Result<(), WriteError> {
        self.deferred(what, |connection| connection.prepare_cached(sql)?.execute(values))?;
        Ok(())
    }

    /// Writes within the transaction of the current tick.
    fn deferred<T>(
        &mut self,
        what: &'static str,
        write: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, WriteError> {
        if self.connection.is_autocommit() {
            self.connection
                .execute_batch("BEGIN IMMEDIATE")
                .map_err(|source| self.abandon(what, source))?;
        }
        write(&self.connection).map_err(|source| self.abandon(what, source))
    }

    /// Writes in a transaction of its own that is on the disk when this returns.
    fn milestone<T>(
        &mut self,
        what: &'static str,
        write: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, WriteError> {
        self.commit()?;
        self.synchronous("FULL", what)?;
        let result = self.deferred(what, write).and_then(|value| {
            self.commit()?;
            Ok(value)
        });
        self.synchronous("NORMAL", what)?;
        result
    }

    fn synchronous(&mut self, mode: &str, what: &'static str) -> Result<(), WriteError> {
        self.connection
            .pragma_update(None, "synchronous", mode)
            .map_err(|source| self.abandon(what, source))
    }

    /// After an error: gives up the open transaction, so that the next write starts clean.
    fn abandon(&mut self, what: &'static str, source: rusqlite::Error) -> WriteError {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::debug!(%error, "rollback after a failed write");
        }
        // Keys of the transaction that was given up do not exist.
        self.wait_keys.clear();
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => WriteError::DiskFull { what },
            _ => WriteError::Sqlite { what, source },
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Err(error) = self.commit() {
            tracing::warn!(path = %self.path.display(), %error, "the last tick was not recorded");
        }
    }
}

/// What a former writer left running ended when it was last heard of.
const MARK_INTERRUPTED: &str = "
    BEGIN IMMEDIATE;
    UPDATE execution SET sessions = sessions + 1, status = 'running', finished_wall_ns = NULL;
    UPDATE run SET status = 'interrupted', reason = 'the process that wrote the record ended',
        end_ns = max(begin_ns,
            coalesce((SELECT max(end_ns) FROM tick WHERE tick.run = run.run), 0),
            coalesce((SELECT max(end_ns) FROM transactions t WHERE t.run = run.run), 0),
            coalesce((SELECT max(at_ns) FROM event WHERE event.run = run.run), 0),
            coalesce((SELECT max(coalesce(end_ns, begin_ns)) FROM phase
                      WHERE phase.run = run.run), 0))
        WHERE status = 'running';
    UPDATE phase SET status = 'interrupted',
        end_ns = max(begin_ns,
            coalesce((SELECT end_ns FROM run WHERE run.run = phase.run), begin_ns))
        WHERE status = 'running';
    COMMIT;";

/// The same for what a writer that ends has not ended; within its transaction.
const END_RUNNING: &str = "
    UPDATE run SET status = 'interrupted', reason = 'the execution ended' WHERE status = 'running';
    UPDATE phase SET status = 'interrupted' WHERE status = 'running';";

fn insert_manifest(connection: &Connection, manifest: &Manifest) -> Result<(), rusqlite::Error> {
    connection.execute(
        "INSERT INTO execution VALUES
         (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'running', NULL, 1)",
        params![
            manifest.study_name,
            manifest.title,
            manifest.question,
            manifest.evidence.as_str(),
            manifest.seed.0.to_string(),
            manifest.identity,
            i64::try_from(manifest.started_wall_ns).unwrap_or(i64::MAX),
            manifest.plan.to_string(),
            manifest.host.to_string(),
            manifest.software.to_string(),
        ],
    )?;
    Ok(())
}

fn insert_source(
    connection: &Connection,
    run: RunId,
    source: &Source,
) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO source VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(params![
            run.0,
            source.index,
            source.name,
            source.layer.as_str(),
            source.status.as_str(),
            source.status.reason(),
        ])?;
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO series VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (position, series) in source.series.iter().enumerate() {
        insert.execute(params![
            run.0,
            source.index,
            position as i64,
            series.name,
            series.unit,
            series.kind.as_str(),
        ])?;
    }
    Ok(())
}

fn require_extension(known: &Declared, source: &Source) -> Result<(), WriteError> {
    let differs = |position: &usize| known.series.get(*position) != source.series.get(*position);
    match (0..known.series.len()).find(differs) {
        None => Ok(()),
        Some(position) => Err(WriteError::SeriesChanged { name: source.name.clone(), position }),
    }
}

fn not_running(what: &'static str, id: i64) -> WriteError {
    WriteError::NotRunning { what, id }
}

fn stored(what: &'static str, value: u64) -> Result<i64, WriteError> {
    i64::try_from(value).map_err(|_| WriteError::TooLarge { what, value })
}

fn stored_interval(interval: Interval) -> Result<(i64, i64), WriteError> {
    Ok((stored("a time", interval.begin.0)?, stored("a time", interval.end.0)?))
}

fn wall_clock_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Recorder;
    use crate::entities::{Design, Event, NewRun};
    use crate::error::WriteError;
    use crate::manifest::Manifest;
    use serde_json::Value;
    use underlay_core::{Evidence, Nanos, RootSeed};

    fn recorder(dir: &tempfile::TempDir) -> Recorder {
        let manifest = Manifest {
            study_name: "s".into(),
            title: String::new(),
            question: String::new(),
            evidence: Evidence::Measured,
            seed: RootSeed(1),
            identity: String::new(),
            started_wall_ns: 0,
            plan: Value::Null,
            host: Value::Null,
            software: Value::Null,
        };
        Recorder::create(&dir.path().join("record"), &manifest).unwrap()
    }

    /// A full disk is made by forbidding the file to grow.
    #[test]
    fn a_full_disk_is_named_and_recovered_from() {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = recorder(&dir);
        let design = Design {
            index: 0,
            name: "d".into(),
            title: String::new(),
            description: String::new(),
            evidence: Evidence::Measured,
            detail: Value::Null,
        };
        recorder.add_design(&design).unwrap();
        let new = NewRun { design: 0, repeat: 1, order: 0, at: Nanos(0), origin_wall_ns: 0 };
        let run = recorder.begin_run(&new).unwrap();
        let pages: i64 =
            recorder.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        recorder.connection.pragma_update(None, "max_page_count", pages + 2).unwrap();
        let event = Event {
            run: Some(run),
            at: Nanos(1),
            kind: "note".into(),
            text: "x".repeat(20_000),
            data: Value::Null,
        };
        let full = recorder.event(&event).unwrap_err();
        assert!(matches!(full, WriteError::DiskFull { what: "an event" }), "{full:?}");
        assert!(full.to_string().contains("free some space"), "{full}");
        recorder.connection.pragma_update(None, "max_page_count", i64::from(i32::MAX)).unwrap();
        recorder.event(&event).unwrap();
        recorder.commit().unwrap();
        let kept: i64 =
            recorder.connection.query_row("SELECT count(*) FROM event", [], |r| r.get(0)).unwrap();
        assert_eq!(kept, 1, "what failed left nothing behind");
    }
}
