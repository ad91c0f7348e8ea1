//! Finds a study by name or file and checks it against this host: shared by `run` and `check`.

use crate::lab::with_host_view;
use crate::stop::{Stop, chain};
use std::path::Path;
use underlay_host::StateDir;
use underlay_study::{
    Colour, HostView, Plan, PlanOptions, Problems, Source, Study, builtin_studies, check,
    find_study, suggest_study,
};

/// The study named on the command line: a file, or something built in.
///
/// A file wins over a built-in study of the same name only when it is written as a path (with a `/` or an
/// ending), so that a stray file called `quickstart` changes nothing.
pub fn find(name: &str) -> Result<Source, Stop> {
    let path = Path::new(name);
    if let Some(study) = find_study(name) {
        return Ok(study.source());
    }
    match underlay_host::read_small_text(path) {
        Ok(text) => Ok(Source { name: name.to_string(), text }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let known: Vec<&str> =
                builtin_studies().iter().map(|study| study.name.as_str()).collect();
            let stop = Stop::bad_input(format!("there is no study or file `{name}`"));
            Err(match suggest_study(name) {
                Some(similar) => stop.with_hint(format!("did you mean `{similar}`?")),
                None => stop.with_hint(format!("built-in studies: {}", known.join(", "))),
            })
        }
        Err(error) => Err(Stop::bad_input(format!("could not read `{name}`: {error}"))),
    }
}

/// Whether problems are printed for people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Drawn, on standard error.
    Text,
    /// JSON, on standard output.
    Json,
}

/// Checks a study on this host; prints every problem at once.
pub fn plan(source: &Source, options: &PlanOptions, form: Form) -> Result<(Study, Plan), Stop> {
    let state = StateDir::usual_place().map_err(|error| Stop::host(chain(&error)))?;
    with_host_view(&state, |host| check(source, options, host)).map_err(|problems| {
        print_problems(&problems, form);
        Stop::silent(crate::exit_code::BAD_INPUT)
    })
}

/// Checks a study for a host without limits, whatever this one is like: what is simulated does not use it.
pub fn plan_for_any_host(
    source: &Source,
    options: &PlanOptions,
    form: Form,
) -> Result<(Study, Plan), Stop> {
    check(source, options, &HostView::unlimited()).map_err(|problems| {
        print_problems(&problems, form);
        Stop::silent(crate::exit_code::BAD_INPUT)
    })
}

fn print_problems(problems: &Problems, form: Form) {
    match form {
        Form::Json => outln!("{:#}", problems.to_json()),
        Form::Text => err!("{}", problems.render(super::terminal::width(), colour())),
    }
}

fn colour() -> Colour {
    if super::terminal::colours_on_stderr() { Colour::Ansi } else { Colour::Plain }
}
