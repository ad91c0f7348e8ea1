//! What happened over time in a run: derived series in at most 1800 buckets each.
//!
//! Extremes are exact: each bucket keeps the smallest and largest second. Percentiles of a bucket come from
//! its merged histogram, never from averaged percentiles.

mod background;
mod catalogue;
mod cluster;
mod database;
mod drawing;
mod host;
mod load;
mod storage;

use crate::analysis::{TimelineLine, TimelineSeries};
use crate::observed::ObservedRun;
use crate::workload_view::WorkloadView;

pub(crate) use catalogue::{SeriesCatalogue, assemble};

use database::{draw_database, draw_waits};
use drawing::Drawing;
use host::draw_host;
use load::{draw_latencies, draw_load};
use storage::{draw_datastore, draw_volumes};

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
