//! What the tests of `underlay io` share: folders that take direct I/O, the program in the background, emulated block devices.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Bench, Ended};

/// A folder on a file system that takes direct I/O.
pub fn disk() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

pub fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", ended.stdout, ended.stderr))
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

pub fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).expect("a folder").next().is_none()
}

pub fn io(bench: &Bench, arguments: &[&str]) -> Ended {
    bench.run(&[&["io"], arguments].concat())
}

#[track_caller]
pub fn refused(ended: &Ended, code: i32, said: &[&str]) {
    assert_eq!(ended.code, Some(code), "{}\n{}", ended.stdout, ended.stderr);
    for said in said {
        assert!(ended.stderr.contains(said), "`{said}` is missing:\n{}", ended.stderr);
    }
}

/// A program that is ended with the test.
pub struct Running(Child);

impl Running {
    pub fn start(bench: &Bench, arguments: &[&str]) -> Running {
        let mut command = bench.underlay();
        command.arg("io").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(command.spawn().expect("the program starts"))
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the process is our child and was not waited for.
        assert_eq!(unsafe { libc::kill(self.0.id() as i32, signal) }, 0);
    }

    pub fn ended(mut self) -> Ended {
        let read = |stream: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            stream.expect("piped").read_to_string(&mut text).expect("text");
            text
        };
        let stdout = read(self.0.stdout.as_mut().map(|s| s as &mut dyn std::io::Read));
        let stderr = read(self.0.stderr.as_mut().map(|s| s as &mut dyn std::io::Read));
        let code = self.0.wait().expect("our child").code();
        Ended { code, stdout, stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !there() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Emulated volumes, stopped at the end.
pub struct Store {
    pub bench: Bench,
    pub directory: PathBuf,
}

impl Store {
    /// A bare block device of 64 MiB on a device with that durability; none where that cannot be.
    pub fn with_device(durability: &str) -> Option<(Store, PathBuf)> {
        // SAFETY: geteuid has no preconditions.
        let root = unsafe { libc::geteuid() } == 0;
        if !root || !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
            eprintln!("skip: block devices need root, /dev/fuse and /dev/loop-control");
            return None;
        }
        let bench = Bench::new();
        let directory = bench.path().canonicalize().expect("a folder").join("store");
        let store = Store { bench, directory };
        let created = store.volume(
            "create",
            &[
                "data",
                "--size",
                "64MiB",
                "--device",
                "dc1500m-960",
                "--durability",
                durability,
                "--json",
            ],
        );
        let volume: Value = serde_json::from_str(&created.expect(0)).expect("JSON");
        let device = PathBuf::from(volume["link"].as_str().expect("a device"));
        Some((store, device))
    }

    pub fn volume(&self, command: &str, arguments: &[&str]) -> Ended {
        self.bench.run(&[&["volume", command, text(&self.directory)], arguments].concat())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.volume("stop", &["--force"]);
        self.bench.run(&["clean"]);
    }
}
