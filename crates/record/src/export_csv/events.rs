//! Phases, events, checks and findings of the runs.

use crate::entities::{Run, RunId};
use crate::error::ExportError;
use crate::record::Record;
use underlay_core::CheckOutcome;

use super::columns::{BEGIN, END, RUN};
use super::csv_file::{Directory, run_text, text};

pub(super) fn export_events(
    record: &Record,
    runs: &[Run],
    out: &mut Directory,
) -> Result<(), ExportError> {
    let scopes: Vec<Option<RunId>> =
        std::iter::once(None).chain(runs.iter().map(|run| Some(run.id))).collect();
    let mut file = out.table(
        "phases",
        "The phases of the runs.",
        &[
            ("phase", "id"),
            RUN,
            ("kind", "what it does"),
            ("label", "for readers"),
            ("users", "virtual users, in phases with load"),
            BEGIN,
            END,
            ("status", "running, finished, failed, interrupted or skipped"),
        ],
    )?;
    for scope in &scopes {
        for phase in record.phases(*scope)? {
            file.row(&[
                phase.id.0.to_string(),
                run_text(phase.run),
                phase.kind.to_string(),
                phase.label,
                text(phase.users),
                phase.begin.0.to_string(),
                text(phase.end.map(|end| end.0)),
                phase.status.to_string(),
            ])?;
        }
    }
    file.close()?;
    let mut file = out.table(
        "events",
        "Events of the runs: faults, checkpoints, outages and others.",
        &[
            RUN,
            ("at_ns", "when, ns on the run's clock"),
            ("kind", "stable word"),
            ("text", "for readers"),
            ("data", "JSON"),
        ],
    )?;
    for scope in &scopes {
        for event in record.events(*scope)? {
            file.row(&[
                run_text(event.run),
                event.at.0.to_string(),
                event.kind,
                event.text,
                event.data.to_string(),
            ])?;
        }
    }
    file.close()?;
    export_checks_and_findings(record, runs, out)
}

fn export_checks_and_findings(
    record: &Record,
    runs: &[Run],
    out: &mut Directory,
) -> Result<(), ExportError> {
    let mut file = out.table(
        "checks",
        "Consistency checks.",
        &[
            RUN,
            ("moment", "before or after the load"),
            ("id", "short identity"),
            ("title", "what is verified"),
            ("outcome", "ok, violated or failed"),
            ("rows", "rows that violate it"),
            ("detail", "an example, or the error"),
        ],
    )?;
    for run in runs {
        for check in record.checks(run.id)? {
            let word = check.outcome.as_str().to_string();
            let (rows, detail) = match check.outcome {
                CheckOutcome::Ok => (String::new(), String::new()),
                CheckOutcome::Violated { rows, example } => (rows.to_string(), example),
                CheckOutcome::Failed { error } => (String::new(), error),
            };
            file.row(&[
                check.run.0.to_string(),
                check.moment.to_string(),
                check.id,
                check.title,
                word,
                rows,
                detail,
            ])?;
        }
    }
    file.close()?;
    let mut file = out.table(
        "findings",
        "Warnings and notes on the results.",
        &[
            RUN,
            ("severity", "information, warning or invalid"),
            ("code", "stable word"),
            ("text", "for readers"),
            ("data", "JSON"),
        ],
    )?;
    for finding in record.findings()? {
        file.row(&[
            run_text(finding.run),
            finding.severity.to_string(),
            finding.code,
            finding.text,
            finding.data.to_string(),
        ])?;
    }
    file.close()
}
