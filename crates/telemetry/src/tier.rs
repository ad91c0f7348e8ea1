//! One thread and the samplers it runs at every tick.
//!
//! Samplers share a thread only when all of them are as quick as a read of `/proc`: whatever may
//! wait for another process (a database, a socket) has a tier of its own, so that its
//! delay shows in its own acquisition windows and nowhere else.

use crate::announcer::{Announcer, Series};
use crate::common::{Common, SinkClosed, send};
use crate::item::Item;
use crate::schedule::Schedule;
use crate::source::{Sampler, SourceInfo, Status};
use crate::stop::Wakeup;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use underlay_core::Nanos;

/// What a tier costs and misses; written by its thread, read by the `underlay` source.
#[derive(Debug)]
pub(crate) struct Account {
    /// Name of the tier and of its thread.
    pub(crate) name: String,
    /// Ticks taken.
    pub(crate) ticks: AtomicU64,
    /// Ticks missed.
    pub(crate) missed: AtomicU64,
    /// Wall time of the latest sweep.
    pub(crate) sweep_ns: AtomicU64,
    /// CPU time of the thread, from its start.
    pub(crate) cpu_ns: AtomicU64,
}

impl Account {
    pub(crate) fn new(name: impl Into<String>) -> Arc<Account> {
        Arc::new(Account {
            name: name.into(),
            ticks: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            sweep_ns: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
        })
    }

    /// Called by the tier's own thread after each sweep.
    pub(crate) fn settle(&self, sweep: Duration, missed_in_all: u64) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        self.missed.store(missed_in_all, Ordering::Relaxed);
        self.sweep_ns.store(Nanos::from(sweep).0, Ordering::Relaxed);
        self.cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
    }
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// A sampler and its announcements.
pub(crate) struct Seat {
    sampler: Box<dyn Sampler>,
    announcer: Announcer,
    /// The facts that were last announced.
    facts: Vec<String>,
}

impl Seat {
    pub(crate) fn new(number: usize, sampler: Box<dyn Sampler>) -> Seat {
        Seat { sampler, announcer: Announcer::new(number), facts: Vec::new() }
    }

    /// Tells about the source when anything about it is new.
    fn announce(&mut self, common: &Common) -> Result<(), SinkClosed> {
        let sampler = self.sampler.as_ref();
        let (status, width) = (sampler.status(), sampler.series().len());
        let change = self.announcer.source(common, || SourceInfo::of(sampler), status, width)?;
        // Series may be added many times while facts stay what they are.
        if change == Series::Changed && sampler.facts() != self.facts {
            self.facts = sampler.facts();
            for fact in &self.facts {
                self.announcer.note(common, fact.clone())?;
            }
        }
        Ok(())
    }

    /// Takes one tick and sends it; a failure becomes missing values and, once, a note.
    fn tick(&mut self, common: &Common) -> Result<(), SinkClosed> {
        let mut values = Vec::with_capacity(self.sampler.series().len());
        let begin = common.now();
        let outcome = self.sampler.sample(&mut values);
        let end = common.now();
        self.announce(common)?;
        self.announcer.outcome(common, self.sampler.status(), &outcome)?;
        if self.is_absent() {
            return Ok(());
        }
        let width = self.sampler.series().len();
        match outcome {
            Ok(()) => {
                assert_eq!(
                    values.len(),
                    width,
                    "source {} declared a different number of series",
                    self.sampler.name()
                );
            }
            Err(_) => values = vec![f64::NAN; width],
        }
        send(common, Item::Tick { source: self.announcer.number(), begin, end, values })
    }

    fn is_absent(&self) -> bool {
        matches!(self.sampler.status(), Status::Absent(_))
    }
}

/// The body of a tier's thread: ticks until it is stopped or the receiver is gone.
pub(crate) fn run(common: &Common, account: &Account, mut seats: Vec<Seat>) {
    // The receiver going away is a regular end: the run was given up.
    let _ended = tick_until_stopped(common, account, &mut seats);
}

fn tick_until_stopped(
    common: &Common,
    account: &Account,
    seats: &mut [Seat],
) -> Result<(), SinkClosed> {
    for seat in seats.iter_mut() {
        seat.announce(common)?;
    }
    let mut schedule = Schedule::starting_at(common.interval, common.origin.elapsed());
    while common.stop.sleep_until(common.origin + schedule.due()) == Wakeup::Due {
        let begin = Instant::now();
        for seat in seats.iter_mut() {
            seat.tick(common)?;
        }
        let missed = schedule.taken(common.origin.elapsed());
        account.settle(begin.elapsed(), schedule.missed());
        if missed > 0 {
            let text = format!("tier {} missed {missed} ticks", account.name);
            send(common, Item::Note { at: common.now(), source: None, text })?;
        }
    }
    Ok(())
}
