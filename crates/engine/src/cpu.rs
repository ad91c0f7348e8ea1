//! The processors of a host: processor sharing over cores and the threads of a core.
//!
//! All that can run share the host equally. With no more runnable than cores each has a core to
//! itself; beyond that, a second thread on a core adds only a part of a core
//! ([`crate::HostSpec::smt_yield`]); beyond all threads the capacity is shared. There are no time
//! slices, priorities, migrations nor caches.

use crate::spec::HostSpec;
use crate::station::Station;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use underlay_core::Nanos;

/// Virtual time is a floating-point number; what is nearer than this, in nanoseconds, is reached.
const REACHED_NS: f64 = 0.01;

/// A burst on a processor.
#[derive(Clone, Copy, Debug)]
struct Burst<T> {
    /// The virtual time at which it is done.
    end: f64,
    sequence: u64,
    arrived: Nanos,
    task: T,
}

impl<T> Ord for Burst<T> {
    /// Turned round, because the heap gives its greatest.
    fn cmp(&self, other: &Burst<T>) -> Ordering {
        other.end.total_cmp(&self.end).then(other.sequence.cmp(&self.sequence))
    }
}

impl<T> PartialOrd for Burst<T> {
    fn partial_cmp(&self, other: &Burst<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Burst<T> {
    fn eq(&self, other: &Burst<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Burst<T> {}

/// What the processors of a host did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuUse {
    /// Bursts: arrivals, departures, stays.
    pub bursts: Station,
    /// Work that was submitted, in nanoseconds of a core of speed 1.
    pub demanded_ns: u128,
    /// Work that was done, in nanoseconds of a core of speed 1.
    pub done_ns: f64,
    /// Integral of the threads in use, in nanoseconds: what an operating system counts as busy.
    pub busy_thread_ns: f64,
}

/// The processors of one host.
#[derive(Clone, Debug)]
pub struct Cpu<T> {
    /// By the number of runnable bursts, up to all threads: work per nanosecond.
    capacity: Vec<f64>,
    bursts: BinaryHeap<Burst<T>>,
    /// Work that each runnable burst has received since the beginning.
    virtual_time: f64,
    now: Nanos,
    submitted: u64,
    used: CpuUse,
}

impl<T: Copy> Cpu<T> {
    /// Idle processors.
    pub fn new(spec: &HostSpec) -> Cpu<T> {
        let cores = spec.cores;
        let threads = cores * spec.threads_per_core;
        let capacity = (0..=threads).map(|runnable| {
            let alone = f64::from(runnable.min(cores));
            let doubled = f64::from(runnable.saturating_sub(cores));
            let further = f64::from((threads - cores).max(1)) / f64::from(cores);
            spec.speed * (alone + doubled * (spec.smt_yield - 1.0) / further)
        });
        Cpu {
            capacity: capacity.collect(),
            bursts: BinaryHeap::new(),
            virtual_time: 0.0,
            now: Nanos::ZERO,
            submitted: 0,
            used: CpuUse::default(),
        }
    }

    fn threads_in_use(&self) -> usize {
        self.bursts.len().min(self.capacity.len() - 1)
    }

    fn pass(&mut self, now: Nanos) {
        let elapsed = (now - self.now).0 as f64;
        self.now = now;
        if elapsed == 0.0 || self.bursts.is_empty() {
            return;
        }
        let threads = self.threads_in_use();
        let work = self.capacity[threads] * elapsed;
        self.virtual_time += work / self.bursts.len() as f64;
        self.used.done_ns += work;
        self.used.busy_thread_ns += threads as f64 * elapsed;
    }

    /// A burst of so much work becomes runnable.
    pub fn submit(&mut self, now: Nanos, work: Nanos, task: T) {
        self.pass(now);
        self.used.bursts.arrive(now);
        self.used.demanded_ns += u128::from(work.0);
        self.submitted += 1;
        let end = self.virtual_time + work.0 as f64;
        self.bursts.push(Burst { end, sequence: self.submitted, arrived: now, task });
    }

    /// When the next burst is done, if none arrives before.
    #[inline]
    pub fn next(&self) -> Option<Nanos> {
        let next = self.bursts.peek()?;
        let left = (next.end - self.virtual_time).max(0.0);
        let pace = self.capacity[self.threads_in_use()] / self.bursts.len() as f64;
        Some(self.now + Nanos((left / pace).ceil() as u64))
    }

    /// A burst that is done by `now`.
    pub fn pop(&mut self, now: Nanos) -> Option<T> {
        self.pass(now);
        let next = self.bursts.peek()?;
        if next.end > self.virtual_time + REACHED_NS {
            return None;
        }
        let done = self.bursts.pop()?;
        self.used.bursts.depart(now, done.arrived);
        Some(done.task)
    }

    /// What they did by `now`; counting begins again.
    pub fn take_use(&mut self, now: Nanos) -> CpuUse {
        self.pass(now);
        let taken = CpuUse { bursts: self.used.bursts.take(now), ..self.used };
        self.used = CpuUse { bursts: self.used.bursts, ..CpuUse::default() };
        taken
    }

    /// Work per nanosecond with all threads in use.
    pub fn full_capacity(&self) -> f64 {
        self.capacity.last().copied().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Cpu;
    use crate::spec::HostSpec;
    use underlay_core::Nanos;

    fn ends(spec: &HostSpec, bursts: &[(u64, u64)]) -> Vec<(u64, usize)> {
        let mut cpu = Cpu::new(spec);
        let mut done = Vec::new();
        let mut arrivals = bursts.iter().enumerate().peekable();
        loop {
            let next = cpu.next();
            match arrivals.peek() {
                Some((number, (at, work))) if next.is_none_or(|next| *at <= next.0) => {
                    cpu.submit(Nanos(*at), Nanos(*work), *number);
                    arrivals.next();
                }
                _ => {
                    let Some(now) = next else { return done };
                    while let Some(task) = cpu.pop(now) {
                        done.push((now.0, task));
                    }
                }
            }
        }
    }

    #[test]
    fn the_runnable_share_what_there_is() {
        let one = HostSpec::new("h", 1);
        assert_eq!(ends(&one, &[(0, 100), (0, 100)]), [(200, 0), (200, 1)]);
        // Alone for 50, then half the pace: the second needs 25, the first has 25 left.
        assert_eq!(ends(&one, &[(0, 100), (50, 25)]), [(100, 1), (125, 0)]);
        let two = HostSpec { cores: 2, ..one.clone() };
        assert_eq!(ends(&two, &[(0, 100), (0, 100)]), [(100, 0), (100, 1)]);
        let fast = HostSpec { speed: 2.0, ..one.clone() };
        assert_eq!(ends(&fast, &[(0, 100)]), [(50, 0)]);
        let threads = HostSpec { threads_per_core: 2, smt_yield: 1.25, ..one };
        assert_eq!(ends(&threads, &[(0, 100)]), [(100, 0)]);
        assert_eq!(ends(&threads, &[(0, 100), (0, 100)]), [(160, 0), (160, 1)]);
        assert_eq!(ends(&threads, &[(0, 100); 4]).last(), Some(&(320, 3)));
    }
}
