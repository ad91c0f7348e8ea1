//! Each of several databases, with the total, and the jobs that some of them are.
//!
//! What it deliberately does not do: show fewer users than the highest number; the page has them.

use super::cells::{at_work_column, interval, main_type, title};
use super::page::Page;
use crate::analysis::{Analysis, Database, Estimate, LatencyRow, Rung};
use crate::text_table::{Align, TextColumn};
use crate::wording::{amount, time_ns};

/// Each of several databases at the highest number of users of its design, and the total.
pub(super) fn databases(page: &mut Page, analysis: &Analysis) {
    if analysis.databases.is_empty() {
        return;
    }
    page.blank();
    page.table(database_columns(analysis));
    page.note(&format!(
        "{}: {} of each database at the highest number of users; users are those of each database.",
        analysis.workload.unit, analysis.workload.rate
    ));
    jobs(page, analysis);
}

/// What the jobs of databases came to, beside the users of the others.
fn jobs(page: &mut Page, analysis: &Analysis) {
    let of_design = |design: usize| {
        let jobs = analysis.databases.iter().filter(|database| database.workload.is_job);
        jobs.filter_map(move |job| {
            let rung = job.rungs.iter().filter(|rung| rung.design == design);
            Some((job, rung.max_by_key(|rung| rung.users)?))
        })
    };
    let rows: Vec<(&Database, &Rung)> = (0..analysis.designs.len()).flat_map(of_design).collect();
    if rows.is_empty() {
        return;
    }
    let column = |header: &str, align, of: &dyn Fn(&Database, &Rung) -> String| TextColumn {
        header: header.to_string(),
        align,
        dispensable: 0,
        cells: rows.iter().map(|(job, rung)| of(job, rung)).collect(),
    };
    let value = |rung: &Rung, name: &str| {
        let value = rung.metrics.get(name).and_then(|metric| metric.value);
        value.map_or_else(|| "-".to_string(), amount)
    };
    let mut columns = vec![
        column("job", Align::Left, &|job, _| job.name.clone()),
        column("design", Align::Left, &|_, rung| title(analysis, rung.design)),
        column("result", Align::Right, &|_, rung| value(rung, "headline")),
        column("", Align::Left, &|job, _| job.workload.unit.clone()),
    ];
    for (header, metric) in [("backup s", "backup_s"), ("restore s", "restore_s")] {
        if rows.iter().any(|(_, rung)| rung.metrics.contains_key(metric)) {
            columns.push(column(header, Align::Right, &|_, rung| value(rung, metric)));
        }
    }
    page.blank();
    page.table(columns);
    page.note("jobs run alongside the users, from the first rung on; no total includes them.");
}

/// The databases, design by design, at the highest number of users that the design was measured at.
fn database_columns(analysis: &Analysis) -> Vec<TextColumn> {
    let highest = |rungs: &[Rung], design: usize| {
        rungs.iter().filter(|rung| rung.design == design).max_by_key(|rung| rung.users).cloned()
    };
    let mut rows: Vec<(&str, Rung)> = Vec::new();
    for design in 0..analysis.designs.len() {
        for database in analysis.databases.iter().filter(|database| !database.workload.is_job) {
            rows.extend(highest(&database.rungs, design).map(|rung| (&*database.name, rung)));
        }
        rows.extend(highest(&analysis.rungs, design).map(|rung| ("total", rung)));
    }
    let column = |header: &str, align, dispensable, of: &dyn Fn(&str, &Rung) -> Option<String>| {
        let cell = |(name, rung): &(&str, Rung)| of(name, rung).unwrap_or_else(|| "-".to_string());
        let cells = rows.iter().map(cell).collect();
        TextColumn { header: header.to_string(), align, dispensable, cells }
    };
    let kind = main_type(analysis);
    let latency = |of: fn(&LatencyRow) -> &Estimate| {
        move |_: &str, rung: &Rung| {
            let row = rung.latencies.iter().find(|row| Some(row.transaction.as_str()) == kind)?;
            of(row).value.map(time_ns)
        }
    };
    let published = |name: &str, rung: &Rung| {
        let mut all = analysis.published.iter().filter(|it| it.metric == "headline");
        let database = if name == "total" { "" } else { name };
        let series = all.find(|it| it.design == rung.design && it.database == database)?;
        let at = series.rungs.iter().position(|users| *users == Some(rung.users))?;
        series.values.get(at).copied().map(amount)
    };
    let mut columns = vec![
        column("database", Align::Left, 0, &|name, _| Some(name.to_string())),
        column("design", Align::Left, 1, &|_, rung| Some(title(analysis, rung.design))),
        column(&at_work_column(analysis), Align::Right, 2, &|_, rung| Some(rung.users.to_string())),
        column(&analysis.workload.unit, Align::Right, 0, &|_, rung| {
            rung.metrics.get("headline")?.value.map(amount)
        }),
        column("95 %", Align::Left, 0, &|_, rung| interval(rung.metrics.get("headline")?)),
        column("p50", Align::Right, 5, &latency(|row| &row.p50)),
        column("p95", Align::Right, 1, &latency(|row| &row.p95)),
        column("p99", Align::Right, 3, &latency(|row| &row.p99)),
    ];
    if rows.iter().any(|(name, rung)| published(name, rung).is_some()) {
        columns.push(column("published", Align::Right, 0, &published));
    }
    columns
}
