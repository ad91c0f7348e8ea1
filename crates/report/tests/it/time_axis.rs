//! What is drawn when: whatever its source, a series lies in the second in which what it tells of happened.
//!
//! One run of 8 s, in which something happens from 3.1 s to 5.1 s: an event says so, and every kind of source sees it.

use std::path::Path;

use serde_json::json;
use underlay_core::series::{Layer, SeriesSpec};
use underlay_core::{Evidence, Histogram, Nanos, RootSeed};
use underlay_record::conventions::{driver_series, event, histogram_scope, source};
use underlay_record::{
    Design, Event, ExecutionStatus, Interval, Manifest, NewRun, Record, Recorder, RunEnd, RunId,
    RunStatus, Source, SourceStatus, TransactionTick, WaitCount, WaitKey, WaitWindow,
};
use underlay_report::Analysis;

const BEGAN_S: f64 = 3.1;
const ENDED_S: f64 = 5.1;
/// Seconds of the run.
pub const SECONDS: u64 = 8;

fn ns(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

/// Seconds of what happens that are over at a moment.
fn done(at_s: f64) -> f64 {
    at_s.clamp(BEGAN_S, ENDED_S) - BEGAN_S
}

/// Whether it goes on at a moment.
fn is_on(at_s: f64) -> bool {
    (BEGAN_S..ENDED_S).contains(&at_s)
}

pub struct Writer<'a> {
    pub recorder: &'a mut Recorder,
    pub run: RunId,
    sources: u32,
}

impl Writer<'_> {
    /// A source that is read shortly after each whole second; `values` are those of a moment.
    pub fn source(
        &mut self,
        name: &str,
        series: Vec<SeriesSpec>,
        values: impl Fn(f64) -> Vec<f64>,
    ) {
        let index = self.sources;
        self.sources += 1;
        let (name, layer, status) = (name.to_string(), Layer::Host, SourceStatus::Available);
        let declared = Source { index, name, layer, status, series };
        self.recorder.source(self.run, &declared).unwrap();
        for second in 0..=SECONDS {
            // Now a little earlier, now a little later.
            let at = second as f64 + [0.0004, 0.003][second as usize % 2];
            let reading = Interval { begin: ns(at), end: ns(at + 0.0002) };
            self.recorder.tick(self.run, index, reading, &values(at)).unwrap();
        }
    }

    pub fn event(&mut self, kind: &str, at_s: f64, text: &str) {
        let event = Event {
            run: Some(self.run),
            at: ns(at_s),
            kind: kind.into(),
            text: text.into(),
            data: json!({ "name": "neighbour" }),
        };
        self.recorder.event(&event).unwrap();
    }

    /// What covers whole ticks of the load generator, which began 0.2 s after a whole second.
    fn ticks(&mut self) {
        let mut latency = Histogram::new();
        latency.record(1_000);
        for second in 0..SECONDS - 1 {
            let (begin_s, end_s) = (second as f64 + 0.2, second as f64 + 1.2);
            let interval = Interval { begin: ns(begin_s), end: ns(end_s) };
            let committed = ((done(end_s) - done(begin_s)) * 100.0).round() as u64;
            let tick = TransactionTick {
                interval,
                transaction: "new_order".into(),
                committed,
                rolled_back: 0,
                failed: 0,
                unknown: 0,
                errors: Default::default(),
                retries: 0,
                response: (&latency).into(),
                service: (&latency).into(),
            };
            self.recorder.transactions(self.run, &tick).unwrap();
            if committed > 20 {
                for (scope, name) in [
                    (histogram_scope::DATASTORE, "data.write"),
                    (histogram_scope::CLUSTER, "group.h0/g0.vm.write"),
                ] {
                    self.recorder.histogram(self.run, interval, scope, name, &latency).unwrap();
                }
            }
            // Session samples are summed per whole second.
            let whole = Interval { begin: ns(second as f64), end: ns(second as f64 + 1.0) };
            let on = done(second as f64 + 1.0) - done(second as f64);
            let word = |text: &str| text.to_string();
            let key = WaitKey {
                state: word("active"),
                class: word("Lock"),
                event: word("tuple"),
                backend_type: word("client backend"),
            };
            let sessions = (on * 20.0).round() as u32;
            let window = WaitWindow {
                interval: whole,
                samples: 20,
                clients: vec![WaitCount { key, sessions }],
                holder_samples: 0,
                holders: Vec::new(),
                background: Vec::new(),
                log_holders: Vec::new(),
                page_holders: Vec::new(),
            };
            self.recorder.waits(self.run, &window).unwrap();
        }
    }
}

fn record(path: &Path, write: impl FnOnce(&mut Writer<'_>)) -> Record {
    let manifest = Manifest {
        study_name: "s".into(),
        title: "t".into(),
        question: "q".into(),
        evidence: Evidence::Emulated,
        seed: RootSeed(1),
        identity: "i".into(),
        started_wall_ns: 0,
        plan: json!({}),
        host: json!({}),
        software: json!({}),
    };
    let mut recorder = Recorder::create(path, &manifest).unwrap();
    let design = Design {
        index: 0,
        name: "d".into(),
        title: "D".into(),
        description: String::new(),
        evidence: Evidence::Emulated,
        detail: json!({}),
    };
    recorder.add_design(&design).unwrap();
    let new = NewRun { design: 0, repeat: 1, order: 0, at: Nanos::ZERO, origin_wall_ns: 0 };
    let run = recorder.begin_run(&new).unwrap();
    write(&mut Writer { recorder: &mut recorder, run, sources: 0 });
    let at = Nanos::from_secs(SECONDS + 1);
    let end = RunEnd { at, status: RunStatus::Finished, reason: None };
    recorder.end_run(run, &end).unwrap();
    recorder.finish(ExecutionStatus::Finished).unwrap();
    Record::open_read_only(path).unwrap()
}

/// The analysis of a record of one run.
pub fn analysed(write: impl FnOnce(&mut Writer<'_>)) -> Analysis {
    let folder = tempfile::tempdir().unwrap();
    underlay_report::analyse(&record(&folder.path().join("record.sqlite"), write)).unwrap()
}

/// The seconds in which a series is clearly above nothing.
fn busy(analysis: &Analysis, name: &str) -> Vec<usize> {
    let names: Vec<&str> = analysis.timelines.series.iter().map(|one| one.name.as_str()).collect();
    let position = names.iter().position(|known| *known == name);
    let position = position.unwrap_or_else(|| panic!("{name} of {names:?}"));
    let line = analysis.timelines.lines.iter().find(|line| line.series == position).unwrap();
    assert_eq!((line.begin_s, line.step_s), (0.0, 1.0));
    let most = line.mean.iter().flatten().copied().fold(0.0, f64::max);
    (0..line.mean.len())
        .filter(|second| line.mean[*second].is_some_and(|value| value > most * 0.2))
        .collect()
}

pub fn counter(name: &str) -> SeriesSpec {
    SeriesSpec::counter(name, "x")
}

/// What goes on from 3.1 s to 5.1 s is drawn in the seconds 3 and 4: those of its event, of transactions and of latencies.
#[test]
fn every_source_is_drawn_in_the_second_of_what_happened() {
    let found = analysed(|writer| {
        writer.event(event::FAULT, BEGAN_S, "a device is slow");
        writer.ticks();
        let ios = |at: f64| vec![done(at) * 500.0, done(at) * 4000.0, done(at) * 100.0];
        let series = ["volume.data.write.ios", "volume.data.write.sectors"];
        let mut block: Vec<SeriesSpec> = series.map(counter).into();
        block.push(counter("volume.data.write.time"));
        writer.source(source::BLOCK, block, ios);
        let neighbour = ["reads", "writes", "read_bytes", "write_bytes", "errors"];
        let neighbour = neighbour.map(|what| counter(&format!("neighbour.{what}")));
        writer.source(source::BACKGROUND, neighbour.into(), |at| {
            vec![done(at) * 10.0, done(at) * 20.0, done(at) * 1e6, done(at) * 2e6, 0.0]
        });
        let postgres = vec![counter("wal.position"), counter("database.blks_read")];
        writer.source(source::POSTGRES, postgres, |at| vec![done(at) * 1e6, done(at) * 50.0]);
        let cpu = vec![counter("cpu.user"), counter("cpu.idle")];
        writer.source(source::HOST_CPU, cpu, |at| vec![done(at) * 1e9, at * 1e9]);
        let cluster = vec![
            SeriesSpec::gauge("cluster.group.h0/g0.buffer.free", "percent"),
            counter("cluster.group.h0/g0.queue.resync.bytes"),
            counter("cluster.group.h0/g0.queue.resync.ios"),
            SeriesSpec::gauge("cluster.group.h0/g0.congestion", "x"),
            counter("cluster.resync.repair.bytes"),
            counter("cluster.resync.repair.ios"),
            SeriesSpec::gauge("cluster.resync.repair.left", "bytes"),
        ];
        writer.source(source::DATASTORE, cluster, |at| {
            // Gauges show what was so just before the reading.
            let gauge = f64::from(u8::from(is_on(at - 0.2)));
            let (bytes, ios) = (done(at) * 1e6, done(at) * 5.0);
            vec![gauge * 90.0, bytes, ios, gauge * 255.0, bytes, ios, gauge * 1e9]
        });
        let users = vec![SeriesSpec::gauge(driver_series::USERS_ACTIVE, "users")];
        writer.source(source::DRIVER, users, |at| {
            // What was said at the latest tick, which ended 0.2 s after a whole second.
            let told = (at - 0.2).floor() + 0.2;
            vec![if told < 0.0 { f64::NAN } else { f64::from(u8::from(is_on(told - 0.5))) }]
        });
    });
    let run = &found.runs[0];
    assert_eq!(run.events.iter().map(|event| event.at_s as usize).collect::<Vec<_>>(), [3]);
    for series in [
        "transactions",
        "datastore.data.write.p99",
        "cluster.group.h0/g0.write.p99",
        "wait.lock",
        "volume.data.write_iops",
        "volume.data.write_bytes",
        "background.neighbour.reads",
        "background.neighbour.read_bytes",
        "background.neighbour.write_bytes",
        "log_bytes",
        "blocks_read",
        "cpu.user",
        "cluster.queue.resync",
        "cluster.group.h0/g0.congestion",
        "cluster.resync.bytes",
        "cluster.resync.ios",
        "cluster.resync.left",
        "users",
    ] {
        assert_eq!(busy(&found, series), [3, 4], "{series}");
    }
    // A mean per request, of however few: the last tenth of a second has some.
    assert_eq!(busy(&found, "volume.data.write_latency"), [3, 4, 5]);
}

/// Records of the time in which a block load was counted when a second of its own was over.
#[test]
fn the_neighbour_of_an_older_record_is_drawn_when_it_worked() {
    let found = analysed(|writer| {
        writer.event(
            event::BACKGROUND,
            BEGAN_S,
            "neighbour began: the block load x on 1 MiB of data",
        );
        writer.event(event::BACKGROUND_END, ENDED_S, "neighbour ended");
        let series = ["reads", "writes", "bytes", "errors"];
        let series = series.map(|what| counter(&format!("neighbour.{what}")));
        writer.source(source::BACKGROUND, series.into(), |at| {
            let whole = if at < ENDED_S { (at - BEGAN_S).max(0.0).floor() } else { done(at) };
            vec![0.0, whole * 20.0, whole * 2e6, 0.0]
        });
    });
    assert_eq!(busy(&found, "background.neighbour.bytes"), [3, 4]);
    assert_eq!(busy(&found, "background.neighbour.writes"), [3, 4]);
}
