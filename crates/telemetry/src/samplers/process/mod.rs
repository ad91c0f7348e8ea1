//! Process trees: CPU time, time waiting for a CPU, I/O and memory of named processes with all their
//! descendants, summed.
//!
//! * **Reads** `/proc/<pid>/{stat,schedstat,io}` and `task/<tid>/children` of every member, discovered again
//!   at each tick; of processes with several threads the `schedstat` of every thread.
//! * **Emits** one set of series per named tree; the root of a tree and what is below it belong to no
//!   other tree. Counters never fall: members that end leave what they
//!   had (see `ledger`).
//! * **Costs** about 10 us per single-threaded member, 8 us per thread of multi-threaded ones.
//! * **Needs** the same user or root for `io`; `schedstat` needs `CONFIG_SCHED_INFO`, otherwise CPU
//!   time comes in steps of 10 ms and the run queue is missing. Where the kernel has no `children`
//!   files the whole of `/proc` is searched.
//!
//! Time in the run queue is the only number that distinguishes a server short of CPU from an idle one: its
//! sessions look idle either way. It does not look inside the processes.

mod ledger;
mod parse;
mod root;
mod series;
mod tree;

pub(crate) use root::ProcessRoot;
pub(crate) use series::DOC;

use crate::identity::{Identity, identify};
use crate::source::{SampleError, Sampler, Status};
use crate::targets::Roots;
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use tree::{Kernel, Parents, Reading, Tree};

/// Members kept open per tree even if the limit of open files is large.
const KEPT_OPEN_MAX: usize = 2048;
/// Files per member.
const FILES_PER_MEMBER: usize = 4;

/// The sampler.
struct Process {
    identity: Identity,
    kernel: Kernel,
    trees: Vec<Tree>,
    page_bytes: u64,
}

/// The sampler of these trees.
pub(crate) fn sampler(roots: &Roots, processes: &[Arc<ProcessRoot>]) -> Box<dyn Sampler> {
    let series = processes.iter().flat_map(|root| {
        let name = root.name();
        DOC.series.iter().map(move |doc| doc.named(doc.name.replace("<process>", name)))
    });
    let mut process = Process {
        identity: Identity::available(&DOC, series.collect()),
        kernel: kernel(roots, processes.len()),
        trees: processes.iter().cloned().map(Tree::new).collect(),
        page_bytes: rustix::param::page_size() as u64,
    };
    if processes.is_empty() {
        process.identity.status = Status::Absent("no process was configured".to_string());
    }
    Box::new(process)
}

fn kernel(roots: &Roots, trees: usize) -> Kernel {
    // A quarter of the limit: sockets of a driver with many users need the rest.
    let files_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let files_max = usize::try_from(files_max).unwrap_or(usize::MAX);
    let me = roots.proc.join("self");
    Kernel {
        proc: roots.proc.clone(),
        schedstat: me.join("schedstat").exists(),
        children: roots.proc.join("thread-self/children").exists(),
        kept_open_max: (files_max / 4 / FILES_PER_MEMBER / trees.max(1)).min(KEPT_OPEN_MAX),
    }
}

/// Parents of all processes of the host.
fn all_parents(kernel: &Kernel) -> Parents {
    let mut parents = Parents::new();
    let entries = fs::read_dir(&kernel.proc).into_iter().flatten().flatten();
    for entry in entries {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let stat = pid.and_then(|_| parse::stat(&fs::read(entry.path().join("stat")).ok()?));
        if let (Some(pid), Some(stat)) = (pid, stat) {
            parents.entry(stat.parent).or_default().push(pid);
        }
    }
    parents
}

impl Process {
    /// Says which trees are not there and what is missing of those that are.
    fn judge(&mut self, readings: &[Option<Reading>]) {
        let mut gaps = Vec::new();
        for (tree, reading) in self.trees.iter().zip(readings) {
            let (name, pid) = (tree.root.name(), tree.root.pid());
            match reading {
                None => gaps.push(format!("{name}: there is no process {pid}")),
                Some(reading) if !reading.has_io => gaps.push(format!(
                    "{name}: the I/O counters of process {pid} may not be read; run as root or as its user"
                )),
                Some(_) => {}
            }
        }
        if !self.kernel.schedstat {
            gaps.push(
                "the kernel has no /proc/<pid>/schedstat: CPU time in steps of 10 ms, no run queue"
                    .to_string(),
            );
        }
        let status = match gaps.is_empty() {
            true => Status::Available,
            false => Status::Degraded(gaps.join("; ")),
        };
        self.identity.status = status;
    }

    fn values(&self, reading: &Reading) -> [f64; DOC.series.len()] {
        let usage = &reading.usage;
        let run_queue = if self.kernel.schedstat { usage.run_queue_ns as f64 } else { f64::NAN };
        let io = usage.io.0.map(|value| if reading.has_io { value as f64 } else { f64::NAN });
        let [read_chars, write_chars, read_calls, write_calls, read_bytes, write_bytes, cancelled] =
            io;
        [
            usage.on_cpu_ns as f64,
            run_queue,
            usage.major_faults as f64,
            read_chars,
            write_chars,
            read_calls,
            write_calls,
            read_bytes,
            write_bytes,
            cancelled,
            (reading.resident_pages * self.page_bytes) as f64,
            reading.threads as f64,
            reading.processes as f64,
        ]
    }
}

impl Sampler for Process {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        if self.trees.is_empty() {
            return Err(self.identity.absence());
        }
        let parents = (!self.kernel.children).then(|| all_parents(&self.kernel));
        let roots: BTreeSet<u32> = self.trees.iter().map(|tree| tree.root.pid()).collect();
        let readings: Vec<Option<Reading>> = self
            .trees
            .iter_mut()
            .map(|tree| tree.read(&self.kernel, &roots, parents.as_ref()))
            .collect();
        self.judge(&readings);
        for reading in &readings {
            let row = reading.as_ref().map(|reading| self.values(reading));
            values.extend(row.unwrap_or([f64::NAN; DOC.series.len()]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::tree::Tree;
    use super::{DOC, ProcessRoot, Reading, all_parents, kernel, sampler};
    use crate::source::{Sampler, Status};
    use crate::targets::Roots;
    use std::collections::BTreeSet;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    fn shell(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell")
    }

    fn value(sampler: &dyn Sampler, values: &[f64], name: &str) -> f64 {
        let index = sampler.series().iter().position(|series| series.name == name);
        values[index.expect("declared")]
    }

    /// Forty children, one after another and in pairs, each writing 1 MiB and ending at once, seen
    /// by a sampler that looks as fast as it can.
    #[test]
    fn counters_stay_monotone_and_true_when_children_end() {
        let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do \
                      head -c 1048576 /dev/zero & head -c 1048576 /dev/zero; wait; done; read line";
        let mut root = shell(script);
        let mut sampler = sampler(&Roots::system(), &[ProcessRoot::new("tree", root.id())]);
        let counters: Vec<usize> = DOC
            .series
            .iter()
            .enumerate()
            .filter(|(_, doc)| doc.kind == underlay_core::series::SeriesKind::Counter)
            .map(|(index, _)| index)
            .collect();
        let (mut before, mut values) = (Vec::new(), Vec::new());
        let (mut members_max, mut quiet) = (0.0_f64, 0);
        let deadline = Instant::now() + Duration::from_secs(20);
        // The shell waits for input when all children are done.
        while quiet < 20 && Instant::now() < deadline {
            values.clear();
            sampler.sample(&mut values).expect("sampled");
            if !before.is_empty() {
                for index in &counters {
                    let (now, was): (f64, f64) = (values[*index], before[*index]);
                    assert!(now >= was, "{} fell: {was} -> {now}", DOC.series[*index].name);
                }
            }
            let written = value(sampler.as_ref(), &values, "tree.write.chars");
            members_max = members_max.max(value(sampler.as_ref(), &values, "tree.processes"));
            quiet = if written >= 40.0 * 1048576.0 { quiet + 1 } else { 0 };
            before.clone_from(&values);
            std::thread::yield_now();
        }
        let written = value(sampler.as_ref(), &values, "tree.write.chars");
        drop(root.stdin.take());
        root.wait().expect("ended");
        assert!(members_max >= 2.0, "children were seen");
        assert!(
            (40.0 * 1048576.0..40.5 * 1048576.0).contains(&written),
            "each byte is counted once: {written}"
        );

        values.clear();
        sampler.sample(&mut values).expect("sampled");
        assert_eq!(value(sampler.as_ref(), &values, "tree.processes"), 0.0);
        for index in counters {
            assert!(values[index] >= before[index], "an ended tree keeps its sums");
        }
    }

    #[test]
    fn threads_and_grandchildren_are_found_both_ways() {
        let mut root = shell("sh -c 'sh -c \"read line\"; true' ; true");
        let observed = ProcessRoot::new("tree", root.id());
        let roots = Roots::system();
        let with_files = kernel(&roots, 1);
        let mut without_files = with_files.clone();
        without_files.children = false;
        let deadline = Instant::now() + Duration::from_secs(10);
        let settled = |reading: Option<Reading>| reading.is_some_and(|r| r.processes == 3);
        let (mut tree, none) = (Tree::new(observed.clone()), BTreeSet::new());
        let mut found = (false, false);
        while found != (true, true) && Instant::now() < deadline {
            found.0 = !with_files.children || settled(tree.read(&with_files, &none, None));
            let parents = all_parents(&without_files);
            let mut other = Tree::new(observed.clone());
            found.1 = settled(other.read(&without_files, &none, Some(&parents)));
        }
        drop(root.stdin.take());
        root.wait().expect("ended");
        assert_eq!(found, (true, true));
    }

    #[test]
    fn cpu_time_of_all_threads_is_counted() {
        let me = ProcessRoot::new("me", std::process::id());
        let mut sampler = sampler(&Roots::system(), &[me]);
        let on_cpu = |sampler: &mut dyn Sampler| {
            let mut values = Vec::new();
            sampler.sample(&mut values).expect("sampled");
            value(sampler, &values, "me.on_cpu")
        };
        let before = on_cpu(sampler.as_mut());
        // The thread says when it has spun and lives on until it was sampled: a busy host may give it
        // its 60 ms late.
        let (has_spun, spun) = std::sync::mpsc::channel();
        let (may_end, ends) = std::sync::mpsc::channel::<()>();
        let spinner = std::thread::spawn(move || {
            let spent = || {
                let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
                Duration::try_from(time).expect("CPU time is not negative")
            };
            while spent() < Duration::from_millis(60) {}
            has_spun.send(()).expect("the test listens");
            ends.recv().expect("the test says when");
        });
        spun.recv().expect("the thread spins");
        let during = on_cpu(sampler.as_mut());
        may_end.send(()).expect("the thread listens");
        spinner.join().expect("ended");
        let after = on_cpu(sampler.as_mut());
        assert!(during - before >= 20e6, "{before} -> {during}");
        assert!(after >= during, "an ended thread stays in the sum");
    }

    #[test]
    fn a_tree_below_another_belongs_to_itself() {
        let mut server = shell("read line");
        let roots = [
            ProcessRoot::new("driver", std::process::id()),
            ProcessRoot::new("server", server.id()),
        ];
        let mut both = sampler(&Roots::system(), &roots);
        let mut alone = sampler(&Roots::system(), &roots[..1]);
        let members = |sampler: &mut dyn Sampler| {
            let mut values = Vec::new();
            sampler.sample(&mut values).expect("sampled");
            value(sampler, &values, "driver.processes")
        };
        // Other tests of this program have children too, so only the difference is certain.
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut fewer = false;
        while !fewer && Instant::now() < deadline {
            let (before, without, after) =
                (members(alone.as_mut()), members(both.as_mut()), members(alone.as_mut()));
            fewer = before == after && without == before - 1.0;
        }
        drop(server.stdin.take());
        server.wait().expect("ended");
        assert!(fewer, "the server is no member of the driver's tree");
    }

    #[test]
    fn a_new_root_goes_on_from_the_old_sums() {
        let (mut first, mut second) = (shell("read line"), shell("read line"));
        let root = ProcessRoot::new("server", first.id());
        let mut sampler = sampler(&Roots::system(), std::slice::from_ref(&root));
        let mut before = Vec::new();
        sampler.sample(&mut before).expect("sampled");
        drop(first.stdin.take());
        first.wait().expect("ended");
        root.set_pid(second.id());
        let mut after = Vec::new();
        sampler.sample(&mut after).expect("sampled");
        drop(second.stdin.take());
        second.wait().expect("ended");
        assert_eq!(value(sampler.as_ref(), &after, "server.processes"), 1.0);
        assert!(after[0] > before[0], "{} -> {}", before[0], after[0]);
    }

    /// More members than a crowd has; some end, some work on.
    #[test]
    fn a_crowd_is_read_truly_although_less_often() {
        const MEMBERS: usize = 300;
        let script = format!(
            // A line for each: a member that comes late to its reading still finds one.
            "exec 3<>pipe; i=0; while [ $i -lt {MEMBERS} ]; do (read line <&3) & i=$((i+1)); done; \
             read line; while [ $i -gt 0 ]; do echo >&3; i=$((i-1)); done; wait; read line"
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let mut root = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut sampler = sampler(&Roots::system(), &[ProcessRoot::new("tree", root.id())]);
        let (mut before, mut members_max) = (vec![0.0; DOC.series.len()], 0.0_f64);
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut look = |sampler: &mut dyn Sampler| {
            let mut values = Vec::new();
            sampler.sample(&mut values).expect("sampled");
            for (index, doc) in DOC.series.iter().enumerate() {
                let is_counter = doc.kind == underlay_core::series::SeriesKind::Counter;
                assert!(!is_counter || values[index] >= before[index], "{} fell", doc.name);
            }
            before.clone_from(&values);
            value(sampler, &values, "tree.processes")
        };
        while members_max <= MEMBERS as f64 && Instant::now() < deadline {
            members_max = look(sampler.as_mut());
        }
        assert_eq!(members_max, MEMBERS as f64 + 1.0, "the shell and its children");
        let mut input = root.stdin.take().expect("piped");
        std::io::Write::write_all(&mut input, b"go\n").expect("the shell listens");
        let mut left = members_max;
        while left > 1.0 && Instant::now() < deadline {
            left = look(sampler.as_mut());
        }
        drop(input);
        root.wait().expect("ended");
        assert_eq!(left, 1.0, "the end of a member is noticed");
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let absent = ProcessRoot::new("ghost", u32::MAX - 1);
        let mut ghost = sampler(&Roots::system(), &[absent]);
        let mut values = Vec::new();
        ghost.sample(&mut values).expect("sampled");
        assert!(values.iter().all(|value| value.is_nan()));
        assert!(matches!(ghost.status(), Status::Degraded(why) if why.contains("ghost")));
        let mut none = sampler(&Roots::system(), &[]);
        assert!(matches!(none.status(), Status::Absent(_)));
        assert!(none.sample(&mut Vec::new()).is_err());
    }
}
