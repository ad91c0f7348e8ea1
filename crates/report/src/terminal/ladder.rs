//! The ladder: one line per design and number of users.
//!
//! What it deliberately does not do: show single databases or points of an axis, which have tables of their own.

use super::cells::{at_work_column, interval, main_type, title};
use super::page::Page;
use crate::analysis::{Analysis, Basis, Estimate, LatencyRow, Rung, Validity};
use crate::text_table::{Align, TextColumn};
use crate::transaction_types::type_title;
use crate::wording::{amount, minutes, percent, time_ns};

/// The ladder, with what its numbers are.
pub(super) fn ladder(page: &mut Page, analysis: &Analysis) {
    if analysis.rungs.is_empty() {
        return;
    }
    page.blank();
    page.table(ladder_columns(analysis));
    let over_runs = |rung: &Rung| {
        rung.metrics.get("headline").is_some_and(|headline| headline.basis == Basis::Runs)
    };
    let interval = match analysis.workload.is_one_run() && !analysis.rungs.iter().any(over_runs) {
        true => "",
        false => ", with its 95 % interval over runs",
    };
    let mut note = format!("{}: {}{interval}", analysis.workload.unit, analysis.workload.rate);
    let kind = main_type(analysis);
    let rows = analysis.rungs.iter().flat_map(|rung| &rung.latencies);
    // What was only counted has no latencies in the table.
    if rows.filter(|row| Some(row.transaction.as_str()) == kind).any(|row| row.p50.value.is_some())
    {
        let whose = match (kind, analysis.workload.types.len()) {
            (Some(kind), 2..) => type_title(kind),
            _ => analysis.workload.counted.clone(),
        };
        note.push_str(&format!("; latency: {whose}, from the intended start"));
    }
    page.note(&format!("{note}."));
    if let Some(text) = common_working_set(&analysis.rungs) {
        page.note(&format!("Each rung {text}."));
    }
    let within_run = |rung: &Rung| {
        rung.metrics.get("headline").is_some_and(|headline| headline.basis == Basis::WithinRun)
    };
    if analysis.rungs.iter().any(within_run) {
        page.note("(w) interval within a single run; it does not cover variation between runs.");
    }
}

fn ladder_columns(analysis: &Analysis) -> Vec<TextColumn> {
    let rungs = &analysis.rungs;
    let text = |header: &str, dispensable, of: &dyn Fn(&Rung) -> Option<String>| TextColumn {
        header: header.to_string(),
        align: Align::Right,
        dispensable,
        cells: rungs.iter().map(|rung| of(rung).unwrap_or_else(|| "-".to_string())).collect(),
    };
    let left = |column: TextColumn| TextColumn { align: Align::Left, ..column };
    let metric = |name: &'static str, words: fn(f64) -> String| {
        move |rung: &Rung| rung.metrics.get(name)?.value.map(words)
    };
    let kind = main_type(analysis);
    let latency = |of: fn(&LatencyRow) -> &Estimate| {
        move |rung: &Rung| {
            let row = rung.latencies.iter().find(|row| Some(row.transaction.as_str()) == kind)?;
            of(row).value.map(time_ns)
        }
    };
    let mut columns = vec![
        left(text("design", 0, &|rung| Some(title(analysis, rung.design)))),
        text(&at_work_column(analysis), 0, &|rung| Some(rung.users.to_string())),
        text(&analysis.workload.unit, 0, &metric("headline", amount)),
        left(text("95 %", 0, &|rung| interval(rung.metrics.get("headline")?))),
        text("duration", 1, &metric("job_s", minutes)),
        text("MB/s", 4, &metric("bytes_per_second", |bytes| amount(bytes / 1e6))),
        text("TPM", 4, &metric("tpm", amount)),
        text("TPM/user", 6, &metric("tpm_per_user", amount)),
        text("p50", 5, &latency(|row| &row.p50)),
        text("p95", 1, &latency(|row| &row.p95)),
        text("p99", 3, &latency(|row| &row.p99)),
        text("CPU idle", 2, &|rung| {
            let of = |name: &str| rung.metrics.get(name)?.value;
            of("server_cpu_idle").or(of("cpu_idle")).map(percent)
        }),
    ];
    if !analysis.validity.is_empty() {
        // After the interval: it says how to read both.
        let words = |rung: &Rung| Some(validity(analysis, rung)?.as_str().to_string());
        columns.insert(4, left(text("validity", 2, &words)));
    }
    // Idle of what the server may use; the host's beside it where that is more.
    if rungs.iter().any(|rung| rung.metrics.contains_key("server_cpu_idle")) {
        columns.push(text("host idle", 7, &metric("cpu_idle", percent)));
    }
    let has_working_sets = rungs.iter().any(|rung| rung.working_set.is_some());
    if has_working_sets && common_working_set(rungs).is_none() {
        let touched = |rung: &Rung| rung.working_set.as_ref().map(|set| set.text.clone());
        columns.push(left(text("working set", 8, &touched)));
    }
    if rungs.len() > analysis.peaks.len() {
        let is_peak = |rung: &Rung| {
            analysis.peaks.iter().any(|p| (p.design, p.users) == (rung.design, rung.users))
        };
        let mark = |rung: &Rung| Some(if is_peak(rung) { "* peak" } else { "" }.to_string());
        columns.push(left(text("", 0, &mark)));
    }
    columns
}

/// What all rungs touch, where that is the same: said once, below the table.
fn common_working_set(rungs: &[Rung]) -> Option<&str> {
    let first = rungs.first()?.working_set.as_ref()?;
    let is_same = |rung: &Rung| rung.working_set.as_ref().is_some_and(|set| set.text == first.text);
    rungs.iter().all(is_same).then_some(first.text.as_str())
}

/// Whether a design or this host was measured.
fn validity(analysis: &Analysis, rung: &Rung) -> Option<Validity> {
    let rows = &analysis.validity;
    let row = rows.iter().find(|row| (row.design, row.users) == (rung.design, rung.users))?;
    Some(row.outcome)
}
