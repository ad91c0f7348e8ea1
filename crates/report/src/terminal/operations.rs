//! Backups and restores.
//!
//! What it deliberately does not do: list their cycles, which the page shows.

use super::cells::{interval, title};
use super::page::Page;
use crate::analysis::{Analysis, Operation, Rung};
use crate::metrics::RESTORED;
use crate::text_table::{Align, TextColumn};
use crate::wording::amount;

/// A rung, `backup` or `restore`, the metric of its seconds, and its cycles.
type OperationRow<'a> = (&'a Rung, &'static str, &'static str, u64);

/// Backups and restores of each design, over their cycles and runs.
pub(super) fn operations(page: &mut Page, analysis: &Analysis) {
    let mut rows: Vec<OperationRow<'_>> = Vec::new();
    for rung in &analysis.rungs {
        for (kind, seconds) in [("backup", "backup_s"), ("restore", "restore_s")] {
            let of_kind = |operation: &&Operation| {
                (operation.design, operation.kind.as_str()) == (rung.design, kind)
            };
            let cycles = analysis.operations.iter().filter(of_kind).count() as u64;
            if cycles > 0 {
                rows.push((rung, kind, seconds, cycles));
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    let column = |header: &str, align, of: &dyn Fn(&OperationRow<'_>) -> String| TextColumn {
        header: header.to_string(),
        align,
        dispensable: 0,
        cells: rows.iter().map(of).collect(),
    };
    let value = |rung: &Rung, name: &str| rung.metrics.get(name)?.value;
    let missing = || "-".to_string();
    page.blank();
    page.table(vec![
        column("operation", Align::Left, &|(_, kind, _, _)| kind.to_string()),
        column("design", Align::Left, &|(rung, ..)| title(analysis, rung.design)),
        column("cycles", Align::Right, &|(.., cycles)| cycles.to_string()),
        column("seconds", Align::Right, &|(rung, _, seconds, _)| {
            value(rung, seconds).map_or_else(missing, amount)
        }),
        column("95 %", Align::Left, &|(rung, _, seconds, _)| {
            rung.metrics.get(*seconds).and_then(interval).unwrap_or_else(missing)
        }),
        column("MB/s", Align::Right, &|(rung, kind, ..)| {
            let rate = match *kind {
                "backup" => value(rung, "headline"),
                _ => value(rung, RESTORED).map(|rate| rate / 1e6),
            };
            rate.map_or_else(missing, amount)
        }),
    ]);
    page.note(
            "seconds: mean of an operation, until what it wrote is durable; the report shows each cycle.",
        );
}
