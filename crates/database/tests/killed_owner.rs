//! A managed server whose owner is killed: nothing of it is left once `clean` has run.
//!
//! The owner is this test binary itself, started again with the ignored test `owner`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use underlay_database::postgres::{Listen, Server, ServerSpec, find_installs};
use underlay_host::{StateDir, Teardown, clean, skip, unprivileged_user};

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
    let spec = ServerSpec {
        name: "killed".to_string(),
        install: find_installs(None).remove(0),
        data: run.join("data/pg"),
        wal: run.join("wal/pg"),
        backup: run.join("backup/pg"),
        settings: BTreeMap::new(),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: run.join("runtime"),
        listen: Listen::Loopback,
    };
    fs::write(dir.join("begun"), b"").unwrap();
    let mut server = Server::create(&teardown, spec).unwrap();
    server.start().unwrap();
    fs::write(dir.join("ready"), server.pid().unwrap().to_string()).unwrap();
    // Killed here at the latest.
    thread::sleep(Duration::from_secs(120));
    panic!("nobody killed the owner");
}

/// Commands of processes that work for the server in `dir`; a title that shows no path shows the
/// working directory through `/proc`.
fn processes(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&command).replace('\0', " ");
        let inside = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir));
        // A zombie has no command any more.
        if !text.is_empty() && (inside || text.contains(&dir.display().to_string())) {
            found.push(text);
        }
    }
    found
}

fn shared_memory() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Kills the owner when `moment` exists or after `delay`, cleans, and looks for traces.
fn check(dir: &Path, moment: &str, delay: Duration) {
    for name in ["begun", "ready"] {
        let _ = fs::remove_file(dir.join(name));
    }
    let state = StateDir::at(dir.join("state")).unwrap();
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", "owner", "--ignored", "--nocapture"])
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
    thread::sleep(delay);
    let maps = fs::read_to_string(dir.join("ready"))
        .and_then(|pid| fs::read_to_string(format!("/proc/{pid}/maps")))
        .unwrap_or_default();
    owner.kill().unwrap();
    owner.wait().unwrap();
    let report = clean(&state).unwrap();
    assert!(report.failed.is_empty() && report.skipped_alive.is_empty(), "{report:?}");
    // What initdb had started ends by itself when its input does, which is a matter of milliseconds.
    let begin = Instant::now();
    while !processes(dir).is_empty() && begin.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(processes(dir), Vec::<String>::new(), "{moment} {delay:?}: {report:?}");
    assert_eq!(fs::read_dir(dir.join("state/runs")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(dir.join("state/teardown")).unwrap().count(), 0);
    for path in shared_memory() {
        assert!(!maps.contains(path.to_str().unwrap()), "{} stayed", path.display());
    }
}

#[test]
fn nothing_stays_of_a_server_whose_owner_is_killed() {
    if find_installs(None).is_empty() {
        skip!("no PostgreSQL 13 to 18 on this host");
    }
    let dir = tempfile::Builder::new().prefix("underlay-pgkill").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let dir = dir.path().canonicalize().unwrap();
    // While initdb runs, while the server starts (about), and when it is ready.
    check(&dir, "begun", Duration::from_millis(250));
    check(&dir, "begun", Duration::from_millis(1400));
    check(&dir, "ready", Duration::ZERO);
}
