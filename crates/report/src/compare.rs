//! Two records against each other: same workload, other day, host, setting or storage.
//!
//! Runs of two records are not paired (nothing was interleaved), so the ratio's interval is Welch's. Whatever
//! differs between the two sides besides the storage is listed, because the ratio may be due to it.

use std::path::Path;

use serde::Serialize;
use underlay_record::{ReadError, Record};

use crate::analysis::{Comparison, Confound, EvidenceKind, Finding, FindingSeverity, Outcome};
use crate::comparisons::unpaired_ladder;
use crate::confounds::{between, not_asked};
use crate::digest::{Digest, evidence_kind};
use crate::ladder::groups;
use crate::terminal::{Colour, Page, outcome_words, probability, ratio_interval};
use crate::text_table::{Align, TextColumn};
use crate::wording::{count, factor};

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
        "the records have different workloads ({a} and {b}): their numbers mean different things; \
         allow different workloads if you know that they do not"
    )]
    DifferentWorkload {
        /// Identity of the first one's.
        a: String,
        /// Identity of the second one's.
        b: String,
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
    /// Identity of its workload.
    pub identity: String,
    /// Begin, nanoseconds since the Unix epoch.
    pub started_wall_ns: u64,
}

/// A design of each record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DesignPair {
    /// Title of the first one's.
    pub a: String,
    /// Title of the second one's.
    pub b: String,
    /// Per common rung, new orders per minute and latency; in a comparison, `a` and `b` are 0 and 1.
    pub comparisons: Vec<Comparison>,
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
    if !same_workload && options.identity == IdentityPolicy::RequireEqual {
        return Err(CompareError::DifferentWorkload {
            a: a.manifest().identity.clone(),
            b: b.manifest().identity.clone(),
        });
    }
    let sides = (Digest::read(a)?, Digest::read(b)?);
    let (side_a, side_b) = (side(a, &sides.0), side(b, &sides.1));
    let names = distinct_names(&side_a.file, &side_b.file);
    let pairs: Vec<DesignPair> = design_pairs(&sides.0, &sides.1, options)?
        .into_iter()
        .map(|pair| design_pair((&sides.0, &sides.1), pair, &names))
        .collect();
    Ok(RecordComparison {
        headlines: pairs.iter().map(headline).collect(),
        findings: findings(same_workload, (&side_a, &side_b), &pairs),
        a: side_a,
        b: side_b,
        same_workload,
        pairs,
    })
}

fn side(record: &Record, digest: &Digest) -> Side {
    let file = record.path().file_name().unwrap_or_else(|| Path::new("record").as_os_str());
    Side {
        file: file.to_string_lossy().into_owned(),
        study: digest.manifest.study_name.clone(),
        evidence: evidence_kind(digest.manifest.evidence),
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
    let comparisons =
        unpaired_ladder(&groups(&windows_a), &groups(&windows_b), (&titles, &a.workload));
    let [title_a, title_b] = titles;
    DesignPair {
        a: title_a,
        b: title_b,
        comparisons,
        confounds: between((a, design_a), (b, design_b)),
    }
}

fn headline(pair: &DesignPair) -> String {
    let top = pair
        .comparisons
        .iter()
        .filter(|comparison| comparison.metric == "headline" && comparison.ratio.is_some())
        .max_by_key(|comparison| comparison.users);
    match top {
        Some(comparison) => comparison.text.clone(),
        None => format!("{} and {} have no number of users in common", pair.a, pair.b),
    }
}

fn findings(same_workload: bool, (a, b): (&Side, &Side), pairs: &[DesignPair]) -> Vec<Finding> {
    let finding = |severity, code: &str, text: String| Finding {
        severity,
        code: code.to_string(),
        text,
        design: None,
        run: None,
        users: None,
    };
    let mut findings = Vec::new();
    if !same_workload {
        let text = "the workloads are not the same: the ratio compares different work".to_string();
        findings.push(finding(FindingSeverity::Warning, "different-workload", text));
    }
    if a.evidence != b.evidence {
        let text = format!(
            "the records are different kinds of evidence: {} and {}",
            a.evidence.as_str(),
            b.evidence.as_str()
        );
        findings.push(finding(FindingSeverity::Warning, "mixed-evidence", text));
    }
    for pair in pairs {
        if let Some(paths) = not_asked(&pair.confounds) {
            let text =
                format!("{} and {} differ in more than their storage: {paths}", pair.a, pair.b);
            findings.push(finding(FindingSeverity::Warning, "confounded", text));
        }
        if pair.comparisons.iter().any(|comparison| comparison.outcome == Outcome::Single) {
            let text =
                format!("{} or {} has one run only: no interval is possible", pair.a, pair.b);
            findings.push(finding(FindingSeverity::Warning, "no-interval", text));
        }
    }
    let text = "the records were not interleaved: a change of the host between them looks like a \
                difference of the designs"
        .to_string();
    findings.push(finding(FindingSeverity::Information, "not-interleaved", text));
    findings
}

/// The comparison for a terminal of `width` columns. Ends with a line feed.
pub fn comparison_summary(comparison: &RecordComparison, width: usize, colour: Colour) -> String {
    let mut page = Page::new(width, colour);
    for (headline, pair) in comparison.headlines.iter().zip(&comparison.pairs) {
        page.headline(headline);
        page.table(columns(&pair.comparisons));
        page.blank();
        for confound in pair.confounds.iter().filter(|confound| !confound.asked) {
            let values: Vec<&str> =
                confound.values.iter().map(|v| v.as_deref().unwrap_or("nothing")).collect();
            page.paragraph(&format!("{}: {}", confound.path, values.join(" / ")));
        }
    }
    page.findings(&comparison.findings);
    page.text()
}

fn columns(comparisons: &[Comparison]) -> Vec<TextColumn> {
    let column = |header: &str, align, of: &dyn Fn(&Comparison) -> String| TextColumn {
        header: header.to_string(),
        align,
        dispensable: 0,
        cells: comparisons.iter().map(of).collect(),
    };
    vec![
        column("users", Align::Right, &|c| {
            c.users.map_or(String::new(), |users| count(u64::from(users), "user"))
        }),
        column("metric", Align::Left, &|c| c.metric.clone()),
        column("B : A", Align::Right, &|c| c.ratio.map_or("-".to_string(), factor)),
        column("95 %", Align::Left, &ratio_interval),
        column("p", Align::Right, &|c| c.p_adjusted.map_or("-".to_string(), probability)),
        column("shows", Align::Left, &|c| outcome_words(c.outcome).to_string()),
    ]
}
