//! What a child does between fork and exec.
//!
//! Everything that needs memory is prepared before the fork; what runs in the child makes system
//! calls alone, because the child of a process with threads may neither allocate nor lock.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How long the child may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// In a session of its own, until it is killed.
    OwnSession,
    /// Killed when the thread that started it dies; that thread must wait for the child.
    OfParentThread,
}

/// What is wanted for the child.
#[derive(Debug)]
pub(crate) struct ChildSetup {
    /// User and group number; supplementary groups are given up too.
    pub run_as: Option<(u32, u32)>,
    /// Open `cgroup.procs` files of the groups to join.
    pub join: Vec<File>,
    /// Entered as the new user.
    pub working_dir: PathBuf,
    pub lifetime: Lifetime,
}

/// The same, ready for the child.
pub(crate) struct PreparedSetup {
    run_as: Option<(u32, u32)>,
    join: Vec<File>,
    working_dir: CString,
    lifetime: Lifetime,
    parent: libc::pid_t,
}

/// A command that inherits nothing but `PATH`.
pub(crate) fn clean_command(
    program: &Path,
    args: &[OsString],
    env: &[(OsString, OsString)],
) -> Command {
    let mut command = Command::new(program);
    command.env_clear().args(args).envs(env.iter().map(|(name, value)| (name, value)));
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

impl ChildSetup {
    /// To be called before the fork.
    pub fn prepared(self) -> PreparedSetup {
        // A path with a zero byte names nothing; `/` then is as good as any.
        let working_dir = CString::new(self.working_dir.as_os_str().as_bytes());
        PreparedSetup {
            run_as: self.run_as,
            join: self.join,
            working_dir: working_dir.unwrap_or_else(|_| c"/".to_owned()),
            lifetime: self.lifetime,
            // SAFETY: getpid cannot fail and touches nothing.
            parent: unsafe { libc::getpid() },
        }
    }
}

impl PreparedSetup {
    /// To be called in the child. The order matters: joining groups and lowering the OOM score need
    /// the rights that are given up afterwards, and changing the user clears the death signal.
    pub fn apply(&mut self) -> io::Result<()> {
        for procs in &mut self.join {
            // 0 is the writer itself.
            procs.write_all(b"0")?;
        }
        reset_scheduling();
        if self.lifetime == Lifetime::OwnSession {
            // SAFETY: a system call without arguments; a freshly forked child leads no group, so it
            // cannot fail.
            check(unsafe { libc::setsid() })?;
        }
        if let Some((uid, gid)) = self.run_as {
            become_user(uid, gid)?;
        }
        // SAFETY: the path is a valid, zero-terminated string.
        check(unsafe { libc::chdir(self.working_dir.as_ptr()) })?;
        if self.lifetime == Lifetime::OfParentThread {
            self.die_with_parent()?;
        }
        Ok(())
    }

    fn die_with_parent(&self) -> io::Result<()> {
        // SAFETY: PR_SET_PDEATHSIG takes a signal number; getppid takes nothing.
        let parent = unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0))?;
            libc::getppid()
        };
        // It may have died before the setting was made.
        if parent == self.parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    }
}

/// The parent may run with a real-time policy, a nice value or an OOM score of its own; a server
/// that is measured runs as a service manager would start it. None of this can be insisted on.
fn reset_scheduling() {
    let parameters = libc::sched_param { sched_priority: 0 };
    let score = b"0";
    // SAFETY: all pointers are to live, zero-terminated or sized data; failures are tolerated, and a
    // failed open is not written to.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters);
        libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        libc::umask(0o022);
        let file =
            libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            libc::write(file, score.as_ptr().cast(), score.len());
            libc::close(file);
        }
    }
}

fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: an empty list of groups is not read; the others take numbers.
    unsafe {
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setgid(gid))?;
        check(libc::setuid(uid))
    }
}

fn check(outcome: libc::c_int) -> io::Result<()> {
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
