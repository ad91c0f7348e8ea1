//! The rate curves of block loads.
//!
//! What it deliberately does not do: list their points, which the page draws.

use super::cells::{interval, title};
use super::page::Page;
use crate::analysis::{Analysis, CurveReading, RateCurve};
use crate::text_table::{Align, TextColumn};
use crate::wording::{amount, time_ns};

/// What the curves of the designs come to, one line each.
pub(super) fn curves(page: &mut Page, analysis: &Analysis) {
    let Some(first) = analysis.curves.first() else { return };
    let column = |header: String, align, of: &dyn Fn(&RateCurve) -> String| TextColumn {
        header,
        align,
        dispensable: 0,
        cells: analysis.curves.iter().map(of).collect(),
    };
    let limit = time_ns(first.limit_ns as f64);
    let kept = |curve: &RateCurve| {
        let points = curve.points.iter().filter(|point| !point.saturated);
        points.filter_map(|point| point.done_per_second.value).max_by(f64::total_cmp)
    };
    page.blank();
    page.table(vec![
        column("rate curve".to_string(), Align::Left, &|curve| title(analysis, curve.design)),
        column(format!("/s below {limit}"), Align::Right, &|curve| {
            let value = curve.rate_at_limit.value.map_or("-".to_string(), amount);
            if curve.found == CurveReading::AtLeast { format!(">{value}") } else { value }
        }),
        column("95 %".to_string(), Align::Left, &|curve| {
            interval(&curve.rate_at_limit).unwrap_or_else(|| "none".to_string())
        }),
        column("highest kept /s".to_string(), Align::Right, &|curve| {
            kept(curve).map_or("-".to_string(), amount)
        }),
        column(String::new(), Align::Left, &|curve| match curve.found {
            CurveReading::Interpolated => String::new(),
            CurveReading::AtLeast => format!("no point reached {limit}"),
            CurveReading::Never => format!("above {limit} at every rate"),
        }),
    ]);
    page.note(&format!(
            "I/Os per second at which the mean response time from the intended start reaches {limit}, interpolated between \
             the points of each curve; kept: at least 98 % of the offered rate completed."
        ));
}
