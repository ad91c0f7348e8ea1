//! What the measured windows of a record show, in the words of predictions: rates of its samplers
//! over the transactions of each window. Records of a simulation have the same series.

use std::collections::BTreeMap;
use underlay_core::{Histogram, Nanos};
use underlay_record::conventions::{document, driver_series, source};
use underlay_record::{Interval, Phase, PhaseKind, PhaseStatus, ReadError, Record, Table};
use underlay_simulation::databases::{Costs, Observation, TypeCosts};
use underlay_study::EngineKind;
use underlay_workload::transactional::Shape;

/// Measured transactions of a type that say what it costs.
const MEASURED_ENOUGH: f64 = 5.0;
/// Bytes of PostgreSQL's pages, which an image has at most: holes are left out.
const PAGE: f64 = 8192.0;

/// The windows of a design that were measured to their end, of runs that count.
///
/// # Errors
/// Records that cannot be read.
pub fn observations(
    record: &Record,
    design: u32,
    engine: EngineKind,
    shape: &Shape,
) -> Result<Vec<Observation>, ReadError> {
    let mut observations = Vec::new();
    // Processor time of sessions is that of the host, which a dilated design does not have.
    let is_dilated = record.document(None, document::TIME_DILATION)?.is_some();
    for run in record.runs()? {
        if !run.is_evidence() || run.design != design {
            continue;
        }
        let tables = record.tables(run.id)?;
        let transactions = record.transactions(run.id)?;
        for phase in record.phases(Some(run.id))? {
            let Some((users, interval)) = measured(&phase) else { continue };
            let mut ended: BTreeMap<&str, (u64, u64, Histogram)> = BTreeMap::new();
            let mut covered = 0.0;
            for tick in &transactions {
                let within =
                    interval.begin <= tick.interval.begin && tick.interval.end <= interval.end;
                let Some(number) = shape.index_of(&tick.transaction).filter(|_| within) else {
                    continue;
                };
                let kind = ended.entry(shape.types[number]).or_default();
                kind.0 += tick.committed;
                kind.1 += tick.committed + tick.rolled_back;
                kind.2.merge(&tick.response.decoded());
                if number == shape.headline.types[0] {
                    covered += tick.interval.seconds();
                }
            }
            let mut response = Histogram::new();
            let mut counted = 0;
            for number in shape.headline.types {
                if let Some((committed, _, responses)) = ended.get(shape.types[*number]) {
                    counted += committed;
                    response.merge(responses);
                }
            }
            let all: u64 = ended.values().map(|kind| kind.1).sum();
            let length = Nanos((covered * 1e9).round() as u64);
            let costs = costs(&tables, engine, interval, all as f64 / covered);
            observations.push(Observation {
                users,
                headline: shape.headline.rate(counted, length),
                transactions_per_second: all as f64 / covered,
                p95: response.quantile(0.95).map(Nanos),
                p99: response.quantile(0.99).map(Nanos),
                costs: Costs {
                    background_ns: costs.background_ns.filter(|_| !is_dilated),
                    ..costs
                },
                types: shape
                    .types
                    .iter()
                    .map(|name| TypeCosts {
                        ended: ended.get(name).map_or(0, |kind| kind.1),
                        cpu_ns: server_cpu(&tables, name, interval),
                    })
                    .collect(),
                bottleneck: None,
            });
        }
    }
    Ok(observations)
}

fn measured(phase: &Phase) -> Option<(u32, Interval)> {
    let counts = phase.kind == PhaseKind::Measure && phase.status == PhaseStatus::Finished;
    Some((phase.users?, phase.interval().filter(|_| counts)?))
}

/// Per transaction, where so many end per second.
fn costs(tables: &[Table], engine: EngineKind, interval: Interval, per_second: f64) -> Costs {
    let per = |source: &str, series: &[&str]| {
        let table = tables.iter().find(|table| table.source.name == source)?;
        let mut rates = series.iter().map(|series| rate(table, series, interval));
        let first = rates.next()??;
        let sum = rates.flatten().fold(first, |sum, rate| sum + rate);
        (per_second > 0.0).then(|| sum / per_second)
    };
    let client_ns = per(source::PROCESS, &["driver.on_cpu"]).filter(|time| *time > 0.0);
    let io_ns = per(source::PROCESS, &["kernel.on_cpu", "datastore.on_cpu"])
        .zip(requests(tables, interval))
        .map(|(time, requests)| time * per_second / requests);
    let background_ns = background_ns(tables, engine, interval)
        .and_then(|time| (per_second > 0.0).then(|| time / per_second));
    match engine {
        EngineKind::Postgresql => Costs {
            client_ns,
            io_ns,
            cpu_ns: per(source::PROCESS, &[on_cpu(engine)]),
            log_bytes: per(source::POSTGRES, &["wal.wal_bytes"])
                .or_else(|| per(source::POSTGRES, &["wal.position"])),
            background_ns,
            image_bytes: per(source::POSTGRES, &["wal.wal_fpi"]).map(|images| images * PAGE),
            pages_missed: per(source::POSTGRES, &["database.blks_read"]),
            pages_written: per(
                source::POSTGRES,
                &[
                    "bgwriter.buffers_clean",
                    "bgwriter.buffers_checkpoint",
                    "bgwriter.buffers_backend",
                ],
            ),
        },
        EngineKind::Mariadb | EngineKind::Mysql => Costs {
            client_ns,
            io_ns,
            cpu_ns: per(source::PROCESS, &[on_cpu(engine)]),
            log_bytes: per(source::MARIADB, &["status.innodb_lsn_current"]),
            background_ns,
            image_bytes: None,
            pages_missed: per(source::MARIADB, &["status.innodb_buffer_pool_reads"]),
            pages_written: per(source::MARIADB, &["status.innodb_buffer_pool_pages_flushed"]),
        },
    }
}

/// Processor time of the server per second that its sessions did not use.
fn background_ns(tables: &[Table], engine: EngineKind, interval: Interval) -> Option<f64> {
    let rate_of = |source: &str, series: &str| {
        rate(tables.iter().find(|table| table.source.name == source)?, series, interval)
    };
    let all = rate_of(source::PROCESS, on_cpu(engine))?;
    let sessions = rate_of(source::WAITS, "sessions.on_cpu")?;
    Some((all - sessions).max(0.0))
}

/// The processor time of a server.
fn on_cpu(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Postgresql => "postgres.on_cpu",
        EngineKind::Mariadb | EngineKind::Mysql => "mariadb.on_cpu",
    }
}

/// Processor time of a session per transaction of a type; `None` where too few were measured.
fn server_cpu(tables: &[Table], kind: &str, interval: Interval) -> Option<f64> {
    let table = tables.iter().find(|table| table.source.name == source::DRIVER)?;
    let seconds = interval.seconds();
    let transactions = rate(table, &driver_series::server_cpu_transactions(kind), interval)?;
    let time = rate(table, &driver_series::server_cpu(kind), interval)?;
    (transactions * seconds >= MEASURED_ENOUGH).then(|| time / transactions)
}

/// I/O requests of all volumes per second, as the block layer counts them; `None` where there were none.
fn requests(tables: &[Table], interval: Interval) -> Option<f64> {
    let table = tables.iter().find(|table| table.source.name == source::BLOCK)?;
    // It counts a flush as a write, too.
    let is_counted = |name: &str| {
        name.starts_with("volume.") && (name.ends_with(".read.ios") || name.ends_with(".write.ios"))
    };
    let names = table.source.series.iter().map(|series| series.name.as_str());
    let rates =
        names.filter(|name| is_counted(name)).filter_map(|name| rate(table, name, interval));
    Some(rates.sum::<f64>()).filter(|requests| *requests > 0.0)
}

/// Increase per second of a counter between its first and last reading of the window, one before
/// included; `None` where it is not there, or was reset.
fn rate(table: &Table, series: &str, interval: Interval) -> Option<f64> {
    let column = table.column(series)?;
    // A reading at the begin of the window covers the time up to it.
    let inside = |tick: &Interval| tick.begin >= interval.begin && tick.end <= interval.end;
    let readings: Vec<(Nanos, f64)> = table
        .ticks
        .iter()
        .zip(&column.values)
        .filter(|(tick, value)| inside(tick) && value.is_finite())
        .map(|(tick, value)| (tick.begin, *value))
        .collect();
    let ((from, first), (to, last)) = (*readings.first()?, *readings.last()?);
    (to > from && last >= first).then(|| (last - first) / (to - from).as_secs_f64())
}
