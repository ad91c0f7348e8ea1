//! What the process-level tests share: a state folder of their own, the program, and a look at everything
//! on the host that a run could leave behind.

pub mod stand;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use underlay_testbed::{folder_of_build, passable_folder};

/// A folder for one test: Underlay's state, studies and records. Removed at the end.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        // Below the system's folder for temporary files, and open to traversal: the database server runs as
        // another user.
        Bench { folder: passable_folder(&env::temp_dir()) }
    }

    /// A folder whose loaded databases are shared with other tests: each population is loaded once per build of the program.
    pub fn with_shared_templates() -> Bench {
        let bench = Bench::new();
        fs::create_dir(bench.state()).expect("a state folder");
        fs::set_permissions(bench.state(), fs::Permissions::from_mode(0o711)).expect("permissions");
        let templates = folder_of_build(Path::new(env!("CARGO_BIN_EXE_underlay")));
        symlink(templates, bench.state().join("templates")).expect("a link");
        bench
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// The program, with this bench's state.
    pub fn underlay(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_underlay"));
        command
            .env("UNDERLAY_STATE_DIR", self.state())
            .env("NO_COLOR", "1")
            .env("COLUMNS", "100")
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.underlay().args(arguments).output().expect("the program starts"))
    }

    /// Everything of this bench that is on the host: mounts, loop devices, processes, control groups.
    pub fn left_on_host(&self) -> Vec<String> {
        let state = self.state().to_string_lossy().into_owned();
        let mut left = Vec::new();
        for line in fs::read_to_string("/proc/mounts").unwrap_or_default().lines() {
            if line.contains(&state) {
                left.push(format!("mount {line}"));
            }
        }
        for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
            let backing =
                fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
            if backing.contains(&state) {
                left.push(format!(
                    "loop {} on {}",
                    entry.file_name().to_string_lossy(),
                    backing.trim()
                ));
            }
        }
        for process in processes() {
            let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment);
            let ours =
                environment.split('\0').any(|pair| pair == format!("UNDERLAY_STATE_DIR={state}"));
            let command =
                fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
            if ours || command.contains(&state) {
                left.push(format!("process {process} {}", command.replace('\0', " ")));
            }
        }
        left
    }
}

fn processes() -> Vec<u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
        .filter(|pid| *pid != std::process::id())
        .collect()
}

/// Control groups that a run of the process `pid` made.
pub fn control_groups_of(pid: u32) -> Vec<PathBuf> {
    // The name that a run gives its group, with what is no part of such a name replaced.
    let prefix = format!("underlay_underlay_{pid}_");
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder {
                if entry.file_name().to_string_lossy().starts_with(&prefix) {
                    found.push(entry.path());
                }
                folders.push(entry.path());
            }
        }
    }
    found
}

/// A program that ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output, after making sure of the exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// The whole, after making sure that it went well.
    #[track_caller]
    pub fn expect_ok(self) -> Ended {
        assert_eq!(self.code, Some(0), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Says why a test cannot run here; the caller returns. `None` = it can.
pub fn cannot_run_servers() -> Option<&'static str> {
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        Some("needs root: volumes, control groups, another user for the server")
    } else if !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
        Some("needs /dev/fuse and /dev/loop-control")
    } else if underlay_database::postgres::find_installs(None).is_empty() {
        Some("needs PostgreSQL's server programs")
    } else {
        None
    }
}

/// The workload of [`SMALL_STUDY`], to be replaced by another one.
pub const SMALL_WORKLOAD: &str =
    "[workload.tpcc]\nwarehouses = 1\npacing.closed.key-think = 0.001\n";

/// A study small enough for a test: one warehouse, two designs, two rungs, no null twins. Its users pause, so that a
/// server does not take a whole processor for as long as it is measured.
pub const SMALL_STUDY: &str = r#"
name = "small"
title = "A small study"
question = "Does the lab work?"

[engine]
memory-limit = "192MiB"

[engine.settings]
shared_buffers = "48MB"
max_wal_size = "256MB"

[volumes.data]
capacity = "1GiB"

[volumes.wal]
capacity = "512MiB"

[volumes.backup]
capacity = "256MiB"

[[design]]
use = "null"
name = "a"

[[design]]
use = "kingston-nvme"
name = "b"

[workload.tpcc]
warehouses = 1
pacing.closed.key-think = 0.001

[procedure]
users = [1, 2]
settle = "0s"
warm-up = "1s"
ramp-up = "1s"
measure = "5s"
repeats = 1
null-twin = false
"#;
