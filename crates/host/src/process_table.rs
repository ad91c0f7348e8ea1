//! Finding processes by what cannot be mistaken, and killing exactly those.
//!
//! A process is ours when its initial environment holds our marker, or when it descends from one
//! whose does (servers overwrite the environment of their children to show titles). Signals go
//! through process descriptors that are checked after they were opened, so that a reused process
//! number never hits a stranger.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, waitid,
};

use crate::error::HostError;
use crate::shared_memory;

/// The variable that marks what we started.
pub(crate) const MARKER_VARIABLE: &str = "UNDERLAY_RESOURCE";

/// How long a killed process may take to disappear. The kernel finishes its I/O first.
const KILL_LIMIT: Duration = Duration::from_secs(15);

/// A process that cannot be confused with a later one of the same number.
struct Found {
    pid: u32,
    descriptor: OwnedFd,
}

/// When the process started, in clock ticks since boot; with the number it names a process. One that
/// has ended has none, even while its parent has not collected it.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let ended = ["Z", "X"].contains(&stat_field(pid, 0)?.as_str());
    if ended { None } else { stat_field(pid, 19)?.parse().ok() }
}

/// The processes with this marker and all their descendants, but never ourselves.
pub(crate) fn marked_tree(marker: &str) -> BTreeSet<u32> {
    let parents: BTreeMap<u32, u32> =
        all_pids().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut tree: BTreeSet<u32> =
        parents.keys().copied().filter(|pid| has_marker(*pid, marker)).collect();
    loop {
        let children: Vec<u32> = parents
            .iter()
            .filter(|(pid, parent)| tree.contains(parent) && !tree.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if children.is_empty() {
            break;
        }
        tree.extend(children);
    }
    tree.remove(&own_pid());
    tree
}

/// Kills the processes with this marker and all their descendants, and waits until they are gone.
/// Returns how many there were.
///
/// They are stopped first, so that none can start another while the others die.
pub(crate) fn kill_marked(marker: &str, name: &str) -> Result<usize, HostError> {
    let mut found: BTreeMap<u32, Found> = BTreeMap::new();
    loop {
        let new: Vec<Found> = marked_tree(marker)
            .into_iter()
            .filter(|pid| !found.contains_key(pid))
            .filter_map(|pid| open_checked(pid, || marked_tree(marker).contains(&pid)))
            .collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            send(&process, Signal::STOP)?;
            found.insert(process.pid, process);
        }
    }
    kill_all(found.into_values().collect(), name)
}

/// Kills processes by number. `still_ours` is asked again once the process cannot change any more.
pub(crate) fn kill_pids(
    pids: &[u32],
    name: &str,
    still_ours: impl Fn(u32) -> bool,
) -> Result<usize, HostError> {
    let found = pids
        .iter()
        .filter(|pid| **pid != own_pid())
        .filter_map(|pid| open_checked(*pid, || still_ours(*pid)))
        .collect();
    kill_all(found, name)
}

/// Waits until the process behind the descriptor has ended; false when `limit` passed.
pub(crate) fn wait_ended(descriptor: &OwnedFd, limit: Duration) -> Result<bool, HostError> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(HostError::system("wait for a process")(error)),
        }
    }
}

/// A descriptor of the process, if there is one of this number.
pub(crate) fn open_descriptor(pid: u32) -> Result<OwnedFd, HostError> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(rustix::io::Errno::SRCH).map_err(HostError::system("find a process"))?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(HostError::system("find a process"))
}

fn kill_all(found: Vec<Found>, name: &str) -> Result<usize, HostError> {
    let segments: BTreeSet<_> =
        found.iter().flat_map(|process| shared_memory::mapped_by(process.pid)).collect();
    for process in &found {
        send(process, Signal::KILL)?;
    }
    let deadline = Instant::now() + KILL_LIMIT;
    for process in &found {
        if !wait_ended(&process.descriptor, deadline.saturating_duration_since(Instant::now()))? {
            return Err(HostError::Unkillable {
                pid: process.pid,
                name: name.to_string(),
                waited_secs: KILL_LIMIT.as_secs(),
            });
        }
        reap(process);
    }
    // Children of the killed may have become ours, where we are the first process of a container.
    found.iter().for_each(reap);
    shared_memory::remove_unused(&segments);
    Ok(found.len())
}

/// A zombie child of ours would stay in the process table until we end.
fn reap(process: &Found) {
    use std::os::fd::AsFd;
    // ECHILD says that it is another process's child, which then has to collect it.
    let _ = waitid(
        WaitId::PidFd(process.descriptor.as_fd()),
        WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
    );
}

fn send(process: &Found, signal: Signal) -> Result<(), HostError> {
    match pidfd_send_signal(&process.descriptor, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(HostError::system("send a signal")(error)),
    }
}

/// Opens a descriptor and makes sure that it is of the process that was meant: the check is made
/// while the descriptor's process still lives, so both are the same one.
fn open_checked(pid: u32, check: impl Fn() -> bool) -> Option<Found> {
    let descriptor = open_descriptor(pid).ok()?;
    let ours = check();
    let alive = !wait_ended(&descriptor, Duration::ZERO).ok()?;
    (ours && alive).then_some(Found { pid, descriptor })
}

fn all_pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 1)?.parse().ok()
}

/// Field of `/proc/<pid>/stat`, counted from the state (0); the name before it may hold anything.
fn stat_field(pid: u32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_ascii_whitespace().nth(index).map(str::to_string)
}

fn has_marker(pid: u32, marker: &str) -> bool {
    let wanted = format!("{MARKER_VARIABLE}={marker}");
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    })
}

fn own_pid() -> u32 {
    getpid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};
    use std::time::Duration;

    use super::{
        MARKER_VARIABLE, kill_marked, kill_pids, marked_tree, open_descriptor, start_ticks,
        wait_ended,
    };

    #[test]
    fn knows_when_a_process_started() {
        let own = start_ticks(id()).unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(start_ticks(child.id()).unwrap() >= own);
        let descriptor = open_descriptor(child.id()).unwrap();
        child.kill().unwrap();
        assert!(wait_ended(&descriptor, Duration::from_secs(10)).unwrap());
        // Not collected yet.
        assert_eq!(start_ticks(child.id()), None);
        child.wait().unwrap();
        assert_eq!(start_ticks(child.id()), None);
    }

    #[test]
    fn kills_a_marked_tree_with_children_that_hide_their_marker() {
        let marker = format!("test-tree-{}", id());
        let mut child = Command::new("sh")
            .args(["-c", "env -i sleep 60 & env -i setsid sleep 60 & wait"])
            .env(MARKER_VARIABLE, &marker)
            .spawn()
            .unwrap();
        while marked_tree(&marker).len() < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(kill_marked(&marker, "test").unwrap(), 3);
        assert!(marked_tree(&marker).is_empty());
        assert_eq!(kill_marked(&marker, "test").unwrap(), 0);
        // Collected by the kill.
        assert!(child.try_wait().is_err());
    }

    #[test]
    fn a_longer_marker_is_another_one() {
        let marker = format!("test-longer-{}", id());
        let mut child = Command::new("sleep")
            .arg("60")
            .env(MARKER_VARIABLE, format!("{marker}1"))
            .spawn()
            .unwrap();
        assert_eq!(kill_marked(&marker, "test").unwrap(), 0);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn never_kills_what_is_not_ours_any_more() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(kill_pids(&[child.id()], "test", |_| false).unwrap(), 0);
        assert!(child.try_wait().unwrap().is_none());
        let descriptor = open_descriptor(child.id()).unwrap();
        assert!(!wait_ended(&descriptor, Duration::from_millis(1)).unwrap());
        assert_eq!(kill_pids(&[child.id(), id()], "test", |_| true).unwrap(), 1);
        assert!(wait_ended(&descriptor, Duration::ZERO).unwrap());
    }
}
