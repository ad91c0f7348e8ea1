//! Results that others published for the designs of a study, next to those of the record.
//!
//! What is published was measured at another size, on other hosts and engines: ratios are compared, not values.

use serde_json::Value;

use crate::analysis::{Comparison, Database, LatencyRow, Published, Rung, Scope};
use crate::axes::Axes;
use crate::digest::Digest;
use crate::metrics::{HEADLINE, LATENCY};
use crate::plan_view::PlanView;
use crate::workload_view::WorkloadView;

/// The published series of a record, with its own values: those of all databases, or of one of several.
pub(crate) fn all(
    digest: &Digest,
    axes: &Axes,
    (of_all, databases): (&[Rung], &[Database]),
) -> Vec<Published> {
    let plan = &digest.manifest.plan;
    let series = |series: &Value| {
        let design = variant(series, axes, digest.designs.len())?;
        let metric = metric(series["metric"].as_str()?);
        let database = series["database"].as_str().unwrap_or_default();
        let one = databases.iter().find(|one| one.name == database);
        let rungs = match database {
            "" => of_all,
            // Nothing of it was measured yet.
            _ => one.map_or(&[][..], |one| &one.rungs),
        };
        let is_job = one.map_or(digest.workload.is_job(), |one| one.workload.is_job);
        let rungs: Vec<&Rung> = rungs.iter().filter(|rung| rung.design == design).collect();
        let mut users: Vec<u32> = numbers(&series["users"]).map(|users| users as u32).collect();
        let mut found = stand_for(plan, &users);
        if digest.workload.is_block_load() {
            in_flight(plan, &rungs, &mut found);
        }
        for stands in &mut found {
            *stands = stands.filter(|users| rungs.iter().any(|rung| rung.users == *users));
        }
        if users.is_empty() && is_job {
            let only = rungs.first().map(|rung| rung.users);
            users = vec![only.unwrap_or(0)];
            found = vec![only];
        }
        let printed: Vec<f64> = numbers(&series["values"]).collect();
        let factor = factor(series, &metric, &printed);
        let ours = |users: &Option<u32>| {
            let rung = rungs.iter().find(|rung| Some(rung.users) == *users)?;
            own_value(rung, &metric, &digest.workload)
        };
        let text = |key: &str| series[key].as_str().unwrap_or_default().to_string();
        let unit = text("unit");
        let is_its_own = metric == HEADLINE && unit != digest.workload.unit;
        Some(Published {
            design,
            database: database.to_string(),
            ours: found.iter().map(ours).collect(),
            metric,
            users,
            values: printed.into_iter().map(|value| value * factor).collect(),
            unit: if is_its_own { unit } else { String::new() },
            rungs: found,
            given: series["given"].as_bool().unwrap_or_default(),
            experiment: text("experiment"),
            source: text("source"),
            note: text("note"),
        })
    };
    PlanView::new(plan).published().iter().filter_map(series).collect()
}

/// Adds the published ratios to the comparisons that they stand beside.
pub(crate) fn compare(published: &[Published], comparisons: &mut [Comparison]) {
    for comparison in comparisons.iter_mut().filter(|one| one.scope == Scope::Rung) {
        let metric = match comparison.metric.as_str() {
            LATENCY => "p95",
            metric => metric,
        };
        let value = |design: usize| {
            let of_design = published.iter().filter(|one| {
                one.design == design && one.metric == metric && one.database.is_empty()
            });
            of_design.into_iter().find_map(|series| {
                let at = series.rungs.iter().position(|users| *users == comparison.users)?;
                Some((*series.values.get(at)?, series.given))
            })
        };
        let both = value(comparison.a).zip(value(comparison.b)).filter(|((a, _), _)| *a > 0.0);
        comparison.published = both.map(|((a, _), (b, _))| b / a);
        comparison.published_given = both.is_some_and(|((_, a), (_, b))| a || b);
    }
}

/// The variant that a series belongs to.
fn variant(series: &Value, axes: &Axes, variants: usize) -> Option<usize> {
    let name = series["design"].as_str()?;
    (0..variants).find(|variant| {
        axes.design(*variant) == name
            && axes.list.iter().zip(axes.coordinates(*variant)).all(|(axis, point)| {
                let at = series["at"][&axis.name].as_str();
                axis.points.get(*point).is_some_and(|point| Some(point.name.as_str()) == at)
            })
    })
}

/// The name of a metric in analyses.
fn metric(word: &str) -> String {
    match word {
        "nopm" | "result" => "headline".to_string(),
        word if word.starts_with("volumes.") => {
            let name = word.replace('-', "_");
            let is_time = ["latency", "_mean", "_p99"].iter().any(|end| name.ends_with(end));
            if is_time { format!("{name}_ns") } else { name }
        }
        "latency-at-peak" => "latency_at_peak_ns".to_string(),
        word if word.ends_with("-latency") => format!("{}_ns", word.replace('-', "_")),
        word => word.replace('-', "_"),
    }
}

/// What makes a printed value one in the unit of analyses.
fn factor(series: &Value, metric: &str, printed: &[f64]) -> f64 {
    // Plans from before units printed shares in percent, and said nothing.
    let is_percent = metric == "cpu_idle" && printed.iter().any(|value| *value > 1.0);
    series["factor"].as_f64().unwrap_or(if is_percent { 0.01 } else { 1.0 })
}

/// The users that stand for each published number of users, at the scale of the record.
fn stand_for(plan: &Value, published: &[u32]) -> Vec<Option<u32>> {
    let ladder = |key: &str| -> Vec<u32> {
        numbers(&plan[key]["users"]).map(|users| users as u32).collect()
    };
    let (full, scaled) = (ladder("full_size"), ladder("size"));
    // A ladder from the command line is that of the scaled system, and the plan holds it twice.
    let is_rung_by_rung = full.len() == scaled.len() && full != scaled;
    let divisor = plan["scale"].as_str().and_then(|scale| scale.strip_prefix("1/")?.parse().ok());
    let divisor: u64 = divisor.unwrap_or(1).max(1);
    let at_scale = |users: u32| ((u64::from(users) + divisor / 2) / divisor).max(1);
    let stands = |users: &u32| {
        let place = full.iter().position(|one| one == users).filter(|_| is_rung_by_rung);
        if let Some(place) = place {
            return Some(scaled[place]);
        }
        // Rungs that scaling merged: the one that is nearest to what they stand for.
        let stands = at_scale(*users);
        let distance = |users: u32| u64::from(users).abs_diff(stands * divisor);
        let merged = published.iter().filter(|one| at_scale(**one) == stands);
        let nearest = merged.min_by_key(|one| distance(**one))?;
        (nearest == users).then_some(u32::try_from(stands).ok()?)
    };
    published.iter().map(stands).collect()
}

/// Of a block load, plans and publications count threads per volume, and rungs the requests in flight that those make: the
/// n-th number of threads is the n-th rung.
fn in_flight(plan: &Value, rungs: &[&Rung], found: &mut [Option<u32>]) {
    let threads: Vec<u32> = numbers(&plan["size"]["users"]).map(|users| users as u32).collect();
    for stands in found {
        let place = stands.and_then(|users| threads.iter().position(|one| *one == users));
        let is_whole = threads.len() == rungs.len();
        *stands = place.filter(|_| is_whole).map(|place| rungs[place].users);
    }
}

fn own_value(rung: &Rung, metric: &str, workload: &WorkloadView) -> Option<f64> {
    if let Some((volume, metric)) =
        metric.strip_prefix("volumes.").and_then(|rest| rest.split_once('.'))
    {
        let row = rung.volumes.iter().find(|row| row.volume == volume)?;
        return row.metrics.get(metric)?.value;
    }
    let latency_of = |kind: &str| rung.latencies.iter().find(|row| row.transaction == kind);
    let latency = || -> Option<&LatencyRow> {
        latency_of(workload.main_type(rung.latencies.iter().map(|row| row.transaction.as_str()))?)
    };
    match metric {
        "p50" => latency()?.p50.value,
        "p95" => latency()?.p95.value,
        "p99" => latency()?.p99.value,
        "mean" => latency()?.mean_ns,
        "read_mean" => latency_of("read")?.mean_ns,
        "write_mean" => latency_of("write")?.mean_ns,
        metric => rung.metrics.get(metric)?.value,
    }
}

fn numbers(value: &Value) -> impl Iterator<Item = f64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64)
}

#[cfg(test)]
mod tests {
    use super::{compare, factor, metric, stand_for};
    use crate::analysis::{Comparison, Outcome, Published, RatioMethod, Scope};
    use serde_json::json;

    #[test]
    fn words_of_studies_are_names_of_analyses() {
        for (word, name) in [
            ("nopm", "headline"),
            ("result", "headline"),
            ("tpm-per-user", "tpm_per_user"),
            ("p95", "p95"),
            ("volumes.data.read-latency", "volumes.data.read_latency_ns"),
            ("volumes.wal.write-iops", "volumes.wal.write_iops"),
            ("volumes.data.datastore-read-p99", "volumes.data.datastore_read_p99_ns"),
            ("rate-at-1ms", "rate_at_1ms"),
            ("latency-at-peak", "latency_at_peak_ns"),
            ("read-mean", "read_mean"),
            ("restore-latency", "restore_latency_ns"),
            ("backup-s", "backup_s"),
        ] {
            assert_eq!(metric(word), name);
        }
    }

    #[test]
    fn a_published_number_of_users_stands_beside_its_rung_at_scale() {
        let paper = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
        let plan = |scale: &str, full: &[u32], scaled: &[u32]| json!({ "scale": scale, "full_size": { "users": full }, "size": { "users": scaled } });
        let found = |scale: &str, full: &[u32], scaled: &[u32], users: &[u32]| {
            stand_for(&plan(scale, full, scaled), users)
        };
        let all: Vec<Option<u32>> = paper.iter().copied().map(Some).collect();
        assert_eq!(found("1/1", &paper, &paper, &paper), all);
        // Plans from before scales.
        assert_eq!(stand_for(&json!({}), &paper), all);
        // Of rungs that scaling merged, one user of 16 stands for 13, not for the paper's one.
        let merged = found("1/16", &paper, &[1, 2, 3, 6], &paper);
        let none = None;
        let expected = [none, none, none, none, none, Some(1), none, Some(2), Some(3), Some(6)];
        assert_eq!(merged, expected);
        // The same of a ladder from the command line, which is that of the scaled system.
        assert_eq!(found("1/16", &[1, 6], &[1, 6], &paper)[9], Some(6));
        assert_eq!(found("1/16", &[1, 6], &[1, 6], &paper)[0], None);
        // Threads of a block load are divided by less than the scale: rung by rung.
        assert_eq!(found("1/64", &[128], &[8], &[128]), [Some(8)]);
    }

    #[test]
    fn values_are_in_the_unit_of_analyses() {
        assert_eq!(factor(&json!({ "factor": 1e6 }), "p95", &[3.0]), 1e6);
        // Plans from before units.
        assert_eq!(factor(&json!({}), "cpu_idle", &[97.8]), 0.01);
        assert_eq!(factor(&json!({}), "headline", &[97.8]), 1.0);
    }

    #[test]
    fn a_published_ratio_is_given_if_either_side_is() {
        let series = |design: usize, value: f64, given: bool| Published {
            design,
            database: String::new(),
            metric: "headline".to_string(),
            users: vec![8],
            values: vec![value],
            unit: String::new(),
            rungs: vec![Some(8)],
            ours: vec![None],
            given,
            experiment: String::new(),
            source: String::new(),
            note: String::new(),
        };
        let found = |of_a: bool, of_b: bool| {
            let mut comparisons = [Comparison {
                a: 0,
                b: 1,
                scope: Scope::Rung,
                users: Some(8),
                metric: "headline".to_string(),
                ratio: None,
                low: None,
                high: None,
                host_low: None,
                host_high: None,
                pairs: 0,
                method: RatioMethod::Single,
                p: None,
                p_adjusted: None,
                p_permutation: None,
                p_equivalence: None,
                repeats_needed: None,
                published: None,
                published_given: false,
                outcome: Outcome::Missing,
                text: String::new(),
            }];
            compare(&[series(0, 2.0, of_a), series(1, 3.0, of_b)], &mut comparisons);
            (comparisons[0].published, comparisons[0].published_given)
        };
        assert_eq!(found(false, false), (Some(1.5), false));
        assert_eq!(found(true, false), (Some(1.5), true));
        assert_eq!(found(false, true), (Some(1.5), true));
        assert_eq!(found(true, true), (Some(1.5), true));
    }
}
