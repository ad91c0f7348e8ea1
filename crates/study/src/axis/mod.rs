//! Axes: what a study varies in addition to designs and users.
//!
//! A study with axes is read and planned once per combination of points, each with its values in their places, so that every
//! key and every check of the format holds for axes too. The plans are then merged into one ([`merge`]), whose designs are
//! variants: a design at one point of every axis.

mod merge;

use std::ops::Range;

use toml::de::DeTable;
use underlay_core::{Bytes, Nanos};

use crate::change::{Change, Setter, changed};
use crate::entry::{Entry, Section};
use crate::exact;
use crate::file;
use crate::host_view::HostView;
use crate::limits::VARIANTS_MAX;
use crate::options::PlanOptions;
use crate::plan::{AxisPlan, AxisPoint, AxisUnit, Plan, Scale};
use crate::problem::{Problems, Source};
use crate::reader::{Keys, Written};
use crate::report::Report;
use crate::resolve::{databases, unsafe_because};
use crate::scale;
use crate::section::Table;

const AXIS: Setter = Setter { table: "axis", called: "an axis" };

/// What no axis can vary, and why; with what to do instead.
const FIXED: [(&[&str], &str, &str); 11] = [
    (
        &["name", "title"],
        "it names the whole study",
        "vary a key of engine, workload, volumes or design",
    ),
    (
        &["question"],
        "it is what the whole study asks",
        "vary a key of engine, workload, volumes or design",
    ),
    (&["seed"], "all variants see the same data and transactions", "use --seed and two records"),
    (&["axis"], "axes are what is varied", "write another [[axis]]"),
    (&["published"], "it contains published results", "write a [[published]] with `at`"),
    (&["laptop"], "it says what a smaller run changes", "set it in [laptop]"),
    (&["deviations"], "they belong to the whole study", "write them at the top of the study"),
    (
        &["engine.kind"],
        "a study has one engine",
        "compare engines with two studies of the same seed",
    ),
    (&["procedure.users"], "users are an axis already", "write all numbers into procedure.users"),
    (
        &["procedure.time-dilation"],
        "all variants run in the same time",
        "use --time-dilation and two records",
    ),
    (
        &[
            "procedure.repeats",
            "procedure.repeats-at-most",
            "procedure.order",
            "procedure.search",
            "procedure.causal-check",
            "procedure.what-if",
            "procedure.null-twin",
        ],
        "all variants are measured alike, in one order",
        "set it in [procedure]",
    ),
];

/// Keys of designs and of other named tables that name or describe them.
const DESCRIPTIVE: [&str; 5] = ["name", "title", "description", "source", "use"];

/// An axis while the study is planned.
struct Draft {
    plan: AxisPlan,
    span: Range<usize>,
    /// Per point, what it sets.
    changes: Vec<Vec<Change>>,
}

/// Resolves a study with axes for a host.
pub(crate) fn resolve(
    (source, document): (&Source, &DeTable<'_>),
    (file, sections): (&file::Study, &[Section<file::Axis>]),
    options: &PlanOptions,
    host: &HostView<'_>,
    mut report: Report,
) -> Result<Plan, Problems> {
    let scale = options.scale.unwrap_or(Scale::FULL);
    let mut own = Report::default();
    let drafts = drafts(sections, scale, &mut own);
    let in_file = file.design.get().map_or(0, Vec::len);
    let designs = options.designs.as_ref().map_or(in_file, Vec::len).max(1);
    let variants =
        drafts.iter().fold(designs, |all, draft| all.saturating_mul(draft.changes.len()));
    if own.is_empty() && variants > VARIANTS_MAX {
        own.add(
            drafts.last().map(|draft| draft.span.clone()),
            "out-of-range",
            format!("the study has {variants} variants"),
            format!("{designs} designs and all combinations of points; at most {VARIANTS_MAX}"),
            "leave out points or designs, or set several keys together in one point",
        );
    }
    let refused = !own.is_empty();
    report.absorb(own);
    let axes: Vec<AxisPlan> = drafts.iter().map(|draft| draft.plan.clone()).collect();
    if refused {
        // The other problems of the study, all the same.
        let text = (document, file);
        (_, report) = databases::resolve(source, text, (options, &axes), host, report);
        return Err(refusal(source, report));
    }
    let combinations = combinations(&drafts);
    let mut plans = Vec::new();
    for coordinates in &combinations {
        let mut found = Report::default();
        let set: Vec<&Change> = drafts
            .iter()
            .zip(coordinates)
            .flat_map(|(draft, point)| &draft.changes[*point])
            .collect();
        let table = changed(document, (AXIS, &set), &mut found);
        let mut keys = Keys::new(&table, "", &mut found);
        let varied = file::Study::read(&mut keys);
        keys.finish();
        let text = (&table, &varied);
        let (plan, found) = databases::resolve(source, text, (options, &axes), host, found);
        plans.extend(plan);
        // A problem of the study is a problem at every point.
        report.absorb(found);
    }
    if !report.is_empty() || plans.len() != combinations.len() {
        return Err(refusal(source, report));
    }
    if let Some((at, problem)) = merge::contradiction(&axes, &combinations, &plans) {
        let draft = &drafts[at.min(drafts.len() - 1)];
        let merge::Contradiction { code, message, label, help } = problem;
        report.at(&draft.span, code, message, label, help);
        return Err(refusal(source, report));
    }
    let plan = merge::merged(axes, &combinations, plans);
    let (needed, free) = (plan.estimates.disk, host.free_space);
    if needed > free {
        report.add(
            drafts.last().map(|draft| draft.span.clone()),
            "larger-than-free-space",
            format!("the study needs about {needed} of disk, the host has {free} free"),
            format!("{} for the loaded databases of all points", plan.estimates.disk_templates),
            "vary something that does not change the loaded data, or choose a smaller --scale",
        );
        return Err(refusal(source, report));
    }
    Ok(plan)
}

fn refusal(source: &Source, report: Report) -> Problems {
    Problems::from_drafts(source, report.into_drafts())
        .expect("a study is refused only with a problem")
}

/// Every combination of points, the last axis fastest.
fn combinations(drafts: &[Draft]) -> Vec<Vec<usize>> {
    let mut combinations: Vec<Vec<usize>> = vec![Vec::new()];
    for draft in drafts {
        let points = draft.changes.len();
        combinations = combinations
            .iter()
            .flat_map(|before| (0..points).map(move |point| [&before[..], &[point][..]].concat()))
            .collect();
    }
    combinations
}

fn drafts(sections: &[Section<file::Axis>], scale: Scale, report: &mut Report) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = Vec::new();
    for section in sections.iter().filter(|section| !section.refused) {
        let span = section.span.clone().unwrap_or(0..0);
        let Some((mut plan, changes)) = points_of(section, &span, scale, report) else { continue };
        let Some(name) = name_of(section, &span, &plan, report) else { continue };
        if drafts.iter().any(|draft| draft.plan.name == name) {
            report.at(
                &section.name.span().unwrap_or(span),
                "duplicate-name",
                format!("two axes have the name `{name}`"),
                "the second one",
                "give one of them another `name`",
            );
            continue;
        }
        for change in changes.iter().flatten() {
            let taken = drafts.iter().find(|draft| draft.plan.keys.contains(&change.path));
            if let Some(other) = taken {
                report.at(
                    &change.path_span,
                    "conflict",
                    format!("`{}` is set by two axes", change.path),
                    format!("axis `{}` sets it too", other.plan.name),
                    "let one axis set it",
                );
            }
        }
        if section.points.is_absent() {
            phrase_values(&mut plan, &name, scale);
        }
        drafts.push(Draft { plan: AxisPlan { name, ..plan }, span, changes });
    }
    drafts
}

fn name_of(
    section: &Section<file::Axis>,
    span: &Range<usize>,
    plan: &AxisPlan,
    report: &mut Report,
) -> Option<String> {
    let (name, place) = match &section.name {
        Entry::Refused => return None,
        Entry::Given { value, span } => (value.clone(), span.clone()),
        Entry::Absent => {
            let last = plan.keys.first().and_then(|key| key.rsplit('.').next());
            let named = last.filter(|_| section.points.is_absent());
            let Some(name) = named else {
                report.at(
                    span,
                    "missing-key",
                    "an axis with points has no name",
                    "`name` is missing",
                    "add for example name = \"tuning\"",
                );
                return None;
            };
            (name.to_string(), span.clone())
        }
    };
    let reason = match name.as_str() {
        "design" | "users" => Some("every study has an axis of this name".to_string()),
        _ => unsafe_because(&name),
    };
    if let Some(reason) = reason {
        report.at(
            &place,
            "unsafe-name",
            format!("`{name}` cannot be the name of an axis"),
            reason,
            "use lower case letters, digits, `-`, `_` and `.`",
        );
        return None;
    }
    Some(name)
}

/// The points of an axis, without its name, and what each of them sets.
fn points_of(
    section: &Section<file::Axis>,
    span: &Range<usize>,
    scale: Scale,
    report: &mut Report,
) -> Option<(AxisPlan, Vec<Vec<Change>>)> {
    let has_values = !section.key.is_absent() || !section.values.is_absent();
    let changes: Vec<(String, Range<usize>, Vec<Change>)> = match &section.points {
        Entry::Refused => return None,
        Entry::Given { span, .. } if has_values => {
            report.at(
                span,
                "conflict",
                "an axis has `points` and `key` with `values`",
                "one of them says what is varied",
                "keep `points`, or `key` and `values`",
            );
            return None;
        }
        Entry::Given { value, .. } => named_points(value, report)?,
        Entry::Absent => value_points(section, span, report)?,
    };
    let mut is_fine = true;
    for change in changes.iter().flat_map(|(_, _, changes)| changes) {
        is_fine &= can_vary(change, report);
    }
    if changes.len() < 2 {
        report.at(
            span,
            "empty",
            format!(
                "an axis has {} point{}",
                changes.len(),
                if changes.len() == 1 { "" } else { "s" }
            ),
            "nothing is varied",
            "write at least two, or set the key where it belongs",
        );
        return None;
    }
    for (position, (name, place, _)) in changes.iter().enumerate() {
        if changes[..position].iter().any(|(earlier, _, _)| earlier == name) {
            report.at(
                place,
                "duplicate-name",
                format!("the point `{name}` appears twice on its axis"),
                "the second one",
                "remove it; use `repeats` to measure again",
            );
            is_fine = false;
        }
    }
    let mut keys: Vec<String> = Vec::new();
    for change in changes.iter().flat_map(|(_, _, changes)| changes) {
        if !keys.contains(&change.path) {
            keys.push(change.path.clone());
        }
    }
    let point = |(name, _, changes): &(String, Range<usize>, Vec<Change>)| AxisPoint {
        name: name.clone(),
        label: name.clone(),
        phrase: name.clone(),
        number: None,
        set: changes.iter().map(|one| (one.path.clone(), one.value.text.clone())).collect(),
    };
    let points: Vec<AxisPoint> = changes.iter().map(point).collect();
    let mut plan = AxisPlan { name: String::new(), keys, unit: None, points };
    if section.points.is_absent() {
        number_values(&mut plan, scale);
    }
    is_fine.then(|| (plan, changes.into_iter().map(|(_, _, changes)| changes).collect()))
}

type NamedChanges = Vec<(String, Range<usize>, Vec<Change>)>;

fn value_points(
    section: &Section<file::Axis>,
    span: &Range<usize>,
    report: &mut Report,
) -> Option<NamedChanges> {
    let missing = [
        ("key", section.key.is_absent(), "add key = \"engine.memory-limit\", or `points`"),
        ("values", section.values.is_absent(), "add values = [...], or `points`"),
    ];
    for (key, is_missing, help) in missing {
        if is_missing {
            report.at(
                span,
                "missing-key",
                format!("an axis does not say its `{key}`"),
                format!("`{key}` is missing"),
                help,
            );
        }
    }
    let (path, values) = (section.key.get()?, section.values.get()?);
    let path_span = section.key.span().unwrap_or_else(|| span.clone());
    let point = |value: &Written| {
        let change =
            Change { path: path.clone(), path_span: path_span.clone(), value: value.clone() };
        (value.text.clone(), value.span.clone(), vec![change])
    };
    Some(values.iter().map(point).collect())
}

fn named_points(
    points: &[Section<file::axis::Point>],
    report: &mut Report,
) -> Option<NamedChanges> {
    let mut named = Vec::new();
    for point in points {
        if point.refused {
            return None;
        }
        let place = point.span.clone().unwrap_or(0..0);
        let name = match &point.name {
            Entry::Refused => return None,
            Entry::Given { value, .. } if !value.trim().is_empty() => value.clone(),
            _ => {
                report.at(
                    &place,
                    "missing-key",
                    "a point of an axis has no name",
                    "`name` is missing or empty",
                    "add for example name = \"1a\"",
                );
                return None;
            }
        };
        let changes = point.set.content.0.iter();
        let changes = changes
            .map(|(path, value)| Change {
                path: path.clone(),
                path_span: value.span.clone(),
                value: value.clone(),
            })
            .collect();
        named.push((name, place, changes));
    }
    Some(named)
}

/// Reports a key that no axis can set.
fn can_vary(change: &Change, report: &mut Report) -> bool {
    let path = change.path.as_str();
    let is_below = |fixed: &&str| {
        path.strip_prefix(fixed).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let fixed = FIXED.iter().find(|(keys, _, _)| keys.iter().any(is_below));
    let last = path.rsplit('.').next().unwrap_or(path);
    let (reason, help) = match fixed {
        Some((_, reason, help)) => (reason.to_string(), help.to_string()),
        None if path == "design" || DESCRIPTIVE.contains(&last) => {
            ("designs are an axis already".to_string(), "write another [[design]]".to_string())
        }
        None if path.split('.').any(str::is_empty) => (
            "not the path of a key".to_string(),
            "write the tables and the key with dots between, such as engine.memory-limit"
                .to_string(),
        ),
        None => return true,
    };
    report.at(
        &change.path_span,
        "cannot-vary",
        format!("an axis cannot set `{path}`"),
        reason,
        help,
    );
    false
}

/// Numbers, sizes and times have a place on a numeric axis.
fn number_values(plan: &mut AxisPlan, scale: Scale) {
    let texts = || plan.points.iter().map(|point| point.name.trim());
    let numbers: Option<Vec<f64>> =
        texts().map(|text| text.replace('_', "").parse().ok()).collect();
    let sizes: Option<Vec<Bytes>> = texts().map(|text| text.parse().ok()).collect();
    let times: Option<Vec<Nanos>> = texts().map(|text| text.parse().ok()).collect();
    let last = plan.keys.first().and_then(|key| key.rsplit('.').next()).unwrap_or_default();
    let (unit, numbers) = if let Some(numbers) = numbers {
        let divisor =
            if ["cpus", "cores"].contains(&last) { f64::from(scale.divisor) } else { 1.0 };
        (AxisUnit::Number, numbers.into_iter().map(|number| number / divisor).collect::<Vec<_>>())
    } else if let Some(sizes) = sizes {
        let scaled = |size: Bytes| match last {
            "memory-limit" | "memory" if scale != Scale::FULL => {
                scale::size(size, scale, Bytes::ZERO)
            }
            _ => size,
        };
        (AxisUnit::Bytes, sizes.into_iter().map(|size| scaled(size).0 as f64).collect())
    } else if let Some(times) = times {
        (AxisUnit::Nanoseconds, times.into_iter().map(|time| time.0 as f64).collect())
    } else {
        return;
    };
    if !numbers.iter().all(|number| number.is_finite() && *number >= 0.0) {
        return;
    }
    plan.unit = Some(unit);
    for (point, number) in plan.points.iter_mut().zip(numbers) {
        point.number = Some(number);
    }
}

/// What the values of a key are called: memory and processors at the scale of the plan, as the server has them.
fn phrase_values(plan: &mut AxisPlan, axis: &str, scale: Scale) {
    let last = plan.keys.first().and_then(|key| key.rsplit('.').next()).unwrap_or_default();
    let is_memory = ["memory-limit", "memory"].contains(&last);
    let is_cpus = ["cpus", "cores"].contains(&last);
    for point in &mut plan.points {
        let size = point.name.parse::<Bytes>().ok().filter(|_| is_memory);
        let cpus = point.number.filter(|_| is_cpus);
        match (size, cpus) {
            (Some(size), _) => {
                let size = match scale {
                    Scale::FULL => size,
                    scale => scale::size(size, scale, Bytes::ZERO),
                };
                point.label = exact::size(size);
                point.phrase = format!("{size} of memory");
            }
            (_, Some(cpus)) => {
                point.label = cpus.to_string();
                point.phrase = match cpus {
                    1.0 => "1 CPU".to_string(),
                    cpus => format!("{cpus} CPUs"),
                };
            }
            _ => point.phrase = format!("{axis} {}", point.name),
        }
    }
}
