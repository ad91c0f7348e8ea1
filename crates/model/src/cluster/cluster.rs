//! The facade of a cluster: owns its parts and runs the event loop.
//!
//! Timers and disk groups are merged into one sequence of steps in order of time. Each step happens at its own time, even if
//! the driver calls rarely. Equal specifications, seeds and calls give equal events.
//!
//! What is not here: the rules. [`Storage`] knows what is stored where, [`Requests`] the path of a request, and [`Repair`]
//! what follows from faults and changes. Each gets the others as arguments.

use super::event::ClusterEvent;
use super::ids::GroupId;
use super::repair::Repair;
use super::requests::Requests;
use super::slab::Key;
use super::spec::{ClusterProblem, ClusterSpec};
use super::storage::Storage;
use super::timers::Timer;
use crate::disk_group::GroupFinished;
use crate::service_factor::ServiceFactor;
use underlay_core::{Nanos, RootSeed};

/// A hyper-converged datastore in some state. See the module for what it does.
#[derive(Debug)]
pub struct Cluster {
    pub(super) storage: Storage,
    pub(super) requests: Requests,
    pub(super) repair: Repair,
    /// What the disk group that is being advanced has finished.
    finished: Vec<GroupFinished>,
}

impl Cluster {
    /// A healthy cluster without volumes.
    ///
    /// # Errors
    /// Every rule the specification violates.
    pub fn new(spec: ClusterSpec, seed: RootSeed) -> Result<Cluster, Vec<ClusterProblem>> {
        let problems = spec.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut cluster = Cluster {
            storage: Storage::new(spec.settings, spec.network, seed),
            requests: Requests::new(),
            repair: Repair::default(),
            finished: Vec::new(),
        };
        for host in &spec.hosts {
            cluster.storage.push_host(host);
        }
        let interval = cluster.storage.settings.rebalance_interval;
        cluster.storage.clock.schedule(interval, Timer::Rebalance);
        Ok(cluster)
    }

    /// When [`Cluster::advance`] will next have something to do.
    pub fn next_wakeup(&self) -> Option<Nanos> {
        self.storage.next_wakeup()
    }

    /// No request ends before this, unless something is submitted or injected; at most as late as that. For drivers by the
    /// wall clock that would otherwise wake for each step of work that no client waits for.
    pub fn next_answer(&self) -> Option<Nanos> {
        self.storage.next_answer()
    }

    /// Lets time pass up to `now` and appends what happened, in the order in which it is to be dealt with.
    pub fn advance(&mut self, now: Nanos, events: &mut Vec<ClusterEvent>) {
        self.run_until(now);
        self.storage.emit_changed_state();
        self.storage.outbox.take(events);
    }

    /// Lets time pass until something has happened that is to be dealt with, though not beyond `limit`; appends it, and
    /// returns when that was. Internal events in between cost the driver nothing.
    pub fn advance_to_event(&mut self, limit: Nanos, events: &mut Vec<ClusterEvent>) -> Nanos {
        while !self.storage.outbox.has_news() && self.step(limit) {}
        if !self.storage.outbox.has_news() {
            self.storage.clock.advance_to(limit);
        }
        self.storage.emit_changed_state();
        self.storage.outbox.take(events);
        self.storage.clock.now()
    }

    /// From now on [`ClusterEvent::StateChanged`] says what is to be stored for a restart, beginning with the present state.
    pub fn remember_changes(&mut self) {
        self.storage.remember_changes()
    }

    /// What write buffers hold is on the capacity devices, in no time: as if it had been written long ago. What is lost or given
    /// up takes nothing.
    pub fn destage_all(&mut self, now: Nanos) {
        self.run_until(now);
        self.storage.inventory.destage_all(self.storage.clock.now());
    }

    /// Messages between hosts take longer by this factor from now on; messages in flight arrive as planned.
    pub fn set_network_factor(&mut self, factor: ServiceFactor) {
        self.storage.inventory.set_network_factor(factor);
    }

    /// Whether a request, a copy or a message is under way. What only waits for a timer does not count.
    pub fn is_busy(&self) -> bool {
        self.requests.is_busy()
    }

    pub(super) fn run_until(&mut self, now: Nanos) {
        while self.step(now) {}
        self.storage.clock.advance_to(now);
    }

    /// What happens next, if it happens by `limit`; tells whether it did.
    // Always in its loops: a call per step costs a tenth of it.
    #[inline(always)]
    fn step(&mut self, limit: Nanos) -> bool {
        let timer = self.storage.clock.next_timer();
        let (next, group) = self.storage.inventory.first_wakeup();
        if timer.min(next) > limit.0 {
            return false;
        }
        if timer <= next {
            let Some(timer) = self.storage.clock.take_timer() else { return false };
            self.fire(timer);
        } else {
            self.storage.clock.advance_to(Nanos(next));
            self.advance_group(group);
        }
        true
    }

    #[inline(always)]
    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Start { operation } => {
                self.requests.start_operation(&mut self.storage, &mut self.repair, operation)
            }
            Timer::Arrive { sub } => self.requests.deliver(&mut self.storage, sub),
            Timer::Answer { sub } => {
                self.requests.answered(&mut self.storage, &mut self.repair, sub)
            }
            Timer::LastAnswer { part } => {
                self.requests.all_answered(&mut self.storage, &mut self.repair, part)
            }
            Timer::Detect { epoch } => {
                self.repair.detect(&mut self.storage, &mut self.requests, epoch)
            }
            Timer::GiveUp { device, epoch } => {
                self.repair.give_up(&mut self.storage, &mut self.requests, device, epoch)
            }
            Timer::Repair { component, absence } => {
                self.repair.repair_due(&mut self.storage, &mut self.requests, component, absence)
            }
            Timer::RepairWitnesses => self.repair.repair_witnesses(&mut self.storage),
            Timer::Rebalance => self.rebalance_tick(),
            Timer::RetryCopies => self.repair.retry_copies(&mut self.storage, &mut self.requests),
        }
    }

    #[inline]
    fn advance_group(&mut self, group: GroupId) {
        let now = self.storage.clock.now();
        let only = self.storage.inventory.advance(group, now, &mut self.finished);
        if let Some(done) = only {
            return self.requests.group_finished(
                &mut self.storage,
                &mut self.repair,
                Key::from_u64(done.id.0),
                &done,
            );
        }
        // By number: dealing with one may need all of the cluster, though it never comes back here.
        for number in 0..self.finished.len() {
            let done = self.finished[number];
            self.requests.group_finished(
                &mut self.storage,
                &mut self.repair,
                Key::from_u64(done.id.0),
                &done,
            );
        }
        self.finished.clear();
    }
}
