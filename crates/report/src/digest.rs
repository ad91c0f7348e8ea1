//! A whole record, read run by run and reduced to what analyses need.

use std::collections::BTreeMap;

use serde_json::Value;
use underlay_core::{Evidence, Nanos};
use underlay_record::conventions::{LATENESS, MODELLED, document, event, histogram_scope};
use underlay_record::{
    CheckOutcome, Design, Event, Execution, Finding, Manifest, Phase, ReadError, Record, Run,
    RunStatus,
};

use crate::analysis::{self, Emulation, EvidenceKind, TimelineLine};
use crate::axes::Axes;
use crate::checkpoints::checkpoints;
use crate::observed::{
    CausalFacts, MeasuredWindow, ObservedOperation, ObservedRun, WindowFacts, cache_fill_event,
    merged, operation_events, operations, stages,
};
use crate::plan_view::PlanView;
use crate::timelines::{SeriesCatalogue, lines, lines_of_database};
use crate::workload_view::WorkloadView;

/// What a record says, without its raw ticks.
#[derive(Debug)]
pub(crate) struct Digest {
    pub(crate) manifest: Manifest,
    pub(crate) workload: WorkloadView,
    pub(crate) execution: Execution,
    /// How many times longer everything took than its design time; 1 = real time.
    pub(crate) time_dilation: u32,
    pub(crate) designs: Vec<Design>,
    /// All runs in the order of execution.
    pub(crate) runs: Vec<Run>,
    pub(crate) run_rows: Vec<analysis::Run>,
    /// The measured windows of the counted runs.
    pub(crate) windows: Vec<WindowFacts>,
    /// The windows of their null twins, which are no measurements of a design.
    pub(crate) twins: Vec<WindowFacts>,
    /// Each of several databases, in the order of the plan.
    pub(crate) databases: Vec<DatabaseDigest>,
    pub(crate) catalogue: SeriesCatalogue,
    pub(crate) lines: Vec<TimelineLine>,
    /// The checks of all runs that were not replaced, also of failed ones.
    pub(crate) checks: Vec<analysis::Check>,
    pub(crate) sources: Vec<analysis::Source>,
    pub(crate) emulation: Vec<Emulation>,
    /// The backups and restores of the counted runs.
    pub(crate) operations: Vec<ObservedOperation>,
    /// The causal checks of the counted runs.
    pub(crate) causal: Vec<CausalFacts>,
    /// The documents of the counted runs, by position of the run.
    pub(crate) documents: BTreeMap<usize, BTreeMap<String, Value>>,
    pub(crate) findings: Vec<Finding>,
}

/// One of several databases.
#[derive(Debug)]
pub(crate) struct DatabaseDigest {
    pub(crate) name: String,
    /// What its users do, or its job.
    pub(crate) workload: WorkloadView,
    /// The measured windows of the counted runs. A job has the windows that the users of the others were measured in.
    pub(crate) windows: Vec<WindowFacts>,
}

impl Digest {
    /// That of a record in which nothing has run yet.
    pub(crate) fn new(manifest: Manifest, execution: Execution) -> Digest {
        Digest {
            workload: WorkloadView::of(&manifest.plan),
            manifest,
            execution,
            time_dilation: 1,
            designs: Vec::new(),
            runs: Vec::new(),
            run_rows: Vec::new(),
            windows: Vec::new(),
            twins: Vec::new(),
            databases: Vec::new(),
            catalogue: SeriesCatalogue::default(),
            lines: Vec::new(),
            checks: Vec::new(),
            sources: Vec::new(),
            emulation: Vec::new(),
            operations: Vec::new(),
            causal: Vec::new(),
            documents: BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    /// Reads a record.
    pub(crate) fn read(record: &Record) -> Result<Digest, ReadError> {
        let mut digest = Digest {
            time_dilation: time_dilation(record)?,
            designs: record.designs()?,
            runs: record.runs()?,
            findings: record.findings()?,
            ..Digest::new(record.manifest().clone(), record.execution()?)
        };
        for (position, run) in digest.runs.clone().iter().enumerate() {
            if run.superseded_by.is_none() {
                let checks = record.checks(run.id)?;
                digest.checks.extend(checks.iter().map(|check| check_row(position, check)));
            }
            if digest.is_counted(run) {
                digest.add(ObservedRun::read(record, run, position)?);
            } else {
                let phases = record.phases(Some(run.id))?;
                let events = record.events(Some(run.id))?;
                digest.run_rows.push(run_row(run, (&phases, &events, Vec::new()), false));
            }
        }
        Ok(digest)
    }

    /// Whether the numbers of a run are used. A block load by command that the user ended has measured what it did until then, as
    /// the command says too; a study's run is judged in whole or not at all.
    pub(crate) fn is_counted(&self, run: &Run) -> bool {
        let ended_by_user = run.status == RunStatus::Interrupted && run.superseded_by.is_none();
        run.is_evidence() || (self.workload.is_one_run() && ended_by_user)
    }

    /// The name for readers of each design.
    pub(crate) fn titles(&self) -> Vec<String> {
        self.designs
            .iter()
            .map(
                |design| {
                    if design.title.is_empty() { design.name.clone() } else { design.title.clone() }
                },
            )
            .collect()
    }

    /// What was varied besides designs and users.
    pub(crate) fn axes(&self) -> Axes {
        Axes::of(&self.manifest.plan, &self.designs)
    }

    /// The documents with this name: (design, content), one per counted run.
    pub(crate) fn documents_named<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (usize, &'a Value)> + 'a {
        self.documents.iter().filter_map(move |(position, documents)| {
            let design = self.runs.get(*position)?.design as usize;
            Some((design, documents.get(name)?))
        })
    }

    /// A run for readers: `run 3 (NVMe, repeat 2)`.
    pub(crate) fn run_words(&self, position: usize) -> String {
        let Some(run) = self.runs.get(position) else { return "a run".to_string() };
        let titles = self.titles();
        let design = titles.get(run.design as usize).map_or("an unknown design", String::as_str);
        format!("run {} ({design}, repeat {})", run.order + 1, run.repeat)
    }

    fn add(&mut self, mut run: ObservedRun) {
        let plan = PlanView::new(&self.manifest.plan);
        let workload = self.workload.clone();
        let design = run.run.design as usize;
        let counted = self.runs.iter().filter(|run| self.is_counted(run)).count();
        let mut found = Vec::new();
        let mut lines_of_each = Vec::new();
        for (name, of_database) in run.take_databases(&plan.databases(design)) {
            let job = plan.job_of(design, &name);
            let workload = job.as_ref().unwrap_or(&workload);
            let plan = plan.of_database(&name);
            let windows = of_database.windows();
            let facts = windows.iter().map(|window| WindowFacts::of(window, &plan, workload));
            let known = self.databases.iter().position(|database| database.name == name);
            let position = known.unwrap_or_else(|| {
                let (name, workload) = (name.clone(), workload.clone());
                self.databases.push(DatabaseDigest { name, workload, windows: Vec::new() });
                self.databases.len() - 1
            });
            self.databases[position].windows.extend(facts);
            self.operations.extend(operations(&of_database));
            found.extend(of_one(&name, checkpoints(&of_database)));
            found.extend(of_one(&name, operation_events(&of_database)));
            found.extend(of_one(&name, cache_fill_event(&of_database).into_iter().collect()));
            let of_it = (name.as_str(), &of_database);
            lines_of_each.extend(lines_of_database(of_it, counted, workload, &mut self.catalogue));
        }
        let facts = |window: &MeasuredWindow<'_>| WindowFacts::of(window, &plan, &workload);
        let mut windows: Vec<WindowFacts> = run.windows().iter().map(facts).collect();
        for window in &mut windows {
            let same = |of: &&WindowFacts| (of.run, of.interval) == (window.run, window.interval);
            let of_users = self.databases.iter().filter(|database| !database.workload.is_job());
            let parts = of_users.flat_map(|database| &database.windows);
            let parts: Vec<&WindowFacts> = parts.filter(same).collect();
            window.add_up(&parts);
        }
        self.windows.extend(windows);
        self.twins.extend(run.twin_windows().iter().map(facts));
        self.lines.extend(lines(&run, counted, &workload, &mut self.catalogue));
        self.lines.extend(lines_of_each);
        self.sources.extend(source_rows(&run));
        self.emulation.extend(emulation_row(&run));
        self.causal.extend(CausalFacts::of(&run, &workload));
        self.operations.extend(operations(&run));
        found.extend(checkpoints(&run));
        found.extend(operation_events(&run));
        found.extend(cache_fill_event(&run));
        let events = [run.events.as_slice(), found.as_slice()].concat();
        let stages = stages(&run, &workload);
        self.run_rows.push(run_row(&run.run, (&run.phases, &events, stages), true));
        self.documents.insert(run.position, run.documents);
    }
}

/// Events of one of several databases, which their texts name.
fn of_one(database: &str, events: Vec<Event>) -> impl Iterator<Item = Event> {
    events
        .into_iter()
        .map(move |event| Event { text: format!("{database}: {}", event.text), ..event })
}

impl Digest {
    /// The kind of evidence of the whole: that of the designs, if they have one in common.
    pub(crate) fn evidence(&self) -> EvidenceKind {
        let whole = self.manifest.evidence;
        let is_mixed = self.designs.windows(2).any(|two| two[0].evidence != two[1].evidence);
        if is_mixed { EvidenceKind::Mixed } else { evidence_kind(whole) }
    }
}

/// The kind of evidence in the analysis' own words.
pub(crate) fn evidence_kind(evidence: Evidence) -> EvidenceKind {
    match evidence {
        Evidence::Measured => EvidenceKind::Measured,
        Evidence::Emulated => EvidenceKind::Emulated,
        Evidence::Simulated => EvidenceKind::Simulated,
    }
}

/// The factor that the lab decided on. Records of real time do not have one.
fn time_dilation(record: &Record) -> Result<u32, ReadError> {
    let documents = record.documents()?;
    let said = documents.iter().find(|document| document.name == document::TIME_DILATION);
    let factor = said.and_then(|document| document.content["factor"].as_u64());
    Ok(factor.and_then(|factor| u32::try_from(factor).ok()).unwrap_or(1))
}

fn run_row(
    run: &Run,
    (phases, events, stages): (&[Phase], &[Event], Vec<analysis::Stage>),
    counted: bool,
) -> analysis::Run {
    let since_begin = |at: Nanos| at.saturating_sub(run.begin).as_secs_f64();
    let of_kind = |wanted: &dyn Fn(&str) -> bool| {
        let row = |event: &Event| analysis::Event {
            at_s: since_begin(event.at),
            until_s: event.data["until_ns"].as_u64().map(|until| since_begin(Nanos(until))),
            kind: event.kind.clone(),
            text: event.text.clone(),
        };
        events.iter().filter(|event| wanted(&event.kind)).map(row).collect()
    };
    analysis::Run {
        id: run.id.0,
        design: run.design as usize,
        repeat: run.repeat,
        order: run.order + 1,
        status: run.status.to_string(),
        reason: run.reason.clone(),
        counted,
        superseded_by: run.superseded_by.map(|run| run.0),
        begin_wall_ns: run.origin_wall_ns.saturating_add(run.begin.0),
        seconds: run.end.map(since_begin),
        phases: phases
            .iter()
            .map(|phase| analysis::Phase {
                kind: phase.kind.to_string(),
                label: phase.label.clone(),
                users: phase.users,
                begin_s: since_begin(phase.begin),
                end_s: phase.end.map(since_begin),
                status: phase.status.to_string(),
            })
            .collect(),
        stages,
        events: of_kind(&|kind| kind != event::NOTE),
        notes: of_kind(&|kind| kind == event::NOTE),
    }
}

fn check_row(run: usize, check: &underlay_record::Check) -> analysis::Check {
    let (rows, detail) = match &check.outcome {
        CheckOutcome::Ok => (None, None),
        CheckOutcome::Violated { rows, example } => (Some(*rows), Some(example.clone())),
        CheckOutcome::Failed { error } => (None, Some(error.clone())),
    };
    analysis::Check {
        run,
        moment: check.moment.to_string(),
        id: check.id.clone(),
        title: check.title.clone(),
        outcome: check.outcome.as_str().to_string(),
        rows,
        detail,
    }
}

fn source_rows(run: &ObservedRun) -> Vec<analysis::Source> {
    let whole = (f64::NEG_INFINITY, f64::INFINITY);
    run.declared
        .iter()
        .map(|source| {
            let ticks = run.sources.get(&source.name);
            analysis::Source {
                run: run.position,
                name: source.name.clone(),
                layer: source.layer.as_str().to_string(),
                status: source.status.as_str().to_string(),
                reason: source.status.reason().map(str::to_string),
                series: source.series.len(),
                ticks: ticks.map_or(0, |ticks| ticks.times.len()),
                longest_gap_s: ticks.and_then(|ticks| ticks.longest_gap(whole)),
            }
        })
        .collect()
}

/// What the emulation says about its own timing; `None` for a run on a real datastore.
fn emulation_row(run: &ObservedRun) -> Option<Emulation> {
    let histogram = |name: &str| {
        let rows = run.histograms.iter();
        let of_name = rows.filter(|row| row.scope == histogram_scope::TIMING && row.name == name);
        merged(of_name.map(|row| &row.histogram))
    };
    let (lateness, modelled) = (histogram(LATENESS), histogram(MODELLED));
    let said = run.documents.get(document::TIMING);
    if said.is_none() && lateness.is_empty() {
        return None;
    }
    let said = said.unwrap_or(&Value::Null);
    Some(Emulation {
        run: run.position,
        valid: said["valid"].as_bool(),
        reason: said["reason"].as_str().map(str::to_string),
        host_limited_share: said["host_limited_share"].as_f64(),
        modelled_p50_ns: modelled.quantile(0.5),
        modelled_p99_ns: modelled.quantile(0.99),
        lateness_p50_ns: lateness.quantile(0.5),
        lateness_p99_ns: lateness.quantile(0.99),
    })
}
