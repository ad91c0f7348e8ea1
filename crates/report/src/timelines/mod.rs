//! What happened over time in a run: derived series in at most 1800 buckets each.
//!
//! Extremes are exact: each bucket keeps the smallest and largest second. Percentiles of a bucket come from
//! its merged histogram, never from averaged percentiles.

mod background;
mod cluster;
mod drawing;
mod storage;

use std::collections::BTreeMap;

use underlay_core::series::Layer;
use underlay_record::conventions::{DISPATCH_LAG, driver_series, histogram_scope, source};

use crate::analysis::{TimeClass, TimelineLine, TimelineSeries, Timelines};
use crate::observed::{ObservedRun, class_of, middle};
use crate::transaction_types::{type_order, type_title};
use crate::wording::sentence_case;
use crate::workload_view::WorkloadView;

use drawing::{Drawing, Label, histogram_rows};
use storage::{draw_datastore, draw_volumes};

/// The series that occur in any run, each with its position.
#[derive(Debug, Default)]
pub(crate) struct SeriesCatalogue {
    series: Vec<TimelineSeries>,
}

impl SeriesCatalogue {
    fn position(&mut self, wanted: TimelineSeries) -> usize {
        match self.series.iter().position(|known| known.name == wanted.name) {
            Some(position) => position,
            None => {
                self.series.push(wanted);
                self.series.len() - 1
            }
        }
    }
}

/// All lines, with their series in the order of the layers from the user down.
pub(crate) fn assemble(catalogue: SeriesCatalogue, mut lines: Vec<TimelineLine>) -> Timelines {
    let depth = |series: &TimelineSeries| {
        Layer::ALL.iter().position(|layer| layer.as_str() == series.layer)
    };
    let mut order: Vec<usize> = (0..catalogue.series.len()).collect();
    order.sort_by_key(|position| (depth(&catalogue.series[*position]), *position));
    let mut new_position = vec![0; order.len()];
    for (new, old) in order.iter().enumerate() {
        new_position[*old] = new;
    }
    lines.iter_mut().for_each(|line| line.series = new_position[line.series]);
    let series = order.iter().map(|old| catalogue.series[*old].clone()).collect();
    Timelines { series, lines }
}

/// The lines of one of `runs` runs.
pub(crate) fn lines(
    run: &ObservedRun,
    runs: usize,
    workload: &WorkloadView,
    catalogue: &mut SeriesCatalogue,
) -> Vec<TimelineLine> {
    let mut drawing = Drawing::of(run, runs);
    draw_load(run, workload, &mut drawing);
    draw_latencies(run, &mut drawing);
    draw_waits(run, &mut drawing);
    draw_database(run, &mut drawing);
    draw_host(run, &mut drawing);
    draw_volumes(run, &mut drawing);
    draw_datastore(run, &mut drawing);
    background::draw(run, &mut drawing);
    cluster::draw(run, &mut drawing);
    drawing
        .drawn
        .into_iter()
        .map(|(series, mut line)| {
            line.series = catalogue.position(series);
            line
        })
        .collect()
}

/// The lines of one of several databases of a run.
pub(crate) fn lines_of_database(
    (name, run): (&str, &ObservedRun),
    runs: usize,
    workload: &WorkloadView,
    catalogue: &mut SeriesCatalogue,
) -> Vec<TimelineLine> {
    let mut drawing = Drawing::of(run, runs);
    draw_load(run, workload, &mut drawing);
    draw_latencies(run, &mut drawing);
    draw_database(run, &mut drawing);
    drawing
        .drawn
        .into_iter()
        .filter(|(series, _)| is_drawn_of_each(&series.name, workload))
        .map(|(series, mut line)| {
            line.series = catalogue.position(TimelineSeries {
                name: format!("{name}/{}", series.name),
                title: format!("{name}: {}", series.title),
                ..series
            });
            line
        })
        .collect()
}

/// What is drawn of each of several databases: more would make a report many times as large.
fn is_drawn_of_each(series: &str, workload: &WorkloadView) -> bool {
    let latency = series.strip_prefix("latency.").and_then(|rest| rest.strip_suffix(".p99"));
    ["headline", "done", "log_bytes", "memory.usage"].contains(&series)
        || latency.is_some_and(|transaction| workload.counts(transaction))
}

fn draw_load(run: &ObservedRun, workload: &WorkloadView, drawing: &mut Drawing) {
    let (counted, unit, period_s) = workload.counted_by_the_second();
    let mut ticks: BTreeMap<u64, (f64, f64, [f64; 3])> = BTreeMap::new();
    for tick in &run.transactions {
        let entry = ticks.entry(tick.interval.begin.0).or_insert((
            middle(tick.interval),
            tick.interval.seconds(),
            [0.0; 3],
        ));
        if workload.counts(&tick.transaction) {
            entry.2[0] += tick.committed as f64 * period_s;
        }
        entry.2[1] += (tick.committed + tick.rolled_back) as f64;
        entry.2[2] += tick.errors.values().sum::<u64>() as f64;
    }
    let title = sentence_case(&counted);
    // What a job does by the second is not its headline, and its steps are no transactions.
    let name = if workload.is_job() { "done" } else { "headline" };
    let labels: [Label<'_>; 3] = [
        (name, &title, "driver", unit, "throughput"),
        ("transactions", "Transactions per second", "driver", "1/s", "throughput"),
        ("errors", "Errors per second", "driver", "1/s", "errors"),
    ];
    for (i, label) in labels.into_iter().enumerate() {
        let points: Vec<(f64, f64)> = ticks
            .values()
            .filter(|(_, seconds, _)| *seconds > 0.0)
            .map(|(time, seconds, counts)| (*time, counts[i] / seconds))
            .collect();
        let is_drawn = i == 0 || (i == 1 && !workload.is_job());
        if is_drawn || (i == 2 && points.iter().any(|(_, rate)| *rate > 0.0)) {
            drawing.points(label, &points);
        }
    }
    let driver = |series| run.series(source::DRIVER, series);
    drawing
        .gauge(("users", "Users", "driver", "users", "users"), driver(driver_series::USERS_ACTIVE));
    drawing.gauge(
        ("arrivals.queued", "Arrivals waiting", "driver", "requests", "queue"),
        driver(driver_series::ARRIVALS_QUEUED),
    );
}

fn draw_latencies(run: &ObservedRun, drawing: &mut Drawing) {
    let asked = run.transactions.iter().filter(|tick| tick.committed + tick.rolled_back > 0);
    let mut names: Vec<&str> = asked.map(|tick| tick.transaction.as_str()).collect();
    names.sort_unstable_by_key(|name| (type_order(name), *name));
    names.dedup();
    for name in names {
        let series = ["p50", "p95", "p99"].map(|word| format!("latency.{name}.{word}"));
        let titles = ["p50", "p95", "p99"].map(|word| format!("{} {word}", type_title(name)));
        let label = |i: usize| (&*series[i], &*titles[i], "driver", "ns", "latency");
        let rows = run
            .transactions
            .iter()
            .filter(|tick| tick.transaction == name)
            .map(|tick| (middle(tick.interval), &tick.response));
        drawing.quantiles(&[(label(0), 0.5), (label(1), 0.95), (label(2), 0.99)], rows);
    }
    let label = ("dispatch_lag.p99", "Dispatch lag p99", "driver", "ns", "dispatch lag");
    let lag = histogram_rows(run, histogram_scope::DRIVER, DISPATCH_LAG);
    drawing.quantiles(&[(label, 0.99)], lag);
}

fn draw_waits(run: &ObservedRun, drawing: &mut Drawing) {
    let classes: [(TimeClass, &str, &str); 8] = [
        (TimeClass::Cpu, "wait.cpu", "On CPU or runnable"),
        (TimeClass::Log, "wait.log", "Log"),
        (TimeClass::DataRead, "wait.data-read", "Data reads"),
        (TimeClass::DataWrite, "wait.data-write", "Data writes"),
        (TimeClass::Lock, "wait.lock", "Locks"),
        (TimeClass::Latch, "wait.latch", "Latches"),
        (TimeClass::Other, "wait.other", "Other"),
        (TimeClass::Client, "wait.client", "Idle (client)"),
    ];
    for (class, name, title) in classes {
        let points: Vec<(f64, f64)> = run
            .waits
            .iter()
            .filter(|window| window.samples > 0)
            .map(|window| {
                let sessions: u32 = window
                    .clients
                    .iter()
                    .filter(|count| class_of(&count.key) == class)
                    .map(|count| count.sessions)
                    .sum();
                (middle(window.interval), f64::from(sessions) / f64::from(window.samples))
            })
            .collect();
        drawing.points((name, title, "database", "sessions", "waits"), &points);
    }
}

fn draw_database(run: &ObservedRun, drawing: &mut Drawing) {
    let postgres = |series| run.series(source::POSTGRES, series);
    let mariadb = |series| run.series(source::MARIADB, series);
    let log = ["wal.position", "wal.wal_bytes", "wal.bytes"]
        .into_iter()
        .find_map(postgres)
        .or_else(|| mariadb("status.innodb_lsn_current"));
    drawing.rate(("log_bytes", "Log written", "database", "bytes/s", "log"), log, 1.0);
    drawing.rate(
        ("blocks_read", "Blocks read", "database", "1/s", "blocks"),
        postgres("database.blks_read").or_else(|| mariadb("status.innodb_pages_read")),
        1.0,
    );
    let cgroup = |series| run.series(source::CGROUP, series);
    drawing.gauge(
        ("memory.usage", "Memory charged", "database", "bytes", "memory"),
        cgroup("memory.usage"),
    );
    drawing.gauge(
        ("memory.cache", "of which page cache", "database", "bytes", "memory"),
        cgroup("memory.cache"),
    );
    drawing.gauge(
        ("memory.dirty", "of which dirty", "database", "bytes", "memory"),
        cgroup("memory.dirty"),
    );
}

fn draw_host(run: &ObservedRun, drawing: &mut Drawing) {
    let state = |name: &str| run.series(source::HOST_CPU, &format!("cpu.{name}"));
    for (name, title) in [
        ("user", "User"),
        ("system", "System"),
        ("iowait", "Idle, I/O outstanding"),
        ("idle", "Idle"),
        ("softirq", "Interrupts"),
        ("steal", "Steal"),
    ] {
        let series = format!("cpu.{name}");
        drawing.rate((&series, title, "host", "cores", "host CPU"), state(name), 1e-9);
    }
    // Rare, so that it is shown where there is any; without it the processors would look idle.
    let nice = state("nice").filter(|nice| nice.steps().any(|(_, _, by)| by > 0.0));
    drawing.rate(("cpu.nice", "User, low priority", "host", "cores", "host CPU"), nice, 1e-9);
    for (tree, title) in [
        ("postgres", "Database server"),
        ("mariadb", "Database server"),
        ("driver", "Load generator"),
        // Where the load generator has a process of its own.
        ("underlay", "Lab"),
        ("datastore", "Datastore"),
    ] {
        let of = |counter: &str| run.series(source::PROCESS, &format!("{tree}.{counter}"));
        let name = format!("process.{tree}.on_cpu");
        drawing.rate((&name, title, "host", "cores", "process CPU"), of("on_cpu"), 1e-9);
        let name = format!("process.{tree}.run_queue");
        drawing.rate((&name, title, "host", "sessions", "run queue"), of("run_queue"), 1e-9);
    }
    drawing.rate(
        ("pressure.cpu", "CPU pressure", "host", "share", "pressure"),
        run.series(source::PRESSURE, "cpu.some"),
        1e-6,
    );
    drawing.rate(
        ("pressure.io", "I/O pressure", "host", "share", "pressure"),
        run.series(source::PRESSURE, "io.some"),
        1e-6,
    );
}
