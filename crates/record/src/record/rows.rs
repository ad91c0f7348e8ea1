//! From rows of the tables to what they mean.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rusqlite::Row;
use serde_json::Value;
use underlay_core::printable::{is_unprintable, printable};
use underlay_core::series::{Layer, SeriesKind, SeriesSpec};
use underlay_core::{Evidence, Nanos};

use crate::entities::{
    Check, Design, Event, Interval, RunId, Source, TransactionTick, WaitCount, WaitKey,
};
use crate::error::ReadError;
use crate::stored_histogram::StoredHistogram;
use crate::words::{CheckMoment, SourceStatus};
use underlay_core::CheckOutcome;

pub(super) fn design_of(row: &Row<'_>) -> Result<Design, ReadError> {
    Ok(Design {
        index: number(row, 0, "a design")?,
        name: text(row, 1, "a design")?,
        title: text(row, 2, "a design")?,
        description: text(row, 3, "a design")?,
        evidence: word(row, 4, "an evidence kind", Evidence::from_word)?,
        detail: json(row, 5, "a design")?,
    })
}

pub(super) fn event_of(row: &Row<'_>) -> Result<Event, ReadError> {
    Ok(Event {
        run: run_id(row, 0)?,
        at: Nanos(number(row, 1, "a time")?),
        kind: text(row, 2, "an event")?,
        text: text(row, 3, "an event")?,
        data: json(row, 4, "an event")?,
    })
}

pub(super) fn source_of(row: &Row<'_>) -> Result<Source, ReadError> {
    let status: String = get(row, 3, "a source")?;
    Ok(Source {
        index: number(row, 0, "a source")?,
        name: text(row, 1, "a source")?,
        layer: word(row, 2, "a layer", Layer::from_word)?,
        status: SourceStatus::from_word(&status, optional_text(row, 4, "a source")?)
            .ok_or(ReadError::UnknownWord { what: "a source's status", word: status })?,
        series: Vec::new(),
    })
}

pub(super) fn series_of(row: &Row<'_>) -> Result<SeriesSpec, ReadError> {
    Ok(SeriesSpec {
        name: text(row, 0, "a series")?,
        unit: text(row, 1, "a series")?,
        kind: word(row, 2, "a kind of series", SeriesKind::from_word)?,
    })
}

/// A row of `wait_count`.
pub(super) struct Sampled {
    pub(super) begin: Nanos,
    pub(super) role: String,
    pub(super) count: WaitCount,
}

pub(super) fn wait_count_of(row: &Row<'_>) -> Result<Sampled, ReadError> {
    const WHAT: &str = "wait samples";
    let key = WaitKey {
        state: text(row, 2, WHAT)?,
        class: text(row, 3, WHAT)?,
        event: text(row, 4, WHAT)?,
        backend_type: text(row, 5, WHAT)?,
    };
    Ok(Sampled {
        begin: Nanos(number(row, 0, "a time")?),
        role: text(row, 1, WHAT)?,
        count: WaitCount { key, sessions: number(row, 6, "a number of sessions")? },
    })
}

pub(super) fn transaction_of(row: &Row<'_>) -> Result<TransactionTick, ReadError> {
    const WHAT: &str = "transactions";
    let errors: Value = json(row, 7, WHAT)?;
    let errors: BTreeMap<String, u64> = errors
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(class, n)| Some((class.clone(), n.as_u64()?)))
        .collect();
    Ok(TransactionTick {
        interval: interval_of(row, 0, 1)?,
        transaction: text(row, 2, WHAT)?,
        committed: number(row, 3, "a count")?,
        rolled_back: number(row, 4, "a count")?,
        failed: number(row, 5, "a count")?,
        unknown: number(row, 6, "a count")?,
        errors,
        retries: number(row, 8, "a count")?,
        response: histogram(row, 9, WHAT)?,
        service: histogram(row, 10, WHAT)?,
    })
}

pub(super) fn check_of(row: &Row<'_>) -> Result<Check, ReadError> {
    let outcome: String = get(row, 4, "a check")?;
    let detail = optional_text(row, 6, "a check")?.unwrap_or_default();
    let outcome = match outcome.as_str() {
        "ok" => CheckOutcome::Ok,
        "violated" => CheckOutcome::Violated {
            rows: optional_number(row, 5, "a number of rows")?.unwrap_or(0),
            example: detail,
        },
        "failed" => CheckOutcome::Failed { error: detail },
        _ => return Err(ReadError::UnknownWord { what: "a check's outcome", word: outcome }),
    };
    Ok(Check {
        run: RunId(get(row, 0, "a check")?),
        moment: word(row, 1, "a check's moment", CheckMoment::from_word)?,
        id: text(row, 2, "a check")?,
        title: text(row, 3, "a check")?,
        outcome,
    })
}

pub(super) fn get<T: rusqlite::types::FromSql>(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
) -> Result<T, ReadError> {
    row.get(column).map_err(|source| ReadError::Sqlite { what, source })
}

/// A text, made safe to print: the record may have been written by another program.
pub(super) fn text(row: &Row<'_>, column: usize, what: &'static str) -> Result<String, ReadError> {
    get::<String>(row, column, what).map(safe)
}

pub(super) fn optional_text(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
) -> Result<Option<String>, ReadError> {
    Ok(get::<Option<String>>(row, column, what)?.map(safe))
}

fn safe(text: String) -> String {
    match printable(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(printable) => printable,
    }
}

pub(super) fn number<T: TryFrom<i64>>(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
) -> Result<T, ReadError> {
    let value: i64 = get(row, column, what)?;
    T::try_from(value).map_err(|_| ReadError::OutOfRange { what, value })
}

pub(super) fn optional_number<T: TryFrom<i64>>(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
) -> Result<Option<T>, ReadError> {
    let value: Option<i64> = get(row, column, what)?;
    value
        .map(|value| T::try_from(value).map_err(|_| ReadError::OutOfRange { what, value }))
        .transpose()
}

pub(super) fn run_id(row: &Row<'_>, column: usize) -> Result<Option<RunId>, ReadError> {
    Ok(get::<Option<i64>>(row, column, "a run")?.map(RunId))
}

pub(super) fn interval_of(row: &Row<'_>, begin: usize, end: usize) -> Result<Interval, ReadError> {
    Ok(Interval {
        begin: Nanos(number(row, begin, "a time")?),
        end: Nanos(number(row, end, "a time")?),
    })
}

pub(super) fn word<T>(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
    from_word: impl Fn(&str) -> Option<T>,
) -> Result<T, ReadError> {
    let word: String = get(row, column, what)?;
    from_word(&word).ok_or(ReadError::UnknownWord { what, word })
}

pub(super) fn json(row: &Row<'_>, column: usize, what: &'static str) -> Result<Value, ReadError> {
    let text: String = get(row, column, what)?;
    let mut value =
        serde_json::from_str(&text).map_err(|source| ReadError::Json { what, source })?;
    // Control characters are escaped in JSON, or there as they are.
    if text.contains("\\u") || text.contains(is_unprintable) {
        make_safe(&mut value);
    }
    Ok(value)
}

fn make_safe(value: &mut Value) {
    match value {
        Value::String(text) => *text = safe(std::mem::take(text)),
        Value::Array(list) => list.iter_mut().for_each(make_safe),
        Value::Object(map) if map.keys().any(|key| key.contains(is_unprintable)) => {
            for (key, mut value) in std::mem::take(map) {
                make_safe(&mut value);
                map.insert(safe(key), value);
            }
        }
        Value::Object(map) => map.values_mut().for_each(make_safe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

pub(super) fn histogram(
    row: &Row<'_>,
    column: usize,
    what: &'static str,
) -> Result<StoredHistogram, ReadError> {
    let bytes: Vec<u8> = get(row, column, what)?;
    StoredHistogram::verified(bytes).map_err(|source| ReadError::Histogram { what, source })
}
