//! Time lines of the load generator: what it counted, how long that took, and how late it was itself.

use std::collections::BTreeMap;

use underlay_record::conventions::{DISPATCH_LAG, driver_series, histogram_scope, source};

use super::drawing::{Drawing, Label, histogram_rows};
use crate::observed::{ObservedRun, middle};
use crate::transaction_types::{type_order, type_title};
use crate::wording::sentence_case;
use crate::workload_view::WorkloadView;

/// What was done by the second, and who asked for it.
pub(super) fn draw_load(run: &ObservedRun, workload: &WorkloadView, drawing: &mut Drawing) {
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

/// Response times of each type, and how late they were asked for.
pub(super) fn draw_latencies(run: &ObservedRun, drawing: &mut Drawing) {
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
