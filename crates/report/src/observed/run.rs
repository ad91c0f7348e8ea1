//! Everything recorded of one run.

use std::collections::BTreeMap;

use serde_json::Value;
use underlay_core::Nanos;
use underlay_record::conventions::{OF_DATABASE, document, histogram_scope, source};
use underlay_record::{
    Event, HistogramRow, Phase, PhaseKind, PhaseStatus, ReadError, Record, Run, Source,
    TransactionTick, WaitWindow,
};

use super::series::{Series, SourceTicks};

/// One run as read from its record.
#[derive(Debug)]
pub(crate) struct ObservedRun {
    /// Position among all runs of the record.
    pub(crate) position: usize,
    /// The run itself.
    pub(crate) run: Run,
    pub(crate) phases: Vec<Phase>,
    pub(crate) events: Vec<Event>,
    /// All sources as declared, also those without ticks.
    pub(crate) declared: Vec<Source>,
    pub(crate) sources: BTreeMap<String, SourceTicks>,
    pub(crate) waits: Vec<WaitWindow>,
    pub(crate) transactions: Vec<TransactionTick>,
    pub(crate) histograms: Vec<HistogramRow>,
    pub(crate) documents: BTreeMap<String, Value>,
}

impl ObservedRun {
    /// Reads a run with all its ticks.
    pub(crate) fn read(
        record: &Record,
        run: &Run,
        position: usize,
    ) -> Result<ObservedRun, ReadError> {
        let documents = record
            .documents()?
            .into_iter()
            .filter(|document| document.run == Some(run.id))
            .map(|document| (document.name, document.content))
            .collect();
        let transactions = record.transactions(run.id)?;
        let told = ends(&transactions);
        let tick_s = tick_s(&transactions);
        let sources = record
            .tables(run.id)?
            .into_iter()
            .map(|table| {
                let name = table.source.name.clone();
                let ticks = SourceTicks::of(table, tick_s);
                // Its sampler reads what the load generator said at its last tick.
                let ticks = if name == source::DRIVER { ticks.at_reports(&told) } else { ticks };
                (name, ticks)
            })
            .collect();
        Ok(ObservedRun {
            position,
            run: run.clone(),
            phases: record.phases(Some(run.id))?,
            events: record.events(Some(run.id))?,
            declared: record.sources(run.id)?,
            sources,
            waits: record.waits(run.id)?,
            transactions,
            histograms: record.histograms(run.id)?,
            documents,
        })
    }

    /// The sampling interval, seconds.
    pub(crate) fn tick_s(&self) -> f64 {
        tick_s(&self.transactions)
    }

    /// Takes what was recorded of each of several databases apart from the run's total, as runs of one database. In the order of
    /// these names; none where the run has no such parts.
    pub(crate) fn take_databases(&mut self, names: &[String]) -> Vec<(String, ObservedRun)> {
        let part = |name: &String| {
            let own = |recorded: &str| {
                Some(recorded.strip_prefix(&**name)?.strip_prefix('/')?.to_string())
            };
            let (transactions, others) = std::mem::take(&mut self.transactions)
                .into_iter()
                .partition::<Vec<_>, _>(|tick| own(&tick.transaction).is_some());
            self.transactions = others;
            let transactions: Vec<TransactionTick> = transactions
                .into_iter()
                .map(|tick| TransactionTick {
                    transaction: own(&tick.transaction).unwrap_or_default(),
                    ..tick
                })
                .collect();
            let told = ends(&transactions);
            let mut sources = BTreeMap::new();
            for of_it in
                self.sources.keys().filter(|it| own(it).is_some()).cloned().collect::<Vec<_>>()
            {
                let (Some(name), Some(ticks)) = (own(&of_it), self.sources.remove(&of_it)) else {
                    continue;
                };
                let ticks = if name == source::DRIVER { ticks.at_reports(&told) } else { ticks };
                sources.insert(name, ticks);
            }
            // One sampler follows the processes of all servers.
            let processes = self.sources.get(source::PROCESS);
            let processes = processes.and_then(|it| it.part(&format!("{name}{OF_DATABASE}")));
            sources.extend(processes.map(|ticks| (source::PROCESS.to_string(), ticks)));
            let volume = format!("{name}-");
            let of_histogram = |row: &HistogramRow| match row.scope.as_str() {
                histogram_scope::DRIVER => own(&row.name),
                histogram_scope::DATASTORE => row.name.strip_prefix(&volume).map(str::to_string),
                _ => None,
            };
            let histograms = self.histograms.iter();
            let histograms = histograms
                .filter_map(|row| Some(HistogramRow { name: of_histogram(row)?, ..row.clone() }))
                .collect();
            let documents = self.documents.iter();
            let documents = documents
                .filter_map(|(recorded, content)| Some((own(recorded)?, content.clone())))
                .collect();
            let of_database = ObservedRun {
                position: self.position,
                run: self.run.clone(),
                phases: self.phases.clone(),
                events: self.events.clone(),
                declared: Vec::new(),
                sources,
                waits: Vec::new(),
                transactions,
                histograms,
                documents,
            };
            (name.clone(), of_database)
        };
        names.iter().map(part).filter(|(_, run)| !run.transactions.is_empty()).collect()
    }

    /// A series, if its source and it are there.
    pub(crate) fn series(&self, source: &str, name: &str) -> Option<Series<'_>> {
        self.sources.get(source)?.series(name)
    }

    /// Begin of the run on its clock, seconds.
    pub(crate) fn begin_s(&self) -> f64 {
        self.run.begin.as_secs_f64()
    }

    /// End of the run, or of its last phase or tick while it runs, seconds on its clock.
    pub(crate) fn end_s(&self) -> f64 {
        let last_tick = self.transactions.last().map(|tick| tick.interval.end);
        let last_phase = self.phases.iter().filter_map(|phase| phase.end).max();
        let end = self.run.end.or(last_tick.max(last_phase)).unwrap_or(self.run.begin);
        end.as_secs_f64()
    }

    /// Whether this load of a block load is a point of a curve, or a round before the steady ones.
    pub(super) fn is_left_out(&self, label: &str) -> bool {
        let loads =
            self.documents.get(document::BLOCK_LOAD).and_then(|said| said["loads"].as_array());
        let mut loads = loads.into_iter().flatten();
        loads.any(|load| load["label"] == label && load["counts"] == false)
    }

    /// Whether a phase was measured to its end, or as far as the user let a block load go.
    pub(super) fn is_measured(&self, phase: &Phase) -> bool {
        let ended_by_user = phase.status == PhaseStatus::Interrupted
            && self.documents.contains_key(document::BLOCK_LOAD);
        phase.kind == PhaseKind::Measure && (phase.status == PhaseStatus::Finished || ended_by_user)
    }
}

/// How long the ticks of a load are, seconds: 1, except where a block load was slowed down, because it is sampled every
/// second of the host's time.
fn tick_s(transactions: &[TransactionTick]) -> f64 {
    let length = |tick: &TransactionTick| (tick.interval.end - tick.interval.begin).0;
    let mut lengths: Vec<u64> = transactions.iter().map(length).collect();
    lengths.sort_unstable();
    match lengths.get(lengths.len() / 2) {
        // Above half a second it is a second, with what phases cut off.
        Some(median) if (1..500_000_000).contains(median) => *median as f64 / 1e9,
        _ => 1.0,
    }
}

/// When the ticks of the load generator ended, ascending.
fn ends(transactions: &[TransactionTick]) -> Vec<Nanos> {
    let mut ends: Vec<Nanos> = transactions.iter().map(|tick| tick.interval.end).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}
