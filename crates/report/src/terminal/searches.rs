//! The searches for the highest rate that meets a target.
//!
//! What it deliberately does not do: list their steps, which the page shows.

use super::cells::title;
use super::page::Page;
use crate::analysis::{Analysis, RateSearch};
use crate::text_table::{Align, TextColumn};
use crate::wording::amount;

/// The searches, one line each.
pub(super) fn searches(page: &mut Page, analysis: &Analysis) {
    let Some(first) = analysis.searches.first() else { return };
    let per_second = |rate: Option<f64>| rate.map_or("-".to_string(), amount);
    let column = |header: &str, align, of: &dyn Fn(&RateSearch) -> String| TextColumn {
        header: header.to_string(),
        align,
        dispensable: 0,
        cells: analysis.searches.iter().map(of).collect(),
    };
    page.blank();
    page.table(vec![
        column("highest rate", Align::Left, &|search| title(analysis, search.design)),
        column("repeat", Align::Right, &|search| search.repeat.to_string()),
        column("met /s", Align::Right, &|search| per_second(search.holds_per_second)),
        column("missed /s", Align::Right, &|search| per_second(search.fails_per_second)),
        column("rates tested", Align::Right, &|search| search.steps.len().to_string()),
        column("", Align::Left, &|search| match search.found.as_str() {
            "at-least" => "the load generator was saturated first".to_string(),
            "nothing" => "no rate meets the target".to_string(),
            _ => String::new(),
        }),
    ]);
    page.note(&format!(
            "highest transaction rate with {}, found by bisection and confirmed once; the report lists every step.",
            first.slo
        ));
}
