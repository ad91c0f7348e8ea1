//! What a study varied besides designs and users: a table per axis.
//!
//! What it deliberately does not do: show fewer users than the highest common number; the ladder has them.

use super::cells::{at_work_column, interval, main_type};
use super::page::Page;
use super::ratios::{published, ratio_interval};
use crate::analysis::{Analysis, Scope};
use crate::text_table::{Align, TextColumn};
use crate::wording::{amount, factor, minutes, time_ns};

/// What the study varied: each point at the highest number of users, against the first one.
pub(super) fn axes(page: &mut Page, analysis: &Analysis) {
    for axis in 0..analysis.axes.len() {
        if let Some(columns) = axis_columns(analysis, axis) {
            page.blank();
            page.table(columns);
        }
    }
}

/// The points of an axis at the highest number of users that all variants have; `None` while there is none.
fn axis_columns(analysis: &Analysis, axis: usize) -> Option<Vec<TextColumn>> {
    let rung = |variant: usize, users: u32| {
        analysis.rungs.iter().find(|rung| (rung.design, rung.users) == (variant, users))
    };
    let measured: Vec<usize> = (0..analysis.designs.len())
        .filter(|variant| analysis.rungs.iter().any(|rung| rung.design == *variant))
        .collect();
    let users = analysis.rungs.iter().map(|rung| rung.users);
    let is_common = |users: &u32| measured.iter().all(|variant| rung(*variant, *users).is_some());
    let users = users.filter(is_common).max()?;
    let others = |variant: usize| {
        let design = &analysis.designs[variant];
        let mut others = design.coordinates.clone();
        others.remove(axis);
        (&design.of, others)
    };
    // One line after another, each from its first point on.
    let mut rows: Vec<usize> = Vec::new();
    for variant in &measured {
        if !rows.contains(variant) {
            let same = |other: &&usize| others(**other) == others(*variant);
            rows.extend(measured.iter().filter(same));
        }
    }
    let first = |variant: usize| {
        let is_first = |other: &&usize| analysis.designs[**other].coordinates[axis] == 0;
        rows.iter().filter(is_first).copied().find(|other| others(*other) == others(variant))
    };
    let against = |variant: usize| {
        let first = first(variant)?;
        analysis.comparisons.iter().find(|one| {
            (one.a, one.b, one.users) == (first, variant, Some(users))
                && one.metric == "headline"
                && one.scope == Scope::Rung
        })
    };
    let column =
        |header: &str, align, dispensable, of: &dyn Fn(usize) -> Option<String>| TextColumn {
            header: header.to_string(),
            align,
            dispensable,
            cells: rows.iter().map(|row| of(*row).unwrap_or_else(|| "-".to_string())).collect(),
        };
    let label = |variant: usize, axis: usize| {
        let point = analysis.designs[variant].coordinates[axis];
        Some(analysis.axes[axis].points.get(point)?.label.clone())
    };
    let mut columns =
        vec![column(&analysis.axes[axis].name, Align::Left, 0, &|row| label(row, axis))];
    for other in (0..analysis.axes.len()).filter(|other| *other != axis) {
        let name = &analysis.axes[other].name;
        columns.push(column(name, Align::Left, 0, &|row| label(row, other)));
    }
    if analysis.designs.windows(2).any(|two| two[0].of != two[1].of) {
        let title = |row: usize| Some(analysis.designs[row].of_title.clone());
        columns.push(column("design", Align::Left, 0, &title));
    }
    let headline = |row: usize| rung(row, users)?.metrics.get("headline");
    let kind = main_type(analysis);
    let p95 = |row: usize| {
        let rows = &rung(row, users)?.latencies;
        rows.iter().find(|row| Some(row.transaction.as_str()) == kind)?.p95.value.map(time_ns)
    };
    columns.extend([
        column(&at_work_column(analysis), Align::Right, 2, &|_| Some(users.to_string())),
        column(&analysis.workload.unit, Align::Right, 0, &|row| headline(row)?.value.map(amount)),
        column("95 %", Align::Left, 1, &|row| interval(headline(row)?)),
        column("duration", Align::Right, 1, &|row| {
            rung(row, users)?.metrics.get("job_s")?.value.map(minutes)
        }),
        column("p95", Align::Right, 1, &p95),
        column("of the first", Align::Right, 0, &|row| match first(row) {
            Some(first) if first == row => Some(factor(1.0)),
            _ => against(row)?.ratio.map(factor),
        }),
        column("95 %", Align::Left, 0, &|row| Some(ratio_interval(against(row)?))),
        column("published", Align::Right, 0, &|row| published(against(row)?)),
    ]);
    Some(columns)
}
