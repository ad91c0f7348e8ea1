//! The three entrances: [`parse`] a study, [`plan`] it for a host, or [`check`] everything at once.

use crate::axis;
use crate::file;
use crate::host_view::HostView;
use crate::options::PlanOptions;
use crate::parse::{Study, Syntax, read_text};
use crate::plan::Plan;
use crate::problem::{Problems, Source};
use crate::report::Report;
use crate::resolve::Resolver;
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
/// This is what the command line uses: whoever corrects a file wants the whole list.
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

fn resolve(
    source: &Source,
    file: &file::Study,
    options: &PlanOptions,
    host: &HostView<'_>,
    report: Report,
) -> Result<Plan, Problems> {
    if let Some(axes) = file.axis.get().filter(|axes| !axes.is_empty()) {
        return axis::resolve(source, (file, axes), options, host, report);
    }
    let mut resolver = Resolver::new(source, file, (options, &[]), host, report);
    let plan = resolver.resolve();
    match (plan, Problems::from_drafts(source, resolver.report.into_drafts())) {
        (Some(plan), None) => Ok(plan),
        (_, Some(problems)) => Err(problems),
        (None, None) => unreachable!("a study is refused only with a problem"),
    }
}
