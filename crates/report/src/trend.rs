//! Many records of one study over time: the throughput of each design, and where it changed.
//!
//! The unit is the record: its runs share a host, a version and a day, so the variation between records is not that between
//! runs. Where the level changes, everything is listed that differs between the records before and after.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use underlay_core::utc_timestamp;
use underlay_record::{ReadError, Record};

use crate::analysis::Workload;
use crate::confounds::between;
use crate::digest::Digest;
use crate::estimates::{by_run, over_runs};
use crate::ladder::groups;
use crate::statistics::{FEWEST_RECORDS, change_points_of_few};
use crate::terminal::{Colour, Page};
use crate::text_table::{Align, TextColumn};
use crate::wording::{amount, count, percent};
use crate::workload_view::WorkloadView;

/// The records of a study, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// The study's key.
    pub study: String,
    /// The workload, and what its headline counts.
    pub workload: Workload,
    /// The records that are shown.
    pub records: Vec<TrendRecord>,
    /// The others of the same study, and why.
    pub left_out: Vec<LeftOut>,
    /// One per design that any of the records has.
    pub designs: Vec<TrendDesign>,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendRecord {
    /// Name of its file.
    pub file: String,
    /// Begin, nanoseconds since the Unix epoch.
    pub started_wall_ns: u64,
    /// Versions, as recorded: `mariadb 10.11, underlay 0.1.0`.
    pub software: String,
}

/// A record that is not shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Name of its file.
    pub file: String,
    /// Why.
    pub reason: String,
}

/// One design over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendDesign {
    /// Its name in the study.
    pub name: String,
    /// Its name for readers, as the latest record has it.
    pub title: String,
    /// Users of the rung: the number that most records have, of several the highest.
    pub users: u32,
    /// One per record that has it.
    pub points: Vec<TrendPoint>,
    /// Where the level changed, oldest first.
    pub changes: Vec<TrendChange>,
    /// The same in words.
    pub text: String,
}

/// What one record says of a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendPoint {
    /// Position in [`Trend::records`].
    pub record: usize,
    /// Mean of the headline over the runs.
    pub value: f64,
    /// Lower end of its 95 % interval over the runs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Runs.
    pub runs: usize,
}

/// A change of the level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendChange {
    /// The first record of the new level: position in [`Trend::records`].
    pub record: usize,
    /// New level over old level, minus 1.
    pub relative: f64,
    /// p of "no change".
    pub p: f64,
    /// What else differs between this record and the one before: `software.underlay: 0.1.0 / 0.2.0`.
    pub differences: Vec<String>,
}

/// Why there is no trend.
#[derive(Debug, thiserror::Error)]
pub enum TrendError {
    /// The records are of several studies.
    #[error("the records are of different studies: {}", .0.join(", "))]
    SeveralStudies(Vec<String>),
    /// There is no record of the study.
    #[error("there is no record{}", .0.as_ref().map_or_else(String::new, |name| format!(" of the study `{name}`")))]
    NoRecord(Option<String>),
    /// A record could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What is kept of a record.
struct Seen {
    record: TrendRecord,
    digest: Digest,
}

/// The trend of the records of `study`, or of the only study that there is. The newest record decides which workload is
/// shown; records of another one are left out, and those whose numbers came about in another way.
pub fn trend(records: &[Record], study: Option<&str>) -> Result<Trend, TrendError> {
    let name_of = |record: &Record| record.manifest().study_name.clone();
    let names: BTreeSet<String> = records.iter().map(name_of).collect();
    let wanted = match (study, names.len()) {
        (Some(name), _) => name.to_string(),
        (None, 0 | 1) => names
            .into_iter()
            .next()
            .ok_or_else(|| TrendError::NoRecord(study.map(str::to_string)))?,
        (None, _) => return Err(TrendError::SeveralStudies(names.into_iter().collect())),
    };
    let mut chosen: Vec<&Record> =
        records.iter().filter(|record| name_of(record) == wanted).collect();
    chosen.sort_by_key(|record| record.manifest().started_wall_ns);
    let newest = chosen.last().ok_or(TrendError::NoRecord(Some(wanted.clone())))?;
    let identity = newest.manifest().identity.clone();
    let evidence = newest.manifest().evidence;
    let workload = WorkloadView::of(&newest.manifest().plan);
    let (mut seen, mut left_out) = (Vec::new(), Vec::new());
    for record in chosen {
        let shown = shown(record);
        let reason = if record.manifest().identity != identity {
            Some("another workload than the newest record".to_string())
        } else if record.manifest().evidence != evidence {
            let kind = record.manifest().evidence.as_str();
            Some(format!("{kind}, while the newest record is {}", evidence.as_str()))
        } else {
            let digest = Digest::read(record)?;
            match digest.windows.is_empty() {
                true => Some("no measured run".to_string()),
                false => {
                    seen.push(Seen { record: shown.clone(), digest });
                    None
                }
            }
        };
        left_out.extend(reason.map(|reason| LeftOut { file: shown.file, reason }));
    }
    Ok(Trend {
        study: wanted,
        designs: designs(&seen, &workload),
        workload: workload.serialisable(),
        records: seen.into_iter().map(|seen| seen.record).collect(),
        left_out,
    })
}

fn shown(record: &Record) -> TrendRecord {
    let manifest = record.manifest();
    let versions: Vec<String> = crate::flatten::leaves(&manifest.software)
        .into_iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    TrendRecord {
        file: record.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        started_wall_ns: manifest.started_wall_ns,
        software: versions.join(", "),
    }
}

/// The headline of each design at each number of users: design name -> users -> points.
type Ladders = BTreeMap<String, BTreeMap<u32, Vec<TrendPoint>>>;

fn designs(seen: &[Seen], workload: &WorkloadView) -> Vec<TrendDesign> {
    let mut ladders = Ladders::new();
    let mut titles = BTreeMap::new();
    for (position, Seen { digest, .. }) in seen.iter().enumerate() {
        let names: Vec<&str> = digest.designs.iter().map(|design| design.name.as_str()).collect();
        titles.extend(names.iter().map(|name| name.to_string()).zip(digest.titles()));
        for group in groups(&digest.windows) {
            let Some(name) = names.get(group.design) else { continue };
            let runs = by_run(&group.windows, |window| window.load.headline);
            let measured = runs.iter().flatten().count();
            let estimate = over_runs(runs, None);
            let Some(value) = estimate.value else { continue };
            let (low, high) = (estimate.low, estimate.high);
            let point = TrendPoint { record: position, value, low, high, runs: measured };
            let ladder = ladders.entry(name.to_string()).or_default();
            ladder.entry(group.users).or_default().push(point);
        }
    }
    ladders
        .into_iter()
        .filter_map(|(name, mut rungs)| {
            // The rung that most records have, and of those the highest.
            let users = *rungs.iter().max_by_key(|(users, points)| (points.len(), **users))?.0;
            let title = titles.get(&name).cloned().unwrap_or_else(|| name.clone());
            Some(design((name, title), (users, rungs.remove(&users)?), seen, workload))
        })
        .collect()
}

fn design(
    (name, title): (String, String),
    (users, points): (u32, Vec<TrendPoint>),
    seen: &[Seen],
    workload: &WorkloadView,
) -> TrendDesign {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let changes: Vec<TrendChange> = change_points_of_few(&values)
        .into_iter()
        .map(|found| {
            let (before, after) = (points[found.index - 1].record, points[found.index].record);
            TrendChange {
                record: after,
                relative: found.relative,
                p: found.p,
                differences: differences(&name, [&seen[before].digest, &seen[after].digest]),
            }
        })
        .collect();
    let records = count(points.len() as u64, "record");
    let place = format!("{title}: {}{}", workload.rate_words(), workload.at(users));
    let text = match &changes[..] {
        [] if points.len() < FEWEST_RECORDS => {
            format!("{place}: {records}; a change is looked for in {FEWEST_RECORDS} or more")
        }
        [] => format!("{place}: no change in {records}"),
        changes => {
            let each: Vec<String> = changes
                .iter()
                .map(|change| {
                    let sign = if change.relative > 0.0 { "+" } else { "-" };
                    let size = percent(change.relative.abs());
                    format!("{sign}{size} at {}", seen[change.record].record.file)
                })
                .collect();
            format!(
                "{place}: {} in {records}: {}",
                count(changes.len() as u64, "change"),
                each.join(", ")
            )
        }
    };
    TrendDesign { name, title, users, points, changes, text }
}

/// What differs between two records about a design besides its results.
fn differences(name: &str, [before, after]: [&Digest; 2]) -> Vec<String> {
    let position = |digest: &Digest| digest.designs.iter().position(|design| design.name == name);
    let Some((a, b)) = position(before).zip(position(after)) else { return Vec::new() };
    between((before, a), (after, b))
        .into_iter()
        .map(|difference| {
            let values: Vec<String> = difference
                .values
                .into_iter()
                .map(|value| value.unwrap_or_else(|| "nothing".to_string()))
                .collect();
            format!("{}: {}", difference.path, values.join(" / "))
        })
        .collect()
}

/// The trend for a terminal of `width` columns. Ends with a line feed.
pub fn trend_summary(trend: &Trend, width: usize, colour: Colour) -> String {
    let mut page = Page::new(width, colour);
    for (position, design) in trend.designs.iter().enumerate() {
        if position > 0 {
            page.blank();
        }
        page.headline(&design.text);
        page.table(columns(trend, design));
        for change in &design.changes {
            let file = &trend.records[change.record].file;
            page.paragraph(&match &change.differences[..] {
                [] => format!("{file}: nothing recorded differs from the record before"),
                differences => format!("{file}: differs in {}", differences.join("; ")),
            });
        }
    }
    if !trend.left_out.is_empty() {
        page.blank();
    }
    for left_out in &trend.left_out {
        page.paragraph(&format!("left out: {} ({})", left_out.file, left_out.reason));
    }
    page.text()
}

/// As in the names of records: `20261120-101500`.
fn begun(trend: &Trend, point: &TrendPoint) -> String {
    utc_timestamp(trend.records[point.record].started_wall_ns / 1_000_000_000)
}

fn columns(trend: &Trend, design: &TrendDesign) -> Vec<TextColumn> {
    let column =
        |header: &str, align, dispensable, of: &dyn Fn(&TrendPoint) -> String| TextColumn {
            header: header.to_string(),
            align,
            dispensable,
            cells: design.points.iter().map(of).collect(),
        };
    let change = |point: &TrendPoint| {
        let here = design.changes.iter().find(|change| change.record == point.record);
        here.map_or_else(String::new, |change| {
            let sign = if change.relative > 0.0 { "+" } else { "-" };
            format!("{sign}{}", percent(change.relative.abs()))
        })
    };
    let interval = |point: &TrendPoint| match (point.low, point.high) {
        (Some(low), Some(high)) => format!("[{}, {}]", amount(low), amount(high)),
        _ => "-".to_string(),
    };
    vec![
        column("begun", Align::Left, 0, &|p| begun(trend, p)),
        column(&trend.workload.unit, Align::Right, 0, &|p| amount(p.value)),
        column("95 %", Align::Left, 0, &interval),
        column("runs", Align::Right, 1, &|p| p.runs.to_string()),
        column("change", Align::Right, 0, &change),
        column("record", Align::Left, 0, &|p| trend.records[p.record].file.clone()),
        column("software", Align::Left, 2, &|p| trend.records[p.record].software.clone()),
    ]
}
