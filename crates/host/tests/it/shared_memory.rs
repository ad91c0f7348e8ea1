//! Shared memory that a server of ours left: removed when it is ours and nobody uses it, and only then.
//!
//! The server is this test binary itself, started again with the ignored test `server`.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::process::{Pid, kill_process};
use tempfile::TempDir;
use underlay_host::{Process, ProcessSpec, Resource, Segment, Signal, StateDir, Teardown, clean};

const PLACE_VARIABLE: &str = "UNDERLAY_TEST_PLACE";
const SEGMENT_VARIABLE: &str = "UNDERLAY_TEST_SEGMENT";
const MEMORY: &str = "/dev/shm";

/// Segments of a test; dropping it removes what the test failed to.
struct Segments {
    /// Part of their names.
    number: u32,
    system_v: Option<i32>,
}

impl Segments {
    /// Different for each test of this process.
    fn new(test: u32) -> Segments {
        Segments { number: std::process::id() * 100 + test * 10, system_v: None }
    }

    /// The one that a server maps, and that lists the next one.
    fn control(&self) -> PathBuf {
        Path::new(MEMORY).join(format!("PostgreSQL.{}", self.number))
    }

    fn listed(&self) -> PathBuf {
        Path::new(MEMORY).join(format!("PostgreSQL.{}", self.number + 2))
    }

    /// Somebody else's, of the same user.
    fn foreign(&self) -> PathBuf {
        Path::new(MEMORY).join(format!("PostgreSQL.{}", self.number + 4))
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        for path in [self.control(), self.listed(), self.foreign()] {
            let _ = fs::remove_file(path);
        }
        if let Some(id) = self.system_v {
            // SAFETY: IPC_RMID takes no structure.
            unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }
}

fn system_v_exists(id: i32) -> bool {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let id = id.to_string();
    table.lines().any(|line| line.split_ascii_whitespace().nth(1) == Some(id.as_str()))
}

/// The list of a PostgreSQL from 14 on: room for four, one item in use.
fn control_contents(listed: u32) -> Vec<u8> {
    let words = [0x9a50_3d32, 1, 4, 0, listed, 2];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
    bytes.resize(16 + 4 * 40, 0);
    bytes
}

fn write(path: &Path, contents: &[u8]) {
    use std::io::Write;
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path).unwrap();
    file.write_all(contents).unwrap();
}

fn map(path: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    // SAFETY: a new mapping, which nobody reads or writes.
    unsafe {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        mmap(std::ptr::null_mut(), 64, flags, MapFlags::SHARED, &file, 0).unwrap();
    }
}

#[test]
#[ignore = "is the server that the other tests start and kill"]
fn server() {
    let Some(number) = env::var(SEGMENT_VARIABLE).ok().and_then(|text| text.parse().ok()) else {
        return;
    };
    let segments = std::mem::ManuallyDrop::new(Segments { number, system_v: None });
    write(&segments.listed(), b"statistics, which this process does not map");
    write(&segments.control(), &control_contents(number + 2));
    map(&segments.control());
    // SAFETY: a new segment, mapped wherever there is room.
    let id = unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o600);
        libc::shmat(id, std::ptr::null(), 0);
        id
    };
    println!("\nready {id}");
    thread::sleep(Duration::from_secs(120));
    panic!("nobody killed the server");
}

#[test]
#[ignore = "is the owner that another test starts and kills"]
fn owner() {
    let Some(dir) = env::var_os(PLACE_VARIABLE).map(PathBuf::from) else { return };
    let number = env::var(SEGMENT_VARIABLE).unwrap().parse().unwrap();
    let teardown = Teardown::create(&StateDir::at(dir.join("state")).unwrap(), "owner").unwrap();
    let server = start(&teardown, &dir, number);
    server.note_shared_memory().unwrap();
    // A second look finds nothing new.
    let registered = teardown.registered().len();
    server.note_shared_memory().unwrap();
    assert_eq!((registered, teardown.registered().len()), (3, 3));
    fs::write(dir.join("noted.new"), server.pid().to_string()).unwrap();
    fs::rename(dir.join("noted.new"), dir.join("noted")).unwrap();
    thread::sleep(Duration::from_secs(120));
    panic!("nobody killed the owner");
}

fn start(teardown: &Teardown, dir: &Path, number: u32) -> Process {
    let program = env::current_exe().unwrap();
    let process = Process::spawn(
        teardown,
        &ProcessSpec {
            name: "server",
            program: &program,
            args: ["--exact", "shared_memory::server", "--ignored", "--nocapture"]
                .map(Into::into)
                .to_vec(),
            env: vec![(SEGMENT_VARIABLE.into(), number.to_string().into())],
            run_as: None,
            cgroup: None,
            working_dir: Path::new("/"),
            output: dir.join("log"),
        },
    )
    .unwrap();
    wait_until(|| system_v_of(dir).is_some(), "the server to be ready");
    process
}

fn system_v_of(dir: &Path) -> Option<i32> {
    let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
    log.lines().find_map(|line| line.strip_prefix("ready ")?.parse().ok())
}

fn wait_until(condition: impl Fn() -> bool, what: &str) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn place() -> TempDir {
    tempfile::Builder::new().prefix("underlay-memory").tempdir_in("/var/tmp").unwrap()
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), rustix::process::Signal::KILL).unwrap();
}

fn foreign_like(segments: &Segments) {
    let owner = fs::metadata(segments.control()).unwrap().uid();
    write(&segments.foreign(), &control_contents(2));
    chown(segments.foreign(), Some(owner), None).unwrap();
}

/// Nobody is left who could say what the server used.
#[test]
fn clean_removes_what_a_server_left_that_was_killed_with_its_owner() {
    let place = place();
    let dir = place.path();
    let mut segments = Segments::new(1);
    let mut owner: Child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "shared_memory::owner", "--ignored", "--nocapture"])
        .env(PLACE_VARIABLE, dir)
        .env(SEGMENT_VARIABLE, segments.number.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(|| dir.join("noted").exists(), "the owner");
    segments.system_v = system_v_of(dir);
    let server: u32 = fs::read_to_string(dir.join("noted")).unwrap().parse().unwrap();
    foreign_like(&segments);
    owner.kill().unwrap();
    owner.wait().unwrap();
    kill(server);
    wait_until(
        || fs::read_to_string(format!("/proc/{server}/maps")).unwrap_or_default().is_empty(),
        "the server's end",
    );
    let id = segments.system_v.unwrap();
    assert!(segments.control().exists() && segments.listed().exists() && system_v_exists(id));

    let state = StateDir::at(dir.join("state")).unwrap();
    let report = clean(&state).unwrap();
    assert_eq!((report.removed.len(), report.failed.len()), (2, 0), "{report:?}");
    assert!(!segments.control().exists() && !segments.listed().exists() && !system_v_exists(id));
    assert!(segments.foreign().exists(), "somebody else's was removed");
    assert!(clean(&state).unwrap().removed.is_empty());
}

/// A server that is killed by others while its owner goes on: the memory goes with whatever comes first, the
/// server's next start or the end of the run.
#[test]
fn unwinding_removes_what_a_server_left_that_died_alone() {
    let place = place();
    let mut segments = Segments::new(2);
    let state = StateDir::at(place.path().join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    let server = start(&teardown, place.path(), segments.number);
    segments.system_v = system_v_of(place.path());
    server.note_shared_memory().unwrap();
    foreign_like(&segments);
    server.signal(Signal::Kill).unwrap();
    server.wait_for(Duration::from_secs(30)).unwrap().expect("it was killed");
    // Its number may be a stranger's now.
    server.note_shared_memory().unwrap();
    assert_eq!(teardown.registered().len(), 3);
    assert!(segments.control().exists() && segments.listed().exists());
    assert!(teardown.unwind().is_empty());
    assert!(!segments.control().exists() && !segments.listed().exists());
    assert!(!system_v_exists(segments.system_v.unwrap()));
    assert!(segments.foreign().exists(), "somebody else's was removed");
}

#[test]
fn killing_a_server_removes_what_it_left() {
    let place = place();
    let mut segments = Segments::new(3);
    let state = StateDir::at(place.path().join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    let server = start(&teardown, place.path(), segments.number);
    segments.system_v = system_v_of(place.path());
    // Nothing was noted: it is known because it is mapped.
    server.kill_tree().unwrap();
    assert!(!segments.control().exists() && !segments.listed().exists());
    assert!(!system_v_exists(segments.system_v.unwrap()));
    server.collect(None).unwrap();
    assert!(teardown.registered().is_empty());
}

/// Used by somebody, or another one of the same name: it stays.
#[test]
fn only_the_segment_that_was_seen_is_removed_and_only_unused() {
    let place = place();
    let segments = Segments::new(4);
    let state = StateDir::at(place.path().join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    write(&segments.control(), &control_contents(segments.number + 2));
    write(&segments.listed(), b"used by another process");
    let facts = fs::metadata(segments.control()).unwrap();
    let seen = |inode: u64, owner: u32| Resource::SharedMemory {
        segment: Segment::Posix { path: segments.control(), inode, owner },
    };
    // Another file, and another user's.
    for stranger in [seen(facts.ino() + 1, facts.uid()), seen(facts.ino(), facts.uid() + 1)] {
        let ticket = teardown.register(stranger).unwrap();
        teardown.release(ticket).unwrap();
        assert!(segments.control().exists());
    }

    let ticket = teardown.register(seen(facts.ino(), facts.uid())).unwrap();
    // What its list names is used by a process of ours that ends later.
    map(&segments.listed());
    let refused = teardown.release(ticket).unwrap_err().to_string();
    assert!(refused.contains("shared memory"), "{refused}");
    assert!(segments.control().exists() && segments.listed().exists());
    let leftovers: BTreeSet<String> =
        teardown.unwind().iter().map(|leftover| leftover.resource.to_string()).collect();
    assert_eq!(leftovers.len(), 1, "{leftovers:?}");
    assert!(segments.control().exists());
}
