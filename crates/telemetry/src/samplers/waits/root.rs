//! Whom a session waits for that waits for the log or for a page, within one sample. Pure.
//!
//! Commits share a flush: one session writes and flushes the log, the others wait for it. What they wait for is
//! what the writer does: I/O, or a processor. The same holds for sessions that wait for a page which another
//! session reads. Who writes and who reads is visible in the same sample; if no session does, the one waited for
//! has no wait of its own, which means that it is running or runnable.

use super::sample::{Sample, is_client, with_doing};
use super::threads::Doing;
use crate::item::WaitKey;

/// What the sessions at the roots of waits were doing: one entry per waiting session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Roots {
    /// For each client session that waits for another one's write or flush of the log.
    pub(super) log: Vec<WaitKey>,
    /// For each client session that waits for a page that another one reads.
    pub(super) pages: Vec<WaitKey>,
}

/// The roots of the waits of one sample.
pub(super) fn find(sample: &Sample) -> Roots {
    Roots {
        log: followed(sample, waits_for_log_writer, writes_log),
        pages: followed(sample, waits_for_page_reader, reads_page),
    }
}

type Is = fn(&WaitKey, Option<Doing>) -> bool;

fn followed(sample: &Sample, waits: Is, works: Is) -> Vec<WaitKey> {
    let workers: Vec<WaitKey> = sample
        .iter()
        .filter(|s| works(&s.key, s.doing))
        .map(|s| with_doing(s.key.clone(), s.doing))
        .collect();
    let waiters = sample.iter().filter(|s| is_client(&s.key) && waits(&s.key, s.doing));
    waiters
        .enumerate()
        .filter_map(|(number, waiter)| match workers.len() {
            // Sessions of InnoDB say the same of the writer and of those who wait for it.
            0 if is_innodb_log(&waiter.key) => None,
            0 => Some(awake()),
            count => Some(workers[number % count].clone()),
        })
        .collect()
}

/// The state of a session that is neither waiting nor idle.
fn awake() -> WaitKey {
    WaitKey {
        state: format!("active/{}", Doing::Awake.letter()),
        class: String::new(),
        event: String::new(),
        backend_type: String::new(),
    }
}

fn is_innodb_log(key: &WaitKey) -> bool {
    key.class == "IO" && key.event.starts_with("InnodbLog")
}

fn is_wal(key: &WaitKey, class: &str) -> bool {
    key.class == class && key.event.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case("wal"))
}

fn waits_for_log_writer(key: &WaitKey, doing: Option<Doing>) -> bool {
    // Awake, it has what it waited for.
    match doing {
        Some(Doing::Awake) => false,
        Some(Doing::Asleep) => is_wal(key, "LWLock") || is_innodb_log(key),
        Some(Doing::InIo) | None => is_wal(key, "LWLock"),
    }
}

fn writes_log(key: &WaitKey, doing: Option<Doing>) -> bool {
    is_wal(key, "IO") || (is_innodb_log(key) && matches!(doing, Some(Doing::Awake | Doing::InIo)))
}

fn waits_for_page_reader(key: &WaitKey, doing: Option<Doing>) -> bool {
    doing != Some(Doing::Awake) && key.class == "IPC" && key.event.eq_ignore_ascii_case("bufferio")
}

fn reads_page(key: &WaitKey, _: Option<Doing>) -> bool {
    key.class == "IO" && key.event.to_ascii_lowercase().starts_with("datafileread")
}

#[cfg(test)]
mod tests {
    use super::{Roots, awake, find};
    use crate::item::WaitKey;
    use crate::samplers::waits::sample::{Sampled, with_doing};
    use crate::samplers::waits::threads::Doing;

    fn session(class: &str, event: &str, doing: Option<Doing>) -> Sampled {
        background("client backend", class, event, doing)
    }

    fn background(kind: &str, class: &str, event: &str, doing: Option<Doing>) -> Sampled {
        let key = WaitKey {
            state: "active".to_string(),
            class: class.to_string(),
            event: event.to_string(),
            backend_type: kind.to_string(),
        };
        Sampled::new(0, key, doing)
    }

    fn key_of(session: &Sampled) -> WaitKey {
        with_doing(session.key.clone(), session.doing)
    }

    #[test]
    fn commits_wait_for_what_the_writer_of_the_log_does() {
        let waiter = session("LWLock", "WALWrite", Some(Doing::Asleep));
        for doing in [Some(Doing::InIo), Some(Doing::Awake), None] {
            let writer = session("IO", "WALSync", doing);
            let found = find(&vec![waiter.clone(), writer.clone(), waiter.clone()]);
            assert_eq!(found.log, vec![key_of(&writer); 2]);
            assert_eq!(found.pages, []);
        }
        let writer = background("walwriter", "IO", "WalSync", Some(Doing::InIo));
        assert_eq!(find(&vec![waiter.clone(), writer.clone()]).log, [key_of(&writer)]);
        // The holder of the lock is not in I/O: it runs, or waits for a processor.
        assert_eq!(find(&vec![waiter]).log, [awake()]);
        let woken = session("LWLock", "WALWrite", Some(Doing::Awake));
        assert_eq!(find(&vec![woken]), Roots::default());
    }

    #[test]
    fn the_writer_of_innodb_is_told_by_its_thread() {
        let waiter = session("IO", "InnodbLogFlush", Some(Doing::Asleep));
        for doing in [Doing::InIo, Doing::Awake] {
            let writer = session("IO", "InnodbLogFlush", Some(doing));
            assert_eq!(find(&vec![waiter.clone(), writer.clone()]).log, [key_of(&writer)]);
        }
        assert_eq!(find(&vec![waiter.clone(), waiter]).log, [], "who writes is not visible");
        let unknown = session("IO", "InnodbLogFlush", None);
        assert_eq!(find(&vec![unknown.clone(), unknown]).log, []);
    }

    #[test]
    fn a_page_that_another_session_reads_is_waited_for_with_it() {
        let waiter = session("IPC", "BufferIO", Some(Doing::Asleep));
        let readers = [
            session("IO", "DataFileRead", Some(Doing::InIo)),
            session("IO", "DataFileRead", Some(Doing::Awake)),
        ];
        let mut sample = readers.to_vec();
        sample.extend([waiter.clone(), waiter.clone()]);
        let found = find(&sample).pages;
        assert_eq!(found, [key_of(&readers[0]), key_of(&readers[1])]);
        assert_eq!(find(&vec![waiter]).pages, [awake()]);
    }
}
