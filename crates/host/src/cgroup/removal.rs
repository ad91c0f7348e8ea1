//! Removing control groups with what is still inside.
//!
//! It deliberately knows no teardown stack: the stack asks for it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::HostError;
use crate::process_table::kill_pids;
use crate::teardown::Removal;

/// A group whose last process was killed takes a moment to become empty.
const REMOVE_LIMIT: Duration = Duration::from_secs(10);

/// Kills what is in the groups and removes them.
pub(crate) fn remove(paths: &[PathBuf]) -> Result<Removal, HostError> {
    let mut removal = Removal::WasGone;
    for path in paths {
        if remove_one(path)? {
            removal = Removal::Removed;
        }
    }
    Ok(removal)
}

fn remove_one(path: &Path) -> Result<bool, HostError> {
    let deadline = Instant::now() + REMOVE_LIMIT;
    loop {
        kill_members(path)?;
        match fs::remove_dir(path) {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(HostError::file("remove", path)(error)),
        }
    }
}

fn kill_members(path: &Path) -> Result<(), HostError> {
    let pids = members(path);
    kill_pids(&pids, "member of a control group", |pid| members(path).contains(&pid)).map(|_| ())
}

fn members(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}
