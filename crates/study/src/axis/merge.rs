//! The plans of all points as one plan, whose designs are the variants.

use serde_json::Value;

use crate::background_plan::BackgroundPlan;
use crate::estimate;
use crate::fault_plan::FaultPlan;
use crate::finding::Finding;
use crate::plan::{AxisPlan, DesignPlan, Plan, Setting, VariantPlan};
use crate::plan_json::plan_json;
use crate::resolve::{proposed, schedule};
use crate::weights_plan::WeightsPlan;

/// Why the points cannot be compared.
pub(super) struct Contradiction {
    pub code: &'static str,
    pub message: String,
    pub label: String,
    pub help: String,
}

/// What keeps the points from being compared, and the axis it is about.
pub(super) fn contradiction(
    axes: &[AxisPlan],
    combinations: &[Vec<usize>],
    plans: &[Plan],
) -> Option<(usize, Contradiction)> {
    let (first, others) = plans.split_first()?;
    let differs = |other: &Plan| {
        let kinds = [first, other].map(|plan| std::mem::discriminant(&plan.workload.kind));
        kinds[0] != kinds[1] || first.procedure.users != other.procedure.users
    };
    let axis_of =
        |a: &[usize], b: &[usize]| a.iter().zip(b).rposition(|(a, b)| a != b).unwrap_or(0);
    if let Some(position) = others.iter().position(differs) {
        let axis = axis_of(&combinations[0], &combinations[position + 1]);
        return Some((
            axis,
            Contradiction {
                code: "cannot-vary",
                message: "the points have different workloads or numbers of users".to_string(),
                label: "they are compared at the same number of users, or of a job's sessions"
                    .to_string(),
                help: "vary something else, or write a study for each".to_string(),
            },
        ));
    }
    // Points next to each other on one axis that are the same for a design.
    let effects: Vec<Vec<Value>> = plans.iter().map(effects).collect();
    for (design, plan) in first.designs.iter().enumerate() {
        for (a, at) in combinations.iter().enumerate() {
            for (b, other) in combinations.iter().enumerate().skip(a + 1) {
                let apart = at.iter().zip(other).filter(|(x, y)| x != y).count();
                if apart == 1 && effects[a][design] == effects[b][design] {
                    let axis = axis_of(at, other);
                    let names = [at, other].map(|point| &*axes[axis].points[point[axis]].name);
                    return Some((axis, same_points(&plan.name, names)));
                }
            }
        }
    }
    None
}

fn same_points(design: &str, [a, b]: [&str; 2]) -> Contradiction {
    Contradiction {
        code: "varies-nothing",
        message: format!("points `{a}` and `{b}` are the same for design `{design}`"),
        label: "the design sets the key itself, or the scale makes the values equal".to_string(),
        help: format!(
            "remove the key from the design, vary design.{design}.KEY, or choose values further apart"
        ),
    }
}

/// What happens in the runs of each design of a plan of one point.
fn effects(plan: &Plan) -> Vec<Value> {
    let whole = plan_json(plan);
    let of_design = |design: &Value| {
        let mut effects = whole.clone();
        // What only describes, or belongs to all designs before a design's own values.
        for key in [
            "study",
            "options",
            "provenance",
            "findings",
            "estimates",
            "published",
            "engine",
            "size",
            "full_size",
            "axes",
            "schedule",
        ] {
            effects[key] = Value::Null;
        }
        effects["designs"] = design.clone();
        effects
    };
    whole["designs"].as_array().into_iter().flatten().map(of_design).collect()
}

/// One plan of all points.
pub(super) fn merged(axes: Vec<AxisPlan>, combinations: &[Vec<usize>], plans: Vec<Plan>) -> Plan {
    let points = plans.len();
    let first = plans[0].clone();
    let names: Vec<String> = first.designs.iter().map(|design| design.name.clone()).collect();
    let suffixes = suffixes(&axes, combinations);
    let is_only = names.len() == 1;
    let mut designs = Vec::new();
    for design in 0..names.len() {
        for (point, plan) in plans.iter().enumerate() {
            let place = (combinations[point].as_slice(), point);
            designs.push(variant(&plan.designs[design], &axes, place, (&suffixes[point], is_only)));
        }
    }
    let of_variants = |designs: &[usize], point: usize| -> Vec<usize> {
        designs.iter().map(|design| design * points + point).collect()
    };
    let (mut weights, mut background, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (point, plan) in plans.iter().enumerate() {
        for change in &plan.weights {
            let designs = of_variants(&change.designs, point);
            add(&mut weights, WeightsPlan { designs, ..change.clone() }, |it| &mut it.designs);
        }
        for work in &plan.background {
            let designs = of_variants(&work.designs, point);
            add(&mut background, BackgroundPlan { designs, ..work.clone() }, |it| &mut it.designs);
        }
        for fault in &plan.faults {
            let designs = of_variants(&fault.designs, point);
            add(&mut faults, FaultPlan { designs, ..fault.clone() }, |it| &mut it.designs);
        }
    }
    let place = |point: usize| place_of(&axes, &combinations[point]);
    let variants: Vec<&str> = designs.iter().map(|design| design.name.as_str()).collect();
    let mut plan = Plan {
        evidence: designs.iter().map(|design| design.evidence).max().unwrap_or(first.evidence),
        schedule: schedule(designs.len(), &first.procedure, first.seed),
        findings: findings(&plans, place),
        provenance: provenance(&plans, (&names, &variants), place),
        estimates: estimate::of_points(&plans),
        designs,
        weights,
        background,
        faults,
        axes,
        ..first
    };
    plan.points = plans
        .into_iter()
        .map(|point| Plan {
            designs: plan.designs.clone(),
            weights: plan.weights.clone(),
            background: plan.background.clone(),
            faults: plan.faults.clone(),
            schedule: plan.schedule.clone(),
            axes: plan.axes.clone(),
            ..point
        })
        .collect();
    plan
}

/// A design at one point: `nvme.32gib`, `NVMe, 32 GiB of memory`.
fn variant(
    design: &DesignPlan,
    axes: &[AxisPlan],
    (coordinates, point): (&[usize], usize),
    (suffix, is_only): (&str, bool),
) -> DesignPlan {
    let phrases: Vec<&str> = axes
        .iter()
        .zip(coordinates)
        .map(|(axis, point)| axis.points[*point].phrase.as_str())
        .collect();
    let phrases = phrases.join(", ");
    DesignPlan {
        name: format!("{}.{suffix}", design.name),
        title: if is_only { phrases } else { format!("{}, {phrases}", design.title) },
        variant: Some(VariantPlan {
            design: design.name.clone(),
            design_title: design.title.clone(),
            coordinates: coordinates.to_vec(),
            point,
        }),
        ..design.clone()
    }
}

/// What names of variants end in, safe in file names and different for each combination.
fn suffixes(axes: &[AxisPlan], combinations: &[Vec<usize>]) -> Vec<String> {
    let safe: Vec<Vec<String>> = axes
        .iter()
        .map(|axis| {
            let mut names: Vec<String> = Vec::new();
            for (position, point) in axis.points.iter().enumerate() {
                // A dot separates the axes.
                let safe = proposed(&point.name.replace('.', "-"));
                let is_taken = safe.is_empty() || names.contains(&safe);
                names.push(if is_taken { format!("{safe}-{}", position + 1) } else { safe });
            }
            names
        })
        .collect();
    let suffix = |coordinates: &Vec<usize>| {
        let parts = safe.iter().zip(coordinates).map(|(names, point)| names[*point].as_str());
        parts.collect::<Vec<_>>().join(".")
    };
    combinations.iter().map(suffix).collect()
}

/// Adds something that happens in designs to what happens in others alike.
fn add<T: PartialEq + Clone>(
    all: &mut Vec<T>,
    mut new: T,
    designs: impl Fn(&mut T) -> &mut Vec<usize>,
) {
    for known in all.iter_mut() {
        let mut alike = new.clone();
        designs(&mut alike).clone_from(designs(known));
        if alike == *known {
            designs(known).append(designs(&mut new));
            designs(known).sort_unstable();
            return;
        }
    }
    all.push(new);
}

/// The doubts of all points; what is not doubtful at each of them says where it is.
fn findings(plans: &[Plan], place: impl Fn(usize) -> String) -> Vec<Finding> {
    let mut found: Vec<(Finding, Vec<usize>)> = Vec::new();
    for (point, plan) in plans.iter().enumerate() {
        for finding in &plan.findings {
            match found.iter_mut().find(|(known, _)| known == finding) {
                Some((_, points)) => points.push(point),
                None => found.push((finding.clone(), vec![point])),
            }
        }
    }
    let mut findings: Vec<Finding> = found
        .into_iter()
        .map(|(finding, points)| {
            if points.len() == plans.len() {
                return finding;
            }
            let places: Vec<String> = points.into_iter().map(&place).collect();
            Finding { text: format!("{}: {}", places.join("; "), finding.text), ..finding }
        })
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// Each value with its origin: once where it is the same at all points, else per variant or per point.
fn provenance(
    plans: &[Plan],
    (names, variants): (&[String], &[&str]),
    place: impl Fn(usize) -> String,
) -> Vec<Setting> {
    let mut paths: Vec<&str> = Vec::new();
    for row in plans.iter().flat_map(|plan| &plan.provenance) {
        if !paths.contains(&row.path.as_str()) {
            paths.push(&row.path);
        }
    }
    let points = plans.len();
    let mut rows = Vec::new();
    for path in paths {
        let at_points: Vec<Option<&Setting>> =
            plans.iter().map(|plan| plan.provenance.iter().find(|row| row.path == path)).collect();
        if at_points.windows(2).all(|two| two[0] == two[1]) {
            rows.extend(at_points[0].cloned());
            continue;
        }
        let of_design = names.iter().enumerate().find_map(|(design, name)| {
            let below = path.strip_prefix("design.")?.strip_prefix(name.as_str())?;
            Some((design, below.strip_prefix('.')?))
        });
        for (point, row) in at_points.into_iter().enumerate() {
            let Some(row) = row else { continue };
            let path = match of_design {
                Some((design, below)) => {
                    format!("design.{}.{below}", variants[design * points + point])
                }
                None => format!("{path} ({})", place(point)),
            };
            rows.push(Setting { path, ..row.clone() });
        }
    }
    rows
}

/// `memory 8GiB, tuning explicit`: a combination of points, for messages.
fn place_of(axes: &[AxisPlan], coordinates: &[usize]) -> String {
    let each = axes.iter().zip(coordinates);
    let words = each.map(|(axis, point)| format!("{} {}", axis.name, axis.points[*point].name));
    words.collect::<Vec<_>>().join(", ")
}
