//! Sampled sessions, put into classes of session time.
//!
//! The mapping is PostgreSQL's, to whose words the sampler of MariaDB's sessions keeps (wait classes and events of versions 13 to 18; names are compared without case
//! because version 17 respelled some). A session without a wait is on a CPU *or runnable*; which, only
//! the scheduler's counters can tell (see `verdict::time_budget`).

use std::collections::BTreeMap;

use underlay_record::{WaitCount, WaitKey, WaitWindow};

use crate::analysis::TimeClass;

/// The kind of server process that serves a client.
const CLIENT_BACKEND: &str = "client backend";

/// Sampled sessions over a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WaitSummary {
    /// Mean number of client sessions per class. `Cpu` includes runnable ones, `Client` idle ones.
    pub(crate) sessions: BTreeMap<TimeClass, f64>,
    /// How often the sessions were looked at.
    pub(crate) samples: u64,
    /// Share of each class among the holders of locks that others waited for.
    pub(crate) holders: BTreeMap<TimeClass, f64>,
}

impl WaitSummary {
    /// Of all windows; `None` without samples.
    pub(crate) fn of<'a>(windows: impl Iterator<Item = &'a WaitWindow>) -> Option<WaitSummary> {
        let mut summary = WaitSummary::default();
        for window in windows {
            summary.samples += u64::from(window.samples);
            let clients =
                window.clients.iter().filter(|count| count.key.backend_type == CLIENT_BACKEND);
            add(&mut summary.sessions, clients);
            add(&mut summary.holders, window.holders.iter());
        }
        let held: f64 = summary.holders.values().sum();
        summary.holders.values_mut().for_each(|share| *share /= held);
        let samples = summary.samples as f64;
        summary.sessions.values_mut().for_each(|sessions| *sessions /= samples);
        (summary.samples > 0).then_some(summary)
    }
}

fn add<'a>(classes: &mut BTreeMap<TimeClass, f64>, counts: impl Iterator<Item = &'a WaitCount>) {
    for count in counts {
        *classes.entry(class_of(&count.key)).or_default() += f64::from(count.sessions);
    }
}

/// The class of what a session was doing.
pub(crate) fn class_of(key: &WaitKey) -> TimeClass {
    if key.state.starts_with("idle") {
        return TimeClass::Client;
    }
    let event = key.event.to_ascii_lowercase();
    match key.class.to_ascii_lowercase().as_str() {
        "" => TimeClass::Cpu,
        "io" => io_class(&event),
        "ipc" if event == "bufferio" => TimeClass::DataRead,
        "lwlock" if event.starts_with("wal") => TimeClass::Log,
        "lwlock" | "bufferpin" | "buffer" => TimeClass::Latch,
        "lock" => TimeClass::Lock,
        "client" => TimeClass::Client,
        _ => TimeClass::Other,
    }
}

fn io_class(event: &str) -> TimeClass {
    let reads = ["datafileread", "datafileprefetch", "buffileread", "slruread"];
    let writes = ["datafile", "buffile", "slru"];
    if event.starts_with("wal") || event.starts_with("innodblog") {
        TimeClass::Log
    } else if reads.contains(&event) || event.starts_with("aio") {
        TimeClass::DataRead
    } else if writes.iter().any(|file| event.starts_with(file)) {
        TimeClass::DataWrite
    } else {
        TimeClass::Other
    }
}

#[cfg(test)]
mod tests {
    use super::{WaitSummary, class_of};
    use crate::analysis::TimeClass;
    use underlay_core::Nanos;
    use underlay_record::{Interval, WaitCount, WaitKey, WaitWindow};

    fn key(state: &str, class: &str, event: &str, backend_type: &str) -> WaitKey {
        WaitKey {
            state: state.into(),
            class: class.into(),
            event: event.into(),
            backend_type: backend_type.into(),
        }
    }

    #[test]
    fn events_of_all_versions_have_a_class() {
        let cases = [
            ("active", "", "", TimeClass::Cpu),
            ("active", "IO", "WALSync", TimeClass::Log),
            ("active", "IO", "WalSync", TimeClass::Log),
            ("active", "LWLock", "WALWrite", TimeClass::Log),
            ("active", "IO", "InnodbLogFlush", TimeClass::Log),
            ("active", "Lock", "InnodbRow", TimeClass::Lock),
            ("active", "", "Sending data", TimeClass::Cpu),
            ("active", "LWLock", "WALInsert", TimeClass::Log),
            ("active", "LWLock", "LockManager", TimeClass::Latch),
            ("active", "BufferPin", "BufferPin", TimeClass::Latch),
            ("active", "IO", "DataFileRead", TimeClass::DataRead),
            ("active", "IO", "AioIoCompletion", TimeClass::DataRead),
            ("active", "IPC", "BufferIO", TimeClass::DataRead),
            ("active", "IO", "DataFileExtend", TimeClass::DataWrite),
            ("active", "IO", "SLRUSync", TimeClass::DataWrite),
            ("active", "Lock", "transactionid", TimeClass::Lock),
            ("active", "IPC", "SyncRep", TimeClass::Other),
            ("active", "Timeout", "VacuumDelay", TimeClass::Other),
            ("idle", "Client", "ClientRead", TimeClass::Client),
            ("idle in transaction", "Client", "ClientRead", TimeClass::Client),
        ];
        for (state, class, event, expected) in cases {
            assert_eq!(class_of(&key(state, class, event, "")), expected, "{class}:{event}");
        }
    }

    #[test]
    fn summaries_are_mean_sessions() {
        let count = |key, sessions| WaitCount { key, sessions };
        let window = WaitWindow {
            interval: Interval { begin: Nanos(0), end: Nanos(1) },
            samples: 20,
            clients: vec![
                count(key("active", "IO", "WALSync", "client backend"), 60),
                count(key("idle", "Client", "ClientRead", "client backend"), 20),
                count(key("active", "", "", "parallel worker"), 20),
            ],
            holder_samples: 5,
            holders: vec![
                count(key("active", "IO", "WALSync", "client backend"), 3),
                count(key("idle in transaction", "Client", "ClientRead", "client backend"), 1),
            ],
            background: Vec::new(),
        };
        let summary = WaitSummary::of([&window, &window].into_iter()).unwrap();
        assert_eq!(summary.samples, 40);
        assert_eq!(summary.sessions[&TimeClass::Log], 3.0);
        assert_eq!(summary.sessions[&TimeClass::Client], 1.0);
        assert!(!summary.sessions.contains_key(&TimeClass::Cpu), "workers are no clients");
        assert_eq!(summary.holders[&TimeClass::Log], 0.75);
        assert_eq!(WaitSummary::of(std::iter::empty()), None);
    }
}
