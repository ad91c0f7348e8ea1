//! Published and simulated results side by side, as one self-contained HTML page.
//!
//! A page of its own, not a section of the report: a report reads a record, and a simulation of block experiments has
//! none. Per row a bar shows the simulated number in units of the published one.

use super::comparison::{Settings, overall};
use super::comparison_text::{error, figure, figure_name, parameters, role};
use std::fmt::Write;
use underlay_simulation::experiments::{Comparison, Role, Row};

/// Half of the width of a bar's scale, which shows 0 to twice the published number.
const HALF_PX: f64 = 70.0;
/// Length of the arrow at the end of a bar that is cut.
const ARROW_PX: f64 = 10.0;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;\
color:#1b1f24;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}table{border-collapse:\
collapse;width:100%}th,td{padding:.25rem .6rem;text-align:left;border-bottom:1px solid #d8dee4}td.n{text-align:right;\
white-space:nowrap;font-variant-numeric:tabular-nums}p,li{max-width:48rem}.box{overflow-x:auto}.fitted,.implied{color:#6b7280}.kind{display:inline-block;\
border:1px solid #8250df;color:#8250df;border-radius:.3rem;padding:0 .4rem;font-size:.85em}rect.s,path.s{fill:#0969da}\
tr.fitted .s,tr.implied .s{fill:#9aa4b2}line{stroke:#1b1f24}@media(prefers-color-scheme:dark){body{color:\
#e6edf3;background:#0d1117}th,td{border-color:#30363d}line{stroke:#e6edf3}}";

/// The page.
pub fn render(comparisons: &[Comparison], how: Settings) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>Simulated and \
         published</title><style>{STYLE}</style></head><body>\n<h1>Block experiments: simulated and \
         published</h1>\n<p><span class=\"kind\">simulated</span> The storage model in virtual time. {} A bar that \
         ends at the line equals the published number; an arrow marks a bar of more than twice that.</p>\n",
        escaped(&how.sentence())
    );
    if let Some(error) = overall(comparisons) {
        let count: usize = comparisons.iter().map(|c| c.predicted_errors().len()).sum();
        let _ = writeln!(
            page,
            "<p><b>Median error of all {count} predicted numbers: {error:.1} %.</b> Fitted rows, and mean latencies, \
             which follow from rates, do not count.</p>"
        );
    }
    for comparison in comparisons {
        testbed(&mut page, comparison);
    }
    page.push_str("</body></html>\n");
    page
}

fn testbed(page: &mut String, comparison: &Comparison) {
    let _ = writeln!(page, "<h2>{}</h2>\n<ul>", escaped(comparison.testbed.title));
    for line in parameters(comparison) {
        let _ = writeln!(page, "<li>{}</li>", escaped(&line));
    }
    page.push_str(
        "</ul>\n<div class=\"box\"><table><thead><tr><th>Experiment<th>System<th>Figure<th>Published<th>Simulated<th>Error<th>\
         Simulated / published<th>Row is</tr></thead><tbody>\n",
    );
    for entry in &comparison.rows {
        row(page, entry);
    }
    page.push_str("</tbody></table></div>\n");
    if let Some(error) = comparison.median_error_percent() {
        let _ = writeln!(page, "<p>Median error of the predicted numbers: {error:.1} %.</p>");
    }
}

fn row(page: &mut String, row: &Row) {
    let class = match row.role {
        Role::Predicted => "predicted",
        Role::Fitted => "fitted",
        Role::Implied => "implied",
    };
    let _ = writeln!(
        page,
        "<tr class=\"{class}\" title=\"{} ({})\"><td>{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}\
         <td>{}<td>{}</tr>",
        escaped(&row.published.source),
        escaped(&row.published.quality),
        escaped(&row.published.experiment),
        escaped(&row.published.variant),
        escaped(&figure_name(row)),
        figure(row, Some(row.published.value)),
        figure(row, row.simulated),
        error(row),
        bar(row),
        escaped(&role(row))
    );
}

fn bar(row: &Row) -> String {
    let ratio = row.simulated.map_or(0.0, |simulated| simulated / row.published.value);
    let is_cut = ratio > 2.0;
    let room = if is_cut { 2.0 * HALF_PX - ARROW_PX } else { 2.0 * HALF_PX };
    let width = (ratio * HALF_PX).clamp(0.0, room);
    let arrow = match is_cut {
        true => format!("<path class=\"s\" d=\"M{room} 0L{} 7L{room} 14Z\"/>", 2.0 * HALF_PX),
        false => String::new(),
    };
    format!(
        "<svg width=\"{:.0}\" height=\"14\" role=\"img\" aria-label=\"{ratio:.2} of the published number\"><rect class=\"s\" \
         y=\"3\" width=\"{width:.1}\" height=\"8\"/>{arrow}<line x1=\"{HALF_PX}\" x2=\"{HALF_PX}\" y1=\"0\" y2=\"14\"/></svg>",
        2.0 * HALF_PX
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
