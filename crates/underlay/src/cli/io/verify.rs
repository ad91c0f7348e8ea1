//! `underlay io verify`: compares targets after a crash with the journal of their writes.

use super::{json, stop};
use crate::lab::interrupt;
use crate::stop::{Stop, chain};
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use underlay_blockio::verify::{Finding, RecoveryReport, Tolerance, check_target, read_journal};
use underlay_blockio::{Caching, Target};

/// Arguments of `underlay io verify`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The journal that `underlay io --verify --journal` wrote.
    journal: PathBuf,
    /// The targets, in the order of the journal; by default the paths in the journal.
    targets: Vec<PathBuf>,
    /// The storage lost power: accept that acknowledged but unflushed writes are missing.
    #[arg(long)]
    power_cut: bool,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command. Only reads.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let (header, records) =
        read_journal(&arguments.journal).map_err(|error| Stop::bad_input(chain(&error)))?;
    if !arguments.targets.is_empty() && arguments.targets.len() != header.targets.len() {
        return Err(Stop::bad_input(format!(
            "the journal describes {} targets, but {} were given",
            header.targets.len(),
            arguments.targets.len()
        )));
    }
    let tolerance = match arguments.power_cut {
        true => Tolerance::Flushed,
        false => Tolerance::Acknowledged,
    };
    let mut reports = Vec::new();
    for (number, described) in header.targets.iter().enumerate() {
        let path = arguments.targets.get(number).unwrap_or(&described.path);
        let opened = Target::open_to_read(path, Caching::Direct);
        let target = opened.map_err(|error| match path.try_exists() {
            Ok(false) => stop(&error).with_hint(
                "a load removes the files it created when it ends: use --keep, or verify a load that was killed",
            ),
            _ => stop(&error),
        })?;
        if target.size() < described.working_set {
            return Err(Stop::bad_input(format!(
                "{} is {} long, but the journal covers {}",
                path.display(),
                target.size(),
                described.working_set
            )));
        }
        let number = number as u32;
        let ask = &mut interrupt::requested;
        let report = check_target(&target, number, &header, &records, tolerance, ask);
        reports.push((path.clone(), report.map_err(|error| stop(&error))?));
    }
    match arguments.json {
        true => outln!("{:#}", in_json(&reports, tolerance)),
        false => out!("{}", in_text(&reports, tolerance, header.unit_bytes)),
    }
    let wrong: u64 = reports.iter().map(|(_, report)| report.violation_count()).sum();
    if wrong == 0 {
        return Ok(());
    }
    let unflushed: u64 = reports.iter().map(|(_, report)| report.count(Finding::Lost)).sum();
    let stop = Stop::check_violated(format!("{wrong} blocks do not contain the expected data"));
    Err(match tolerance {
        Tolerance::Acknowledged if unflushed > 0 => stop.with_hint(
            "if the storage lost power, add --power-cut to accept missing writes that were not flushed",
        ),
        _ => stop,
    })
}

fn in_text(reports: &[(PathBuf, RecoveryReport)], tolerance: Tolerance, unit_bytes: u32) -> String {
    let promise = match tolerance {
        Tolerance::Acknowledged => "every acknowledged write",
        Tolerance::Flushed => "every write that was acknowledged and then flushed",
    };
    let mut text = format!("required: {promise}\n");
    for (path, report) in reports {
        text.push_str(&format!(
            "\n{}\n  {} writes started, {} acknowledged, {} of them durable; blocks of {unit_bytes} bytes:\n",
            path.display(),
            report.writes_begun,
            report.writes_acknowledged,
            report.writes_durable
        ));
        for (finding, count) in &report.findings {
            text.push_str(&format!("  {count:>10}  {}\n", words(*finding)));
        }
        for violation in &report.violations {
            text.push_str(&format!(
                "  at byte {}: {} (expected write {} or later)\n",
                violation.offset_bytes,
                violation.finding.as_str(),
                violation.expected_write
            ));
        }
    }
    text
}

fn words(finding: Finding) -> &'static str {
    match finding {
        Finding::Last => "contain the last acknowledged write",
        Finding::InFlight => "contain a write that was in flight",
        Finding::UnflushedLost => "lost acknowledged but unflushed writes (allowed)",
        Finding::Torn => "contain parts of writes that were in flight or unflushed (allowed)",
        Finding::Untouched => "were never written, or contain nothing that had to survive",
        Finding::Lost => "LOST a write that had to survive",
        Finding::Misplaced => "contain data of ANOTHER BLOCK",
        Finding::Corrupt => "are CORRUPT: they contain data that was never written",
    }
}

fn in_json(reports: &[(PathBuf, RecoveryReport)], tolerance: Tolerance) -> Value {
    let targets: Vec<Value> = reports
        .iter()
        .map(|(path, report)| {
            let findings: Map<String, Value> = Finding::ALL
                .into_iter()
                .map(|finding| (finding.as_str().to_string(), report.count(finding).into()))
                .collect();
            json!({
                "path": path.display().to_string(),
                "writes_begun": report.writes_begun,
                "writes_acknowledged": report.writes_acknowledged,
                "writes_durable": report.writes_durable,
                "units": findings,
                "violations": report.violation_count(),
                "first_violations": report.violations.iter().map(json::violation).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "tolerance": match tolerance { Tolerance::Acknowledged => "acknowledged", Tolerance::Flushed => "flushed" },
        "targets": targets,
    })
}
