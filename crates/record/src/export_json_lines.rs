//! Export to JSON lines: one object per line, each with its `table`, so that the whole record is one stream.
//!
//! The first line is the execution with its manifest. Ticks carry their values as an object from series
//! name to raw value (`null` = missing); histograms their non-empty buckets as
//! `[lower bound, width, count]`. 64-bit seeds are text, because many JSON readers keep only 53 bits.

use std::io::Write;

use serde_json::{Map, Value, json};
use underlay_core::Histogram;

use crate::columns::Table;
use crate::entities::{Interval, Run, RunId, TransactionTick, WaitCount, WaitWindow};
use crate::error::ExportError;
use crate::record::Record;
use underlay_core::CheckOutcome;

/// Writes the record to `out`, run by run.
pub fn export_json_lines(record: &Record, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut lines = Lines { out };
    export_execution(record, &mut lines)?;
    export_events(record, None, &mut lines)?;
    for run in record.runs()? {
        lines.write(&run_line(&run))?;
        export_events(record, Some(run.id), &mut lines)?;
        export_checks(record, run.id, &mut lines)?;
        export_measurements(record, run.id, &mut lines)?;
    }
    Ok(())
}

struct Lines<'a> {
    out: &'a mut dyn Write,
}

impl Lines<'_> {
    fn write(&mut self, value: &Value) -> Result<(), ExportError> {
        writeln!(self.out, "{value}").map_err(ExportError::Stream)
    }
}

fn export_execution(record: &Record, lines: &mut Lines<'_>) -> Result<(), ExportError> {
    let manifest = record.manifest();
    let execution = record.execution()?;
    lines.write(&json!({
        "table": "execution",
        "study": manifest.study_name,
        "title": manifest.title,
        "question": manifest.question,
        "evidence": manifest.evidence.as_str(),
        "seed": manifest.seed.0.to_string(),
        "identity": manifest.identity,
        "started_wall_ns": manifest.started_wall_ns,
        "finished_wall_ns": execution.finished_wall_ns,
        "status": execution.status.as_str(),
        "sessions": execution.sessions,
        "plan": manifest.plan,
        "host": manifest.host,
        "software": manifest.software,
    }))?;
    for design in record.designs()? {
        lines.write(&json!({
            "table": "design",
            "design": design.index,
            "name": design.name,
            "title": design.title,
            "description": design.description,
            "evidence": design.evidence.as_str(),
            "detail": design.detail,
        }))?;
    }
    for finding in record.findings()? {
        lines.write(&json!({
            "table": "finding",
            "run": finding.run.map(|run| run.0),
            "severity": finding.severity.as_str(),
            "code": finding.code,
            "text": finding.text,
            "data": finding.data,
        }))?;
    }
    for document in record.documents()? {
        lines.write(&json!({
            "table": "document",
            "run": document.run.map(|run| run.0),
            "name": document.name,
            "content": document.content,
        }))?;
    }
    Ok(())
}

fn run_line(run: &Run) -> Value {
    json!({
        "table": "run",
        "run": run.id.0,
        "design": run.design,
        "repeat": run.repeat,
        "order": run.order,
        "begin_ns": run.begin.0,
        "end_ns": run.end.map(|end| end.0),
        "origin_wall_ns": run.origin_wall_ns,
        "status": run.status.as_str(),
        "reason": run.reason,
        "superseded_by": run.superseded_by.map(|run| run.0),
    })
}

fn export_events(
    record: &Record,
    run: Option<RunId>,
    lines: &mut Lines<'_>,
) -> Result<(), ExportError> {
    for phase in record.phases(run)? {
        lines.write(&json!({
            "table": "phase",
            "phase": phase.id.0,
            "run": run.map(|run| run.0),
            "kind": phase.kind.as_str(),
            "label": phase.label,
            "users": phase.users,
            "begin_ns": phase.begin.0,
            "end_ns": phase.end.map(|end| end.0),
            "status": phase.status.as_str(),
        }))?;
    }
    for event in record.events(run)? {
        lines.write(&json!({
            "table": "event",
            "run": run.map(|run| run.0),
            "at_ns": event.at.0,
            "kind": event.kind,
            "text": event.text,
            "data": event.data,
        }))?;
    }
    Ok(())
}

fn export_checks(record: &Record, run: RunId, lines: &mut Lines<'_>) -> Result<(), ExportError> {
    for check in record.checks(run)? {
        let mut line = json!({
            "table": "check",
            "run": run.0,
            "moment": check.moment.as_str(),
            "id": check.id,
            "title": check.title,
            "outcome": check.outcome.as_str(),
        });
        match check.outcome {
            CheckOutcome::Ok => {}
            CheckOutcome::Violated { rows, example } => {
                line["rows"] = rows.into();
                line["example"] = example.into();
            }
            CheckOutcome::Failed { error } => line["error"] = error.into(),
        }
        lines.write(&line)?;
    }
    Ok(())
}

fn export_measurements(
    record: &Record,
    run: RunId,
    lines: &mut Lines<'_>,
) -> Result<(), ExportError> {
    for tick in record.transactions(run)? {
        lines.write(&transaction_line(run, &tick))?;
    }
    for row in record.histograms(run)? {
        lines.write(&windowed(
            run,
            row.interval,
            json!({
                "table": "histogram",
                "scope": row.scope,
                "name": row.name,
                "histogram": histogram_value(&row.histogram.decoded()),
            }),
        ))?;
    }
    for waits in record.waits(run)? {
        lines.write(&waits_line(run, &waits))?;
    }
    for table in record.tables(run)? {
        export_table(run, &table, lines)?;
    }
    Ok(())
}

fn transaction_line(run: RunId, tick: &TransactionTick) -> Value {
    let line = json!({
        "table": "transactions",
        "type": tick.transaction,
        "committed": tick.committed,
        "rolled_back": tick.rolled_back,
        "failed": tick.failed,
        "unknown": tick.unknown,
        "errors": tick.errors.iter().map(|(class, n)| (class.clone(), Value::from(*n)))
            .collect::<Map<_, _>>(),
        "retries": tick.retries,
        "response": histogram_value(&tick.response.decoded()),
        "service": histogram_value(&tick.service.decoded()),
    });
    windowed(run, tick.interval, line)
}

fn waits_line(run: RunId, waits: &WaitWindow) -> Value {
    let line = json!({
        "table": "waits",
        "samples": waits.samples,
        "clients": counts_value(&waits.clients),
        "holder_samples": waits.holder_samples,
        "holders": counts_value(&waits.holders),
        "background": counts_value(&waits.background),
    });
    windowed(run, waits.interval, line)
}

fn counts_value(counts: &[WaitCount]) -> Vec<Value> {
    counts
        .iter()
        .map(|count| {
            json!({
                "state": count.key.state,
                "class": count.key.class,
                "event": count.key.event,
                "backend_type": count.key.backend_type,
                "sessions": count.sessions,
            })
        })
        .collect()
}

fn export_table(run: RunId, table: &Table, lines: &mut Lines<'_>) -> Result<(), ExportError> {
    let source = &table.source;
    let series: Vec<Value> = source
        .series
        .iter()
        .map(|spec| json!({ "name": spec.name, "unit": spec.unit, "kind": spec.kind.as_str() }))
        .collect();
    lines.write(&json!({
        "table": "source",
        "run": run.0,
        "name": source.name,
        "layer": source.layer.as_str(),
        "status": source.status.as_str(),
        "reason": source.status.reason(),
        "series": series,
    }))?;
    for (i, tick) in table.ticks.iter().enumerate() {
        let values: Map<String, Value> = table
            .columns
            .iter()
            .map(|column| (column.spec.name.clone(), Value::from(column.values[i])))
            .collect();
        let line = json!({ "table": "tick", "source": source.name, "values": values });
        lines.write(&windowed(run, *tick, line))?;
    }
    Ok(())
}

fn windowed(run: RunId, interval: Interval, mut line: Value) -> Value {
    line["run"] = run.0.into();
    line["begin_ns"] = interval.begin.0.into();
    line["end_ns"] = interval.end.0.into();
    line
}

fn histogram_value(histogram: &Histogram) -> Value {
    let buckets: Vec<Value> =
        histogram.buckets().map(|(low, width, n)| json!([low, width, n])).collect();
    json!({
        "count": histogram.count(),
        "sum": histogram.sum() as f64,
        "min": histogram.min(),
        "max": histogram.max(),
        "buckets": buckets,
    })
}
