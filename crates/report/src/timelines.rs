//! What happened over time in a run: derived series in at most 1800 buckets each.
//!
//! Extremes are exact: each bucket keeps the smallest and largest second. Percentiles of a bucket come from
//! its merged histogram, never from averaged percentiles.

mod cluster;

use std::collections::BTreeMap;

use underlay_core::Histogram;
use underlay_core::series::Layer;
use underlay_record::StoredHistogram;
use underlay_record::conventions::{DISPATCH_LAG, driver_series, histogram_scope, source};

use crate::analysis::{TimeClass, TimelineLine, TimelineSeries, Timelines};
use crate::method::{type_order, type_title};
use crate::observed::{ObservedRun, Series, class_of, middle};
use crate::wording::sentence_case;
use crate::workload_view::WorkloadView;

/// Buckets per line at most, ...
const MOST_BUCKETS: usize = 1800;
/// ... and fewer when there are many runs: so many per series over all runs, because the lines are most of
/// a report's size; ...
const MOST_BUCKETS_OF_ALL_RUNS: usize = 3600;
/// ... but never fewer than this.
const FEWEST_BUCKETS: usize = 300;
/// The shortest bucket, seconds: the sampling interval.
const TICK_S: f64 = 1.0;

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
    draw_background(run, &mut drawing);
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

/// The lines drawn so far, and the buckets they share.
struct Drawing {
    run: usize,
    begin_s: f64,
    step_s: f64,
    buckets: usize,
    drawn: Vec<(TimelineSeries, TimelineLine)>,
    /// The part of the storage that is being drawn.
    entity: Option<String>,
}

/// What a series is, in short.
type Label<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

impl Drawing {
    fn of(run: &ObservedRun, runs: usize) -> Drawing {
        let most = (MOST_BUCKETS_OF_ALL_RUNS / runs.max(1)).clamp(FEWEST_BUCKETS, MOST_BUCKETS);
        let length = (run.end_s() - run.begin_s()).max(TICK_S);
        let step_s = (length / most as f64 / TICK_S).ceil().max(1.0) * TICK_S;
        Drawing {
            run: run.position,
            begin_s: run.begin_s(),
            step_s,
            buckets: ((length / step_s).ceil() as usize).min(most),
            drawn: Vec::new(),
            entity: None,
        }
    }

    fn bucket(&self, time: f64) -> Option<usize> {
        let position = (time - self.begin_s) / self.step_s;
        (position >= 0.0 && position < self.buckets as f64).then_some(position as usize)
    }

    /// Draws points (time on the run's clock, value).
    fn points(&mut self, label: Label<'_>, points: &[(f64, f64)]) {
        let mut buckets: Vec<Vec<f64>> = vec![Vec::new(); self.buckets];
        for (time, value) in points.iter().filter(|(_, value)| value.is_finite()) {
            if let Some(bucket) = self.bucket(*time) {
                buckets[bucket].push(*value);
            }
        }
        let mean = buckets.iter().map(|values| crate::statistics::mean(values)).collect();
        let extreme = |of: fn(f64, f64) -> f64| {
            buckets.iter().map(|values| values.iter().copied().reduce(of)).collect()
        };
        self.line(label, mean, || (extreme(f64::min), extreme(f64::max)));
    }

    fn line(
        &mut self,
        (name, title, layer, unit, group): Label<'_>,
        mean: Vec<Option<f64>>,
        extremes: impl FnOnce() -> (Vec<Option<f64>>, Vec<Option<f64>>),
    ) {
        if mean.iter().all(Option::is_none) {
            return;
        }
        let extremes = (self.step_s > TICK_S).then(extremes);
        let short = |values: Vec<Option<f64>>| -> Vec<Option<f64>> {
            values.into_iter().map(|value| value.map(five_digits)).collect()
        };
        let (min, max) = match extremes {
            Some((min, max)) => (Some(short(min)), Some(short(max))),
            None => (None, None),
        };
        let series = TimelineSeries {
            name: name.to_string(),
            title: title.to_string(),
            layer: layer.to_string(),
            unit: unit.to_string(),
            group: group.to_string(),
            entity: self.entity.clone(),
        };
        let line = TimelineLine {
            run: self.run,
            series: 0,
            begin_s: 0.0,
            step_s: self.step_s,
            mean: short(mean),
            min,
            max,
        };
        self.drawn.push((series, line));
    }

    fn rate(&mut self, label: Label<'_>, series: Option<Series<'_>>, factor: f64) {
        let Some(series) = series else { return };
        let points: Vec<(f64, f64)> =
            series.rates().into_iter().map(|(time, rate)| (time, rate * factor)).collect();
        self.points(label, &points);
    }

    fn gauge(&mut self, label: Label<'_>, series: Option<Series<'_>>) {
        let Some(series) = series else { return };
        self.points(label, &series.values());
    }

    /// Draws quantiles of merged histograms; each histogram is decoded and merged once.
    fn quantiles<'a>(
        &mut self,
        drawn: &[(Label<'_>, f64)],
        rows: impl Iterator<Item = (f64, &'a StoredHistogram)>,
    ) {
        let mut merged: Vec<Histogram> = vec![Histogram::new(); self.buckets];
        let mut seconds: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); self.buckets]; drawn.len()];
        for (time, histogram) in rows {
            let Some(bucket) = self.bucket(time) else { continue };
            let histogram = histogram.decoded();
            for ((_, q), seconds) in drawn.iter().zip(&mut seconds) {
                seconds[bucket].extend(histogram.quantile(*q).map(|ns| ns as f64));
            }
            merged[bucket].merge(&histogram);
        }
        for ((label, q), seconds) in drawn.iter().zip(&seconds) {
            let mean =
                merged.iter().map(|bucket| bucket.quantile(*q).map(|ns| ns as f64)).collect();
            let extreme = |of: fn(f64, f64) -> f64| {
                seconds.iter().map(|values| values.iter().copied().reduce(of)).collect()
            };
            self.line(*label, mean, || (extreme(f64::min), extreme(f64::max)));
        }
    }
}

/// Enough for a chart, and half the size of the text of a full number.
fn five_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.abs());
    if digits >= 0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

fn draw_load(run: &ObservedRun, workload: &WorkloadView, drawing: &mut Drawing) {
    let mut ticks: BTreeMap<u64, (f64, f64, [f64; 3])> = BTreeMap::new();
    for tick in &run.transactions {
        let middle = (tick.interval.begin.as_secs_f64() + tick.interval.end.as_secs_f64()) / 2.0;
        let entry = ticks.entry(tick.interval.begin.0).or_insert((
            middle,
            tick.interval.seconds(),
            [0.0; 3],
        ));
        if workload.counts(&tick.transaction) {
            entry.2[0] += tick.committed as f64 * workload.period_s;
        }
        entry.2[1] += (tick.committed + tick.rolled_back) as f64;
        entry.2[2] += tick.errors.values().sum::<u64>() as f64;
    }
    let title = sentence_case(&workload.rate_words());
    let labels: [Label<'_>; 3] = [
        ("headline", &title, "driver", workload.rate_unit(), "throughput"),
        ("transactions", "Transactions per second", "driver", "1/s", "throughput"),
        ("errors", "Errors per second", "driver", "1/s", "errors"),
    ];
    for (i, label) in labels.into_iter().enumerate() {
        let points: Vec<(f64, f64)> = ticks
            .values()
            .filter(|(_, seconds, _)| *seconds > 0.0)
            .map(|(time, seconds, counts)| (*time, counts[i] / seconds))
            .collect();
        if i < 2 || points.iter().any(|(_, rate)| *rate > 0.0) {
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

fn histogram_rows<'a>(
    run: &'a ObservedRun,
    scope: &'a str,
    name: &'a str,
) -> impl Iterator<Item = (f64, &'a StoredHistogram)> {
    run.histograms
        .iter()
        .filter(move |row| row.scope == scope && row.name == name)
        .map(|row| (middle(row.interval), &row.histogram))
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
                let middle =
                    (window.interval.begin.as_secs_f64() + window.interval.end.as_secs_f64()) / 2.0;
                (middle, f64::from(sessions) / f64::from(window.samples))
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
        ("memory.cache", "of it page cache", "database", "bytes", "memory"),
        cgroup("memory.cache"),
    );
    drawing.gauge(
        ("memory.dirty", "of it dirty", "database", "bytes", "memory"),
        cgroup("memory.dirty"),
    );
}

/// Work beside the users, whatever it is called.
fn draw_background(run: &ObservedRun, drawing: &mut Drawing) {
    let Some(ticks) = run.sources.get(source::BACKGROUND) else { return };
    let names: Vec<&str> =
        ticks.names().filter_map(|series| series.strip_suffix(".bytes")).collect();
    for name in names {
        let series = |what: &str| run.series(source::BACKGROUND, &format!("{name}.{what}"));
        for (what, unit, words) in [
            ("bytes", "bytes/s", "bytes moved"),
            ("reads", "1/s", "reads"),
            ("writes", "1/s", "writes"),
        ] {
            let key = format!("background.{name}.{what}");
            let title = format!("{name}: {words}");
            drawing.rate((&key, &title, "driver", unit, "background"), series(what), 1.0);
        }
    }
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
    for (tree, title) in [
        ("postgres", "Database server"),
        ("mariadb", "Database server"),
        ("driver", "Load generator"),
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

fn draw_volumes(run: &ObservedRun, drawing: &mut Drawing) {
    let Some(ticks) = run.sources.get(source::BLOCK) else { return };
    let mut volumes: Vec<&str> =
        ticks.names().filter_map(|name| name.strip_prefix("volume.")?.split('.').next()).collect();
    volumes.dedup();
    let touched = |volume: &&str| {
        ["read", "write"].iter().any(|operation| {
            let ios = run.series(source::BLOCK, &format!("volume.{volume}.{operation}.ios"));
            ios.is_some_and(|ios| ios.steps().any(|(_, _, by)| by > 0.0))
        })
    };
    for volume in volumes.into_iter().filter(touched) {
        for operation in ["read", "write"] {
            draw_operation(run, drawing, volume, operation);
        }
        let name = format!("volume.{volume}.queue");
        let series = run.series(source::BLOCK, &format!("volume.{volume}.queue_time"));
        let title = format!("{volume}: outstanding");
        drawing.rate((&name, &title, "block", "requests", "volume queue"), series, 1e-3);
    }
}

fn draw_operation(run: &ObservedRun, drawing: &mut Drawing, volume: &str, operation: &str) {
    let field =
        |field: &str| run.series(source::BLOCK, &format!("volume.{volume}.{operation}.{field}"));
    let title = format!("{volume}: {operation}s");
    let name = format!("volume.{volume}.{operation}_iops");
    drawing.rate((&name, &title, "block", "1/s", "volume IOPS"), field("ios"), 1.0);
    let name = format!("volume.{volume}.{operation}_bytes");
    drawing.rate((&name, &title, "block", "bytes/s", "volume bytes"), field("sectors"), 512.0);
    let (Some(time), Some(ios)) = (field("time"), field("ios")) else { return };
    let times: BTreeMap<u64, f64> =
        time.steps().map(|(_, to, ms)| (to.to_bits(), ms * 1e6)).collect();
    let points: Vec<(f64, f64)> = ios
        .steps()
        .filter(|(_, _, ios)| *ios > 0.0)
        .filter_map(|(_, to, ios)| Some((to, times.get(&to.to_bits())? / ios)))
        .collect();
    let name = format!("volume.{volume}.{operation}_latency");
    drawing.points((&name, &title, "block", "ns", "volume latency"), &points);
}

fn draw_datastore(run: &ObservedRun, drawing: &mut Drawing) {
    let mut names: Vec<&str> = run
        .histograms
        .iter()
        .filter(|row| row.scope == histogram_scope::DATASTORE)
        .map(|row| row.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let series = ["p50", "p99"].map(|word| format!("datastore.{name}.{word}"));
        let titles = ["p50", "p99"].map(|word| format!("{} {word}", name.replace('.', ": ")));
        let label = |i: usize| (&*series[i], &*titles[i], "datastore", "ns", "datastore latency");
        let rows = histogram_rows(run, histogram_scope::DATASTORE, name);
        drawing.quantiles(&[(label(0), 0.5), (label(1), 0.99)], rows);
    }
}

#[cfg(test)]
mod tests {
    use super::five_digits;

    #[test]
    fn numbers_are_shortened_not_changed() {
        assert_eq!(five_digits(123_456_789.0), 123_460_000.0);
        assert_eq!(five_digits(0.001_234_567), 0.001_234_6);
        assert_eq!(five_digits(12.5), 12.5);
        assert_eq!(five_digits(0.0), 0.0);
    }
}
