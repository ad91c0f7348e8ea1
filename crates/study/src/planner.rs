//! The three entrances: [`parse`] a study, [`plan`] it for a host, or [`check`] everything at once.

use toml::de::DeTable;

use crate::axis;
use crate::file;
use crate::host_view::HostView;
use crate::laptop;
use crate::options::{PlanOptions, StudySize};
use crate::parse::{Study, Syntax, read_text};
use crate::plan::Plan;
use crate::problem::{Problems, Source};
use crate::report::Report;
use crate::resolve::databases;
use crate::section::Table;

/// Reads a study and checks all that does not depend on a host or on options.
///
/// # Errors
/// Every problem of the file, at once.
pub fn parse(source: &Source) -> Result<Study, Problems> {
    check(source, &PlanOptions::default(), &HostView::unlimited()).map(|(study, _)| study)
}

/// Resolves a study for a host.
///
/// # Errors
/// Every problem of the study, the options and the host, at once.
pub fn plan(study: &Study, options: &PlanOptions, host: &HostView<'_>) -> Result<Plan, Problems> {
    resolve(&study.source, &study.file, options, host, Report::default())
}

/// Reads and resolves a study, reporting problems of the file, the options and the host together.
///
/// The command line uses it, so that a user can correct all errors of a file at once.
///
/// # Errors
/// Every problem found. After a syntax error only what is certain is reported.
pub fn check(
    source: &Source,
    options: &PlanOptions,
    host: &HostView<'_>,
) -> Result<(Study, Plan), Problems> {
    let mut report = Report::default();
    let (file, syntax) = read_text(&source.text, &mut report, file::Study::read);
    if syntax == Syntax::Broken {
        let problems = Problems::from_drafts(source, report.into_drafts());
        return Err(problems.expect("a text that is not TOML has at least a syntax error"));
    }
    let plan = resolve(source, &file, options, host, report)?;
    Ok((Study { source: source.clone(), file }, plan))
}

/// Resolves a study at the size that the options ask for. What is wrong with its other size is wrong with the study, too.
fn resolve(
    source: &Source,
    file: &file::Study,
    options: &PlanOptions,
    host: &HostView<'_>,
    report: Report,
) -> Result<Plan, Problems> {
    let (document, _) = DeTable::parse_recoverable(&source.text);
    let study = (source, document.get_ref(), file);
    match options.size {
        Some(StudySize::Laptop) => at_laptop_size(study, options, host, report),
        None => {
            let plan = as_written(study, options, host, report)?;
            if file.laptop.is_present() {
                let (options, host) = (PlanOptions::default(), HostView::unlimited());
                at_laptop_size(study, &options, &host, Report::default())?;
            }
            Ok(plan)
        }
    }
}

/// A study: its source, its text as tables, and what was read from them.
type Read<'a, 't> = (&'a Source, &'a DeTable<'t>, &'a file::Study);

fn at_laptop_size(
    (source, document, file): Read<'_, '_>,
    options: &PlanOptions,
    host: &HostView<'_>,
    mut report: Report,
) -> Result<Plan, Problems> {
    let Some(shrunk) = laptop::shrunk(document, file, options, &mut report) else {
        return Err(refusal(source, report));
    };
    let study = (source, &shrunk.document, &shrunk.file);
    let mut plan = as_written(study, &shrunk.options, host, report)?;
    let deviations = file.laptop.deviations.get().map_or(&[][..], Vec::as_slice);
    // Those that were given: a record is planned again from them, and resumed with the same ones.
    plan.options.clone_from(options);
    plan.deviations.extend_from_slice(deviations);
    for point in &mut plan.points {
        point.options.clone_from(options);
        point.deviations.extend_from_slice(deviations);
    }
    Ok(plan)
}

fn as_written(
    (source, document, file): Read<'_, '_>,
    options: &PlanOptions,
    host: &HostView<'_>,
    report: Report,
) -> Result<Plan, Problems> {
    if let Some(axes) = file.axis.get().filter(|axes| !axes.is_empty()) {
        return axis::resolve((source, document), (file, axes), options, host, report);
    }
    let study = (document, file);
    let (plan, report) = databases::resolve(source, study, (options, &[]), host, report);
    match plan {
        Some(plan) if report.is_empty() => Ok(plan),
        _ => Err(refusal(source, report)),
    }
}

fn refusal(source: &Source, report: Report) -> Problems {
    Problems::from_drafts(source, report.into_drafts())
        .expect("a study is refused only with a problem")
}
