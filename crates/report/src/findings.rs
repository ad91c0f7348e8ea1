//! Everything the reader of a result must know: what the lab found, and what the numbers show.

use std::collections::BTreeMap;

use underlay_core::Nanos;
use underlay_record::conventions::{document, finding as code};
use underlay_record::{RunStatus, Severity};

use crate::analysis::{
    Bottleneck, Confound, DriverLoad, Emulation, Finding, FindingSeverity, SteadyState, Window,
};
use crate::confounds::{engine_settings, not_asked};
use crate::digest::Digest;
use crate::flatten::plain;
use crate::ladder::Group;
use crate::plan_view::PlanView;
use crate::wording::{amount, count, list, percent, time_ns};

/// Dispatch later than this at the 99th percentile is not on time.
const LATE_DISPATCH: Nanos = Nanos::from_millis(20);
/// Load generators that take more of the host than this are mentioned.
const DRIVER_SHARE: f64 = 0.25;
/// Requests that the host itself made late, as a share, from which on a design is called host-limited.
const HOST_LIMITED: f64 = 0.05;
/// Pairs of runs from which on a test has enough of them.
const ENOUGH_RUNS: usize = 5;

/// What the findings are derived from.
pub(crate) struct Evidence<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) groups: &'a [Group<'a>],
    pub(crate) windows: &'a [Window],
    pub(crate) bottlenecks: &'a [Bottleneck],
    pub(crate) driver: &'a [DriverLoad],
    pub(crate) confounds: &'a [Confound],
}

/// All findings, gravest first.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = recorded(evidence.digest);
    let mut derived = Vec::new();
    derived.extend(checks(evidence.digest));
    derived.extend(runs(evidence.digest));
    derived.extend(repeats(evidence));
    derived.extend(load_generator(evidence));
    derived.extend(emulation(evidence.digest));
    derived.extend(host(evidence));
    derived.extend(steadiness(evidence));
    derived.extend(load(evidence));
    derived.extend(settings(evidence.digest));
    derived.extend(comparability(evidence));
    derived.extend(sources(evidence.digest));
    // What the plan or the lab has said already is not said twice.
    let said = findings.clone();
    let is_new = |finding: &Finding| {
        !said.iter().any(|known| {
            says_the_same(&known.code, &finding.code)
                && (known.run == finding.run || known.run.is_none() || finding.run.is_none())
        })
    };
    findings.extend(derived.into_iter().filter(is_new));
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Whether a recorded finding says what a derived one would say.
fn says_the_same(recorded: &str, derived: &str) -> bool {
    let others: &[&str] = match derived {
        "checkpoint-cycle" => &["no-checkpoint", "checkpoint-in-some-windows"],
        code::DATA_FITS_CACHE => &["fits-cache"],
        code::NOT_DURABLE => &["fsync-off", "full-page-writes-off", "synchronous-commit-off"],
        code::LIMIT_NOT_ENFORCED => &["memory-limit-unenforced", "cpu-limit-unenforced"],
        "few-runs" => &["wide-interval"],
        _ => &[],
    };
    recorded == derived || others.contains(&recorded)
}

fn finding(severity: FindingSeverity, code: &str, text: String) -> Finding {
    Finding { severity, code: code.to_string(), text, design: None, run: None, users: None }
}

fn warning(code: &str, text: String) -> Finding {
    finding(FindingSeverity::Warning, code, text)
}

fn recorded(digest: &Digest) -> Vec<Finding> {
    let position =
        |run: underlay_record::RunId| digest.runs.iter().position(|known| known.id == run);
    digest
        .findings
        .iter()
        // What the emulation says of its timing is said once for all runs, from its own reports.
        .filter(|finding| {
            let timing = [code::NOT_TIMING_VALID, code::HOST_LIMITED];
            digest.emulation.is_empty() || !timing.contains(&finding.code.as_str())
        })
        .filter(|finding| {
            // Findings of replaced runs concern numbers that are not shown.
            finding
                .run
                .and_then(position)
                .is_none_or(|run| digest.runs[run].superseded_by.is_none())
        })
        .map(|recorded| {
            let run = recorded.run.and_then(position);
            Finding {
                severity: match recorded.severity {
                    Severity::Information => FindingSeverity::Information,
                    Severity::Warning => FindingSeverity::Warning,
                    Severity::Invalid => FindingSeverity::Invalid,
                },
                code: recorded.code.clone(),
                text: match run {
                    Some(run) => format!("{}: {}", digest.run_words(run), recorded.text),
                    None => recorded.text.clone(),
                },
                design: run.map(|run| digest.runs[run].design as usize),
                run,
                users: None,
            }
        })
        .collect()
}

fn checks(digest: &Digest) -> Vec<Finding> {
    let mut findings = Vec::new();
    let current = (0..digest.runs.len()).filter(|run| digest.runs[*run].superseded_by.is_none());
    for run in current {
        let of_run = || digest.checks.iter().filter(|check| check.run == run);
        let with = |outcome: &str| -> Vec<String> {
            of_run()
                .filter(|check| check.outcome == outcome)
                .map(|check| format!("{} ({})", check.id, check.moment))
                .collect()
        };
        let (violated, failed) = (with("violated"), with("failed"));
        let words = digest.run_words(run);
        if !violated.is_empty() {
            let text = format!("consistency is violated in {words}: {}", list(&violated));
            findings.push(of(
                finding(FindingSeverity::Invalid, "check-violated", text),
                run,
                digest,
            ));
        }
        if !failed.is_empty() {
            let text = format!("checks could not be made in {words}: {}", list(&failed));
            findings.push(of(warning("check-failed", text), run, digest));
        }
        // Data that a block load wrote is verified by the load itself, where it is told to.
        let checked = digest.workload.is_block_load() || of_run().next().is_some();
        if !checked && digest.runs[run].is_evidence() {
            let text = format!("no consistency check was made in {words}");
            findings.push(of(warning("not-checked", text), run, digest));
        }
    }
    findings
}

/// A finding about one run.
fn of(finding: Finding, run: usize, digest: &Digest) -> Finding {
    let design = digest.runs.get(run).map(|run| run.design as usize);
    Finding { run: Some(run), design, ..finding }
}

fn runs(digest: &Digest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (position, run) in digest.runs.iter().enumerate() {
        let words = digest.run_words(position);
        let reason = run.reason.as_deref().unwrap_or("no reason was recorded");
        let ended = match run.status {
            RunStatus::Failed => "failed",
            RunStatus::Interrupted => "was interrupted",
            RunStatus::Running => "did not end",
            RunStatus::Finished => "was not counted",
        };
        let found = match (run.superseded_by, run.status) {
            (Some(_), _) => finding(
                FindingSeverity::Information,
                "run-replaced",
                format!("{words} {ended} ({reason}) and was repeated"),
            ),
            (None, RunStatus::Failed | RunStatus::Interrupted) => warning(
                "run-not-finished",
                format!("{words} {ended}: {reason}; its numbers are not used"),
            ),
            (None, RunStatus::Running | RunStatus::Finished) => continue,
        };
        findings.push(of(found, position, digest));
    }
    findings
}

fn repeats(evidence: &Evidence<'_>) -> Vec<Finding> {
    let fewest = evidence.groups.iter().map(|group| group.windows.len()).min();
    match fewest {
        Some(1) => vec![warning(
            "no-interval",
            "one run per design and rung: no interval over runs is possible, and how much the next \
             run would differ is unknown"
                .to_string(),
        )],
        Some(n) if n < ENOUGH_RUNS => vec![finding(
            FindingSeverity::Information,
            "few-runs",
            format!(
                "{n} runs per design and rung: intervals are wide; {ENOUGH_RUNS} or more narrow them"
            ),
        )],
        _ => Vec::new(),
    }
}

/// `NVMe at 4 and 8 users, SATA at 8 users`.
fn places(digest: &Digest, rungs: &[(usize, u32)]) -> String {
    let titles = digest.titles();
    let mut by_design: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (design, users) in rungs {
        by_design.entry(*design).or_default().push(*users);
    }
    let parts: Vec<String> = by_design
        .into_iter()
        .map(|(design, mut users)| {
            users.sort_unstable();
            users.dedup();
            let word = if users == [1] { "user" } else { "users" };
            let users: Vec<String> = users.iter().map(u32::to_string).collect();
            let title = titles.get(design).map_or("?", String::as_str);
            format!("{title} at {} {word}", list(&users))
        })
        .collect();
    parts.join(", ")
}

/// One finding for all rungs where `of` gives a number, with the largest.
fn grouped(
    evidence: &Evidence<'_>,
    of: impl Fn(&Group<'_>) -> Option<f64>,
    make: impl FnOnce(&str, f64) -> Finding,
) -> Option<Finding> {
    let found: Vec<((usize, u32), f64)> = evidence
        .groups
        .iter()
        .filter_map(|group| Some(((group.design, group.users), of(group)?)))
        .collect();
    let largest = found.iter().map(|(_, value)| *value).max_by(f64::total_cmp)?;
    let rungs: Vec<(usize, u32)> = found.iter().map(|(rung, _)| *rung).collect();
    let mut finding = make(&places(evidence.digest, &rungs), largest);
    if let [(design, users)] = rungs[..] {
        (finding.design, finding.users) = (Some(design), Some(users));
    }
    Some(finding)
}

/// The largest value over a group's windows, if it exceeds the limit.
fn above(
    group: &Group<'_>,
    limit: f64,
    of: impl Fn(&crate::observed::WindowFacts) -> Option<f64>,
) -> Option<f64> {
    let values = group.windows.iter().filter_map(|window| of(window));
    values.max_by(f64::total_cmp).filter(|value| *value > limit)
}

fn load_generator(evidence: &Evidence<'_>) -> Vec<Finding> {
    let load_of = |group: &Group<'_>| {
        evidence.driver.iter().find(|load| (load.design, load.users) == (group.design, group.users))
    };
    let late = |group: &Group<'_>| {
        let lag = load_of(group)?.dispatch_lag_p99_ns?;
        (lag > LATE_DISPATCH.0).then_some(lag as f64)
    };
    let large = |group: &Group<'_>| load_of(group)?.share_of_host.filter(|s| *s > DRIVER_SHARE);
    let late = grouped(evidence, late, |places, largest| {
        let text = format!(
            "the load generator was late: {places} (p99 of the dispatch lag up to {}); it did not get a \
             processor when it needed one",
            time_ns(largest)
        );
        warning("dispatch-lag", text)
    });
    let large = grouped(evidence, large, |places, largest| {
        let text = format!(
            "the load generator took up to {} of the host's processors: {places}",
            percent(largest)
        );
        finding(FindingSeverity::Information, "driver-share", text)
    });
    saturated_generator(evidence).into_iter().chain(late).chain(large).collect()
}

fn saturated_generator(evidence: &Evidence<'_>) -> Option<Finding> {
    let by_verdict = evidence
        .bottlenecks
        .iter()
        .filter(|bottleneck| bottleneck.class == "load-generator")
        .map(|bottleneck| (bottleneck.design, bottleneck.users));
    let by_load = evidence
        .driver
        .iter()
        .filter(|load| load.saturated == Some(true))
        .map(|load| (load.design, load.users));
    let limited: Vec<(usize, u32)> = by_verdict.chain(by_load).collect();
    (!limited.is_empty()).then(|| {
        let text = format!(
            "the load generator was saturated: {}; these numbers do not measure the database",
            places(evidence.digest, &limited)
        );
        warning("generator-saturated", text)
    })
}

/// How well the emulation kept its times: one finding each over all runs concerned.
fn emulation(digest: &Digest) -> Vec<Finding> {
    let late: Vec<&Emulation> =
        digest.emulation.iter().filter(|found| found.valid == Some(false)).collect();
    let limited: Vec<&Emulation> = digest
        .emulation
        .iter()
        .filter(|found| found.host_limited_share.is_some_and(|share| share > HOST_LIMITED))
        .collect();
    let mut findings = Vec::new();
    if let Some(first) = late.first() {
        let reason = match (&first.reason, first.lateness_p99_ns) {
            (Some(reason), _) => reason.clone(),
            (None, Some(late)) => format!("lateness p99 {}", time_ns(late as f64)),
            (None, None) => "no reason was recorded".to_string(),
        };
        let example = if late.len() > 1 { "for example " } else { "" };
        let text = format!(
            "not timing-valid in {}: the emulated device did not keep its times ({example}{reason})",
            runs_words(digest, &late)
        );
        findings.push(of_runs(warning(code::NOT_TIMING_VALID, text), digest, &late));
    }
    if !limited.is_empty() {
        let shares = limited.iter().filter_map(|found| found.host_limited_share);
        let largest = shares.max_by(f64::total_cmp).unwrap_or(0.0);
        let text = format!(
            "the host was slower than the emulated device for up to {} of the requests in {}",
            percent(largest),
            runs_words(digest, &limited)
        );
        findings.push(of_runs(warning(code::HOST_LIMITED, text), digest, &limited));
    }
    findings
}

/// `run 3 (NVMe, repeat 2)`, or `4 of 6 runs`.
fn runs_words(digest: &Digest, found: &[&Emulation]) -> String {
    match found {
        [only] => digest.run_words(only.run),
        _ => format!("{} of {} runs", found.len(), digest.emulation.len()),
    }
}

/// A finding about some runs: about their design, if they have the same.
fn of_runs(finding: Finding, digest: &Digest, found: &[&Emulation]) -> Finding {
    let mut designs: Vec<u32> =
        found.iter().filter_map(|f| Some(digest.runs.get(f.run)?.design)).collect();
    designs.dedup();
    match (found, designs.as_slice()) {
        ([only], _) => of(finding, only.run, digest),
        (_, [design]) => Finding { design: Some(*design as usize), ..finding },
        _ => finding,
    }
}

fn host(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(grouped(
        evidence,
        |group| above(group, 0.01, |window| window.cpu.steal_share),
        |places, largest| {
            let text = format!(
                "the hypervisor gave up to {} of the CPU time to others (steal): {places}",
                percent(largest)
            );
            warning("steal", text)
        },
    ));
    let others = |window: &crate::observed::WindowFacts| {
        Some(window.cpu.interference_cores()? / window.cpu.host_cores?)
    };
    findings.extend(grouped(
        evidence,
        |group| above(group, 0.05, others),
        |places, largest| {
            let text = format!(
                "up to {} of the host's processors were used by others, or by kernel threads on behalf \
                 of the volumes: {places}",
                percent(largest)
            );
            warning("interference", text)
        },
    ));
    findings
}

fn steadiness(evidence: &Evidence<'_>) -> Vec<Finding> {
    let with = |state: SteadyState| -> Vec<&Window> {
        evidence.windows.iter().filter(|window| window.steady.state == state).collect()
    };
    let mut findings = Vec::new();
    let unsteady = with(SteadyState::NotSteady);
    if let Some(first) = unsteady.first() {
        let rungs: Vec<(usize, u32)> =
            unsteady.iter().map(|window| (window.design, window.users)).collect();
        let text = format!(
            "throughput was not steady in {}: {} (for example {})",
            count(unsteady.len() as u64, "window"),
            places(evidence.digest, &rungs),
            first.steady.text
        );
        findings.push(warning("not-steady", text));
    }
    let short = with(SteadyState::TooShort);
    if let Some(first) = short.first() {
        let text = format!("steadiness is not known: {}", first.steady.text);
        findings.push(finding(FindingSeverity::Information, "steadiness-unknown", text));
    }
    findings.extend(checkpoints(evidence));
    findings
}

/// Windows that hold less than one checkpoint cycle say nothing about checkpoints.
fn checkpoints(evidence: &Evidence<'_>) -> Option<Finding> {
    let (_, settings) = evidence.digest.documents_named(document::ENGINE_SETTINGS).next()?;
    let timeout = engine_settings(settings)
        .into_iter()
        .find(|(name, _)| name == "checkpoint_timeout")
        .and_then(|(_, value)| seconds(&value))?;
    let shortest = evidence
        .windows
        .iter()
        .map(|window| window.end_s - window.begin_s)
        .min_by(f64::total_cmp)
        .filter(|shortest| *shortest < timeout)?;
    let text = format!(
        "windows of {shortest:.0} s are shorter than the time between checkpoints ({timeout:.0} s): what \
         checkpoints cost is seen only where one happened to fall into a window"
    );
    Some(finding(FindingSeverity::Information, "checkpoint-cycle", text))
}

/// `300`, `300s`, `5min` in seconds.
fn seconds(text: &str) -> Option<f64> {
    let seconds = text.parse::<f64>().ok();
    seconds.or_else(|| text.parse::<Nanos>().ok().map(Nanos::as_secs_f64))
}

fn load(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(grouped(
        evidence,
        |group| above(group, 0.01, |window| window.load.shortfall),
        |places, largest| {
            let text = format!(
                "up to {} of the requested load was not delivered: {places}; latencies are those of \
                 another load",
                percent(largest)
            );
            finding(FindingSeverity::Invalid, "load-not-delivered", text)
        },
    ));
    findings.extend(grouped(
        evidence,
        |group| above(group, 0.01, |window| Some(window.load.error_share)),
        |places, largest| {
            let text = format!("up to {} of the attempts failed: {places}", percent(largest));
            warning("errors", text)
        },
    ));
    for (run, documents) in &evidence.digest.documents {
        let outages = documents.get(document::DRIVER).and_then(|said| said["outages"].as_u64());
        if let Some(outages) = outages.filter(|outages| *outages > 0) {
            let text = format!(
                "the load generator lost the database {} in {}",
                count(outages, "time"),
                evidence.digest.run_words(*run)
            );
            findings.push(of(warning("outage", text), *run, evidence.digest));
        }
    }
    findings
}

fn settings(digest: &Digest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (design, settings) in first_per_design(digest, document::ENGINE_SETTINGS) {
        let unsafe_settings: Vec<String> = engine_settings(settings)
            .into_iter()
            .filter(|(name, value)| {
                matches!(name.as_str(), "fsync" | "full_page_writes" | "synchronous_commit")
                    && value == "off"
            })
            .map(|(name, _)| format!("{name} = off"))
            .collect();
        if !unsafe_settings.is_empty() {
            let text = format!(
                "{}: {}; acknowledged transactions can be lost, and the storage is spared work that a safe \
                 database would ask of it",
                digest.titles()[design],
                list(&unsafe_settings)
            );
            findings.push(Finding { design: Some(design), ..warning(code::NOT_DURABLE, text) });
        }
    }
    for (design, limits) in first_per_design(digest, document::UNENFORCED) {
        for limit in limits.as_array().into_iter().flatten() {
            let text = format!(
                "{}: the limit `{}` is not enforced: {}",
                digest.titles()[design],
                plain(&limit["limit"]),
                plain(&limit["reason"])
            );
            findings
                .push(Finding { design: Some(design), ..warning(code::LIMIT_NOT_ENFORCED, text) });
        }
    }
    let ratio = PlanView::new(&digest.manifest.plan).working_set_ratio();
    if let Some(ratio) = ratio.filter(|ratio| *ratio < 1.0) {
        let text = format!(
            "the database fits into the memory given to the server ({} of it): reads hardly reach the storage",
            percent(ratio)
        );
        findings.push(warning(code::DATA_FITS_CACHE, text));
    }
    findings
}

fn first_per_design<'a>(
    digest: &'a Digest,
    name: &'a str,
) -> BTreeMap<usize, &'a serde_json::Value> {
    let mut first = BTreeMap::new();
    for (design, content) in digest.documents_named(name) {
        if design < digest.designs.len() {
            first.entry(design).or_insert(content);
        }
    }
    first
}

fn comparability(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(paths) = not_asked(evidence.confounds) {
        let text = format!("the designs differ in more than their storage: {paths}");
        findings.push(warning("confounded", text));
    }
    let kinds: Vec<_> = evidence.digest.designs.iter().map(|design| design.evidence).collect();
    if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
        let words: Vec<String> = evidence
            .digest
            .titles()
            .iter()
            .zip(&kinds)
            .map(|(title, kind)| format!("{title} is {kind}"))
            .collect();
        let text = format!("the designs are different kinds of evidence: {}", list(&words));
        findings.push(warning("mixed-evidence", text));
    }
    findings
}

/// Sources that did not work, with the runs they are missing in.
fn sources(digest: &Digest) -> Vec<Finding> {
    let mut broken: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for source in digest.sources.iter().filter(|source| source.status != "available") {
        let reason = source.reason.as_deref().unwrap_or("no reason was recorded");
        *broken.entry((&source.name, &source.status, reason)).or_default() += 1;
    }
    let runs = digest.documents.len();
    broken
        .into_iter()
        .map(|((name, status, reason), n)| {
            let place = if n == runs {
                "all runs".to_string()
            } else {
                format!("{} of {runs} runs", amount(n as f64))
            };
            let text = format!("source `{name}` is {status} in {place}: {reason}");
            finding(FindingSeverity::Information, "source", text)
        })
        .collect()
}
