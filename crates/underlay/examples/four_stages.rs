//! Draws the four stages of adaptive resynchronisation: runs a cluster in virtual time, writes what its performance service
//! says to a record, and renders the record's report.
//!
//! ```text
//! cargo run --release -p underlay --example four_stages -- FOLDER
//! ```
//!
//! writes `FOLDER/four-stages.sqlite` and `FOLDER/four-stages.html`.

#[path = "../../model/tests/it/four_stages/experiment.rs"]
mod four_stages;

use std::error::Error;
use std::fs;
use std::path::Path;

use four_stages::{STAGE_S, STAGES, Stages};
use serde_json::json;
use underlay_core::series::Layer;
use underlay_core::{Evidence, Nanos, RootSeed};
use underlay_record::conventions::{event, histogram_scope, source};
use underlay_record::{
    Design, Event, ExecutionStatus, Interval, Manifest, NewPhase, NewRun, PhaseKind, PhaseStatus,
    Record, Recorder, RunEnd, RunStatus, Source, SourceStatus,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: four_stages FOLDER")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    let record = folder.join("four-stages.sqlite");
    let page = folder.join("four-stages.html");
    let stages = four_stages::run();
    println!("{:34}{:>14}{:>14}{:>16}", "stage", "volumes", "copying", "copying's share");
    for (stage, name) in STAGES.iter().enumerate() {
        let (vm, resync) = stages.rates(stage);
        let share = 100.0 * resync / (vm + resync);
        println!("{name:34}{:9.0} MB/s{:9.0} MB/s{share:14.1} %", vm / 1e6, resync / 1e6);
    }
    write(&stages, &record)?;
    let analysis = underlay_report::analyse(&Record::open_read_only(&record)?)?;
    fs::write(&page, underlay_report::html(&analysis)?)?;
    println!("{}", page.display());
    Ok(())
}

fn manifest() -> Manifest {
    Manifest {
        study_name: "four-stages".into(),
        title: "The four stages of adaptive resynchronisation".into(),
        question: "How do volumes and resynchronisation share a disk group?".into(),
        evidence: Evidence::Simulated,
        seed: RootSeed(11),
        identity: "four-stages".into(),
        started_wall_ns: 0,
        plan: json!({ "format": 1 }),
        host: json!({}),
        software: json!({ "underlay": env!("CARGO_PKG_VERSION") }),
    }
}

fn write(stages: &Stages, path: &Path) -> Result<(), Box<dyn Error>> {
    if path.exists() {
        return Err(format!("{} is there already", path.display()).into());
    }
    let mut recorder = Recorder::create(path, &manifest())?;
    recorder.add_design(&Design {
        index: 0,
        name: "cluster".into(),
        title: "Three hosts, a mirror".into(),
        description: "NVMe cache and one SATA device per host".into(),
        evidence: Evidence::Simulated,
        detail: json!({}),
    })?;
    let start = NewRun { design: 0, repeat: 1, order: 0, at: Nanos::ZERO, origin_wall_ns: 0 };
    let run = recorder.begin_run(&start)?;
    recorder.source(
        run,
        &Source {
            index: 0,
            name: source::DATASTORE.into(),
            layer: Layer::Datastore,
            status: SourceStatus::Available,
            series: stages.series.clone(),
        },
    )?;
    for (stage, name) in STAGES.iter().enumerate() {
        let at = |second: usize| Nanos::from_secs(second as u64);
        let begin = stage * STAGE_S;
        let phase = recorder.begin_phase(&NewPhase {
            run: Some(run),
            kind: PhaseKind::Measure,
            label: (*name).into(),
            users: None,
            at: at(begin),
        })?;
        for second in begin..begin + STAGE_S {
            let happened = &stages.seconds[second];
            let interval = Interval { begin: at(second), end: at(second + 1) };
            // Read at the end of the second.
            let read = Interval { begin: interval.end, end: interval.end };
            recorder.tick(run, 0, read, &happened.values)?;
            for (name, operation, histogram) in &happened.latencies {
                let name = format!("{name}.{}", operation.as_str());
                recorder.histogram(run, interval, histogram_scope::CLUSTER, &name, histogram)?;
            }
            for (at, kind, text) in &happened.notices {
                let kind = if *kind == "fault" { event::FAULT } else { event::RESYNC };
                recorder.event(&Event {
                    run: Some(run),
                    at: *at,
                    kind: kind.into(),
                    text: text.clone(),
                    data: json!({}),
                })?;
            }
        }
        recorder.end_phase(phase, at(begin + STAGE_S), PhaseStatus::Finished)?;
    }
    let at = Nanos::from_secs((STAGES.len() * STAGE_S) as u64);
    recorder.end_run(run, &RunEnd { at, status: RunStatus::Finished, reason: None })?;
    recorder.finish(ExecutionStatus::Finished)?;
    Ok(())
}
