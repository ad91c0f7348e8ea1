//! One process tree: finding its members at each tick and reading them.
//!
//! Members are the root and everything reachable over `children`, except the root of another
//! another observed tree: a program that starts the server it drives is not charged for it. A member whose parent died stays a
//! member as long as it lives. Descriptors are kept open for as many members as the limit of open
//! files allows without hurting others; the rest is opened at each tick.
//!
//! Most members of a database server never have children. A member that had none is asked again only
//! at every eighth tick: a grandchild may be found that late, with its counters since its start.
//!
//! The stat text is the dearest (half of a member's cost) and says little that is new: in a tree of
//! more than 256 members it is read at every fourth tick only, so that threads, resident memory and
//! major faults lag by up to three ticks while CPU time and I/O do not.
//!
//! A member that cannot be read for another reason than being gone keeps its last counters, because
//! a sum must not fall for want of a descriptor.

use super::ledger::{Identity, Ledger, Sighting, Threads, Usage};
use super::parse::{self, Io, Stat, State};
use super::root::ProcessRoot;
use crate::kernel_file::{read_piece, read_whole};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One tick of the file's CPU columns: `USER_HZ` is 100.
const TICK_NS: u64 = 10_000_000;

/// Ticks between two questions for the children of a member that had none.
const CHILDLESS_TICKS: u64 = 8;

/// Members above which a tree is crowded, and the ticks between two readings of a stat text then.
const CROWD: usize = 256;
const CROWDED_STAT_TICKS: u64 = 4;

/// What the kernel offers, found out once.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) proc: PathBuf,
    /// Whether `/proc/<pid>/schedstat` exists.
    pub(super) schedstat: bool,
    /// Whether `/proc/<pid>/task/<tid>/children` exists.
    pub(super) children: bool,
    /// Members whose files are kept open, per tree.
    pub(super) kept_open_max: usize,
}

/// Who is whose parent on the whole host; only made where the kernel has no `children` files.
pub(super) type Parents = BTreeMap<u32, Vec<u32>>;

/// Values of a tree at one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) usage: Usage,
    pub(super) processes: u64,
    pub(super) threads: u64,
    pub(super) resident_pages: u64,
    /// Whether the I/O of any member could ever be read.
    pub(super) has_io: bool,
}

/// A tree under observation.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: Arc<ProcessRoot>,
    ledger: Ledger,
    members: BTreeMap<u32, Member>,
    ever_seen: bool,
    has_io: bool,
    ticks: u64,
    crowded: bool,
    scratch: Vec<u8>,
}

/// One process.
#[derive(Debug)]
struct Member {
    sighting: Sighting,
    stat: Stat,
    threads: Threads,
    has_children: bool,
    kept: Option<Files>,
}

/// Its open files.
#[derive(Debug)]
struct Files {
    stat: File,
    schedstat: Option<File>,
    io: Option<File>,
    children: Option<File>,
}

impl Tree {
    pub(super) fn new(root: Arc<ProcessRoot>) -> Tree {
        Tree {
            root,
            ledger: Ledger::default(),
            members: BTreeMap::new(),
            ever_seen: false,
            has_io: false,
            ticks: 0,
            crowded: false,
            scratch: Vec::new(),
        }
    }

    /// Reads the tree; nothing as long as its root was never there. `roots` are those of all observed
    /// trees.
    pub(super) fn read(
        &mut self,
        kernel: &Kernel,
        roots: &BTreeSet<u32>,
        parents: Option<&Parents>,
    ) -> Option<Reading> {
        self.ticks += 1;
        self.crowded = self.members.len() > CROWD;
        self.walk(kernel, roots, parents);
        self.ever_seen |= !self.members.is_empty();
        if !self.ever_seen {
            return None;
        }
        let usage = self.ledger.update(self.members.values().map(|member| member.sighting));
        let stats = || {
            let stats = self.members.values().map(|member| member.stat);
            stats.filter(|stat| stat.state == State::Lives)
        };
        Some(Reading {
            usage,
            processes: stats().count() as u64,
            threads: stats().map(|stat| stat.threads).sum(),
            resident_pages: stats().map(|stat| stat.resident_pages).sum(),
            has_io: self.has_io,
        })
    }

    /// Renews `members`: breadth first from the root, then from former members left over.
    fn walk(&mut self, kernel: &Kernel, roots: &BTreeSet<u32>, parents: Option<&Parents>) {
        let mut former = std::mem::take(&mut self.members);
        let mut waiting = vec![self.root.pid()];
        let mut visited = BTreeSet::new();
        while let Some(pid) = waiting.pop().or_else(|| former.keys().next().copied()) {
            let mut before = former.remove(&pid);
            let is_of_another = roots.contains(&pid) && pid != self.root.pid();
            if is_of_another || !visited.insert(pid) {
                continue;
            }
            let mut children = Vec::new();
            let glanced = before.as_mut().is_some_and(|member| self.glance(pid, member));
            let member = match glanced {
                true => before,
                false => self.visit(kernel, pid, before, &mut children),
            };
            if let Some(member) = member {
                self.members.insert(pid, member);
                match parents {
                    None => waiting.append(&mut children),
                    Some(parents) => waiting.extend(parents.get(&pid).into_iter().flatten()),
                }
            }
        }
    }

    /// Renews only CPU time and I/O of a member of a crowded tree, if that will do at this tick.
    fn glance(&mut self, pid: u32, member: &mut Member) -> bool {
        let turn = (self.ticks + u64::from(pid)).is_multiple_of(CROWDED_STAT_TICKS);
        let is_plain = member.stat.threads == 1 && !member.has_children && pid != self.root.pid();
        let Some(files) = member.kept.take_if(|_| self.crowded && !turn && is_plain) else {
            return false;
        };
        let times = read(files.schedstat.as_ref(), &mut self.scratch)
            .and_then(|length| parse::schedstat(&self.scratch[..length]));
        if let Some(times) = times {
            let usage = &mut member.sighting.usage;
            (usage.on_cpu_ns, usage.run_queue_ns) =
                member.threads.update(BTreeMap::from([(pid, times)]));
            self.read_io(&files, member);
        }
        member.kept = Some(files);
        // It may have ended: reading its stat file will show.
        times.is_some()
    }

    /// The present state of a process, or nothing when it is gone.
    fn visit(
        &mut self,
        kernel: &Kernel,
        pid: u32,
        before: Option<Member>,
        children: &mut Vec<u32>,
    ) -> Option<Member> {
        let mut before = before;
        let kept = before.as_mut().and_then(|member| member.kept.take());
        let files = match kept.map_or_else(|| Files::open(kernel, pid), Ok) {
            Ok(files) => files,
            Err(error) => return before.filter(|_| !is_gone(&error)),
        };
        let stat = match read_piece(&files.stat, &mut self.scratch) {
            Ok(length) => parse::stat(&self.scratch[..length]),
            // A kept descriptor belongs to the process that is gone; the pid may live again.
            Err(error) if is_gone(&error) && before.is_some() => {
                return self.visit(kernel, pid, None, children);
            }
            Err(error) => return before.filter(|_| !is_gone(&error)),
        };
        let Some(stat) = stat else { return before };
        if stat.state == State::Inherited {
            // Between the parent's inheriting and the end of the entry in /proc both have the I/O.
            return None;
        }
        let before = before.filter(|member| member.stat.start == stat.start);
        let usage = before.as_ref().map_or(Usage::default(), |member| member.sighting.usage);
        let asks_for_children = pid == self.root.pid()
            || before.as_ref().is_none_or(|member| member.has_children)
            || (self.ticks + u64::from(pid)).is_multiple_of(CHILDLESS_TICKS);
        let mut member = Member {
            sighting: Sighting {
                identity: Identity { pid, start: stat.start },
                parent: stat.parent,
                usage: Usage { major_faults: stat.major_faults, ..usage },
            },
            stat,
            threads: before.map(|member| member.threads).unwrap_or_default(),
            has_children: false,
            kept: None,
        };
        self.read_cpu(kernel, &files, &mut member);
        if asks_for_children && kernel.children {
            self.read_children(kernel, &files, &member, children);
            member.has_children = !children.is_empty();
        }
        self.read_io(&files, &mut member);
        member.kept = (self.members.len() < kernel.kept_open_max).then_some(files);
        Some(member)
    }

    fn read_cpu(&mut self, kernel: &Kernel, files: &Files, member: &mut Member) {
        let pid = member.sighting.identity.pid;
        let usage = &mut member.sighting.usage;
        if !kernel.schedstat {
            usage.on_cpu_ns = member.stat.cpu_ticks.saturating_mul(TICK_NS);
            return;
        }
        let threads = if member.stat.threads > 1 {
            // The file of the process itself speaks of its first thread only.
            self.read_threads(kernel, pid)
        } else {
            let times = read(files.schedstat.as_ref(), &mut self.scratch)
                .and_then(|length| parse::schedstat(&self.scratch[..length]));
            times.map(|times| (pid, times)).into_iter().collect()
        };
        if !threads.is_empty() {
            (usage.on_cpu_ns, usage.run_queue_ns) = member.threads.update(threads);
        }
    }

    fn read_threads(&mut self, kernel: &Kernel, pid: u32) -> BTreeMap<u32, (u64, u64)> {
        let mut threads = BTreeMap::new();
        for (number, folder) in thread_folders(kernel, pid) {
            let file = File::open(folder.join("schedstat")).ok();
            let times = read(file.as_ref(), &mut self.scratch)
                .and_then(|length| parse::schedstat(&self.scratch[..length]));
            threads.extend(times.map(|times| (number, times)));
        }
        threads
    }

    /// Children belong to the thread that made them.
    fn read_children(
        &mut self,
        kernel: &Kernel,
        files: &Files,
        member: &Member,
        children: &mut Vec<u32>,
    ) {
        if member.stat.threads <= 1 {
            let length = read_list(files.children.as_ref(), &mut self.scratch);
            children.extend(parse::children(&self.scratch[..length]));
            return;
        }
        for (_, folder) in thread_folders(kernel, member.sighting.identity.pid) {
            let file = File::open(folder.join("children")).ok();
            let length = read_list(file.as_ref(), &mut self.scratch);
            children.extend(parse::children(&self.scratch[..length]));
        }
    }

    fn read_io(&mut self, files: &Files, member: &mut Member) {
        let io: Option<Io> = read(files.io.as_ref(), &mut self.scratch)
            .and_then(|length| parse::io(&self.scratch[..length]));
        if let Some(io) = io {
            member.sighting.usage.io = io;
            self.has_io = true;
        }
    }
}

impl Files {
    fn open(kernel: &Kernel, pid: u32) -> io::Result<Files> {
        let folder = kernel.proc.join(pid.to_string());
        let optional = |wanted: bool, path: &Path| wanted.then(|| File::open(path).ok()).flatten();
        Ok(Files {
            stat: File::open(folder.join("stat"))?,
            schedstat: optional(kernel.schedstat, &folder.join("schedstat")),
            io: optional(true, &folder.join("io")),
            children: optional(
                kernel.children,
                &folder.join("task").join(pid.to_string()).join("children"),
            ),
        })
    }
}

/// Numbers and folders of the threads of a process.
fn thread_folders(kernel: &Kernel, pid: u32) -> impl Iterator<Item = (u32, PathBuf)> {
    let folder = fs::read_dir(kernel.proc.join(pid.to_string()).join("task"));
    folder.into_iter().flatten().flatten().filter_map(|thread| {
        let number = thread.file_name().to_str()?.parse().ok()?;
        Some((number, thread.path()))
    })
}

fn read(file: Option<&File>, scratch: &mut Vec<u8>) -> Option<usize> {
    file.and_then(|file| read_piece(file, scratch).ok())
}

/// A list of children may come in several pieces.
fn read_list(file: Option<&File>, scratch: &mut Vec<u8>) -> usize {
    file.and_then(|file| read_whole(file, scratch).ok()).unwrap_or(0)
}

/// The two ways in which the kernel says that a process is no more.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}
