//! Measurements: transactions, other distributions, waits, and the ticks of all sources.

use crate::columns::Table;
use crate::entities::{Run, RunId, WaitCount};
use crate::error::ExportError;
use crate::record::Record;

use super::columns::{BEGIN, BUCKETS, END, RUN};
use super::csv_file::{Directory, buckets, text, value_text, window};

pub(super) fn export_transactions(
    record: &Record,
    runs: &[Run],
    out: &mut Directory,
) -> Result<(), ExportError> {
    let mut file = out.table(
        "transactions",
        "Transactions per tick and type.",
        &[
            RUN,
            BEGIN,
            END,
            ("type", "transaction type"),
            ("committed", "count"),
            ("rolled_back", "count, intended by the workload"),
            ("failed", "given up after an error that undid it"),
            ("unknown", "given up after an error that may have undone it"),
            ("errors", "JSON object: class -> count"),
            ("retries", "attempts repeated after an error"),
            ("response_count", "response times counted (time since the intended start)"),
            ("response_sum_ns", "exact sum of the response times"),
            ("response_max_ns", "largest response time"),
            ("response_buckets", BUCKETS),
            ("service_sum_ns", "exact sum of the service times (since the actual start)"),
            ("service_max_ns", "largest service time"),
            ("service_buckets", BUCKETS),
        ],
    )?;
    for run in runs {
        for tick in record.transactions(run.id)? {
            let (response, service) = (tick.response.decoded(), tick.service.decoded());
            let [id, begin, end] = window(run.id, tick.interval);
            let errors: serde_json::Map<String, serde_json::Value> =
                tick.errors.into_iter().map(|(class, n)| (class, n.into())).collect();
            file.row(&[
                id,
                begin,
                end,
                tick.transaction,
                tick.committed.to_string(),
                tick.rolled_back.to_string(),
                tick.failed.to_string(),
                tick.unknown.to_string(),
                serde_json::Value::Object(errors).to_string(),
                tick.retries.to_string(),
                response.count().to_string(),
                response.sum().to_string(),
                text(response.max()),
                buckets(&response),
                service.sum().to_string(),
                text(service.max()),
                buckets(&service),
            ])?;
        }
    }
    file.close()
}

pub(super) fn export_distributions(
    record: &Record,
    runs: &[Run],
    out: &mut Directory,
) -> Result<(), ExportError> {
    let mut file = out.table(
        "histograms",
        "Distributions other than those of transactions.",
        &[
            RUN,
            BEGIN,
            END,
            ("scope", "what it belongs to"),
            ("name", "which one"),
            ("count", "values counted"),
            ("sum_ns", "their exact sum"),
            ("max_ns", "the largest"),
            ("buckets", BUCKETS),
        ],
    )?;
    for run in runs {
        for row in record.histograms(run.id)? {
            let histogram = row.histogram.decoded();
            let [id, begin, end] = window(run.id, row.interval);
            file.row(&[
                id,
                begin,
                end,
                row.scope,
                row.name,
                histogram.count().to_string(),
                histogram.sum().to_string(),
                text(histogram.max()),
                buckets(&histogram),
            ])?;
        }
    }
    file.close()
}

pub(super) fn export_waits(
    record: &Record,
    runs: &[Run],
    out: &mut Directory,
) -> Result<(), ExportError> {
    let mut file = out.table(
        "waits",
        "Sampled database sessions. sessions / samples = mean number of sessions in that state.",
        &[
            RUN,
            BEGIN,
            END,
            (
                "role",
                "client, holder (root of a chain of blockers), background, log-holder (who writes the log that a client waits \
                 for) or page-holder (who reads a page that a client waits for)",
            ),
            ("samples", "how often sessions of this role were sampled in the window"),
            ("state", "session state; after a slash the state of its thread: R running or runnable, D in I/O, S asleep"),
            ("class", "wait class; empty: on CPU or runnable"),
            ("event", "wait event"),
            ("backend_type", "kind of server process"),
            ("sessions", "session samples, summed over the window"),
        ],
    )?;
    for run in runs {
        for waits in record.waits(run.id)? {
            let of_role = |role, samples: u32, counts: Vec<WaitCount>| {
                counts.into_iter().map(move |count| (role, samples, count))
            };
            let counts = of_role("client", waits.samples, waits.clients)
                .chain(of_role("holder", waits.holder_samples, waits.holders))
                .chain(of_role("background", waits.samples, waits.background))
                .chain(of_role("log-holder", waits.samples, waits.log_holders))
                .chain(of_role("page-holder", waits.samples, waits.page_holders));
            for (role, samples, count) in counts {
                let [id, begin, end] = window(run.id, waits.interval);
                file.row(&[
                    id,
                    begin,
                    end,
                    role.to_string(),
                    samples.to_string(),
                    count.key.state,
                    count.key.class,
                    count.key.event,
                    count.key.backend_type,
                    count.sessions.to_string(),
                ])?;
            }
        }
    }
    file.close()
}

pub(super) fn export_ticks(
    record: &Record,
    runs: &[Run],
    out: &mut Directory,
) -> Result<(), ExportError> {
    let mut file = out.table(
        "sources",
        "The sources of ticks per run.",
        &[
            RUN,
            ("source", "its number in the run"),
            ("name", "its name: the file ticks-<name>.csv"),
            ("layer", "driver, database, host, block, datastore or underlay"),
            ("status", "available, degraded or absent"),
            ("reason", "why it is not available"),
            ("series", "number of series"),
        ],
    )?;
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        for source in record.sources(run.id)? {
            file.row(&[
                run.id.0.to_string(),
                source.index.to_string(),
                source.name.clone(),
                source.layer.as_str().to_string(),
                source.status.as_str().to_string(),
                text(source.status.reason()),
                source.series.len().to_string(),
            ])?;
            if !names.contains(&source.name) {
                names.push(source.name);
            }
        }
    }
    file.close()?;
    names.iter().try_for_each(|name| export_source(record, runs, name, out))
}

/// One source over all runs: its columns are the union of what the runs declare.
fn export_source(
    record: &Record,
    runs: &[Run],
    name: &str,
    out: &mut Directory,
) -> Result<(), ExportError> {
    let mut tables: Vec<(RunId, Table)> = Vec::new();
    for run in runs {
        if let Some(table) = record.table(run.id, name)? {
            tables.push((run.id, table));
        }
    }
    let mut series: Vec<(String, String)> = Vec::new();
    for column in tables.iter().flat_map(|(_, table)| &table.columns) {
        if !series.iter().any(|(name, _)| *name == column.spec.name) {
            let meaning = format!("{}, {}", column.spec.kind.as_str(), column.spec.unit);
            series.push((column.spec.name.clone(), meaning));
        }
    }
    let mut columns = vec![RUN, BEGIN, END];
    columns.extend(series.iter().map(|(name, meaning)| (name.as_str(), meaning.as_str())));
    let file_name = out.unused(&format!("ticks-{}", name.replace(['/', '\\'], "_")));
    let about = "Raw values as read; counters are cumulative. Empty: missing.";
    let mut file = out.table(&file_name, about, &columns)?;
    for (run, table) in &tables {
        let of_series: Vec<Option<&[f64]>> = series
            .iter()
            .map(|(name, _)| table.column(name).map(|column| column.values.as_slice()))
            .collect();
        for (i, tick) in table.ticks.iter().enumerate() {
            let mut cells = window(*run, *tick).to_vec();
            cells.extend(of_series.iter().map(|values| value_text(*values, i)));
            file.row(&cells)?;
        }
    }
    file.close()
}
