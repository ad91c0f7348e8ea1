//! `underlay reproduce`: runs studies of published experiments, and shows published results next to ours on one page.
//!
//! A study with a finished record is not run again, and an interrupted one is resumed by the same command. With
//! `--simulate` studies run in virtual time, never resumed; a later page without it has both. The page is
//! written after each study.

use crate::cli::answer;
use crate::cli::simulate::points;
use crate::cli::simulation_options::SimulationOptions;
use crate::cli::studies;
use crate::cli::terminal;
use crate::exit_code;
use crate::lab::progress::{Bar, Progress};
use crate::lab::records::{self, Fresh, finished, place};
use crate::lab::{self, Executed, execute, with_host_view};
use crate::stop::{Stop, chain};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use underlay_core::Nanos;
use underlay_host::StateDir;
use underlay_report::atlas::{
    AtlasExperiment, FullSize, SimulatedPoint, entry, missing, simulated_points,
};
use underlay_report::{Atlas, atlas_summary};
use underlay_study::{
    Colour, HostView, Plan, PlanOptions, Problems, Repeats, Source, StudySize, builtin_studies,
    check, read,
};

/// Arguments of `underlay reproduce`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Studies: built in, such as `kingston/k2`, or files.
    #[arg(required_unless_present_any = ["all", "with"], conflicts_with = "all")]
    studies: Vec<String>,
    /// Every built-in study of a published experiment. What this host cannot run is listed with the reason.
    #[arg(long)]
    all: bool,
    /// At the size of the publications, instead of the studies' laptop size.
    #[arg(long)]
    full_size: bool,
    /// Repeats of each study, instead of its own. One gives a first impression, without intervals.
    #[arg(long, value_name = "N")]
    repeats: Option<Repeats>,
    /// In virtual time, at the size of the publications: no server, no root.
    #[arg(long, conflicts_with_all = ["full_size", "fresh"])]
    simulate: bool,
    #[command(flatten)]
    simulation: SimulationOptions,
    /// The page to write.
    #[arg(long, value_name = "FILE", default_value = PAGE)]
    page: PathBuf,
    /// An earlier atlas, as `--json` prints it: experiments that are not among these studies are shown, too.
    /// Without studies, the page is made from it alone.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// Run studies again that have a finished record.
    #[arg(long)]
    fresh: bool,
    /// Hide the progress bar.
    #[arg(long)]
    no_progress: bool,
    /// Print the atlas as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Open the page in the browser afterwards.
    #[arg(long)]
    open: bool,
}

const PAGE: &str = "underlay-records/atlas.html";

/// A study that was asked for.
struct Wanted {
    name: String,
    source: Source,
    options: PlanOptions,
    /// Its plan on this host, or why it has none.
    plan: Result<Box<Plan>, Problems>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let mut atlas = match &arguments.with {
        Some(path) => answer::read_atlas(path)?,
        None => Atlas::new(Vec::new()),
    };
    let wanted = wanted(arguments)?;
    if let Some(folder) = arguments.page.parent() {
        fs::create_dir_all(folder).map_err(|error| {
            Stop::bad_input(format!("could not create {}: {error}", folder.display()))
        })?;
    }
    if wanted.is_empty() {
        answer::write_atlas(&atlas, &arguments.page)?;
    } else {
        announce(&wanted, arguments);
    }
    let mut failed: Option<Stop> = None;
    for one in &wanted {
        let (entry, outcome) = experiment(one, arguments);
        if let (Some(problem), Ok(())) = (&entry.problem, &outcome) {
            errln!("{}: {problem}", one.name);
        }
        atlas.put(entry);
        // Last night's page is of use even if this night ends early.
        answer::write_atlas(&atlas, &arguments.page)?;
        match outcome {
            Err(stop) if stop.code() == exit_code::INTERRUPTED => return Err(stop),
            Err(stop) => {
                errln!("{}: {stop}", one.name);
                failed.get_or_insert(stop);
            }
            Ok(()) => {}
        }
    }
    if arguments.json {
        let json = serde_json::to_string_pretty(&atlas).map_err(|error| Stop::internal(&error))?;
        outln!("{json}");
    } else {
        out!("{}", atlas_summary(&atlas, terminal::width()));
    }
    errln!("atlas: {}", arguments.page.display());
    if arguments.open {
        answer::open_in_browser(&arguments.page)?;
    }
    match failed {
        // It was printed when it happened.
        Some(stop) => Err(Stop::silent(stop.code())),
        None => Ok(()),
    }
}

/// All studies with their plans, before anything is run. One that was named and cannot be run ends the command.
fn wanted(arguments: &Arguments) -> Result<Vec<Wanted>, Stop> {
    let names: Vec<String> = match arguments.all {
        true => builtin_studies()
            .iter()
            .filter(|study| study.name.contains('/'))
            .map(|study| study.name.clone())
            .collect(),
        false => arguments.studies.clone(),
    };
    let state = StateDir::usual_place().map_err(|error| Stop::host(chain(&error)))?;
    let mut all: Vec<Wanted> = Vec::new();
    let mut is_refused = false;
    for name in names {
        if all.iter().any(|other| other.name == name) {
            continue;
        }
        let source = studies::find(&name)?;
        let has_laptop_size = read(&source).is_ok_and(|study| study.has_laptop_size());
        let is_full_size = arguments.full_size || arguments.simulate;
        let size = (has_laptop_size && !is_full_size).then_some(StudySize::Laptop);
        // Another seed changes less than a model is wrong by.
        let of_simulation = arguments.simulate.then_some(Repeats::Exactly(1));
        let repeats = arguments.repeats.or(of_simulation);
        let options = PlanOptions { size, repeats, ..PlanOptions::default() };
        let plan = match arguments.simulate {
            true => check(&source, &options, &HostView::unlimited()),
            false => with_host_view(&state, |host| check(&source, &options, host)),
        };
        let plan = plan.map(|(_, plan)| Box::new(plan));
        if let Err(problems) = &plan
            && !arguments.all
        {
            err!("{}", problems.render(terminal::width(), Colour::Plain));
            is_refused = true;
        }
        all.push(Wanted { name, source, options, plan });
    }
    if is_refused { Err(Stop::silent(exit_code::BAD_INPUT)) } else { Ok(all) }
}

fn announce(wanted: &[Wanted], arguments: &Arguments) {
    if arguments.simulate {
        let plural = if wanted.len() == 1 { "study" } else { "studies" };
        return errln!("{} {plural} in virtual time", wanted.len());
    }
    let plans = || wanted.iter().filter_map(|one| Some((one, one.plan.as_ref().ok()?)));
    let left = plans().filter(|(one, plan)| known(one, plan, arguments).is_none());
    let (mut runs, mut time) = (0, 0_u64);
    for (_, plan) in left {
        runs += 1;
        time = time.saturating_add(plan.estimates.duration.0);
    }
    let done = plans().count() - runs;
    let left = Nanos(time);
    match wanted.len() {
        1 if done == 1 => errln!("1 study, which is finished"),
        1 => errln!("1 study; about {left} left"),
        count => errln!("{count} studies, {done} of them finished; about {left} left"),
    }
}

/// The finished record of a study, unless it is to be run again.
fn known(one: &Wanted, plan: &Plan, arguments: &Arguments) -> Option<PathBuf> {
    let is_anew = arguments.fresh || arguments.simulate;
    if is_anew { None } else { finished(&plan.name, &one.source, &one.options) }
}

/// Runs a study, unless its record is there. Its entry is of use even when the run failed.
fn experiment(one: &Wanted, arguments: &Arguments) -> (AtlasExperiment, Result<(), Stop>) {
    let without =
        |title: &str, question: &str, problem: String| missing(&one.name, title, question, problem);
    let plan = match &one.plan {
        Ok(plan) => plan,
        Err(problems) => {
            let reason = problems.as_slice().first().map(|it| it.to_string()).unwrap_or_default();
            let title =
                read(&one.source).map(|it| (it.title().to_string(), it.question().to_string()));
            let (title, question) = title.unwrap_or_default();
            let problem = format!("not run here: {reason}");
            return (without(&title, &question, problem), Ok(()));
        }
    };
    let (record, outcome) = match known(one, plan, arguments) {
        Some(record) => (record, Ok(())),
        None => match run_study(one, plan, arguments) {
            Ok(Executed { record, outcome }) => (record, outcome),
            // What has no model is no failure of the others.
            Err(stop)
                if arguments.all && arguments.simulate && stop.code() == exit_code::BAD_INPUT =>
            {
                return (without(&plan.title, &plan.question, stop.to_string()), Ok(()));
            }
            Err(stop) => {
                return (without(&plan.title, &plan.question, stop.to_string()), Err(stop));
            }
        },
    };
    let analysis = match answer::read(&record) {
        Ok(analysis) => analysis,
        Err(stop) => return (without(&plan.title, &plan.question, stop.to_string()), Err(stop)),
    };
    let problem = outcome.as_ref().err().map(ToString::to_string);
    let shown = file_name(&record);
    let entry = entry((&one.name, &shown), &analysis, &full_size(&plan.name, &one.source), problem);
    // The report is one link away from the page.
    let report = answer::write_report(&analysis, &record.with_extension("html"));
    (entry, outcome.and(report))
}

fn run_study(one: &Wanted, plan: &Plan, arguments: &Arguments) -> Result<Executed, Stop> {
    errln!("{}: {}", one.name, plan.title);
    let fresh = if arguments.fresh || arguments.simulate { Fresh::Yes } else { Fresh::No };
    let place = || place(&plan.name, &one.source, &one.options, fresh);
    let bar = if arguments.no_progress { Bar::Never } else { Bar::Automatic };
    let mut progress = Progress::new(bar);
    if !arguments.simulate {
        return execute(plan, &place()?, &mut progress);
    }
    let how = arguments.simulation.how(plan)?;
    lab::simulated::require(plan, &how.assumed)?;
    lab::simulated::execute(plan, &how, &place()?, &mut progress)
}

/// The study at its own size: what its designs are called there, and what virtual time says of them.
fn full_size(name: &str, source: &Source) -> FullSize {
    let Ok((_, plan)) = check(source, &PlanOptions::default(), &HostView::unlimited()) else {
        return FullSize::default();
    };
    let titles = plan.designs.iter().map(|design| (design.name.clone(), design.title.clone()));
    FullSize { titles: titles.collect(), simulated: simulated(name, source, &plan) }
}

/// What virtual time says, in a record of `--simulate`; of a block load without one now. That there is nothing is no failure.
fn simulated(name: &str, source: &Source, full: &Plan) -> Vec<SimulatedPoint> {
    let record = records::simulated(name, source).and_then(|path| answer::read(&path).ok());
    if let Some(analysis) = record {
        return simulated_points(&analysis);
    }
    if full.workload.kind.block().is_none() {
        return Vec::new();
    }
    points(full).unwrap_or_else(|stop| {
        errln!("{} is not simulated: {stop}", source.name);
        Vec::new()
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
