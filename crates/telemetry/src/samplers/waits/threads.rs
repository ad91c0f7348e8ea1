//! What the kernel says about the threads that serve the sessions: running or runnable, asleep, or asleep in I/O, and
//! then on which file.
//!
//! A server names what a session waits for, and does not know whether the session could go on if it had a
//! processor: a flush that ended is still called a flush until its process runs again. The state of the thread
//! tells. Only servers on this host have such threads, and a number is believed only if the program that it belongs
//! to is a database server, because numbers of another process namespace mean other processes.

use crate::kernel_file::read_whole;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use underlay_database::{Target, is_server_task};

/// Threads whose files are kept open; those of further sessions are opened at each look.
const KEPT_OPEN_MAX: usize = 512;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doing {
    /// It runs, or would if it had a processor.
    Awake,
    /// It sleeps and cannot be interrupted: it waits for a device, with few exceptions.
    InIo,
    /// It sleeps.
    Asleep,
}

impl Doing {
    /// The letter of `/proc/<pid>/stat`, which records carry.
    pub(super) fn letter(self) -> char {
        match self {
            Doing::Awake => 'R',
            Doing::InIo => 'D',
            Doing::Asleep => 'S',
        }
    }

    fn of(letter: u8) -> Option<Doing> {
        match letter {
            b'R' => Some(Doing::Awake),
            b'D' => Some(Doing::InIo),
            b'S' | b'I' => Some(Doing::Asleep),
            _ => None,
        }
    }
}

/// What a call to the kernel does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    Sync,
}

/// The call in which a thread sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileCall {
    pub(super) operation: Operation,
    /// Where the file is, as the kernel names it.
    pub(super) file: PathBuf,
}

/// The files of one thread.
#[derive(Debug)]
struct Files {
    stat: File,
    schedstat: Option<File>,
    /// CPU time at the latest reading, ns.
    on_cpu_ns: Option<u64>,
}

/// The threads of a server on this host.
#[derive(Debug)]
pub(super) struct Threads {
    proc: PathBuf,
    /// `None` of a thread that is no server's.
    known: BTreeMap<i32, Option<Files>>,
    buffer: Vec<u8>,
    /// CPU time of all threads seen, from when each was first seen, ns.
    on_cpu_ns: u64,
}

impl Threads {
    /// Of the server of `target`, if it is on this host.
    pub(super) fn of(target: &Target, proc: &Path) -> Option<Threads> {
        target.is_on_this_host().then(|| Threads {
            proc: proc.to_path_buf(),
            known: BTreeMap::new(),
            buffer: Vec::new(),
            on_cpu_ns: 0,
        })
    }

    /// What a thread is doing; `None` where that cannot be said.
    pub(super) fn doing(&mut self, thread: i32) -> Option<Doing> {
        if thread <= 0 {
            return None;
        }
        if !self.known.contains_key(&thread) {
            let files = open(&self.proc, thread);
            self.known.insert(thread, files);
        }
        let files = self.known.get(&thread)?.as_ref()?;
        let read = read_whole(&files.stat, &mut self.buffer);
        let found = read.ok().and_then(|length| Doing::of(state_letter(&self.buffer[..length])?));
        if found.is_none() {
            // It has ended; its number may come again.
            self.known.remove(&thread);
        }
        found
    }

    /// The call on a file in which a thread sleeps; `None` where it is in no such call, or may not be looked at.
    pub(super) fn file_call(&self, thread: i32) -> Option<FileCall> {
        self.known.get(&thread)?.as_ref()?;
        let folder = self.proc.join(thread.to_string());
        let text = std::fs::read_to_string(folder.join("syscall")).ok()?;
        let (operation, descriptor) = call_on_descriptor(&text)?;
        let file = std::fs::read_link(folder.join("fd").join(descriptor.to_string())).ok()?;
        Some(FileCall { operation, file })
    }

    /// Closes the files of threads that are not among `seen`, sorted, or are too many.
    pub(super) fn keep(&mut self, seen: &[i32]) {
        let mut kept = 0;
        self.known.retain(|thread, _| {
            kept += 1;
            kept <= KEPT_OPEN_MAX && seen.binary_search(thread).is_ok()
        });
    }

    /// Whether the files of so many threads are kept open, so that none of their CPU time is missed.
    pub(super) fn follows_all(sessions: usize) -> bool {
        sessions <= KEPT_OPEN_MAX
    }

    /// CPU time of the threads since each was first seen, ns.
    pub(super) fn on_cpu_ns(&mut self) -> u64 {
        for files in self.known.values_mut().flatten() {
            let Some(schedstat) = &files.schedstat else { continue };
            let Ok(length) = read_whole(schedstat, &mut self.buffer) else { continue };
            let Some(now_ns) = first_number(&self.buffer[..length]) else { continue };
            self.on_cpu_ns += now_ns.saturating_sub(files.on_cpu_ns.unwrap_or(now_ns));
            files.on_cpu_ns = Some(now_ns);
        }
        self.on_cpu_ns
    }
}

fn open(proc: &Path, thread: i32) -> Option<Files> {
    if !is_server_task(proc, u32::try_from(thread).ok()?) {
        return None;
    }
    let folder = proc.join(thread.to_string());
    // The files of the thread itself: those of a process add up all of its threads, which costs more.
    let own = folder.join("task").join(thread.to_string());
    let folder = if own.is_dir() { own } else { folder };
    Some(Files {
        stat: File::open(folder.join("stat")).ok()?,
        schedstat: File::open(folder.join("schedstat")).ok(),
        on_cpu_ns: None,
    })
}

/// The state in a stat text: the letter behind the name, which may contain anything.
fn state_letter(stat: &[u8]) -> Option<u8> {
    let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(end_of_name + 2).copied()
}

/// The operation of a call and the number of its file, from a text such as `17 0x2b 0x7f...`: the call's number and
/// its arguments. A thread that runs has the text `running`.
fn call_on_descriptor(text: &str) -> Option<(Operation, u64)> {
    let mut words = text.split_ascii_whitespace();
    let operation = match words.next()?.parse().ok()? {
        libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 | libc::SYS_preadv => Operation::Read,
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev => {
            Operation::Write
        }
        libc::SYS_fsync | libc::SYS_fdatasync => Operation::Sync,
        _ => return None,
    };
    let descriptor = words.next()?.strip_prefix("0x")?;
    Some((operation, u64::from_str_radix(descriptor, 16).ok()?))
}

fn first_number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Doing, FileCall, Operation, Threads, call_on_descriptor, state_letter};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    use underlay_database::Target;

    #[test]
    fn the_state_stands_behind_a_name_with_brackets() {
        assert_eq!(state_letter(b"7 (a) b) (c) D 1 2 3"), Some(b'D'));
        assert_eq!(state_letter(b"7 (a"), None);
        let read_back = |doing: Doing| Doing::of(doing.letter() as u8);
        for doing in [Doing::Awake, Doing::InIo, Doing::Asleep] {
            assert_eq!(read_back(doing), Some(doing));
        }
        assert_eq!(Doing::of(b'Z'), None);
    }

    #[test]
    fn calls_on_files_are_told_apart() {
        let of = |number: i64| call_on_descriptor(&format!("{number} 0x2b 0x7f00 0x4000 0x0"));
        assert_eq!(of(libc::SYS_pread64), Some((Operation::Read, 43)));
        assert_eq!(of(libc::SYS_pwrite64), Some((Operation::Write, 43)));
        assert_eq!(of(libc::SYS_fdatasync), Some((Operation::Sync, 43)));
        assert_eq!(of(libc::SYS_futex), None);
        assert_eq!(call_on_descriptor("running\n"), None);
        assert_eq!(call_on_descriptor(""), None);
    }

    #[test]
    fn the_file_that_a_server_reads_is_named() {
        let target = Target::from_url("mysql://me@localhost/x").unwrap();
        let mut threads = Threads::of(&target, Path::new("/proc")).expect("this host");
        let mut reading = Command::new("bash")
            .args(["-c", "exec -a mariadbd cat"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let thread = reading.id() as i32;
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut found = None;
        while found.is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
            threads.keep(&[]);
            threads.doing(thread);
            found = threads.file_call(thread);
        }
        reading.kill().expect("ended");
        reading.wait().expect("reaped");
        let FileCall { operation, file } = found.expect("it reads its input");
        assert_eq!(operation, Operation::Read);
        assert!(file.to_string_lossy().starts_with("pipe:"), "{}", file.display());
        assert_eq!(threads.file_call(std::process::id() as i32), None, "no server");
    }

    #[test]
    fn only_servers_of_this_host_have_threads() {
        let proc = Path::new("/proc");
        let of = |url: &str| Threads::of(&Target::from_url(url).unwrap(), proc);
        assert!(of("postgresql://me@db.example.net/x").is_none());
        assert!(of("postgresql://me@10.1.2.3/x").is_none());
        let mut here = of("postgresql://me@127.0.0.1/x").expect("this host");
        // This process is not a server, so its number belongs to no session.
        assert_eq!(here.doing(std::process::id() as i32), None);
        assert_eq!(here.doing(0), None);
    }

    #[test]
    fn a_server_that_spins_is_awake_and_one_that_sleeps_is_not() {
        let target = Target::from_url("mysql://me@localhost/x").unwrap();
        let mut threads = Threads::of(&target, Path::new("/proc")).expect("this host");
        let start = |script: &str| {
            Command::new("bash")
                .args(["-c", &format!("exec -a postgres bash -c '{script}'")])
                .stdin(Stdio::piped())
                .spawn()
                .expect("a shell")
        };
        let (mut spinning, mut sleeping) = (start("while :; do :; done"), start("read line; :"));
        let (spins, sleeps) = (spinning.id() as i32, sleeping.id() as i32);
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut found = (None, None);
        let mut used_ns = 0;
        while (found != (Some(Doing::Awake), Some(Doing::Asleep)) || used_ns == 0)
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(20));
            // A number that was looked at before its program began is looked at again.
            threads.keep(&[]);
            found = (threads.doing(spins), threads.doing(sleeps));
            threads.on_cpu_ns();
            std::thread::sleep(Duration::from_millis(20));
            used_ns = threads.on_cpu_ns();
        }
        for child in [&mut spinning, &mut sleeping] {
            child.kill().expect("ended");
            child.wait().expect("reaped");
        }
        assert_eq!(found, (Some(Doing::Awake), Some(Doing::Asleep)));
        assert!(used_ns > 0);
        assert_eq!(threads.doing(spins), None, "it has ended");
    }
}
