//! Published series: their references and their shape.

use super::design_names;
use super::resolver::Resolver;
use crate::entry::{Entry, Section};
use crate::file::{Database, Published, Workload};
use crate::plan::PublishedSeries;
use crate::suggest::{listed, nearest};

/// What a metric is, which decides the units that its values can be printed in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    /// A number without a unit, or in the unit of the workload.
    Count,
    /// A part of a whole.
    Share,
    /// A time.
    Time,
    /// A time of operations that take long, in seconds.
    Duration,
    /// Bytes per second.
    ByteRate,
}

/// What a record has of each rung.
const METRICS: [(&str, Quantity); 35] = [
    ("result", Quantity::Count),
    ("nopm", Quantity::Count),
    ("tpm", Quantity::Count),
    ("tpm-per-user", Quantity::Count),
    ("cpu-idle", Quantity::Share),
    ("transactions-per-second", Quantity::Count),
    ("error-share", Quantity::Share),
    ("server-cpu-idle", Quantity::Share),
    ("cpu-iowait", Quantity::Share),
    ("server-cpu-use", Quantity::Share),
    ("server-cores", Quantity::Count),
    ("driver-cores", Quantity::Count),
    ("log-bytes-per-second", Quantity::ByteRate),
    ("cache-hit-share", Quantity::Share),
    ("p50", Quantity::Time),
    ("p95", Quantity::Time),
    ("p99", Quantity::Time),
    ("mean", Quantity::Time),
    ("job-s", Quantity::Duration),
    // Of block loads.
    ("bytes-per-second", Quantity::ByteRate),
    ("rate-at-1ms", Quantity::Count),
    ("latency-at-peak", Quantity::Time),
    ("read-mean", Quantity::Time),
    ("write-mean", Quantity::Time),
    ("backup-s", Quantity::Duration),
    ("backup-latency", Quantity::Time),
    ("restore-s", Quantity::Duration),
    ("restore-latency", Quantity::Time),
    ("restore-bytes-per-second", Quantity::ByteRate),
    // Of several databases.
    ("datastore-read-iops", Quantity::Count),
    ("datastore-write-iops", Quantity::Count),
    ("datastore-read-latency", Quantity::Time),
    ("datastore-write-latency", Quantity::Time),
    // Of clusters that copy data.
    ("resync-iops", Quantity::Count),
    ("resync-alone-iops", Quantity::Count),
];

/// What a record has of each volume of a rung, behind `volumes.NAME.`.
const VOLUME_METRICS: [(&str, Quantity); 13] = [
    ("read-iops", Quantity::Count),
    ("write-iops", Quantity::Count),
    ("flush-iops", Quantity::Count),
    ("read-bytes-per-second", Quantity::ByteRate),
    ("write-bytes-per-second", Quantity::ByteRate),
    ("queue-length", Quantity::Count),
    ("read-latency", Quantity::Time),
    ("write-latency", Quantity::Time),
    ("flush-latency", Quantity::Time),
    // As the datastore sees them.
    ("datastore-read-mean", Quantity::Time),
    ("datastore-read-p99", Quantity::Time),
    ("datastore-write-mean", Quantity::Time),
    ("datastore-write-p99", Quantity::Time),
];

impl Quantity {
    /// The units, with what a value is multiplied by to be in that of the record.
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Quantity::Count => &[],
            Quantity::Share => &[("%", 0.01), ("share", 1.0)],
            Quantity::Time => &[("ms", 1e6), ("us", 1e3), ("s", 1e9), ("ns", 1.0)],
            Quantity::Duration => &[("s", 1.0), ("min", 60.0)],
            Quantity::ByteRate => &[
                ("MB/s", 1e6),
                ("GB/s", 1e9),
                ("kB/s", 1e3),
                ("B/s", 1.0),
                ("MiB/s", 1_048_576.0),
                ("GiB/s", 1_073_741_824.0),
            ],
        }
    }
}

/// Whether this is a workload that ends by itself.
fn is_job(workload: &Workload) -> bool {
    let Workload { batch, warehouse, backup, .. } = workload;
    batch.is_present() || warehouse.is_present() || backup.is_present()
}

/// All series that are in order.
pub(super) fn resolve(resolver: &mut Resolver<'_>) -> Vec<PublishedSeries> {
    let Entry::Given { value: sections, .. } = &resolver.file.published else { return Vec::new() };
    let names: Vec<String> = design_names::design_names(resolver).into_iter().flatten().collect();
    let series = |section: &Section<Published>| {
        if section.refused { None } else { series(resolver, section, &names) }
    };
    sections.iter().filter_map(series).collect()
}

fn series(
    resolver: &mut Resolver<'_>,
    section: &Section<Published>,
    names: &[String],
) -> Option<PublishedSeries> {
    let design = match (&section.design, names) {
        (Entry::Absent, [only]) => Some(only.clone()),
        _ => of_series(resolver, section, "design", &section.design),
    };
    let metric = of_series(resolver, section, "metric", &section.metric);
    // Whether it needs users depends on the database.
    let (database, own) = database_of(resolver, section)?;
    let is_job = is_job(own.unwrap_or(&resolver.file.workload.content));
    let users = match &section.users {
        Entry::Absent if is_job => Some(Vec::new()),
        users => of_series(resolver, section, "users", users),
    };
    let values = of_series(resolver, section, "values", &section.values);
    let source = of_series(resolver, section, "source", &section.source);
    check_word(resolver, &section.design, names.iter().map(String::as_str), "design of this study");
    let quantity = quantity(resolver, &section.metric);
    let unit = unit(resolver, section, quantity);
    let at = coordinates(resolver, section);
    let (users, values) = (users?, values?);
    let expected = users.len().max(usize::from(is_job));
    if expected != values.len() {
        resolver.report.add(
            section.values.span(),
            "conflict",
            "`published.values` does not fit `published.users`",
            match is_job {
                true => format!("{} values for one job", values.len()),
                false => {
                    format!("{} values for {} numbers of users", values.len(), users.len())
                }
            },
            "write one value per number of users; of a job one value",
        );
    }
    let (unit, factor) = unit?;
    Some(PublishedSeries {
        design: design?,
        at: at?,
        database,
        metric: metric?,
        unit,
        factor,
        users,
        values,
        given: section.given.get().copied().unwrap_or_default(),
        experiment: section.experiment.get().cloned().unwrap_or_default(),
        source: source?,
        note: section.note.get().cloned().unwrap_or_default(),
    })
}

/// The database that a series is of, with what differs in its workload. `None` when there is none of that name.
fn database_of<'a>(
    resolver: &mut Resolver<'a>,
    section: &Section<Published>,
) -> Option<(String, Option<&'a Workload>)> {
    let file = resolver.file;
    let (name, span) = match &section.database {
        Entry::Absent => return Some((String::new(), None)),
        Entry::Refused => return None,
        Entry::Given { value, span } => (value, span),
    };
    let all = file.database.get().map_or(&[][..], Vec::as_slice);
    let known = |database: &&Section<Database>| database.content.names(name);
    if let Some(database) = all.iter().find(known) {
        let own = &database.content.workload;
        return Some((name.clone(), own.is_present().then_some(&own.content)));
    }
    let names: Vec<String> = all.iter().flat_map(|it| it.content.first_name()).collect();
    let help = match names.is_empty() {
        true => "remove `database`: the study has no [[database]]".to_string(),
        false => format!("write for example {}", listed(names.iter().map(String::as_str))),
    };
    resolver.report.at(
        span,
        "unknown-name",
        format!("`{name}` is not a database of this study"),
        "equal databases have a number behind their name, from 1 to how many there are",
        help,
    );
    None
}

/// The point of every axis.
fn coordinates(
    resolver: &mut Resolver<'_>,
    section: &Section<Published>,
) -> Option<Vec<(String, String)>> {
    let given = &section.at.content.0;
    let axes = resolver.axes;
    let mut is_fine = true;
    for (axis, point) in given {
        let known = axes.iter().find(|known| known.name == *axis);
        let (text, words): (&str, Vec<&str>) = match known {
            None => (axis.as_str(), axes.iter().map(|axis| axis.name.as_str()).collect()),
            Some(known) if known.points.iter().any(|one| one.name == point.text) => continue,
            Some(known) => (
                point.text.as_str(),
                known.points.iter().map(|point| point.name.as_str()).collect(),
            ),
        };
        let what = match known {
            None => "an axis of this study".to_string(),
            Some(known) => format!("a point of the axis `{}`", known.name),
        };
        is_fine = false;
        let help = match words.is_empty() {
            true => "remove `at`: the study has no [[axis]]".to_string(),
            false => format!("use one of {}", listed(words.iter().copied())),
        };
        let label = match nearest(text, words.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "there is none of this name".to_string(),
        };
        let message = format!("`{text}` is not {what}");
        resolver.report.at(&point.span, "unknown-name", message, label, help);
    }
    let missing = axes.iter().find(|axis| !given.iter().any(|(name, _)| *name == axis.name));
    if let Some(axis) = missing.filter(|_| !section.at.refused && is_fine) {
        let first = axis.points.first().map_or("", |point| point.name.as_str());
        resolver.report.add(
            section.at.span.clone().or_else(|| section.span.clone()),
            "missing-key",
            format!("the published series does not say its point of the axis `{}`", axis.name),
            format!("`{}` is missing in `at`", axis.name),
            format!("add at = {{ {} = \"{first}\" }}", axis.name),
        );
        return None;
    }
    let point = |axis: &crate::plan::AxisPlan| {
        let (_, point) = given.iter().find(|(name, _)| *name == axis.name)?;
        Some((axis.name.clone(), point.text.clone()))
    };
    (is_fine && !section.at.refused).then(|| axes.iter().filter_map(point).collect())
}

/// What a metric is; unknown ones are reported.
fn quantity(resolver: &mut Resolver<'_>, entry: &Entry<String>) -> Option<Quantity> {
    let Entry::Given { value: text, span } = entry else { return None };
    let of_volume = text.strip_prefix("volumes.").and_then(|rest| {
        let (volume, metric) = rest.split_once('.')?;
        crate::file::Volumes::NAMES.contains(&volume).then_some(metric)
    });
    let known: &[(&str, Quantity)] = if of_volume.is_some() { &VOLUME_METRICS } else { &METRICS };
    let word = of_volume.unwrap_or(text);
    if let Some((_, quantity)) = known.iter().find(|(name, _)| *name == word) {
        return Some(*quantity);
    }
    let words = || known.iter().map(|(name, _)| *name);
    let label = match nearest(word, words()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "not a metric".to_string(),
    };
    let help = match of_volume {
        Some(_) => format!("use one of {}", listed(words())),
        None => format!(
            "use one of {}, or of a volume for example `volumes.data.read-latency`",
            listed(words())
        ),
    };
    resolver.report.at(span, "unknown-name", format!("`{text}` is not a metric"), label, help);
    None
}

/// The unit of the values as printed, and what makes them those of the record.
fn unit(
    resolver: &mut Resolver<'_>,
    section: &Section<Published>,
    quantity: Option<Quantity>,
) -> Option<(String, f64)> {
    let quantity = quantity?;
    let units = quantity.units();
    let (unit, span) = match &section.unit {
        Entry::Refused => return None,
        Entry::Given { value, span } => (value, span),
        Entry::Absent => match quantity {
            Quantity::Count => return Some((String::new(), 1.0)),
            // Papers print shares in percent.
            Quantity::Share => return Some(("%".to_string(), 0.01)),
            Quantity::Time | Quantity::Duration | Quantity::ByteRate => {
                resolver.report.add(
                    section.metric.span(),
                    "missing-key",
                    "the published series does not say its `unit`",
                    "`unit` is missing",
                    format!("add `unit`, one of {}", listed(units.iter().map(|(name, _)| *name))),
                );
                return None;
            }
        },
    };
    if let Some((name, factor)) = units.iter().find(|(name, _)| *name == unit.as_str()) {
        return Some((name.to_string(), *factor));
    }
    // What a workload counts, people call by many names.
    if quantity == Quantity::Count {
        return Some((unit.clone(), 1.0));
    }
    resolver.report.at(
        span,
        "wrong-unit",
        format!("`{unit}` is not a unit of this metric"),
        "its values cannot be compared with those of a record",
        format!("use one of {}", listed(units.iter().map(|(name, _)| *name))),
    );
    None
}

fn of_series<T: Clone>(
    resolver: &mut Resolver<'_>,
    section: &Section<Published>,
    key: &str,
    entry: &Entry<T>,
) -> Option<T> {
    if matches!(entry, Entry::Absent) {
        resolver.report.add(
            section.span.clone(),
            "missing-key",
            format!("the published series does not say its `{key}`"),
            format!("`{key}` is missing"),
            format!("add `{key}`, or remove the series"),
        );
    }
    entry.get().cloned()
}

/// Reports a text that is not among the known words.
fn check_word<'w>(
    resolver: &mut Resolver<'_>,
    entry: &Entry<String>,
    words: impl IntoIterator<Item = &'w str> + Clone,
    what: &str,
) {
    let Some(text) = entry.get() else { return };
    if words.clone().into_iter().any(|word| word == text) {
        return;
    }
    let label = match nearest(text, words.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("not a {what}"),
    };
    resolver.report.add(
        entry.span(),
        "unknown-name",
        format!("`{text}` is not a {what}"),
        label,
        format!("use one of {}", listed(words)),
    );
}
