//! What the datastore says of each second, in the record: latencies as histograms, and what happened as events.

use serde_json::json;
use std::sync::PoisonError;
use underlay_core::Nanos;
use underlay_datastore::{BackendLatency, DatastoreNotice};
use underlay_record::conventions::{event, histogram_scope};
use underlay_record::{Event, Interval, RunId};

use crate::lab::abort::{Abort, During};
use crate::lab::run_log::RunLog;
use crate::lab::samplers::SharedDatastore;

/// Writes what the datastore saw in `interval`, which has just ended.
pub fn write(
    log: RunLog<'_>,
    datastore: &SharedDatastore,
    interval: Interval,
) -> Result<(), Abort> {
    let mut datastore = datastore.lock().unwrap_or_else(PoisonError::into_inner);
    let latencies = datastore.latency().during("read the datastore's latencies")?;
    let backend = datastore.backend_latency().during("read the cluster's latencies")?;
    let notices = datastore.notices().during("read what happened in the datastore")?;
    drop(datastore);
    // How long ago is told as of the answer, which was just now.
    let (run, now) = (log.run, log.now());
    let mut recorder = log.recorder.lock();
    for latency in latencies.iter().filter(|latency| !latency.latency.is_empty()) {
        let name = format!("{}.{}", latency.volume, latency.operation.as_str());
        recorder
            .histogram(run, interval, histogram_scope::DATASTORE, &name, &latency.latency)
            .during("write the record")?;
    }
    for BackendLatency { name, latency } in &backend {
        recorder
            .histogram(run, interval, histogram_scope::CLUSTER, name, latency)
            .during("write the record")?;
    }
    // Faults are in the record already, with what was planned about them.
    for notice in notices.into_iter().filter(|notice| notice.kind != "fault") {
        recorder.event(&recorded(run, now, notice)).during("write the record")?;
    }
    Ok(())
}

/// Hosts that went or came, copying: what explains a bend in the curves.
fn recorded(run: RunId, now: Nanos, notice: DatastoreNotice) -> Event {
    let kind = match notice.kind.as_str() {
        "resync" => event::RESYNC,
        _ => event::STORAGE,
    };
    Event {
        run: Some(run),
        at: now.saturating_sub(Nanos(notice.ago_ns)),
        kind: kind.to_string(),
        text: notice.text,
        data: json!({ "of": notice.kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::write;
    use crate::lab::run_log::RunLog;
    use crate::lab::shared_recorder::SharedRecorder;
    use serde_json::json;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};
    use underlay_core::series::SeriesSpec;
    use underlay_core::{Dilation, Evidence, Histogram, Nanos, RootSeed};
    use underlay_datastore::{
        BackendLatency, ClusterChange, ClusterFault, Datastore, DatastoreError, DatastoreNotice,
        MountedVolume, ServiceSlowdown, Timing, TimingReport, VolumeLatency,
    };
    use underlay_model::Operation;
    use underlay_record::conventions::histogram_scope;
    use underlay_record::{
        Design, ExecutionStatus, Interval, Manifest, NewRun, Record, Recorder, RunEnd, RunStatus,
    };

    /// A datastore in which something happens once.
    struct Eventful(Vec<DatastoreNotice>);

    impl Datastore for Eventful {
        fn volumes(&self) -> &[MountedVolume] {
            &[]
        }
        fn evidence(&self) -> Evidence {
            Evidence::Emulated
        }
        fn series(&self) -> Vec<SeriesSpec> {
            Vec::new()
        }
        fn counters(&mut self) -> Result<Vec<f64>, DatastoreError> {
            Ok(Vec::new())
        }
        fn set_slowdown(&mut self, _slowdown: ServiceSlowdown) -> Result<(), DatastoreError> {
            unreachable!("not asked for")
        }

        fn set_timing(&mut self, _timing: Timing) -> Result<(), DatastoreError> {
            Ok(())
        }
        fn timing(&mut self) -> Result<Option<TimingReport>, DatastoreError> {
            Ok(None)
        }
        fn latency(&mut self) -> Result<Vec<VolumeLatency>, DatastoreError> {
            let volume = "data".to_string();
            Ok(vec![VolumeLatency { volume, operation: Operation::Write, latency: histogram(5) }])
        }
        fn backend_latency(&mut self) -> Result<Vec<BackendLatency>, DatastoreError> {
            let name = "group.h0/g0.vm.write".to_string();
            Ok(vec![BackendLatency { name, latency: histogram(7) }])
        }
        fn power_cut(&mut self) -> Result<(), DatastoreError> {
            Ok(())
        }
        fn power_on(&mut self) -> Result<(), DatastoreError> {
            Ok(())
        }
        fn inject(&mut self, _fault: &ClusterFault) -> Result<(), DatastoreError> {
            Ok(())
        }
        fn change(&mut self, _change: &ClusterChange) -> Result<(), DatastoreError> {
            Ok(())
        }
        fn remount(&mut self) -> Result<(), DatastoreError> {
            Ok(())
        }
        fn notices(&mut self) -> Result<Vec<DatastoreNotice>, DatastoreError> {
            Ok(std::mem::take(&mut self.0))
        }
        fn processes(&self) -> Vec<(String, u32)> {
            Vec::new()
        }
        fn health(&mut self) -> Result<(), DatastoreError> {
            Ok(())
        }
        fn close(self: Box<Self>) -> Result<(), DatastoreError> {
            Ok(())
        }
    }

    fn histogram(value: u64) -> Histogram {
        let mut histogram = Histogram::new();
        histogram.record(value);
        histogram
    }

    fn manifest() -> Manifest {
        Manifest {
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
        }
    }

    fn notice(kind: &str, ago_ms: u64) -> DatastoreNotice {
        DatastoreNotice {
            ago_ns: ago_ms * 1_000_000,
            kind: kind.to_string(),
            text: format!("a {kind}"),
        }
    }

    #[test]
    fn what_happened_is_recorded_at_its_time_and_latencies_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.sqlite");
        let mut recorder = Recorder::create(&path, &manifest()).unwrap();
        recorder
            .add_design(&Design {
                index: 0,
                name: "d".into(),
                title: "D".into(),
                description: String::new(),
                evidence: Evidence::Emulated,
                detail: json!({}),
            })
            .unwrap();
        let new = NewRun { design: 0, repeat: 1, order: 0, at: Nanos::ZERO, origin_wall_ns: 0 };
        let run = recorder.begin_run(&new).unwrap();
        let recorder = SharedRecorder::new(recorder);
        let happened = vec![notice("fault", 900), notice("host", 700), notice("resync", 100)];
        let eventful: Box<dyn Datastore> = Box::new(Eventful(happened));
        let datastore = Arc::new(Mutex::new(eventful));
        // The run began two seconds ago.
        let origin = Instant::now() - Duration::from_secs(2);
        let log =
            RunLog { recorder: &recorder, run, origin, dilation: Dilation::NONE, database: "" };
        for second in 0..2 {
            let (begin, end) = (Nanos::from_secs(second), Nanos::from_secs(second + 1));
            let interval = Interval { begin, end };
            assert!(write(log, &datastore, interval).is_ok());
        }
        let end = RunEnd { at: Nanos::from_secs(4), status: RunStatus::Finished, reason: None };
        recorder.lock().end_run(run, &end).unwrap();
        recorder.finish(ExecutionStatus::Finished).unwrap();
        let record = Record::open_read_only(&path).unwrap();
        let events = record.events(Some(run)).unwrap();
        let told: Vec<_> = events.iter().map(|event| (&*event.kind, &*event.text)).collect();
        // The fault is recorded by the code that planned it.
        assert_eq!(told, [("storage", "a host"), ("resync", "a resync")]);
        let apart = events[1].at.0 - events[0].at.0;
        assert_eq!(apart, 600_000_000);
        assert!((1_300_000_000..2_000_000_000).contains(&events[0].at.0), "{:?}", events[0].at);
        assert_eq!(events[0].data, json!({ "of": "host" }));
        let histograms = record.histograms(run).unwrap();
        let names: Vec<_> = histograms
            .iter()
            .map(|row| (&*row.scope, &*row.name, row.histogram.decoded()))
            .collect();
        assert_eq!(names.len(), 4, "two per second");
        assert!(names.contains(&(histogram_scope::DATASTORE, "data.write", histogram(5))));
        assert!(names.contains(&(histogram_scope::CLUSTER, "group.h0/g0.vm.write", histogram(7))));
    }
}
