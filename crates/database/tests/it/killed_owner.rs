//! A managed server whose owner is killed: nothing of it is left once `clean` has run, in memory neither.
//!
//! The owner is this test binary itself, started again with the ignored test `owner`. What the server's processes
//! share is looked up while they live, because nobody can tell afterwards. Other servers of this host come and
//! go meanwhile, so names alone say nothing.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use underlay_database::postgres::{Listen, Server, ServerSpec, find_installs};
use underlay_host::{CleanReport, StateDir, Teardown, clean, skip};
use underlay_testbed::{passable_folder, spec_in};

const STATE_VARIABLE: &str = "UNDERLAY_TEST_STATE";

#[test]
#[ignore = "is the owner that the other test starts and kills"]
fn owner() {
    let Some(dir) = env::var_os(STATE_VARIABLE).map(PathBuf::from) else { return };
    let state = StateDir::at(dir.join("state")).unwrap();
    let teardown = Teardown::create(&state, "killed owner").unwrap();
    let run = state.scratch_dir("r1");
    teardown.create_directory(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o711)).unwrap();
    let spec = spec_in(&run, find_installs(None).remove(0), "killed", &[]);
    let spec = ServerSpec { listen: Listen::Loopback, ..spec };
    fs::write(dir.join("begun"), b"").unwrap();
    let mut server = Server::create(&teardown, spec).unwrap();
    server.start().unwrap();
    // Whole as soon as it is there: the test reads it at once.
    fs::write(dir.join("ready.part"), server.pid().unwrap().to_string()).unwrap();
    fs::rename(dir.join("ready.part"), dir.join("ready")).unwrap();
    // Killed here at the latest.
    thread::sleep(Duration::from_secs(120));
    panic!("nobody killed the owner");
}

/// Numbers and commands of processes that work for the server in `dir`; a title that shows no path shows the
/// working directory through `/proc`.
fn processes(dir: &Path) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&command).replace('\0', " ");
        let inside = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
        // A zombie has no command any more.
        if !text.is_empty() && (inside || text.contains(&dir.display().to_string())) {
            found.push((pid, text));
        }
    }
    found
}

/// One piece of shared memory: a file, or a System V segment with its identifier.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    File(PathBuf),
    SystemV(String),
}

impl Shared {
    fn exists(&self) -> bool {
        match self {
            Shared::File(path) => path.exists(),
            // The second column is the identifier.
            Shared::SystemV(id) => fs::read_to_string("/proc/sysvipc/shm")
                .unwrap()
                .lines()
                .any(|line| line.split_ascii_whitespace().nth(1) == Some(id)),
        }
    }
}

/// What the processes that work for the server in `dir` share now.
fn shared(dir: &Path) -> BTreeSet<Shared> {
    let mut found = BTreeSet::new();
    for (pid, _) in processes(dir) {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        for line in maps.lines() {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            match fields.as_slice() {
                [_, _, _, _, id, name, "(deleted)"] if name.starts_with("/SYSV") => {
                    found.insert(Shared::SystemV(id.to_string()));
                }
                [_, _, _, _, _, name] if name.starts_with("/dev/shm/PostgreSQL.") => {
                    found.insert(Shared::File(PathBuf::from(name)));
                }
                _ => {}
            }
        }
    }
    found
}

fn left(shared: &BTreeSet<Shared>) -> Vec<&Shared> {
    shared.iter().filter(|one| one.exists()).collect()
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process number");
    // It may have ended in the meantime.
    let _ = kill_process(pid, signal);
}

/// An owner that has got to `moment`.
fn started_owner(dir: &Path, moment: &str) -> Child {
    for name in ["begun", "ready"] {
        let _ = fs::remove_file(dir.join(name));
    }
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", "killed_owner::owner", "--ignored", "--nocapture"])
        .env(STATE_VARIABLE, dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while !dir.join(moment).exists() {
        assert!(begin.elapsed() < Duration::from_secs(100), "the owner did not get to {moment}");
        assert!(owner.try_wait().unwrap().is_none(), "the owner ended by itself");
        thread::sleep(Duration::from_millis(5));
    }
    owner
}

/// Cleans after a killed owner, and looks for traces.
fn clean_up(dir: &Path, shared: &BTreeSet<Shared>, what: &str) -> CleanReport {
    let report = clean(&StateDir::at(dir.join("state")).unwrap()).unwrap();
    assert!(report.failed.is_empty() && report.skipped_alive.is_empty(), "{what}: {report:?}");
    assert_eq!(processes(dir), Vec::new(), "{what}: {report:?}");
    assert_eq!(fs::read_dir(dir.join("state/runs")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(dir.join("state/teardown")).unwrap().count(), 0);
    assert_eq!(left(shared), Vec::<&Shared>::new(), "{what}: {report:?}");
    report
}

/// Kills the owner when `moment` exists or after `delay`, and cleans. What the server's processes share is
/// collected all the time until nothing is left of them.
fn check(dir: &Path, moment: &str, delay: Duration) {
    let what = format!("{moment} {delay:?}");
    let mut owner = started_owner(dir, moment);
    let cleaned = AtomicBool::new(false);
    let shared = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            while !cleaned.load(Ordering::Relaxed) {
                seen.extend(shared(dir));
            }
            seen
        });
        thread::sleep(delay);
        owner.kill().unwrap();
        owner.wait().unwrap();
        clean_up(dir, &BTreeSet::new(), &what);
        cleaned.store(true, Ordering::Relaxed);
        watch.join().unwrap()
    });
    assert_eq!(left(&shared), Vec::<&Shared>::new(), "{what}");
}

#[test]
fn nothing_stays_of_a_server_whose_owner_is_killed() {
    if find_installs(None).is_empty() {
        skip!("no PostgreSQL 13 to 18 on this host");
    }
    let place = passable_folder(Path::new("/var/tmp"));
    let dir = place.path().canonicalize().unwrap();
    // While initdb runs, while the server starts (about), and when it is ready.
    check(&dir, "begun", Duration::from_millis(250));
    check(&dir, "begun", Duration::from_millis(1400));
    check(&dir, "ready", Duration::ZERO);
}

/// All of them at once, so that none is left that could lead to the memory of another.
#[test]
fn nothing_stays_of_an_initdb_that_is_killed_with_all_its_servers() {
    if find_installs(None).is_empty() {
        skip!("no PostgreSQL 13 to 18 on this host");
    }
    let place = passable_folder(Path::new("/var/tmp"));
    let dir = place.path().canonicalize().unwrap();
    let mut owner = started_owner(&dir, "begun");
    let shared = stopped_server_of_initdb(&dir).1;
    let all = processes(&dir);
    all.iter().for_each(|(pid, _)| send(*pid, Signal::STOP));
    all.iter().for_each(|(pid, _)| send(*pid, Signal::KILL));
    owner.kill().unwrap();
    owner.wait().unwrap();
    let begin = Instant::now();
    while !processes(&dir).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", processes(&dir));
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!left(&shared).is_empty(), "nothing was there to be removed");
    clean_up(&dir, &shared, "initdb and its servers");
}

/// A server that initdb started and that has shared memory, stopped; and that memory. It is seen twice: at first it may
/// not say yet whose it is.
fn stopped_server_of_initdb(dir: &Path) -> (u32, BTreeSet<Shared>) {
    let begin = Instant::now();
    let mut seen_of = None;
    loop {
        assert!(begin.elapsed() < Duration::from_secs(60), "initdb started no server");
        // Not the shell between.
        let is_started = |command: &str| {
            command.split(' ').next().is_some_and(|program| program.ends_with("/postgres"))
                && (command.contains(" --single ") || command.contains(" --boot "))
        };
        let server = processes(dir).into_iter().find(|(_, command)| is_started(command));
        let Some((pid, _)) = server else { continue };
        send(pid, Signal::STOP);
        let shared = shared(dir);
        if !shared.is_empty() && processes(dir).iter().any(|(other, _)| *other == pid) {
            if seen_of == Some(pid) {
                return (pid, shared);
            }
            seen_of = Some(pid);
        }
        send(pid, Signal::CONT);
    }
}

/// initdb dies with its owner, the servers that it starts do not. One that is slow to notice the end of its input
/// would go on in a directory that is being removed, and leave its memory when it fails.
#[test]
fn nothing_stays_of_what_initdb_started() {
    if find_installs(None).is_empty() {
        skip!("no PostgreSQL 13 to 18 on this host");
    }
    let place = passable_folder(Path::new("/var/tmp"));
    let dir = place.path().canonicalize().unwrap();
    let mut owner = started_owner(&dir, "begun");
    let (server, shared) = stopped_server_of_initdb(&dir);
    owner.kill().unwrap();
    owner.wait().unwrap();
    let cleaned = std::panic::catch_unwind(|| clean_up(&dir, &shared, "initdb"));
    send(server, Signal::CONT);
    cleaned.unwrap();
}

/// As when a control group is killed, or the memory runs out: nobody is left who could be asked. The server's
/// statistics are in a segment that the postmaster itself does not use.
#[test]
fn nothing_stays_of_a_server_that_is_killed_with_its_owner() {
    if find_installs(None).is_empty() {
        skip!("no PostgreSQL 13 to 18 on this host");
    }
    let place = passable_folder(Path::new("/var/tmp"));
    let dir = place.path().canonicalize().unwrap();
    let mut owner = started_owner(&dir, "ready");
    let shared = shared(&dir);
    let postmaster = fs::read_to_string(dir.join("ready")).unwrap();
    let maps = fs::read_to_string(format!("/proc/{postmaster}/maps")).unwrap();
    let files: Vec<&PathBuf> = shared
        .iter()
        .filter_map(|one| if let Shared::File(path) = one { Some(path) } else { None })
        .collect();
    assert!(files.iter().any(|path| maps.contains(path.to_str().unwrap())), "{shared:?}");
    if find_installs(None)[0].major >= 15 {
        let of_others = files.iter().any(|path| !maps.contains(path.to_str().unwrap()));
        assert!(of_others, "no segment of statistics: {shared:?}");
    }
    // Another server's, used by nobody at the moment, as after a crash before its next start.
    let foreign = PathBuf::from(format!("/dev/shm/PostgreSQL.{}", std::process::id()));
    fs::copy(files[0], &foreign).unwrap();
    let owner_of = |path: &Path| std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).unwrap());
    let _ = std::os::unix::fs::chown(&foreign, Some(owner_of(files[0])), None);

    let all = processes(&dir);
    owner.kill().unwrap();
    owner.wait().unwrap();
    for (pid, _) in all {
        send(pid, Signal::KILL);
    }
    let begin = Instant::now();
    while !processes(&dir).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", processes(&dir));
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(left(&shared).len(), shared.len(), "what a killed server leaves");
    let cleaned = std::panic::catch_unwind(|| clean_up(&dir, &shared, "both killed"));
    let stayed = foreign.exists();
    fs::remove_file(&foreign).unwrap();
    cleaned.unwrap();
    assert!(stayed, "a segment of somebody else was removed");
}
