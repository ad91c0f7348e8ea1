//! The confusion matrix: bottlenecks that are induced, against the ones that Underlay names.
//!
//! Each cell is a study of one design in which one thing is made scarce, run by the program itself with a causal check.
//! Printed: per induced bottleneck, how often each name was given; and how many answers were right, mixed where two
//! elasticities are within 25 %, without a confident name, or confidently wrong.
//!
//! `confusion --program FILE [--engine postgresql|mariadb]... [--seeds N|FROM..TO] [--only NAME]... [--state DIR]
//! [--keep DIR] [--json FILE]`
//!
//! Seeds are numbered from 1, and TO is left out. FILE is written after each cell, so that what was measured stays.
//!
//! Needs root, as emulated storage does. What is induced from outside (a busy host, a throttled load generator) is in
//! [`outside`]; the studies are in [`induced`]; what counts as right is in [`verdict`].

mod induced;
mod outside;
mod verdict;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use induced::{Induced, all};
use verdict::{Judged, Judgement, judge};

type Failure = Box<dyn std::error::Error>;

/// One run of one study.
struct Cell {
    engine: String,
    induced: &'static str,
    seed: u64,
    judged: Judged,
}

/// As studies call them.
const ENGINES: [&str; 2] = ["postgresql", "mariadb"];

struct Options {
    program: PathBuf,
    engines: Vec<String>,
    seeds: Range<u64>,
    only: Vec<String>,
    state: PathBuf,
    keep: Option<PathBuf>,
    json: Option<PathBuf>,
}

fn main() -> Result<(), Failure> {
    let options = parse(std::env::args().skip(1))?;
    let scratch = tempfile::tempdir()?;
    let folder = options.keep.as_deref().unwrap_or(scratch.path());
    std::fs::create_dir_all(folder)?;
    let mut cells = Vec::new();
    for engine in &options.engines {
        for induced in all(engine) {
            if !options.only.is_empty() && !options.only.iter().any(|name| name == induced.name) {
                continue;
            }
            for seed in options.seeds.clone() {
                let judged = run(&options, folder, engine, &induced, seed)
                    .unwrap_or_else(|error| Judged::failed(&error.to_string()));
                println!("{engine} {} seed {seed}: {}", induced.name, judged.line());
                cells.push(Cell { engine: engine.clone(), induced: induced.name, seed, judged });
                if let Some(path) = &options.json {
                    std::fs::write(path, format!("{:#}", as_json(&cells)))?;
                }
            }
        }
    }
    print_matrix(&cells);
    Ok(())
}

/// Runs one study and judges its answer.
fn run(
    options: &Options,
    folder: &Path,
    engine: &str,
    induced: &Induced,
    seed: u64,
) -> Result<Judged, Failure> {
    let name = format!("{engine}-{}-{seed}", induced.name);
    let study = folder.join(format!("{name}.toml"));
    std::fs::write(&study, induced.study(engine, seed))?;
    let _busy = induced.burners.then(outside::BusyHost::start);
    let child = Command::new(&options.program)
        .arg("run")
        .arg(&study)
        .arg("--out")
        .arg(folder.join(format!("{name}.sqlite")))
        .args(["--fresh", "--no-progress", "--json"])
        .env("UNDERLAY_STATE_DIR", &options.state)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let throttle = match induced.generator_share {
        Some(share) => Some(outside::ThrottledGenerator::start(child.id(), share)?),
        None => None,
    };
    let output = child.wait_with_output();
    drop(throttle);
    let output = output?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        // The problems of a study that is refused are the answer.
        let reason = last.map_or_else(|| in_one_line(&output.stdout), str::to_string);
        return Err(format!("{}: {reason}", output.status).into());
    }
    let analysis: Value = serde_json::from_slice(&output.stdout)?;
    Ok(judge(&analysis, induced.expected))
}

fn in_one_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn print_matrix(cells: &[Cell]) {
    let names: Vec<&str> = {
        let mut names: Vec<&str> = cells.iter().map(|cell| &*cell.judged.named).collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let mut rows: BTreeMap<(&str, &str), BTreeMap<&str, usize>> = BTreeMap::new();
    for cell in cells {
        let row = rows.entry((&cell.engine, cell.induced)).or_default();
        *row.entry(&cell.judged.named).or_default() += 1;
    }
    println!("\ninduced x named");
    println!("{:<11} {:<24} {}", "engine", "induced", names.join(" | "));
    for ((engine, induced), row) in &rows {
        let counts = names.iter().map(|name| match row.get(name) {
            Some(count) => format!("{count:>width$}", width = name.len()),
            None => format!("{:>width$}", ".", width = name.len()),
        });
        println!("{engine:<11} {induced:<24} {}", counts.collect::<Vec<_>>().join(" | "));
    }
    for judgement in Judgement::ALL {
        let count = cells.iter().filter(|cell| cell.judged.judgement == judgement).count();
        let share = 100.0 * count as f64 / cells.len().max(1) as f64;
        println!("{:<28} {count:>3} of {} ({share:.0} %)", judgement.as_str(), cells.len());
    }
}

fn as_json(cells: &[Cell]) -> Value {
    let cells = cells.iter().map(|cell| {
        json!({
            "engine": cell.engine,
            "induced": cell.induced,
            "seed": cell.seed,
            "named": cell.judged.named,
            "judgement": cell.judged.judgement.as_str(),
            "observed": cell.judged.observed,
            "sentence": cell.judged.sentence,
        })
    });
    json!({ "cells": cells.collect::<Vec<_>>() })
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failure> {
    let mut options = Options {
        program: PathBuf::from("target/release/underlay"),
        engines: Vec::new(),
        seeds: 1..6,
        only: Vec::new(),
        state: std::env::temp_dir().join(format!("underlay-confusion-{}", std::process::id())),
        keep: None,
        json: None,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--program" => options.program = value()?.into(),
            "--engine" => options.engines.push(known(value()?, &ENGINES)?),
            "--seeds" => options.seeds = seeds(&value()?)?,
            "--only" => {
                let names: Vec<&str> = all(ENGINES[0]).iter().map(|induced| induced.name).collect();
                options.only.push(known(value()?, &names)?);
            }
            "--state" => options.state = value()?.into(),
            "--keep" => options.keep = Some(value()?.into()),
            "--json" => options.json = Some(value()?.into()),
            unknown => return Err(format!("unknown option {unknown}").into()),
        }
    }
    if options.engines.is_empty() {
        options.engines = ENGINES.map(str::to_string).to_vec();
    }
    options.program = options.program.canonicalize()?;
    Ok(options)
}

fn known(value: String, names: &[&str]) -> Result<String, Failure> {
    match names.contains(&value.as_str()) {
        true => Ok(value),
        false => Err(format!("unknown {value}: use one of {}", names.join(", ")).into()),
    }
}

/// The seeds that a number of them, or `FROM..TO`, means.
fn seeds(value: &str) -> Result<Range<u64>, Failure> {
    match value.split_once("..") {
        Some((from, to)) => Ok(from.parse()?..to.parse()?),
        None => Ok(1..value.parse::<u64>()? + 1),
    }
}
