//! Adds up the counters of a tree whose members come and go, without ever counting backwards. Pure.
//!
//! A member that is gone leaves its last seen counters in the sum. Two things need care:
//!
//! * A pid (or thread id) may be used again. Members are named by pid *and* start time; a thread
//!   whose counter fell is taken for a new thread.
//! * When a process has waited for a child, the kernel adds the child's I/O counters (not its CPU
//!   time) to its own. Keeping the child's as well would count them twice. So, when a member goes,
//!   its I/O is kept only if the counters of its nearest surviving ancestor did not grow by at least
//!   as much in the same interval, or in the next one (the ancestor may have been read before it
//!   waited, the child after). In doubt the sum may be too small by the I/O of one child, but it
//!   never falls.
//!
//! What a member did between its last sighting and its end is lost for CPU time (at most one
//! interval's worth per member), and for I/O only if no process waited for it.

use super::parse::Io;
use std::collections::BTreeMap;

/// A process for good: pid and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Identity {
    pub(super) pid: u32,
    pub(super) start: u64,
}

/// Cumulative counters of one process or of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) on_cpu_ns: u64,
    pub(super) run_queue_ns: u64,
    pub(super) major_faults: u64,
    pub(super) io: Io,
}

/// One member as seen now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) identity: Identity,
    pub(super) parent: u32,
    pub(super) usage: Usage,
}

/// The members, and the counters of those that have ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    live: BTreeMap<Identity, Sighting>,
    left: Usage,
    /// I/O in `left` that an ancestor may still turn out to have: members gone in the latest update.
    contested: Vec<(Identity, Io)>,
}

/// How much the I/O counters of ancestors grew since the last update, less what was recognised in it.
type Growth = BTreeMap<Identity, Io>;

impl Ledger {
    /// Takes the present members and returns the sums of all that ever were.
    pub(super) fn update(&mut self, sightings: impl IntoIterator<Item = Sighting>) -> Usage {
        let now: BTreeMap<Identity, Sighting> =
            sightings.into_iter().map(|sighting| (sighting.identity, sighting)).collect();
        let mut growth = Growth::new();
        for (ancestor, io) in std::mem::take(&mut self.contested) {
            if inherits(&mut growth, self.live.get(&ancestor), now.get(&ancestor), io) {
                self.left.io = difference(self.left.io, io);
            }
        }
        for gone in self.live.values().filter(|member| !now.contains_key(&member.identity)) {
            self.left.on_cpu_ns += gone.usage.on_cpu_ns;
            self.left.run_queue_ns += gone.usage.run_queue_ns;
            self.left.major_faults += gone.usage.major_faults;
            let ancestor = surviving_ancestor(&self.live, &now, gone);
            let before = ancestor.and_then(|ancestor| self.live.get(&ancestor));
            let after = ancestor.and_then(|ancestor| now.get(&ancestor));
            if !inherits(&mut growth, before, after, gone.usage.io) {
                add(&mut self.left.io, gone.usage.io);
                self.contested.extend(ancestor.map(|ancestor| (ancestor, gone.usage.io)));
            }
        }
        self.live = now;
        self.total()
    }

    fn total(&self) -> Usage {
        let mut total = self.left;
        for member in self.live.values() {
            total.on_cpu_ns += member.usage.on_cpu_ns;
            total.run_queue_ns += member.usage.run_queue_ns;
            total.major_faults += member.usage.major_faults;
            add(&mut total.io, member.usage.io);
        }
        total
    }
}

/// The nearest ancestor that is still there.
fn surviving_ancestor(
    before: &BTreeMap<Identity, Sighting>,
    now: &BTreeMap<Identity, Sighting>,
    gone: &Sighting,
) -> Option<Identity> {
    let mut parent = gone.parent;
    // Parents are older than children, so the chain ends; the bound covers reused pids.
    for _ in 0..before.len() {
        let first = Identity { pid: parent, start: 0 };
        let (identity, ancestor) = before.range(first..).next()?;
        if identity.pid != parent {
            return None;
        }
        if now.contains_key(identity) {
            return Some(*identity);
        }
        parent = ancestor.parent;
    }
    None
}

/// Whether the ancestor's counters grew by at least `io`, which is then taken out of the growth.
fn inherits(
    growth: &mut Growth,
    before: Option<&Sighting>,
    after: Option<&Sighting>,
    io: Io,
) -> bool {
    let (Some(before), Some(after)) = (before, after) else {
        return false;
    };
    let growth =
        growth.entry(after.identity).or_insert_with(|| difference(after.usage.io, before.usage.io));
    let contained = growth.0.iter().zip(io.0).all(|(growth, io)| *growth >= io);
    if contained {
        *growth = difference(*growth, io);
    }
    contained
}

fn add(sum: &mut Io, io: Io) {
    for (sum, value) in sum.0.iter_mut().zip(io.0) {
        *sum += value;
    }
}

fn difference(after: Io, before: Io) -> Io {
    let mut difference = after;
    for (value, before) in difference.0.iter_mut().zip(before.0) {
        *value = value.saturating_sub(before);
    }
    difference
}

/// Adds up the threads of one process in the same way: a thread that is gone, or whose counter fell,
/// leaves its last seen values.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    live: BTreeMap<u32, (u64, u64)>,
    left: (u64, u64),
}

impl Threads {
    /// Takes (on CPU, in run queue) of the present threads, returns the sums of all that ever were.
    pub(super) fn update(&mut self, now: BTreeMap<u32, (u64, u64)>) -> (u64, u64) {
        for (thread, before) in &self.live {
            let same = now.get(thread).is_some_and(|now| now.0 >= before.0 && now.1 >= before.1);
            if !same {
                self.left.0 += before.0;
                self.left.1 += before.1;
            }
        }
        self.live = now;
        self.live.values().fold(self.left, |sum, now| (sum.0 + now.0, sum.1 + now.1))
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, Io, Ledger, Sighting, Threads, Usage};
    use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    fn seen(pid: u32, parent: u32, cpu: u64, io: u64) -> Sighting {
        let usage = Usage { on_cpu_ns: cpu, io: Io([io; 7]), ..Usage::default() };
        Sighting { identity: Identity { pid, start: u64::from(pid) }, parent, usage }
    }

    #[test]
    fn a_child_that_was_waited_for_is_counted_once() {
        let mut ledger = Ledger::default();
        ledger.update([seen(1, 0, 10, 100), seen(2, 1, 5, 40)]);
        // The child did 2 more before it ended; its parent inherited 42 and did 3 itself.
        let total = ledger.update([seen(1, 0, 11, 145)]);
        assert_eq!(total.on_cpu_ns, 16, "CPU time is not inherited and stays");
        assert_eq!(total.io, Io([145; 7]), "I/O is inherited and must not stay as well");
    }

    #[test]
    fn an_unreaped_child_stays() {
        let mut ledger = Ledger::default();
        ledger.update([seen(1, 0, 10, 100), seen(2, 1, 5, 40)]);
        let total = ledger.update([seen(1, 0, 11, 103)]);
        assert_eq!(total.io, Io([143; 7]));
    }

    #[test]
    fn a_parent_read_before_it_waited_inherits_in_the_next_interval() {
        let mut ledger = Ledger::default();
        ledger.update([seen(1, 0, 10, 100), seen(2, 1, 5, 40)]);
        assert_eq!(ledger.update([seen(1, 0, 10, 101)]).io, Io([141; 7]));
        assert_eq!(ledger.update([seen(1, 0, 10, 142)]).io, Io([142; 7]));
        assert_eq!(ledger.update([seen(1, 0, 10, 190)]).io, Io([190; 7]));
    }

    #[test]
    fn of_two_children_only_one_may_be_inherited() {
        let mut ledger = Ledger::default();
        ledger.update([seen(1, 0, 0, 0), seen(2, 1, 0, 40), seen(3, 1, 0, 30)]);
        let total = ledger.update([seen(1, 0, 0, 41)]);
        assert_eq!(total.io, Io([71; 7]));
    }

    #[test]
    fn grandchildren_are_inherited_through_their_parent() {
        let mut ledger = Ledger::default();
        ledger.update([seen(1, 0, 0, 10), seen(2, 1, 0, 20), seen(3, 2, 0, 30)]);
        let total = ledger.update([seen(1, 0, 0, 60)]);
        assert_eq!(total.io, Io([60; 7]));
    }

    #[test]
    fn a_used_again_pid_is_another_member() {
        let mut ledger = Ledger::default();
        ledger.update([seen(1, 0, 10, 0), seen(2, 1, 500, 0)]);
        let mut again = seen(2, 1, 1, 0);
        again.identity.start = 99;
        assert_eq!(ledger.update([seen(1, 0, 10, 0), again]).on_cpu_ns, 511);
    }

    #[test]
    fn an_empty_tree_keeps_its_sums() {
        let mut ledger = Ledger::default();
        ledger.update([seen(1, 0, 10, 7)]);
        let total = ledger.update([]);
        assert_eq!((total.on_cpu_ns, total.io), (10, Io([7; 7])));
    }

    #[test]
    fn threads_that_end_or_restart_stay_in_the_sum() {
        let mut threads = Threads::default();
        threads.update(BTreeMap::from([(1, (10, 1)), (2, (20, 2)), (3, (30, 3))]));
        let sum = threads.update(BTreeMap::from([(1, (11, 1)), (3, (4, 0))]));
        assert_eq!(sum, (11 + 20 + 30 + 4, 1 + 2 + 3));
    }

    /// One step of a random history: work done per pid, then the pids that end, waited for or not.
    fn histories() -> impl Strategy<Value = Vec<(Vec<u64>, Vec<u8>)>> {
        let work = proptest::collection::vec(0u64..1000, 6);
        let ends = proptest::collection::vec(0u8..4, 6);
        proptest::collection::vec((work, ends), 1..40)
    }

    proptest! {
        /// A root and up to five children that work, end (waited for or not) and come back.
        #[test]
        fn sums_never_fall(history in histories()) {
            let mut ledger = Ledger::default();
            let mut members: BTreeMap<u32, Sighting> = BTreeMap::from([(1, seen(1, 0, 0, 0))]);
            let mut start = 100;
            let mut before = Usage::default();
            for (work, ends) in history {
                for (member, work) in members.values_mut().zip(&work) {
                    member.usage.on_cpu_ns += work;
                    member.usage.io.0.iter_mut().for_each(|io| *io += work / 2);
                }
                let total = ledger.update(members.values().copied());
                prop_assert!(total.on_cpu_ns >= before.on_cpu_ns);
                prop_assert!(total.io.0.iter().zip(before.io.0).all(|(now, before)| *now >= before));
                before = total;
                for (pid, end) in (2..).zip(ends) {
                    start += 1;
                    match (end, members.remove(&pid)) {
                        (0, Some(gone)) => {
                            let root = members.get_mut(&1).expect("the root lives");
                            super::add(&mut root.usage.io, gone.usage.io);
                        }
                        (1, Some(_)) => {}
                        (_, Some(lives)) => { members.insert(pid, lives); }
                        (_, None) => {
                            let mut started = seen(pid, 1, 0, 0);
                            started.identity.start = start;
                            members.insert(pid, started);
                        }
                    }
                }
            }
        }

        /// With a parent that waits for its children, the I/O of the tree is exact.
        #[test]
        fn inherited_io_is_exact(works in proptest::collection::vec((1u64..1000, 1u64..1000), 1..30)) {
            let mut ledger = Ledger::default();
            let mut root = seen(1, 0, 0, 0);
            let mut truth = 0;
            for (index, (own, childs)) in works.into_iter().enumerate() {
                let child = seen(index as u32 + 2, 1, 0, childs);
                root.usage.io.0.iter_mut().for_each(|io| *io += own);
                truth += own + childs;
                prop_assert_eq!(ledger.update([root, child]).io, Io([truth; 7]));
                super::add(&mut root.usage.io, child.usage.io);
                prop_assert_eq!(ledger.update([root]).io, Io([truth; 7]));
            }
        }
    }
}
