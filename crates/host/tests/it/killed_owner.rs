//! An owner that is killed at any moment leaves nothing behind once `clean` has run.
//!
//! The owner is this test binary itself, started again with the ignored test `owner`: it acquires one
//! resource of each kind that it may, and is killed after a time that differs from round to round.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use underlay_core::Bytes;
use underlay_host::{
    Cgroup, CgroupLimits, FileSystem, LoopDevice, Mount, Process, ProcessSpec, Resource, StateDir,
    Teardown, clean, make_file_system, unprivileged_user,
};

const STATE_VARIABLE: &str = "UNDERLAY_TEST_STATE";
const ROUNDS: u32 = 14;

/// What is on the host that belongs to the test in `dir`.
fn traces(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let here = dir.to_str().unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(here)).map(str::to_string));
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
        found.extend(backing.ok().filter(|text| text.contains(here)));
    }
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&command).into_owned();
        if text.contains("sleep") && text.contains(&unusual_seconds(dir)) {
            found.push(text);
        }
    }
    found.extend(groups(Path::new("/sys/fs/cgroup"), &group_name(dir), 3));
    found.extend(
        fs::read_dir(dir.join("state/runs"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path().display().to_string()),
    );
    found.extend(
        fs::read_dir(dir.join("state/teardown"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path().display().to_string()),
    );
    found
}

fn groups(dir: &Path, name: &str, depth: u32) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            if path.display().to_string().contains(name) {
                found.push(path.display().to_string());
            }
            if depth > 0 {
                found.extend(groups(&path, name, depth - 1));
            }
        }
    }
    found
}

/// Part of the name of the groups, so that those of other tests are not counted.
fn group_name(dir: &Path) -> String {
    let name = dir.file_name().unwrap().to_string_lossy();
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// A duration that marks the sleeping children of this test.
fn unusual_seconds(dir: &Path) -> String {
    let sum: u32 = dir.display().to_string().bytes().map(u32::from).sum();
    format!("{}.{}", 1000 + sum, std::process::id() % 10)
}

#[test]
#[ignore = "is the owner that the other test starts and kills"]
fn owner() {
    let Some(dir) = env::var_os(STATE_VARIABLE).map(PathBuf::from) else { return };
    let seconds = env::var("UNDERLAY_TEST_SECONDS").unwrap();
    let state = StateDir::at(dir.join("state")).unwrap();
    let teardown = Teardown::create(&state, "killed owner").unwrap();
    let run = state.scratch_dir("r1");
    teardown.create_directory(&run).unwrap();
    let marker_file = run.join("file");
    teardown.register(Resource::File { path: marker_file.clone() }).unwrap();
    fs::write(&marker_file, b"x").unwrap();
    let root = geteuid().is_root();
    let cgroup = if root {
        let limits = CgroupLimits { memory: Some(Bytes::from_mib(64)), cpus: Some(0.5) };
        Cgroup::create(&teardown, &group_name(&dir), &limits).unwrap().0
    } else {
        None
    };
    let user = unprivileged_user().unwrap();
    // A server that hides the environment of its children, as PostgreSQL does.
    let script = format!("env -i sleep {seconds} & env -i setsid sleep {seconds} & wait");
    let process = Process::spawn(
        &teardown,
        &ProcessSpec {
            name: "sleeper",
            program: Path::new("/bin/sh"),
            args: vec!["-c".into(), script.into()],
            env: Vec::new(),
            run_as: user.as_ref(),
            cgroup: cgroup.as_ref(),
            working_dir: Path::new("/"),
            output: run.join("log"),
        },
    )
    .unwrap();
    if root {
        let backing = run.join("volume");
        teardown.register(Resource::File { path: backing.clone() }).unwrap();
        fs::File::create(&backing).unwrap().set_len(64 << 20).unwrap();
        let device = LoopDevice::attach(&teardown, &backing, 4096).unwrap();
        make_file_system(device.device(), FileSystem::Ext4).unwrap();
        let target = run.join("mnt");
        teardown.create_directory(&target).unwrap();
        let mount =
            Mount::make(&teardown, device.device(), &target, FileSystem::Ext4, "noatime").unwrap();
        fs::write(mount.target().join("data"), vec![7; 1 << 20]).unwrap();
    }
    fs::write(dir.join("all"), process.pid().to_string()).unwrap();
    // Killed here at the latest.
    thread::sleep(Duration::from_secs(60));
    panic!("nobody killed the owner");
}

fn start_owner(dir: &Path) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "killed_owner::owner", "--ignored", "--nocapture"])
        .env(STATE_VARIABLE, dir)
        .env("UNDERLAY_TEST_SECONDS", unusual_seconds(dir))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0);
    command.spawn().unwrap()
}

#[test]
fn nothing_stays_after_a_kill_at_any_moment() {
    let dir = tempfile::Builder::new().prefix("underlay-killed").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let state = StateDir::at(dir.join("state")).unwrap();
    if !geteuid().is_root() {
        eprintln!("skip: loop device, mount and cgroup need root; the rest is tested");
    }
    let mut whole = Duration::from_millis(300);
    for round in 0..ROUNDS {
        let begin = Instant::now();
        let mut owner = start_owner(&dir);
        if round == 0 {
            // The first round lets it acquire everything, and says how long that takes.
            while !dir.join("all").exists() {
                assert!(begin.elapsed() < Duration::from_secs(30), "the owner did not get ready");
                assert!(owner.try_wait().unwrap().is_none(), "the owner ended by itself");
                thread::sleep(Duration::from_millis(5));
            }
            whole = begin.elapsed();
            assert!(traces(&dir).len() >= 5, "{:?}", traces(&dir));
            let report = clean(&state).unwrap();
            assert_eq!((report.removed.len(), report.skipped_alive.len()), (0, 1), "{report:?}");
        } else {
            thread::sleep(whole.mul_f64(f64::from(round) / f64::from(ROUNDS - 1)));
        }
        owner.kill().unwrap();
        owner.wait().unwrap();
        let report = clean(&state).unwrap();
        assert!(report.failed.is_empty(), "round {round}: {report:?}");
        assert!(report.skipped_alive.is_empty(), "round {round}: {report:?}");
        assert_eq!(traces(&dir), Vec::<String>::new(), "round {round}: {report:?}");
        assert_eq!(clean(&state).unwrap().removed, Vec::<String>::new(), "round {round}");
    }
}
