//! The measurements of a run and the conclusions from them: ticks of sources, waits, transactions, histograms, events,
//! checks, findings, documents.

use std::collections::HashSet;

use rusqlite::{Connection, params};
use serde_json::Value;
use underlay_core::Histogram;

use super::{Declared, Recorder, stored};
use crate::entities::{
    Check, Event, Finding, Interval, RunId, Source, TransactionTick, WaitKey, WaitWindow,
};
use crate::error::WriteError;
use crate::{record, tick_row};
use underlay_core::CheckOutcome;

impl Recorder {
    /// Declares a source, or declares it again with a new status or with more series.
    pub fn source(&mut self, run: RunId, source: &Source) -> Result<(), WriteError> {
        debug_assert!(has_distinct_names(source), "series of `{}` are found by name", source.name);
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
        assert!(
            window.samples > 0 || window.clients.is_empty(),
            "session counts without samples have no mean"
        );
        assert!(
            window.holder_samples > 0 || window.holders.is_empty(),
            "lock holder counts without samples have no mean"
        );
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
            (record::ROLE_LOG_HOLDER, &window.log_holders),
            (record::ROLE_PAGE_HOLDER, &window.page_holders),
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
        debug_assert!(!tick.transaction.is_empty(), "transactions are stored by type");
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
        assert!(!check.id.is_empty(), "a check without an id would replace others");
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
        assert!(!finding.code.is_empty(), "readers select findings by code");
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
        assert!(!name.is_empty(), "documents are found by name");
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
        // `abandon` clears this cache: ids of a rolled-back transaction are given out again.
        self.wait_keys.insert(key.clone(), id);
        debug_assert!(!self.connection.is_autocommit(), "the key belongs to the open transaction");
        Ok(id)
    }
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

fn has_distinct_names(source: &Source) -> bool {
    let names: HashSet<&str> = source.series.iter().map(|series| series.name.as_str()).collect();
    names.len() == source.series.len()
}

fn stored_interval(interval: Interval) -> Result<(i64, i64), WriteError> {
    assert!(interval.begin <= interval.end, "an interval ends after it begins: {interval:?}");
    Ok((stored("a time", interval.begin.0)?, stored("a time", interval.end.0)?))
}
