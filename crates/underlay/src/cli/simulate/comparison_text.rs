//! Published and simulated results side by side, as text.

use super::comparison::{Settings, overall};
use std::fmt::Write;
use underlay_simulation::experiments::{Comparison, Row};

/// All test beds.
pub fn render(comparisons: &[Comparison], how: Settings) -> String {
    let mut text = format!("simulated and published results; virtual time\n{}\n", how.sentence());
    for comparison in comparisons {
        testbed(&mut text, comparison);
    }
    if let Some(error) = overall(comparisons) {
        let count: usize = comparisons.iter().map(|c| c.predicted_errors().len()).sum();
        let _ = writeln!(text, "\nmedian error of all {count} predicted numbers: {error:.1} %");
    }
    text
}

fn testbed(text: &mut String, comparison: &Comparison) {
    let _ = writeln!(text, "\n{}", comparison.testbed.title);
    for line in parameters(comparison) {
        let _ = writeln!(text, "  {line}");
    }
    let _ = writeln!(
        text,
        "\n  {:<15}{:<22}{:<18}{:>12}{:>12}{:>9}  row is",
        "experiment", "system", "figure", "published", "simulated", "error"
    );
    for row in &comparison.rows {
        let _ = writeln!(
            text,
            "  {:<15}{:<22}{:<18}{:>12}{:>12}{:>9}  {}",
            row.published.experiment,
            row.published.variant,
            figure_name(row),
            figure(row, Some(row.published.value)),
            figure(row, row.simulated),
            error(row),
            role(row)
        );
    }
    match comparison.median_error_percent() {
        Some(error) => {
            let _ = writeln!(text, "  median error of the predicted numbers: {error:.1} %");
        }
        None => text.push_str("  nothing was predicted\n"),
    }
}

/// Where the parameters come from, as sentences.
pub fn parameters(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    match (comparison.stack_per_io, comparison.testbed.fitted) {
        (Some(per_io), Some((experiment, _))) => lines.push(format!(
            "Devices and network from datasheets; fitted to the rate of {experiment}: {per_io} of the host's storage stack \
             per I/O."
        )),
        _ => lines.push("Devices and network from datasheets; nothing fitted.".to_string()),
    }
    lines.extend(comparison.notes.iter().cloned());
    let assumed = comparison.testbed.assumptions.iter();
    lines.extend(assumed.map(|assumption| format!("Assumed: {assumption}")));
    lines
}

/// What the row is evidence of, and whether the published number was printed as such.
pub fn role(row: &Row) -> String {
    match row.published.quality.starts_with("calculated") {
        true => format!("{}, published calculated", row.role.as_str()),
        false => row.role.as_str().to_string(),
    }
}

/// The figure with its unit.
pub fn figure_name(row: &Row) -> String {
    match row.published.unit.as_str() {
        "1/s" | "x" => row.published.metric.clone(),
        unit => format!("{} {unit}", row.published.metric),
    }
}

/// A value as people read it.
pub fn figure(row: &Row, value: Option<f64>) -> String {
    match (value, row.published.unit.as_str()) {
        (None, _) => "never".to_string(),
        (Some(value), "1/s") => format!("{value:.0}"),
        (Some(value), _) => format!("{value:.2}"),
    }
}

/// The error of a row.
pub fn error(row: &Row) -> String {
    row.error_percent().map_or("-".to_string(), |error| format!("{error:+.1} %"))
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::cli::simulate::comparison::Settings;
    use crate::cli::simulate::comparison_page;
    use underlay_core::RootSeed;
    use underlay_simulation::experiments::{Effort, compare, testbeds};

    #[test]
    fn text_and_page_carry_every_row_and_the_median() {
        let testbed = testbeds().into_iter().find(|t| t.name == "kingston-drives").expect("known");
        let effort = Effort { requests: 3_000 };
        let comparison = compare(&testbed, effort, RootSeed(1)).expect("two drives");
        let how = Settings { requests: 3_000, seed: 1 };
        let text = render(std::slice::from_ref(&comparison), how);
        let page = comparison_page::render(std::slice::from_ref(&comparison), how);
        for output in [&text, &page] {
            assert!(output.contains("3000 requests per run, and") && output.contains("seed 1."));
            assert!(output.contains("differs from the documented one"), "{output}");
        }
        for row in &comparison.rows {
            let name = super::figure_name(row);
            assert!(text.contains(&name) && page.contains(&name), "{name}");
        }
        // Of two figures with one cause, a rate and its mean latency, one is a prediction.
        assert_eq!(text.matches("predicted\n").count(), 2, "{text}");
        assert_eq!(text.matches("implied\n").count(), 1, "{text}");
        assert!(text.contains("median error of all 2 predicted numbers: "), "{text}");
        assert!(page.starts_with("<!doctype html>") && !page.contains("http"), "self-contained");
    }
}
