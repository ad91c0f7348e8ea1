//! Options that would have no effect beside others: because of what a run of the workload is made of, or because nothing is done that
//! would heed them. Judges combinations; what a single option may be is judged in [`options`](super::options).

use std::collections::BTreeSet;

use underlay_core::RootSeed;
use underlay_workload::sysbench::Script;
use underlay_workload::transactional::{Shape, Workload as _};

use super::options::{Given, written};
use super::{Arguments, Workload};

/// Options of the shop that are about whole visits.
const OF_VISITS: [&str; 7] = [
    "pct_newcustomers",
    "pct_newmember",
    "n_searches",
    "n_reviews",
    "pct_newreviews",
    "pct_newhelpfulness",
    "ds2_mode",
];
/// Those of them about what the old flow lacks.
const NOT_OF_DS2: [&str; 4] =
    ["pct_newmember", "n_reviews", "pct_newreviews", "pct_newhelpfulness"];
/// Options of the shop that are about steps, with these steps.
const OF_STEPS: [(&str, &[&str]); 3] = [
    (
        "search_batch_size",
        &[
            "browse_category",
            "browse_actor",
            "browse_title",
            "reviews_by_actor",
            "reviews_by_title",
            "product_reviews",
            "reviews_by_stars",
            "reviews_by_date",
        ],
    ),
    ("search_depth", &["reviews_by_actor", "reviews_by_title"]),
    ("n_line_items", &["prices", "purchase"]),
];

/// What a run is made of.
struct Mixes {
    /// The workload's own mix, at least at first.
    prescribed: bool,
    /// Types that weights name.
    weighted: BTreeSet<&'static str>,
}

/// What is wrong with a workload that is run on users: its parameters, weights and options without effect.
pub(super) fn of_users(arguments: &Arguments, given: &Given) -> Vec<String> {
    let mut wrong = Vec::new();
    let mixes = match shape(arguments) {
        Ok(shape) => mixes(arguments, shape).unwrap_or_else(|problems| {
            wrong.extend(problems);
            None
        }),
        Err(problem) => {
            wrong.push(problem);
            None
        }
    };
    if arguments.runs() {
        // Without weights that can be read nobody knows what they leave out.
        let mixes = mixes.as_ref();
        wrong.extend(match arguments.workload {
            Workload::Tpcc => arguments.tpcc.contradiction().into_iter().collect(),
            Workload::Sysbench => of_sysbench(arguments, given, mixes),
            Workload::Dvdstore => of_dvdstore(arguments, given, mixes),
            Workload::Batch | Workload::Warehouse => Vec::new(),
        });
    }
    wrong.extend(of_generation(arguments, given));
    wrong
}

/// What is wrong with a job that has an end.
pub(super) fn of_jobs(arguments: &Arguments, given: &Given) -> Vec<String> {
    let mut wrong = Vec::new();
    let own: &[&str] = match arguments.workload {
        Workload::Batch => &["mode", "rows", "sessions", "rollback"],
        _ => &["streams", "power_runs"],
    };
    if !arguments.runs() {
        let told = |name| {
            format!(
                "{} says what a run does, and none is made: add --run, or leave it out",
                written(name)
            )
        };
        wrong.extend(given.among(own).map(told));
    } else if arguments.workload == Workload::Warehouse && arguments.warehouse.does_nothing() {
        wrong.push(
            "--power-runs 0 and --streams 0 leave nothing to run: leave one of them out"
                .to_string(),
        );
    }
    wrong.extend(of_generation(arguments, given));
    wrong
}

/// The workload's types.
fn shape(arguments: &Arguments) -> Result<&'static Shape, String> {
    let seed = RootSeed(arguments.seed);
    let shape = match arguments.workload {
        Workload::Tpcc => arguments.tpcc.workload(seed).map(|workload| workload.shape()),
        Workload::Sysbench => arguments.sysbench.workload(seed).map(|workload| workload.shape()),
        _ => arguments.dvdstore.workload(seed).map(|workload| workload.shape()),
    };
    shape.map_err(|stop| stop.to_string())
}

fn mixes(arguments: &Arguments, shape: &'static Shape) -> Result<Option<Mixes>, Vec<String>> {
    let changes = arguments.weights_at(shape)?;
    let weighted = changes.iter().flat_map(|change| change.types(shape)).collect();
    Ok(Some(Mixes { prescribed: arguments.weights.is_none(), weighted }))
}

fn of_sysbench(arguments: &Arguments, given: &Given, mixes: Option<&Mixes>) -> Vec<String> {
    let mut wrong = Vec::new();
    // What is no such number is refused as that.
    if arguments.key_think > 0.0 {
        wrong.push(
            "--key-think multiplies keying and think times, and sysbench has neither: leave it out"
                .to_string(),
        );
    }
    let Some(mixes) = mixes else { return wrong };
    if given.has("script") && !mixes.prescribed {
        wrong.push(
            "--script and --weights both say what transactions do: leave one of them out"
                .to_string(),
        );
    }
    let mut scripts = mixes.weighted.clone();
    if mixes.prescribed {
        scripts.insert(arguments.sysbench.script().as_str());
    }
    let ranges = [Script::ReadWrite, Script::ReadOnly].map(Script::as_str);
    if given.has("range_size") && !ranges.iter().any(|script| scripts.contains(script)) {
        wrong.push(format!(
            "--range-size is about {}: none of them runs, leave it out",
            ranges.join(" and ")
        ));
    }
    let draws_ids = scripts.iter().any(|script| *script != Script::BulkInsert.as_str());
    if given.has("rand_type") && !draws_ids && !arguments.load {
        wrong.push(
            "--rand-type is about ids that are drawn, and bulk inserts draw none".to_string(),
        );
    }
    wrong
}

fn of_dvdstore(arguments: &Arguments, given: &Given, mixes: Option<&Mixes>) -> Vec<String> {
    let Some(mixes) = mixes else { return Vec::new() };
    let mut wrong = Vec::new();
    let old_flow = arguments.dvdstore.is_ds2();
    if !mixes.prescribed {
        wrong.extend(given.among(&OF_VISITS).map(|name| {
            format!(
                "{} is about visits, and with --weights there are none: leave one of them out",
                written(name)
            )
        }));
    } else if old_flow {
        wrong.extend(given.among(&NOT_OF_DS2).map(|name| {
            format!(
                "{} has no effect with --ds2-mode, which knows neither members nor reviews: leave one of them out",
                written(name)
            )
        }));
    }
    for (name, steps) in OF_STEPS {
        let in_visits = mixes.prescribed && !(old_flow && name == "search_depth");
        let by_weights = steps.iter().any(|step| mixes.weighted.contains(step));
        if given.has(name) && !in_visits && !by_weights {
            wrong.push(format!(
                "{} is about {}: none of them runs, leave it out",
                written(name),
                steps.join(", ")
            ));
        }
    }
    wrong
}

/// Options about rows and draws where nothing is loaded and nothing drawn.
fn of_generation(arguments: &Arguments, given: &Given) -> Vec<String> {
    let Arguments { workload, load, check, .. } = *arguments;
    let runs = arguments.runs();
    let mut wrong = Vec::new();
    // What a warehouse's queries ask follows from the seed that it was loaded with.
    let draws = load || (runs && workload != Workload::Warehouse);
    if given.has("seed") && !draws {
        wrong.push(
            "--seed says what is generated, and nothing is: what is there has its own; leave it out"
                .to_string(),
        );
    }
    if given.has("rand_type") && !load && !runs {
        wrong.push(
            "--rand-type says how ids are drawn, and none are: add --load or --run, or leave it out"
                .to_string(),
        );
    }
    // TPC-C's checks are made side by side too.
    let uses_loaders = load || (workload == Workload::Tpcc && (runs || check));
    if given.has("loaders") && workload == Workload::Batch {
        wrong.push("--loaders has no meaning for batch: --sessions is how many insert".to_string());
    } else if given.has("loaders") && !uses_loaders && !arguments.noop {
        wrong.push(
            "--loaders is about --load, and nothing is loaded: add it, or leave the option out"
                .to_string(),
        );
    }
    wrong
}
