//! What was executed: the study, its designs, its runs.

use crate::entities::Run;
use crate::error::ExportError;
use crate::record::Record;

use super::columns::{BEGIN, END, RUN};
use super::csv_file::{Directory, run_text, text};

pub(super) fn export_execution(record: &Record, out: &mut Directory) -> Result<(), ExportError> {
    let mut file = out.table(
        "execution",
        "The execution: one row per fact.",
        &[("key", "name of the fact"), ("value", "its value; JSON for plan, host, software")],
    )?;
    let manifest = record.manifest();
    let execution = record.execution()?;
    let facts = [
        ("study", manifest.study_name.clone()),
        ("title", manifest.title.clone()),
        ("question", manifest.question.clone()),
        ("evidence", evidence(record)?),
        ("seed", manifest.seed.0.to_string()),
        ("identity", manifest.identity.clone()),
        ("started_wall_ns", manifest.started_wall_ns.to_string()),
        ("finished_wall_ns", text(execution.finished_wall_ns)),
        ("status", execution.status.to_string()),
        ("sessions", execution.sessions.to_string()),
        ("plan", manifest.plan.to_string()),
        ("host", manifest.host.to_string()),
        ("software", manifest.software.to_string()),
    ];
    for (key, value) in facts {
        file.row(&[key.to_string(), value])?;
    }
    file.close()?;
    let mut file = out.table(
        "documents",
        "Free-form documents.",
        &[RUN, ("name", "name of the document"), ("content", "JSON")],
    )?;
    for document in record.documents()? {
        file.row(&[run_text(document.run), document.name, document.content.to_string()])?;
    }
    file.close()
}

/// The kind of evidence that all designs are; `mixed` where they are of different ones.
fn evidence(record: &Record) -> Result<String, ExportError> {
    let designs = record.designs()?;
    let is_mixed = designs.windows(2).any(|two| two[0].evidence != two[1].evidence);
    let whole = record.manifest().evidence;
    Ok(if is_mixed { "mixed".to_string() } else { whole.to_string() })
}

pub(super) fn export_runs(
    record: &Record,
    runs: &[Run],
    out: &mut Directory,
) -> Result<(), ExportError> {
    let mut file = out.table(
        "designs",
        "The designs being compared.",
        &[
            ("design", "position in the plan, from 0"),
            ("name", "key in the study"),
            ("title", "name for readers"),
            ("description", "what it is"),
            ("evidence", "measured, emulated or simulated"),
            ("detail", "JSON"),
        ],
    )?;
    for design in record.designs()? {
        file.row(&[
            design.index.to_string(),
            design.name,
            design.title,
            design.description,
            design.evidence.to_string(),
            design.detail.to_string(),
        ])?;
    }
    file.close()?;
    let mut file = out.table(
        "runs",
        "Every run, including replaced ones.",
        &[
            ("run", "id"),
            ("design", "position of its design"),
            ("repeat", "which repeat, from 1"),
            ("order", "position in the schedule, from 0"),
            BEGIN,
            END,
            ("origin_wall_ns", "wall clock time of 0 on the run's clock, ns since the Unix epoch"),
            ("status", "running, finished, failed or interrupted"),
            ("reason", "why it did not finish"),
            ("superseded_by", "the run that replaced it"),
        ],
    )?;
    for run in runs {
        file.row(&[
            run.id.0.to_string(),
            run.design.to_string(),
            run.repeat.to_string(),
            run.order.to_string(),
            run.begin.0.to_string(),
            text(run.end.map(|end| end.0)),
            run.origin_wall_ns.to_string(),
            run.status.to_string(),
            text(run.reason.as_ref()),
            run_text(run.superseded_by),
        ])?;
    }
    file.close()
}
