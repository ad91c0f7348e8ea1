//! Two records against each other: same workload, other day, host, setting or storage.
//!
//! Runs of two records are not paired (nothing was interleaved), so the ratio's interval is Welch's. Whatever
//! differs between the two sides besides the storage is listed, because the ratio may be due to it.

use std::path::Path;

use serde::Serialize;
use underlay_record::{ReadError, Record};

use crate::analyse::findings_of;
use crate::analysis::{
    Comparison, Confound, EvidenceKind, Finding, FindingSeverity, Metric, Outcome, Validity,
    Workload,
};
use crate::comparisons::{
    conclude_unpaired, is_compared_between_records, main_position, unpaired_ladder,
};
use crate::confounds::{between, not_asked};
use crate::digest::Digest;
use crate::ladder::groups;
use crate::method::method;
use crate::terminal::{self, Colour, Page, outcome_words, probability, ratio_interval};
use crate::text_table::{Align, TextColumn};
use crate::validity;
use crate::wording::{count, factor};
use crate::workload_view::WorkloadView;

/// Whether records of different workloads may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityPolicy {
    /// Refuse them.
    RequireEqual,
    /// Compare them, and say so.
    AllowDifferent,
}

/// What to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareOptions {
    /// Whether the workloads must be the same.
    pub identity: IdentityPolicy,
    /// Names of one design of each record; `None` = all designs that have the same name in both, or the only
    /// design of each.
    pub designs: Option<(String, String)>,
}

/// Why two records cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The workloads differ.
    #[error(
        "the records have different workloads (A: {a}; B: {b}): their numbers are not comparable"
    )]
    DifferentWorkload {
        /// The first one's name, and its identity.
        a: String,
        /// The second one's.
        b: String,
        /// Whether both count the same, so that they can be compared by whoever knows in what they differ.
        is_same_measure: bool,
    },
    /// There is no such design.
    #[error("record {record} has no design `{name}`; it has {known}")]
    UnknownDesign {
        /// `A` or `B`.
        record: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The designs do not correspond.
    #[error("the records have no design of the same name (A: {a}; B: {b}); name one of each")]
    NoCommonDesign {
        /// Names of the first one's.
        a: String,
        /// Names of the second one's.
        b: String,
    },
    /// A record could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Two records compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordComparison {
    /// The base.
    pub a: Side,
    /// What is compared with it.
    pub b: Side,
    /// Whether both have the same workload.
    pub same_workload: bool,
    /// The workload of the first one, and what its headline counts.
    pub workload: Workload,
    /// Whether both headlines count the same in the same unit; there is no ratio otherwise.
    pub same_measure: bool,
    /// Whether both are jobs, which have sessions and no users.
    pub is_job: bool,
    /// What is compared, by the names that the comparisons use; none where there is no ratio.
    pub metrics: Vec<Metric>,
    /// One sentence per pair of designs.
    pub headlines: Vec<String>,
    /// The pairs of designs.
    pub pairs: Vec<DesignPair>,
    /// What to know before believing it.
    pub findings: Vec<Finding>,
}

/// One of the two records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Name of its file.
    pub file: String,
    /// The study's key.
    pub study: String,
    /// Its kind of evidence.
    pub evidence: EvidenceKind,
    /// How many times longer it took than its design time; 1 = real time.
    pub time_dilation: u32,
    /// Its workload, by the word of the file format.
    pub workload: String,
    /// What its headline counts: `new orders per minute`.
    pub counts: String,
    /// Identity of its workload.
    pub identity: String,
    /// Begin, nanoseconds since the Unix epoch.
    pub started_wall_ns: u64,
}

/// Code of the finding that a record is compared with itself.
pub(crate) const SAME_RECORD: &str = "same-record";
/// Code of the finding that a design of the first record is not in the second.
pub(crate) const MISSING_DESIGN: &str = "missing-design";

/// A design of each record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DesignPair {
    /// Title of the first one's.
    pub a: String,
    /// Title of the second one's.
    pub b: String,
    /// Per common rung, headline and latency; in a comparison, `a` and `b` are 0 and 1.
    pub comparisons: Vec<Comparison>,
    /// Whether the designs or their hosts were measured at the highest common number of users: the graver outcome of the two;
    /// `null` where neither is emulated.
    pub validity: Option<Validity>,
    /// Why the numbers of one of the two are none, in a record's own words; `null` where they are.
    pub invalid: Option<String>,
    /// Everything that differs.
    pub confounds: Vec<Confound>,
}

/// Compares two records.
pub fn compare(
    a: &Record,
    b: &Record,
    options: &CompareOptions,
) -> Result<RecordComparison, CompareError> {
    let same_workload = a.manifest().identity == b.manifest().identity;
    let sides = (Digest::read(a)?, Digest::read(b)?);
    let (side_a, side_b) = (side(a, &sides.0), side(b, &sides.1));
    let same_measure = sides.0.workload.counts_the_same_as(&sides.1.workload);
    if !same_workload && options.identity == IdentityPolicy::RequireEqual {
        // The identity of a block load is its whole description: its name says enough where it differs.
        let named = sides.0.workload.is_block_load()
            && sides.1.workload.is_block_load()
            && side_a.study != side_b.study;
        let described = |side: &Side| match named {
            true => side.study.clone(),
            false => format!("{}, identity {}", side.workload, side.identity),
        };
        return Err(CompareError::DifferentWorkload {
            a: described(&side_a),
            b: described(&side_b),
            is_same_measure: same_measure,
        });
    }
    let names = distinct_names(&side_a.file, &side_b.file);
    let positions = design_pairs(&sides.0, &sides.1, options)?;
    let mut pairs: Vec<DesignPair> =
        positions.iter().map(|pair| design_pair((&sides.0, &sides.1), *pair, &names)).collect();
    let mut ladders: Vec<_> = pairs
        .iter_mut()
        .map(|pair| (&mut pair.comparisons, [pair.a.clone(), pair.b.clone()]))
        .collect();
    conclude_unpaired(&mut ladders, &sides.0.workload);
    // All designs of each record: one without a device is the ceiling of the others.
    let rows = [&sides.0, &sides.1].map(|digest| validity::all(digest, &groups(&digest.windows)));
    for (pair, (design_a, design_b)) in pairs.iter_mut().zip(&positions) {
        validity::widen(&mut pair.comparisons, |comparison, second| {
            let (rows, design) = if second { (&rows[1], design_b) } else { (&rows[0], design_a) };
            validity::doubt(rows, (*design, comparison.users?), &comparison.metric)
        });
        let top = pair.comparisons.iter().filter_map(|comparison| comparison.users).max();
        let outcomes = rows.iter().zip([design_a, design_b]).filter_map(|(rows, design)| {
            let mut rows = rows.iter().filter(|row| row.design == *design);
            Some(rows.find(|row| Some(row.users) == top)?.outcome)
        });
        pair.validity = outcomes.max();
    }
    let said = said_of_sides((&sides.0, &sides.1), &positions, &names);
    // An execution is known by its plan and the nanosecond in which it began.
    let same_record = a.manifest() == b.manifest();
    let mut findings = findings(
        (&sides.0, &sides.1),
        (same_record, same_workload, options.designs.is_some(), &positions),
        (&side_a, &side_b),
        &pairs,
    );
    findings.extend(said.iter().map(|(_, finding)| finding.clone()));
    findings.sort_by_key(|finding| finding.severity);
    for (number, pair) in pairs.iter_mut().enumerate() {
        let grave = |(of, finding): &&(Option<usize>, Finding)| {
            finding.severity == FindingSeverity::Invalid && of.is_none_or(|of| of == number)
        };
        pair.invalid = said.iter().find(grave).map(|(_, finding)| finding.text.clone());
    }
    let metrics = if same_measure { metrics(&sides.0.workload) } else { Vec::new() };
    let workload = sides.0.workload.serialisable();
    let headlines = pairs
        .iter()
        .map(|pair| match &pair.invalid {
            Some(why) => format!("{} and {} are not comparable: {why}", pair.a, pair.b),
            None => headline(pair, same_measure, &workload, (&side_a, &side_b)),
        })
        .collect();
    Ok(RecordComparison {
        headlines,
        findings,
        workload,
        a: side_a,
        b: side_b,
        same_workload,
        same_measure,
        is_job: sides.0.workload.is_job() && sides.1.workload.is_job(),
        metrics,
        pairs,
    })
}

/// What the comparisons are about, as this workload names it.
fn metrics(workload: &WorkloadView) -> Vec<Metric> {
    let metrics = method(workload).metrics.into_iter();
    metrics.filter(|metric| is_compared_between_records(&metric.name)).collect()
}

fn side(record: &Record, digest: &Digest) -> Side {
    let file = record.path().file_name().unwrap_or_else(|| Path::new("record").as_os_str());
    Side {
        file: file.to_string_lossy().into_owned(),
        study: digest.manifest.study_name.clone(),
        evidence: digest.evidence(),
        time_dilation: digest.time_dilation,
        workload: digest.workload.name.clone(),
        counts: digest.workload.rate_words(),
        identity: digest.manifest.identity.clone(),
        started_wall_ns: digest.manifest.started_wall_ns,
    }
}

/// How the two records are called in sentences.
fn distinct_names(a: &str, b: &str) -> (String, String) {
    if a == b { ("A".to_string(), "B".to_string()) } else { (a.to_string(), b.to_string()) }
}

fn design_pairs(
    a: &Digest,
    b: &Digest,
    options: &CompareOptions,
) -> Result<Vec<(usize, usize)>, CompareError> {
    let position = |digest: &Digest, record: &'static str, name: &str| {
        digest.designs.iter().position(|design| design.name == name).ok_or_else(|| {
            CompareError::UnknownDesign { record, name: name.to_string(), known: names(digest) }
        })
    };
    if let Some((name_a, name_b)) = &options.designs {
        return Ok(vec![(position(a, "A", name_a)?, position(b, "B", name_b)?)]);
    }
    let common: Vec<(usize, usize)> = a
        .designs
        .iter()
        .enumerate()
        .filter_map(|(i, design)| {
            let twin = b.designs.iter().position(|other| other.name == design.name)?;
            Some((i, twin))
        })
        .collect();
    match (common.is_empty(), a.designs.len(), b.designs.len()) {
        (false, _, _) => Ok(common),
        (true, 1, 1) => Ok(vec![(0, 0)]),
        _ => Err(CompareError::NoCommonDesign { a: names(a), b: names(b) }),
    }
}

fn names(digest: &Digest) -> String {
    let names: Vec<String> = digest.designs.iter().map(|design| design.name.clone()).collect();
    if names.is_empty() { "none".to_string() } else { names.join(", ") }
}

fn design_pair(
    (a, b): (&Digest, &Digest),
    (design_a, design_b): (usize, usize),
    names: &(String, String),
) -> DesignPair {
    let title = |digest: &Digest, design: usize, name: &str| {
        format!("{} in {name}", digest.titles()[design])
    };
    let titles = [title(a, design_a, &names.0), title(b, design_b, &names.1)];
    let of_design = |digest: &Digest, design: usize| {
        let windows = digest.windows.iter().filter(|window| window.design == design);
        windows.cloned().collect::<Vec<_>>()
    };
    let (windows_a, windows_b) = (of_design(a, design_a), of_design(b, design_b));
    // Rows per second over queries per hour would be a number, and mean nothing.
    let comparisons = if a.workload.counts_the_same_as(&b.workload) {
        unpaired_ladder(&groups(&windows_a), &groups(&windows_b), &a.workload)
    } else {
        Vec::new()
    };
    let [title_a, title_b] = titles;
    DesignPair {
        a: title_a,
        b: title_b,
        comparisons,
        validity: None,
        invalid: None,
        confounds: between((a, design_a), (b, design_b)),
    }
}

/// The first sentence about two designs: which is ahead, or why that is unknown.
fn headline(
    pair: &DesignPair,
    same_measure: bool,
    workload: &Workload,
    (a, b): (&Side, &Side),
) -> String {
    if !same_measure {
        return format!(
            "No ratio between {} and {}: A counts {}, B counts {}",
            pair.a, pair.b, a.counts, b.counts
        );
    }
    match main_position(&pair.comparisons) {
        Some(top) if pair.validity == Some(Validity::HostLimited) => {
            format!("Host-limited, so not about the designs: {}", pair.comparisons[top].text)
        }
        Some(top) => pair.comparisons[top].text.clone(),
        None if workload.is_block_load() => {
            format!("{} and {} share no number of requests in flight", pair.a, pair.b)
        }
        None => {
            let one = at_once(workload).1;
            format!("{} and {} share no number of {one}s", pair.a, pair.b)
        }
    }
}

/// The warnings of each record, which apply to the comparison too: with the pair of designs that each concerns, if it
/// concerns one.
fn said_of_sides(
    (a, b): (&Digest, &Digest),
    pairs: &[(usize, usize)],
    names: &(String, String),
) -> Vec<(Option<usize>, Finding)> {
    // Findings that compare a record's own designs or runs; `findings` derives them again for the two records.
    const DERIVED_AGAIN: [&str; 4] = ["confounded", "mixed-evidence", "no-interval", "few-runs"];
    let of_side = |digest: &Digest, name: &str, design_of: fn(&(usize, usize)) -> usize| {
        let about = |finding: &Finding| match finding.design {
            None => Some(None),
            Some(design) => pairs.iter().position(|pair| design_of(pair) == design).map(Some),
        };
        let grave = findings_of(digest).into_iter().filter(|finding| {
            finding.severity != FindingSeverity::Information
                && !DERIVED_AGAIN.contains(&finding.code.as_str())
        });
        grave
            .filter_map(|finding| {
                let text = format!("{name}: {}", finding.text);
                let pair = about(&finding)?;
                // Positions of designs and runs are those of one record.
                Some((pair, Finding { text, design: None, run: None, ..finding }))
            })
            .collect::<Vec<_>>()
    };
    let mut said = of_side(a, &names.0, |pair| pair.0);
    said.extend(of_side(b, &names.1, |pair| pair.1));
    said
}

fn findings(
    (a, b): (&Digest, &Digest),
    (same_record, same_workload, are_chosen, positions): (bool, bool, bool, &[(usize, usize)]),
    sides: (&Side, &Side),
    pairs: &[DesignPair],
) -> Vec<Finding> {
    let finding = |severity, code: &str, text: String| Finding {
        severity,
        code: code.to_string(),
        text,
        design: None,
        run: None,
        users: None,
    };
    let mut findings = Vec::new();
    if same_record {
        let text =
            "both records are of the same execution: every ratio is 1 by definition".to_string();
        findings.push(finding(FindingSeverity::Warning, SAME_RECORD, text));
    }
    let paired = |design: usize, of: fn(&(usize, usize)) -> usize| {
        positions.iter().any(|pair| of(pair) == design)
    };
    let without_counterpart = |digest: &Digest, of: fn(&(usize, usize)) -> usize| {
        let designs = digest.designs.iter().enumerate();
        let names = designs.filter(|(position, _)| !paired(*position, of));
        names.map(|(_, design)| design.name.clone()).collect::<Vec<_>>().join(", ")
    };
    if !are_chosen {
        let gone = without_counterpart(a, |pair| pair.0);
        let new = without_counterpart(b, |pair| pair.1);
        if !gone.is_empty() {
            let text = format!("the second record has no design with the name of: {gone}");
            findings.push(finding(FindingSeverity::Warning, MISSING_DESIGN, text));
        }
        if !new.is_empty() {
            let text = format!("the first record has no design with the name of: {new}");
            findings.push(finding(FindingSeverity::Information, "new-design", text));
        }
    }
    if !same_workload {
        let text = format!(
            "the workloads differ ({} and {}): the numbers measure different work",
            sides.0.workload, sides.1.workload
        );
        findings.push(finding(FindingSeverity::Warning, "different-workload", text));
    }
    let dilations = (sides.0.time_dilation, sides.1.time_dilation);
    if dilations != (1, 1) {
        let text = format!(
            "the time dilations are {} and {}: both records are in their design's own time, and this host's share \
             of that is smaller the larger the dilation",
            dilations.0, dilations.1
        );
        findings.push(finding(FindingSeverity::Information, "time-dilation", text));
    }
    for (pair, (design_a, design_b)) in pairs.iter().zip(positions) {
        // Of the two designs: a record that has others too is as weak as the weakest of them.
        let evidence = (a.designs[*design_a].evidence, b.designs[*design_b].evidence);
        if evidence.0 != evidence.1 {
            let text = format!(
                "{} and {} are different kinds of evidence: {} and {}",
                pair.a, pair.b, evidence.0, evidence.1
            );
            findings.push(finding(FindingSeverity::Warning, "mixed-evidence", text));
        }
        if let Some(paths) = not_asked(&pair.confounds) {
            let text =
                format!("{} and {} differ in more than their storage: {paths}", pair.a, pair.b);
            findings.push(finding(FindingSeverity::Warning, "confounded", text));
        }
        if pair.comparisons.iter().any(|comparison| comparison.outcome == Outcome::Single) {
            let text =
                format!("{} or {} has only one run: no interval is possible", pair.a, pair.b);
            findings.push(finding(FindingSeverity::Warning, "no-interval", text));
        }
    }
    let text =
        "the runs of the two records were not interleaved: a change of the host between them \
                would look like a difference between the designs"
            .to_string();
    findings.push(finding(FindingSeverity::Information, "not-interleaved", text));
    findings
}

/// The comparison for a terminal of `width` columns. Ends with a line feed.
pub fn comparison_summary(comparison: &RecordComparison, width: usize, colour: Colour) -> String {
    let mut page = Page::new(width, colour);
    for (headline, pair) in comparison.headlines.iter().zip(&comparison.pairs) {
        page.headline(headline);
        if !pair.comparisons.is_empty() {
            page.table(columns(&pair.comparisons, &comparison.metrics, &comparison.workload));
        }
        page.blank();
        for confound in pair.confounds.iter().filter(|confound| !confound.asked) {
            let values: Vec<&str> =
                confound.values.iter().map(|v| v.as_deref().unwrap_or("nothing")).collect();
            page.paragraph(&format!("{}: {}", confound.path, values.join(" / ")));
        }
    }
    terminal::findings(&mut page, &comparison.findings);
    page.text()
}

/// What there is some number of at once: the heading of the column, and one of them.
fn at_once(workload: &Workload) -> (&'static str, &'static str) {
    match (workload.is_block_load(), workload.is_job) {
        (true, _) => ("in flight", "request"),
        (false, true) => ("sessions", "session"),
        (false, false) => ("users", "user"),
    }
}

fn columns(comparisons: &[Comparison], metrics: &[Metric], workload: &Workload) -> Vec<TextColumn> {
    let (header, one) = at_once(workload);
    let title = |name: &str| {
        let known = metrics.iter().find(|metric| metric.name == name);
        known.map_or_else(|| name.to_string(), |metric| metric.title.clone())
    };
    let column = |header: &str, align, of: &dyn Fn(&Comparison) -> String| TextColumn {
        header: header.to_string(),
        align,
        dispensable: 0,
        cells: comparisons.iter().map(of).collect(),
    };
    vec![
        column(header, Align::Right, &|c| {
            c.users.map_or(String::new(), |users| count(u64::from(users), one))
        }),
        column("metric", Align::Left, &|c| title(&c.metric)),
        column("B : A", Align::Right, &|c| c.ratio.map_or("-".to_string(), factor)),
        column("95 %", Align::Left, &ratio_interval),
        column("p", Align::Right, &|c| c.p_adjusted.map_or("-".to_string(), probability)),
        column("conclusion", Align::Left, &|c| outcome_words(c.outcome).to_string()),
    ]
}
