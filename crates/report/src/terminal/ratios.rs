//! The ratios of designs with their intervals, and what may be concluded.
//!
//! What it deliberately does not do: show ratios of latencies, which the page has.

use super::cells::{at_work, title};
use super::page::Page;
use crate::analysis::{Analysis, Comparison, Outcome, Scope};
use crate::metrics::{RATE_AT_LIMIT, RESTORED};
use crate::text_table::{Align, TextColumn};
use crate::wording::{count, factor, factor_interval};

/// A table per metric that is compared.
pub(super) fn ratios(page: &mut Page, analysis: &Analysis) {
    let of = |metric: &'static str| -> Vec<&Comparison> {
        let is_shown =
            |comparison: &&Comparison| comparison.metric == metric && comparison.ratio.is_some();
        analysis.comparisons.iter().filter(is_shown).collect()
    };
    let (headline, restores, curves) = (of("headline"), of(RESTORED), of(RATE_AT_LIMIT));
    let unit = match analysis.operations.is_empty() {
        true => analysis.workload.unit.clone(),
        false => format!("{}, backup", analysis.workload.unit),
    };
    let tables =
        [(&headline, unit.as_str()), (&restores, "MB/s, restore"), (&curves, "/s below 1 ms")];
    for (shown, what) in tables {
        if !shown.is_empty() {
            page.blank();
            page.table(ratio_columns(analysis, shown, what));
        }
    }
    let mut shown = headline.into_iter().chain(restores).chain(curves);
    if shown.any(|comparison| comparison.outcome == Outcome::Suggested) {
        page.note(
            "(*) the interval excludes 1, but not after Holm's correction for the number of rungs.",
        );
    }
}

/// The interval of a ratio, or `none`.
pub(crate) fn ratio_interval(comparison: &Comparison) -> String {
    match (comparison.low, comparison.high) {
        (Some(low), Some(high)) => factor_interval(low, high),
        _ => "none".to_string(),
    }
}

/// A p value.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "<0.001".to_string() } else { format!("{p:.3}") }
}

/// What is concluded.
pub(crate) fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Better => "better",
        Outcome::Worse => "worse",
        Outcome::Equivalent => "same within 5 %",
        Outcome::Undecided => "no difference shown",
        Outcome::Suggested => "not confirmed (*)",
        Outcome::Single => "one pair: no interval",
        Outcome::Missing => "not comparable",
    }
}

fn ratio_columns(analysis: &Analysis, shown: &[&Comparison], what: &str) -> Vec<TextColumn> {
    let column =
        |header: &str, align, dispensable, of: &dyn Fn(&Comparison) -> String| TextColumn {
            header: header.to_string(),
            align,
            dispensable,
            cells: shown.iter().map(|comparison| of(comparison)).collect(),
        };
    let mut columns = vec![
        column(&format!("ratio of {what}"), Align::Left, 0, &|c| {
            format!("{} over {}", title(analysis, c.b), title(analysis, c.a))
        }),
        column("at", Align::Right, 0, &|c| place(analysis, c)),
        column("factor", Align::Right, 0, &|c| c.ratio.map_or("-".to_string(), factor)),
        column("95 %", Align::Left, 0, &ratio_interval),
        column("pairs", Align::Right, 2, &|c| c.pairs.to_string()),
        column("p", Align::Right, 1, &|c| c.p_adjusted.map_or("-".to_string(), probability)),
        column("published", Align::Right, 1, &|c| published(c).unwrap_or_else(|| "-".to_string())),
        column("conclusion", Align::Left, 0, &|c| outcome_words(c.outcome).to_string()),
    ];
    if !analysis.validity.is_empty() {
        columns.insert(4, column("with the host's share", Align::Left, 3, &host_interval));
    }
    columns
}

/// The published ratio, with a remark where a side of ours was fitted to it or is set.
pub(super) fn published(comparison: &Comparison) -> Option<String> {
    let given = if comparison.published_given { " (given)" } else { "" };
    comparison.published.map(|ratio| format!("{}{given}", factor(ratio)))
}

/// The interval with the host's share of emulated designs.
fn host_interval(comparison: &Comparison) -> String {
    match (comparison.host_low, comparison.host_high) {
        (Some(low), Some(high)) => factor_interval(low, high),
        _ => "unknown".to_string(),
    }
}

fn place(analysis: &Analysis, comparison: &Comparison) -> String {
    match (comparison.scope, comparison.users) {
        (Scope::Rung, Some(users)) => count(u64::from(users), at_work(analysis)),
        _ => "peaks".to_string(),
    }
}
