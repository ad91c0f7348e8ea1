//! `underlay simulate`: block workloads against a design in virtual time, or a publication's block experiments
//! simulated and compared with the published results.

mod arguments;
mod comparison;
mod comparison_page;
mod comparison_text;
mod design;
mod study;
mod workload_text;

pub use arguments::Arguments;
pub(super) use study::points;

use crate::cli::whole_file;
use crate::stop::{Stop, chain};
use comparison::{Settings, overall};
use design::{REQUESTS, REQUESTS_PER_POINT};
use serde_json::json;
use std::fs::OpenOptions;
use std::path::Path;
use underlay_core::RootSeed;
use underlay_simulation::experiments::{Comparison, Effort, compare, testbeds};
use underlay_workload::block::curve::PERCENTS;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    if arguments.requests == Some(0) {
        return Err(Stop::bad_input("--requests must be at least 1"));
    }
    match (&arguments.study, &arguments.design) {
        (Some(study), _) => run_study(arguments, study),
        (None, Some(name)) => {
            let default = if arguments.load.is_curve() { REQUESTS_PER_POINT } else { REQUESTS };
            let run = design::Run {
                design: name,
                load: &arguments.load,
                requests: arguments.requests.unwrap_or(default),
                seed: RootSeed(arguments.seed),
                percents: &PERCENTS,
                devices: &[],
            };
            let (setup, outcome) = design::simulate(&run)?;
            if arguments.json {
                outln!("{:#}", workload_text::json(&setup, &outcome));
            } else {
                out!("{}", workload_text::render(&setup, &outcome));
            }
            Ok(())
        }
        // The parser asks for one of the two.
        (None, None) => Err(Stop::bad_input("name a --study or a --design")),
    }
}

fn run_study(arguments: &Arguments, study: &str) -> Result<(), Stop> {
    let wanted: Vec<_> = testbeds()
        .into_iter()
        .filter(|testbed| study == "all" || testbed.publication == study || testbed.name == study)
        .collect();
    if wanted.is_empty() {
        return study::run(arguments, study);
    }
    if let Some(option) = arguments.load.storage_option() {
        return Err(Stop::bad_input(format!(
            "{option} has no effect: the publications' test beds define the cost of their hosts"
        ))
        .with_hint("leave it out, or name a study such as `kingston/kh1`"));
    }
    if let Some(path) = &arguments.html {
        make_sure_of(path)?;
    }
    let effort = Effort { requests: arguments.requests.unwrap_or(Effort::FULL.requests) };
    let how = Settings { requests: effort.requests, seed: arguments.seed };
    let mut comparisons: Vec<Comparison> = Vec::new();
    for testbed in &wanted {
        errln!("simulating: {}", testbed.title);
        let compared = compare(testbed, effort, RootSeed(arguments.seed));
        comparisons.push(compared.map_err(|error| Stop::bad_input(chain(&error)))?);
    }
    if arguments.json {
        outln!("{:#}", comparisons_json(&comparisons, how));
    } else {
        out!("{}", comparison_text::render(&comparisons, how));
    }
    // Last, so that a disk that filled up meanwhile takes nothing away from what was printed.
    if let Some(path) = &arguments.html {
        let page = comparison_page::render(&comparisons, how);
        whole_file::write(path, |file| file.write_all(page.as_bytes()))?;
    }
    Ok(())
}

/// Opens what will be written at the end, before anything is simulated. What is there stays until then, and what was not
/// there is not there when nothing comes of it.
fn make_sure_of(path: &Path) -> Result<(), Stop> {
    let existed = path.exists();
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let made_sure = match opened {
        Ok(_) if !existed => std::fs::remove_file(path),
        opened => opened.map(drop),
    };
    made_sure.map_err(|error| {
        Stop::bad_input(format!("could not write {}: {error}", path.display()))
            .with_hint("use a file in an existing folder")
    })
}

fn comparisons_json(comparisons: &[Comparison], how: Settings) -> serde_json::Value {
    let one = |comparison: &Comparison| {
        let rows: Vec<_> = comparison
            .rows
            .iter()
            .map(|row| {
                json!({
                    "experiment": row.published.experiment,
                    "variant": row.published.variant,
                    "metric": row.published.metric,
                    "unit": row.published.unit,
                    "published": row.published.value,
                    "simulated": row.simulated,
                    "error_percent": row.error_percent(),
                    "role": row.role.as_str(),
                    "quality": row.published.quality,
                    "source": row.published.source,
                })
            })
            .collect();
        json!({
            "testbed": comparison.testbed.name,
            "title": comparison.testbed.title,
            "stack_ns_per_io": comparison.stack_per_io.map(|time| time.0),
            "assumptions": comparison.testbed.assumptions,
            "notes": comparison.notes,
            "median_error_percent": comparison.median_error_percent(),
            "simulated_requests": comparison.requests,
            "rows": rows,
        })
    };
    json!({
        "evidence": "simulated",
        "seed": how.seed,
        "requests": how.requests,
        "requests_of_the_published_table": Effort::FULL.requests,
        "median_error_percent": overall(comparisons),
        "testbeds": comparisons.iter().map(one).collect::<Vec<_>>(),
    })
}
