//! The writer of a record.
//!
//! Two kinds of writes. *Milestones* (begin and end of runs and phases, checks, findings, documents) are
//! durable when the call returns. *Ticks* (values, waits, transactions, histograms, events) are collected
//! in one transaction that the caller ends once per second with [`Recorder::commit`], or that the next
//! milestone ends. Dropping a recorder commits what is pending; only a killed writer loses it.

mod milestones;
mod samples;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Params, params};
use serde_json::Value;
use underlay_core::series::SeriesSpec;

use crate::entities::{Phase, Run, RunId, WaitKey};
use crate::error::{OpenError, ReadError, WriteError};
use crate::format;
use crate::lock::WriterLock;
use crate::manifest::Manifest;
use crate::record;
use crate::words::{ExecutionStatus, RunStatus};

/// How long the end of an execution waits for readers, before the record keeps its WAL.
const READER_PATIENCE: Duration = Duration::from_secs(1);

/// The one writer of a record. `Send`, not `Sync`: it lives on the caller's writer thread.
#[derive(Debug)]
pub struct Recorder {
    // Dropped before the lock, so that no other process writes while this connection is open.
    connection: Connection,
    path: PathBuf,
    manifest: Manifest,
    declared: HashMap<(RunId, u32), Declared>,
    wait_keys: HashMap<WaitKey, i64>,
    /// None of a record that only this connection can reach.
    _lock: Option<WriterLock>,
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
        Ok(Recorder::over(connection, path, manifest.clone(), Some(lock)))
    }

    /// Creates a record that no other process sees and that is removed with this recorder, also when the process is
    /// killed: for executions that are not to be kept. It takes space in SQLite's folder for temporary files.
    pub fn create_temporary(manifest: &Manifest) -> Result<Recorder, OpenError> {
        let path = Path::new("");
        let fill = |connection: &_| insert_manifest(connection, manifest);
        let connection = format::create_temporary(fill)
            .map_err(|source| OpenError::Sqlite { path: path.to_path_buf(), source })?;
        Ok(Recorder::over(connection, path, manifest.clone(), None))
    }

    /// Opens the record of an execution that did not finish, to continue it.
    ///
    /// Runs and phases that the previous writer left running are marked interrupted, at the time of
    /// their last recorded event. What remains to be done follows from the plan,
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
        record::require_whole(&connection, path)?;
        let execution = record::read_execution(&connection).map_err(manifest_error)?;
        if execution.status == ExecutionStatus::Finished {
            return Err(OpenError::Finished { path: path.to_path_buf() });
        }
        connection
            .execute_batch(MARK_INTERRUPTED)
            .map_err(|source| OpenError::Sqlite { path: path.to_path_buf(), source })?;
        Ok(Recorder::over(connection, path, manifest, Some(lock)))
    }

    fn over(
        connection: Connection,
        path: &Path,
        manifest: Manifest,
        lock: Option<WriterLock>,
    ) -> Recorder {
        assert!(
            connection.is_autocommit(),
            "opening or creating a record leaves no open transaction"
        );
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

    /// Ends the transaction of this tick. Cheap when nothing was written.
    pub fn commit(&mut self) -> Result<(), WriteError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.connection.execute_batch("COMMIT").map_err(|source| self.abandon("a tick", source))?;
        debug_assert!(self.connection.is_autocommit(), "COMMIT ends the transaction");
        Ok(())
    }

    /// Ends the execution, and turns the record into a single file without a WAL next to it.
    ///
    /// A record with an open reader keeps its WAL until that reader closes. Runs that still run must have
    /// been ended before; those that were not are marked interrupted.
    pub fn finish(mut self, status: ExecutionStatus) -> Result<(), WriteError> {
        assert!(status != ExecutionStatus::Running, "an execution that ended has an outcome");
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
        // Do not wait long for an open reader: the record is complete without this step.
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
        debug_assert!(!self.connection.is_autocommit(), "a tick is written in one transaction");
        write(&self.connection).map_err(|source| self.abandon(what, source))
    }

    /// Writes in a transaction of its own that is on the disk when this returns.
    fn milestone<T>(
        &mut self,
        what: &'static str,
        write: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, WriteError> {
        self.commit()?;
        // SQLite ignores a change of `synchronous` inside a transaction: the milestone would not be durable.
        assert!(self.connection.is_autocommit(), "a milestone starts outside of a transaction");
        self.synchronous("FULL", what)?;
        let result = self.deferred(what, write).and_then(|value| {
            self.commit()?;
            Ok(value)
        });
        debug_assert!(self.connection.is_autocommit(), "a milestone is committed or rolled back");
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

fn stored(what: &'static str, value: u64) -> Result<i64, WriteError> {
    i64::try_from(value).map_err(|_| WriteError::TooLarge { what, value })
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
