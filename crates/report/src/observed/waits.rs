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
/// The kind that vacuums and analyses tables of its own accord.
const AUTOVACUUM_WORKER: &str = "autovacuum worker";

/// Sampled sessions over a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WaitSummary {
    /// Mean number of client sessions per class. `Cpu` includes runnable ones, `Client` idle ones.
    pub(crate) sessions: BTreeMap<TimeClass, f64>,
    /// How often the sessions were looked at.
    pub(crate) samples: u64,
    /// Share of each class among the holders of locks that others waited for.
    pub(crate) holders: BTreeMap<TimeClass, f64>,
    /// Where the sessions' threads were seen: of `sessions`, those whose thread ran or could.
    pub(crate) awake: Option<BTreeMap<TimeClass, f64>>,
    /// Share of the holders of locks that ran or could.
    pub(crate) lock_holders: Roots,
    /// Sessions that wait for another one's write of the log, and what that one does.
    pub(crate) log_holders: Roots,
    /// Sessions that wait for a page that another one reads, and what that one does.
    pub(crate) page_holders: Roots,
    /// Mean number of autovacuum workers.
    pub(crate) autovacuum: f64,
}

/// What the sessions at the roots of waits were doing, in mean numbers of sessions that wait for them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Roots {
    /// All.
    pub(crate) all: f64,
    /// Without a wait: it ran or could.
    pub(crate) running: f64,
    /// In a wait that had ended, as its thread ran or could.
    pub(crate) awake: f64,
}

impl Roots {
    fn add(&mut self, counts: &[WaitCount]) {
        for count in counts {
            let sessions = f64::from(count.sessions);
            self.all += sessions;
            if class_of(&count.key) == TimeClass::Cpu {
                self.running += sessions;
            } else if thread(&count.key) == Some(AWAKE) {
                self.awake += sessions;
            }
        }
    }

    fn scale(&mut self, by: f64) {
        self.all *= by;
        self.running *= by;
        self.awake *= by;
    }
}

/// The letter of a thread that runs or could.
const AWAKE: &str = "R";

/// What the kernel said of the session's thread.
fn thread(key: &WaitKey) -> Option<&str> {
    key.state.split_once('/').map(|(_, letter)| letter)
}

impl WaitSummary {
    /// Of all windows; `None` without samples.
    pub(crate) fn of<'a>(windows: impl Iterator<Item = &'a WaitWindow>) -> Option<WaitSummary> {
        let mut summary = WaitSummary::default();
        for window in windows {
            summary.samples += u64::from(window.samples);
            let clients =
                window.clients.iter().filter(|count| count.key.backend_type == CLIENT_BACKEND);
            add(&mut summary.sessions, clients.clone());
            if clients.clone().any(|count| thread(&count.key).is_some()) {
                let awake = summary.awake.get_or_insert_default();
                add(awake, clients.filter(|count| thread(&count.key) == Some(AWAKE)));
            }
            add(&mut summary.holders, window.holders.iter());
            summary.lock_holders.add(&window.holders);
            summary.log_holders.add(&window.log_holders);
            summary.page_holders.add(&window.page_holders);
            let workers = window.background.iter();
            let workers = workers.filter(|count| count.key.backend_type == AUTOVACUUM_WORKER);
            summary.autovacuum += workers.map(|count| f64::from(count.sessions)).sum::<f64>();
        }
        let held: f64 = summary.holders.values().sum();
        summary.holders.values_mut().for_each(|share| *share /= held);
        let samples = summary.samples as f64;
        let counted = summary.awake.iter_mut().chain([&mut summary.sessions]);
        counted.flat_map(BTreeMap::values_mut).for_each(|sessions| *sessions /= samples);
        if held > 0.0 {
            summary.lock_holders.scale(1.0 / held);
        }
        summary.log_holders.scale(1.0 / samples);
        summary.page_holders.scale(1.0 / samples);
        summary.autovacuum /= samples;
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
    use super::{Roots, WaitSummary, class_of};
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
            ("idle/R", "Client", "ClientRead", TimeClass::Client),
            ("active/D", "IO", "WALSync", TimeClass::Log),
        ];
        for (state, class, event, expected) in cases {
            assert_eq!(class_of(&key(state, class, event, "")), expected, "{class}:{event}");
        }
    }

    #[test]
    fn threads_that_ran_or_could_are_counted_apart() {
        let count = |key, sessions| WaitCount { key, sessions };
        let client = |state, class, event| key(state, class, event, "client backend");
        let window = WaitWindow {
            interval: Interval { begin: Nanos(0), end: Nanos(1) },
            samples: 10,
            clients: vec![
                count(client("active/R", "IO", "WALSync"), 20),
                count(client("active/D", "IO", "WALSync"), 5),
                count(client("idle/R", "Client", "ClientRead"), 10),
            ],
            holder_samples: 5,
            holders: vec![
                count(client("active/R", "", ""), 1),
                count(client("active/R", "IO", "WALSync"), 2),
                count(client("active/D", "IO", "WALSync"), 1),
            ],
            background: Vec::new(),
            log_holders: vec![count(key("active/R", "", "", ""), 10)],
            page_holders: Vec::new(),
        };
        let summary = WaitSummary::of([&window].into_iter()).unwrap();
        let awake = summary.awake.expect("threads were seen");
        assert_eq!((awake[&TimeClass::Log], awake[&TimeClass::Client]), (2.0, 1.0));
        assert_eq!(summary.sessions[&TimeClass::Log], 2.5);
        assert_eq!(summary.lock_holders, Roots { all: 1.0, running: 0.25, awake: 0.5 });
        assert_eq!(summary.log_holders, Roots { all: 1.0, running: 1.0, awake: 0.0 });
        assert_eq!(summary.page_holders, Roots::default());
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
            background: vec![
                count(key("active", "Timeout", "VacuumDelay", "autovacuum worker"), 12),
                count(key("active", "", "", "autovacuum worker"), 3),
                count(key("active", "IO", "DataFileWrite", "checkpointer"), 7),
            ],
            log_holders: Vec::new(),
            page_holders: Vec::new(),
        };
        let summary = WaitSummary::of([&window, &window].into_iter()).unwrap();
        assert_eq!(summary.samples, 40);
        assert_eq!(summary.autovacuum, 0.75);
        assert_eq!(summary.sessions[&TimeClass::Log], 3.0);
        assert_eq!(summary.sessions[&TimeClass::Client], 1.0);
        assert!(!summary.sessions.contains_key(&TimeClass::Cpu), "workers are no clients");
        assert_eq!(summary.holders[&TimeClass::Log], 0.75);
        assert_eq!(WaitSummary::of(std::iter::empty()), None);
    }
}
