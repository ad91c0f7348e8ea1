//! What limits each rung, by the rules and by experiment.
//!
//! What it deliberately does not do: show time budgets, gates and what was ruled out; the page has them.

use super::cells::{at_work, title};
use super::colour::Style;
use super::page::Page;
use crate::analysis::{Analysis, CausalCheck, Confidence, Reaction};
use crate::verdict::causal;
use crate::wording::count;

/// A sentence per rung.
pub(super) fn bottlenecks(page: &mut Page, analysis: &Analysis) {
    if analysis.bottlenecks.is_empty() {
        return;
    }
    page.blank();
    page.styled(Style::Faint, "bottlenecks", "", "");
    for bottleneck in &analysis.bottlenecks {
        let place = format!(
            "{}, {}: ",
            title(analysis, bottleneck.design),
            count(u64::from(bottleneck.users), at_work(analysis))
        );
        let confidence = match bottleneck.confidence {
            Confidence::None => String::new(),
            level => format!(" [{} confidence]", level.as_str()),
        };
        let text = format!("{place}{}{confidence}", bottleneck.sentence);
        page.wrapped(&text, "  ", "    ");
        let at = (bottleneck.design, bottleneck.users);
        for check in analysis.causal_checks.iter().filter(|it| (it.design, it.users) == at) {
            page.wrapped(&check.sentence, "    ", "      ");
            what_if(page, check);
        }
    }
}

/// What faster resources would do, where it was asked for.
fn what_if(page: &mut Page, check: &CausalCheck) {
    for sensitivity in &check.resources {
        let Some(what_if) = &sensitivity.what_if else { continue };
        let words = |it: &Reaction| {
            let percent = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
            let (value, low, high) = (percent(it.value), percent(it.low), percent(it.high));
            format!("{value} % [{low}, {high}]")
        };
        let measured = match &what_if.measured {
            Some(measured) => format!("measured {}", words(measured)),
            None => "cannot be made faster here".to_string(),
        };
        let text = format!(
            "if {} were 20 % faster: {} predicted, {measured}",
            causal::title(&sensitivity.resource),
            words(&what_if.predicted)
        );
        page.wrapped(&text, "    ", "      ");
    }
}
