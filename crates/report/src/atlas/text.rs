//! The atlas for terminals: a table of headline ratios, then what disagrees.

use crate::text_table::{Align, TextColumn, render, wrap};
use crate::wording::{factor, factor_interval, percent};

use super::collection::Atlas;
use super::experiment::{AtlasExperiment, AtlasRatio};

/// What the mark says.
const GIVEN: &str =
    "(given): a side was fitted to the publication or set by the study; not part of the medians.";

/// What the other mark says.
const HOST_LIMITED: &str = "(host-limited): this host was measured instead of one of the designs.";

/// The atlas as text of at most `width` columns where that is possible.
pub fn atlas_summary(atlas: &Atlas, width: usize) -> String {
    let mut lines = Vec::new();
    let rows: Vec<(&AtlasExperiment, &AtlasRatio)> = atlas
        .experiments
        .iter()
        .flat_map(|one| one.ratios.iter().map(move |ratio| (one, ratio)))
        .filter(|(_, ratio)| ratio.is_headline)
        .collect();
    if !rows.is_empty() {
        lines.extend(render(columns(&rows), width));
        lines.push(String::new());
    }
    let is_any_limited = rows.iter().any(|(_, ratio)| ratio.is_host_limited);
    // Without such ratios it is the same number.
    let without_host = atlas.median_error_not_host_limited.filter(|_| is_any_limited);
    let without_host = without_host.map_or_else(String::new, |error| {
        format!("; without host-limited ones {}", percent(error))
    });
    for (errors, whose, more) in [
        (atlas.median_error, "runs", without_host.as_str()),
        (atlas.simulated_median_error, "simulations", ""),
    ] {
        if let Some(error) = errors {
            lines.push(format!("Median error of the ratios of {whose}: {}{more}.", percent(error)));
        }
    }
    if rows.iter().any(|(_, ratio)| ratio.is_given) {
        lines.push(GIVEN.to_string());
    }
    if is_any_limited {
        lines.push(HOST_LIMITED.to_string());
    }
    for experiment in &atlas.experiments {
        let name = &experiment.name;
        if let Some(problem) = &experiment.problem {
            lines.extend(wrap(&format!("{name}: {problem}"), width, "", "  "));
        } else if experiment.ratios.is_empty() {
            let why = match experiment.figures.is_empty() {
                true => "nothing published stands in the study",
                false => "no two designs with published numbers to compare",
            };
            lines.extend(wrap(&format!("{name}: {why}. {}", experiment.answer), width, "", "  "));
        }
        for text in &experiment.disagreements {
            lines.extend(wrap(&format!("{name}: {text}"), width, "", "  "));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn columns(rows: &[(&AtlasExperiment, &AtlasRatio)]) -> Vec<TextColumn> {
    let column = |header: &str,
                  align: Align,
                  dispensable: u8,
                  cell: &dyn Fn(&AtlasExperiment, &AtlasRatio) -> String| {
        TextColumn {
            header: header.to_string(),
            align,
            dispensable,
            cells: rows.iter().map(|(one, ratio)| cell(one, ratio)).collect(),
        }
    };
    let known =
        |value: Option<f64>, write: fn(f64) -> String| value.map_or_else(|| "-".to_string(), write);
    vec![
        column("study", Align::Left, 0, &|one, _| one.name.clone()),
        column("ratio", Align::Left, 0, &|_, ratio| {
            let given = if ratio.is_given { " (given)" } else { "" };
            let limited = if ratio.is_host_limited { " (host-limited)" } else { "" };
            format!("{}{given}{limited}", ratio.text)
        }),
        column("published", Align::Right, 0, &|_, ratio| factor(ratio.published)),
        column("ours", Align::Right, 0, &|_, ratio| known(ratio.ours, factor)),
        column("95 %", Align::Left, 3, &|_, ratio| {
            let interval = ratio.low.zip(ratio.high);
            interval.map_or_else(|| "-".to_string(), |(low, high)| factor_interval(low, high))
        }),
        column("error", Align::Right, 0, &|_, ratio| known(ratio.error, signed)),
        column("simulated", Align::Right, 1, &|_, ratio| known(ratio.simulated, factor)),
        column("its error", Align::Right, 2, &|_, ratio| known(ratio.simulated_error, signed)),
        column("evidence", Align::Left, 4, &|one, _| {
            one.evidence.map_or("-", |evidence| evidence.as_str()).to_string()
        }),
    ]
}

fn signed(error: f64) -> String {
    let text = percent(error.abs());
    if error < 0.0 { format!("-{text}") } else { format!("+{text}") }
}

#[cfg(test)]
mod tests {
    use super::{HOST_LIMITED, atlas_summary, signed};
    use crate::atlas::build::missing;
    use crate::atlas::collection::Atlas;
    use crate::atlas::experiment::{Agreement, AtlasExperiment, AtlasRatio};

    fn ratio(text: &str, ours: f64, is_host_limited: bool) -> AtlasRatio {
        AtlasRatio {
            is_headline: true,
            is_given: false,
            is_host_limited,
            text: text.to_string(),
            metric: "NOPM".to_string(),
            published: 2.0,
            ours: Some(ours),
            low: None,
            high: None,
            simulated: None,
            error: Some(ours / 2.0 - 1.0),
            simulated_error: None,
            agreement: Agreement::Close,
        }
    }

    fn summary(ratios: Vec<AtlasRatio>) -> String {
        let empty = missing("a", "", "", String::new());
        atlas_summary(&Atlas::new(vec![AtlasExperiment { ratios, ..empty }]), 120)
    }

    #[test]
    fn host_limited_ratios_have_a_mark_and_a_median_without_them() {
        let (fine, limited) = (ratio("A over B", 1.5, false), ratio("A over C", 1.0, true));
        let text = summary(vec![fine.clone(), limited]);
        assert!(text.contains("A over C (host-limited)"), "{text}");
        assert!(!text.contains("A over B (host-limited)"), "{text}");
        let medians = "Median error of the ratios of runs: 38 %; without host-limited ones 25 %.\n";
        assert!(text.contains(medians), "{text}");
        assert!(text.contains(HOST_LIMITED), "{text}");
        let text = summary(vec![fine]);
        assert!(text.contains("Median error of the ratios of runs: 25 %.\n"), "{text}");
        assert!(!text.contains("host-limited"), "{text}");
    }

    #[test]
    fn errors_have_a_sign() {
        assert_eq!(signed(-0.123), "-12 %");
        assert_eq!(signed(0.02), "+2 %");
    }
}
