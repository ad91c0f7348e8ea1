//! The reader: everything that a record holds, as plain values.
//!
//! Reading is possible while the record is being written; each call sees what was committed when it
//! began.

mod rows;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use serde_json::Value;
use underlay_core::{Evidence, Nanos, RootSeed};

use crate::columns::{Column, Table};
use crate::entities::{
    Check, Design, Document, Event, Finding, HistogramRow, Interval, Phase, PhaseId, Run, RunId,
    Source, TransactionTick, WaitWindow,
};
use crate::error::{OpenError, ReadError};
use crate::manifest::{Execution, Manifest};
use crate::words::{ExecutionStatus, PhaseKind, PhaseStatus, RunStatus, Severity};
use crate::{format, tick_row};

use rows::{
    check_of, design_of, event_of, get, histogram, interval_of, json, number, optional_number,
    optional_text, run_id, series_of, source_of, text, transaction_of, wait_count_of, word,
};

/// Role of a sampled session in `wait_count`: a client.
pub(crate) const ROLE_CLIENT: &str = "client";

/// The session at the root of a chain of blockers.
pub(crate) const ROLE_HOLDER: &str = "holder";

/// A server process other than a client session.
pub(crate) const ROLE_BACKGROUND: &str = "background";

/// In `wait_count`: who writes the log that others wait for.
pub(crate) const ROLE_LOG_HOLDER: &str = "log-holder";

/// In `wait_count`: who reads a page that others wait for.
pub(crate) const ROLE_PAGE_HOLDER: &str = "page-holder";

/// A record opened for reading.
#[derive(Debug)]
pub struct Record {
    connection: Connection,
    path: PathBuf,
    manifest: Manifest,
}

impl Record {
    /// Opens a record, finished or not. Nothing in it is changed.
    pub fn open_read_only(path: &Path) -> Result<Record, OpenError> {
        let connection = format::open_to_read(path)?;
        let manifest = read_manifest(&connection).map_err(|source| OpenError::Manifest {
            path: path.to_path_buf(),
            source: Box::new(source),
        })?;
        require_whole(&connection, path)?;
        Ok(Record { connection, path: path.to_path_buf(), manifest })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the execution is.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Status of the execution.
    pub fn execution(&self) -> Result<Execution, ReadError> {
        read_execution(&self.connection)
    }

    /// The designs, in the order of the plan.
    pub fn designs(&self) -> Result<Vec<Design>, ReadError> {
        self.rows("a design", "SELECT * FROM design ORDER BY design", [], design_of)
    }

    /// All runs, also superseded ones, in the order of their begin.
    pub fn runs(&self) -> Result<Vec<Run>, ReadError> {
        read_runs(&self.connection)
    }

    /// The phases of a run, or (`None`) those done once for all runs, in the order of their begin.
    pub fn phases(&self, run: Option<RunId>) -> Result<Vec<Phase>, ReadError> {
        read_phases(&self.connection, run)
    }

    /// The events of a run, or (`None`) those of no run, in the order of time.
    pub fn events(&self, run: Option<RunId>) -> Result<Vec<Event>, ReadError> {
        self.rows(
            "an event",
            "SELECT run, at_ns, kind, text, data FROM event WHERE run IS ?1 ORDER BY at_ns, event",
            params![run.map(|run| run.0)],
            event_of,
        )
    }

    /// The sources declared for a run, in the order of their numbers.
    pub fn sources(&self, run: RunId) -> Result<Vec<Source>, ReadError> {
        let mut sources = self.rows(
            "a source",
            "SELECT source, name, layer, status, reason FROM source WHERE run = ?1 ORDER BY source",
            params![run.0],
            source_of,
        )?;
        for source in &mut sources {
            source.series = self.rows(
                "a series",
                "SELECT name, unit, kind FROM series WHERE run = ?1 AND source = ?2
                 ORDER BY position",
                params![run.0, source.index],
                series_of,
            )?;
        }
        Ok(sources)
    }

    /// All ticks of the source with this name as columns; `None` if the run has no such source.
    pub fn table(&self, run: RunId, source: &str) -> Result<Option<Table>, ReadError> {
        match self.sources(run)?.into_iter().find(|declared| declared.name == source) {
            Some(source) => self.table_of(run, source).map(Some),
            None => Ok(None),
        }
    }

    /// All ticks of all sources of a run.
    pub fn tables(&self, run: RunId) -> Result<Vec<Table>, ReadError> {
        self.sources(run)?.into_iter().map(|source| self.table_of(run, source)).collect()
    }

    /// One series as (windows, column); `None` if there is no such source or series.
    pub fn series(
        &self,
        run: RunId,
        source: &str,
        series: &str,
    ) -> Result<Option<(Vec<Interval>, Column)>, ReadError> {
        Ok(self.table(run, source)?.and_then(|mut table| {
            let position = table.columns.iter().position(|column| column.spec.name == series)?;
            Some((table.ticks, table.columns.swap_remove(position)))
        }))
    }

    /// The wait samples of a run, in the order of time.
    pub fn waits(&self, run: RunId) -> Result<Vec<WaitWindow>, ReadError> {
        let mut windows = self.rows(
            "wait samples",
            "SELECT begin_ns, end_ns, samples, holder_samples FROM wait_window WHERE run = ?1
             ORDER BY begin_ns",
            params![run.0],
            |row| {
                Ok(WaitWindow {
                    interval: interval_of(row, 0, 1)?,
                    samples: number(row, 2, "a number of samples")?,
                    clients: Vec::new(),
                    holder_samples: number(row, 3, "a number of samples")?,
                    holders: Vec::new(),
                    background: Vec::new(),
                    log_holders: Vec::new(),
                    page_holders: Vec::new(),
                })
            },
        )?;
        let counts = self.rows(
            "wait samples",
            "SELECT begin_ns, role, state, class, event, backend_type, sessions
             FROM wait_count JOIN wait_key USING (wait_key) WHERE run = ?1
             ORDER BY begin_ns, sessions DESC, wait_key",
            params![run.0],
            wait_count_of,
        )?;
        let mut counts = counts.into_iter().peekable();
        for window in &mut windows {
            let begin = window.interval.begin;
            // Counts whose window is missing belong to nothing.
            while counts.next_if(|sampled| sampled.begin < begin).is_some() {}
            while let Some(sampled) = counts.next_if(|sampled| sampled.begin == begin) {
                match sampled.role.as_str() {
                    ROLE_CLIENT => window.clients.push(sampled.count),
                    ROLE_HOLDER => window.holders.push(sampled.count),
                    ROLE_BACKGROUND => window.background.push(sampled.count),
                    ROLE_LOG_HOLDER => window.log_holders.push(sampled.count),
                    ROLE_PAGE_HOLDER => window.page_holders.push(sampled.count),
                    _ => {
                        return Err(ReadError::UnknownWord {
                            what: "the role of a session",
                            word: sampled.role,
                        });
                    }
                }
            }
        }
        Ok(windows)
    }

    /// The transactions of a run per tick and type, in the order of time.
    pub fn transactions(&self, run: RunId) -> Result<Vec<TransactionTick>, ReadError> {
        self.rows(
            "transactions",
            "SELECT begin_ns, end_ns, type, committed, rolled_back, failed, unknown, errors,
             retries, response, service FROM transactions WHERE run = ?1 ORDER BY begin_ns, type",
            params![run.0],
            transaction_of,
        )
    }

    /// The other distributions of a run, in the order of time.
    pub fn histograms(&self, run: RunId) -> Result<Vec<HistogramRow>, ReadError> {
        self.rows(
            "histograms",
            "SELECT begin_ns, end_ns, scope, name, data FROM histogram WHERE run = ?1
             ORDER BY begin_ns, scope, name",
            params![run.0],
            |row| {
                Ok(HistogramRow {
                    interval: interval_of(row, 0, 1)?,
                    scope: text(row, 2, "a histogram")?,
                    name: text(row, 3, "a histogram")?,
                    histogram: histogram(row, 4, "a histogram")?,
                })
            },
        )
    }

    /// The consistency checks of a run, in the order in which they were made.
    pub fn checks(&self, run: RunId) -> Result<Vec<Check>, ReadError> {
        self.rows(
            "a check",
            "SELECT run, moment, id, title, outcome, rows, detail FROM consistency_check
             WHERE run = ?1 ORDER BY position, id",
            params![run.0],
            check_of,
        )
    }

    /// All findings, in the order in which they were made.
    pub fn findings(&self) -> Result<Vec<Finding>, ReadError> {
        self.rows(
            "a finding",
            "SELECT run, severity, code, text, data FROM finding ORDER BY finding",
            [],
            |row| {
                Ok(Finding {
                    run: run_id(row, 0)?,
                    severity: word(row, 1, "a severity", Severity::from_word)?,
                    code: text(row, 2, "a finding")?,
                    text: text(row, 3, "a finding")?,
                    data: json(row, 4, "a finding")?,
                })
            },
        )
    }

    /// All documents, in the order in which they were first written.
    pub fn documents(&self) -> Result<Vec<Document>, ReadError> {
        self.rows(
            "a document",
            "SELECT run, name, content FROM document ORDER BY document",
            [],
            |row| {
                Ok(Document {
                    run: run_id(row, 0)?,
                    name: text(row, 1, "a document")?,
                    content: json(row, 2, "a document")?,
                })
            },
        )
    }

    /// One document.
    pub fn document(&self, run: Option<RunId>, name: &str) -> Result<Option<Value>, ReadError> {
        read_document(&self.connection, run, name)
    }

    /// Verifies the file itself: `Ok(vec![])`, or what SQLite finds wrong.
    pub fn integrity_problems(&self) -> Result<Vec<String>, ReadError> {
        let lines = self.rows("the integrity check", "PRAGMA integrity_check", [], |row| {
            get::<String>(row, 0, "the integrity check")
        })?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    fn table_of(&self, run: RunId, source: Source) -> Result<Table, ReadError> {
        let mut columns: Vec<Column> = source
            .series
            .iter()
            .map(|spec| Column { spec: spec.clone(), values: Vec::new() })
            .collect();
        let rows = self.rows(
            "ticks",
            "SELECT begin_ns, end_ns, row FROM tick WHERE run = ?1 AND source = ?2
             ORDER BY begin_ns",
            params![run.0, source.index],
            |row| {
                Ok((interval_of(row, 0, 1)?, tick_row::decode(&get::<Vec<u8>>(row, 2, "ticks")?)?))
            },
        )?;
        let mut ticks = Vec::with_capacity(rows.len());
        for (interval, values) in rows {
            ticks.push(interval);
            for (position, column) in columns.iter_mut().enumerate() {
                column.values.push(values.get(position).copied().unwrap_or(f64::NAN));
            }
        }
        assert!(
            columns.iter().all(|column| column.values.len() == ticks.len()),
            "a column has one value per tick"
        );
        Ok(Table { source, ticks, columns })
    }

    fn rows<T>(
        &self,
        what: &'static str,
        sql: &str,
        values: impl Params,
        of: impl FnMut(&Row<'_>) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        read_rows(&self.connection, what, sql, values, of)
    }
}

/// Refuses a record whose rows point to rows that are not there: readers rely on them.
pub(crate) fn require_whole(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let damaged = |problem| OpenError::Damaged { path: path.to_path_buf(), problem };
    let unreadable = |source: rusqlite::Error| damaged(format!("it cannot be read: {source}"));
    let dangling = connection
        .query_row("PRAGMA foreign_key_check", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(2)?))
        })
        .optional()
        .map_err(unreadable)?;
    if let Some((table, parent)) = dangling {
        return Err(damaged(format!(
            "a row of `{table}` belongs to a row of `{parent}` that is missing"
        )));
    }
    let sql = "SELECT coalesce(min(design) = 0 AND max(design) = count(*) - 1, true) FROM design";
    let is_numbered: bool = connection.query_row(sql, [], |row| row.get(0)).map_err(unreadable)?;
    if !is_numbered {
        return Err(damaged("its designs are not numbered from 0 without a gap".to_string()));
    }
    Ok(())
}

pub(crate) fn read_manifest(connection: &Connection) -> Result<Manifest, ReadError> {
    const WHAT: &str = "the manifest";
    let sql = "SELECT study_name, title, question, evidence, seed, identity, started_wall_ns, plan,
               host, software FROM execution";
    read_one(connection, WHAT, sql, |row| {
        let seed: String = get(row, 4, WHAT)?;
        Ok(Manifest {
            study_name: text(row, 0, WHAT)?,
            title: text(row, 1, WHAT)?,
            question: text(row, 2, WHAT)?,
            evidence: word(row, 3, "an evidence kind", Evidence::from_word)?,
            seed: seed
                .parse()
                .map(RootSeed)
                .map_err(|_| ReadError::UnknownWord { what: "a seed", word: seed })?,
            identity: text(row, 5, WHAT)?,
            started_wall_ns: number(row, 6, "a wall clock time")?,
            plan: json(row, 7, "the plan")?,
            host: json(row, 8, "the host facts")?,
            software: json(row, 9, "the software versions")?,
        })
    })
}

pub(crate) fn read_execution(connection: &Connection) -> Result<Execution, ReadError> {
    let sql = "SELECT status, finished_wall_ns, sessions FROM execution";
    read_one(connection, "the execution", sql, |row| {
        Ok(Execution {
            status: word(row, 0, "a status", ExecutionStatus::from_word)?,
            finished_wall_ns: optional_number(row, 1, "a wall clock time")?,
            sessions: number(row, 2, "a number of sessions")?,
        })
    })
}

pub(crate) fn read_runs(connection: &Connection) -> Result<Vec<Run>, ReadError> {
    let sql = "SELECT run, design, repeat, sequence, begin_ns, end_ns, origin_wall_ns, status,
               reason, superseded_by FROM run ORDER BY run";
    read_rows(connection, "a run", sql, [], |row| {
        Ok(Run {
            id: RunId(get(row, 0, "a run")?),
            design: number(row, 1, "a design")?,
            repeat: number(row, 2, "a repeat")?,
            order: number(row, 3, "a position")?,
            begin: Nanos(number(row, 4, "a time")?),
            end: optional_number(row, 5, "a time")?.map(Nanos),
            origin_wall_ns: number(row, 6, "a wall clock time")?,
            status: word(row, 7, "a run's status", RunStatus::from_word)?,
            reason: optional_text(row, 8, "a run")?,
            superseded_by: run_id(row, 9)?,
        })
    })
}

pub(crate) fn read_phases(
    connection: &Connection,
    run: Option<RunId>,
) -> Result<Vec<Phase>, ReadError> {
    let sql = "SELECT phase, run, kind, label, users, begin_ns, end_ns, status FROM phase
               WHERE run IS ?1 ORDER BY begin_ns, phase";
    read_rows(connection, "a phase", sql, params![run.map(|run| run.0)], |row| {
        Ok(Phase {
            id: PhaseId(get(row, 0, "a phase")?),
            run: run_id(row, 1)?,
            kind: word(row, 2, "a kind of phase", PhaseKind::from_word)?,
            label: text(row, 3, "a phase")?,
            users: optional_number(row, 4, "a number of users")?,
            begin: Nanos(number(row, 5, "a time")?),
            end: optional_number(row, 6, "a time")?.map(Nanos),
            status: word(row, 7, "a phase's status", PhaseStatus::from_word)?,
        })
    })
}

pub(crate) fn read_document(
    connection: &Connection,
    run: Option<RunId>,
    name: &str,
) -> Result<Option<Value>, ReadError> {
    let sql = "SELECT content FROM document WHERE run IS ?1 AND name = ?2";
    let rows =
        read_rows(connection, "a document", sql, params![run.map(|run| run.0), name], |row| {
            json(row, 0, "a document")
        })?;
    Ok(rows.into_iter().next())
}

fn read_rows<T>(
    connection: &Connection,
    what: &'static str,
    sql: &str,
    values: impl Params,
    mut of: impl FnMut(&Row<'_>) -> Result<T, ReadError>,
) -> Result<Vec<T>, ReadError> {
    let sqlite = |source| ReadError::Sqlite { what, source };
    let mut statement = connection.prepare_cached(sql).map_err(sqlite)?;
    let mut rows = statement.query(values).map_err(sqlite)?;
    let mut result = Vec::new();
    while let Some(row) = rows.next().map_err(sqlite)? {
        result.push(of(row)?);
    }
    Ok(result)
}

fn read_one<T>(
    connection: &Connection,
    what: &'static str,
    sql: &str,
    of: impl FnOnce(&Row<'_>) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    connection
        .query_row(sql, [], |row| Ok(of(row)))
        .optional()
        .map_err(|source| ReadError::Sqlite { what, source })?
        .ok_or(ReadError::Sqlite { what, source: rusqlite::Error::QueryReturnedNoRows })?
}
