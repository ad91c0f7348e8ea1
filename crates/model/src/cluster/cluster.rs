//! The cluster: its parts, and the loop that lets time pass.
//!
//! Everything happens in order of time: timers and disk groups are merged into one sequence of steps, each of which
//! happens at its own moment even when the driver looks seldom. Equal specifications, seeds and calls give equal
//! events.

use super::clock::Clock;
use super::event::ClusterEvent;
use super::ids::{ComponentId, GroupId, HostId, VolumeId};
use super::network::Network;
use super::object::{Component, Layout, Object, Volume};
use super::operation::{FrontOperation, Part, SubState, Subrequest};
use super::outbox::Outbox;
use super::placement::Map;
use super::slab::{Key, Slab};
use super::spec::{ClusterProblem, ClusterSettings, ClusterSpec};
use super::timers::Timer;
use super::topology::{Group, Host};
use super::wakeups::Wakeups;
use crate::disk_group::{GroupFinished, GroupRequestId};
use rand_pcg::Pcg64;
use underlay_core::{Nanos, RootSeed};

/// A hyper-converged datastore in some state. See the module for what it does.
#[derive(Debug)]
pub struct Cluster {
    pub(super) settings: ClusterSettings,
    pub(super) network: Network,
    pub(super) hosts: Vec<Host>,
    pub(super) groups: Vec<Group>,
    /// When each group wants to be called.
    pub(super) wakeups: Wakeups,
    /// By number; removed ones leave a hole.
    pub(super) components: Vec<Option<Box<Component>>>,
    pub(super) volumes: Vec<Option<Box<Volume>>>,
    pub(super) operations: Slab<FrontOperation>,
    pub(super) parts: Slab<Part>,
    pub(super) subs: Slab<Subrequest>,
    pub(super) clock: Clock,
    /// Counts changes of what components there are, and of which can be used; see the module `whole_set`.
    pub(super) shape: u64,
    pub(super) outbox: Outbox,
    finished: Vec<GroupFinished>,
    pub(super) random: Pcg64,
    pub(super) seed: RootSeed,
    pub(super) next_side: u32,
    /// Whether a host is without power; a short cut for the usual case.
    pub(super) any_crashed: bool,
    /// Whether a host does not answer all others; likewise.
    pub(super) any_silent: bool,
    /// Number of the last change of a host.
    pub(super) host_epoch: u32,
    pub(super) resync: super::resync::ResyncState,
    pub(super) rebalancing: super::rebalance::Balance,
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
            settings: spec.settings,
            network: Network::new(spec.network),
            hosts: Vec::new(),
            groups: Vec::new(),
            wakeups: Wakeups::new(),
            components: Vec::new(),
            volumes: Vec::new(),
            operations: Slab::new(),
            parts: Slab::new(),
            subs: Slab::new(),
            clock: Clock::new(),
            shape: 0,
            outbox: Outbox::new(),
            finished: Vec::new(),
            random: seed.stream("cluster", 0),
            seed,
            next_side: 1,
            any_crashed: false,
            any_silent: false,
            host_epoch: 0,
            resync: super::resync::ResyncState::default(),
            rebalancing: super::rebalance::Balance::default(),
        };
        for host in &spec.hosts {
            cluster.push_host(host);
        }
        let interval = cluster.settings.rebalance_interval;
        cluster.clock.schedule(interval, Timer::Rebalance);
        Ok(cluster)
    }

    /// When [`Cluster::advance`] will next have something to do.
    pub fn next_wakeup(&self) -> Option<Nanos> {
        if !self.outbox.is_empty() {
            return Some(self.clock.now());
        }
        let next = self.clock.next_timer().min(self.wakeups.first().0);
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// No request ends before this, unless something is submitted or injected; at most as late as that. For drivers by the wall
    /// clock that would otherwise wake for each step of what nobody waits for.
    pub fn next_answer(&self) -> Option<Nanos> {
        if !self.outbox.is_empty() {
            return Some(self.clock.now());
        }
        let timer = self.clock.next_timer();
        let answers = self.groups.iter().filter_map(|group| group.engine.next_answer());
        let next = answers.fold(timer, |next, at| next.min(at.0));
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// Lets time pass up to `now` and appends what happened, in the order in which it is to be dealt with.
    pub fn advance(&mut self, now: Nanos, events: &mut Vec<ClusterEvent>) {
        self.run_until(now);
        self.tell_of_change();
        self.outbox.take(events);
    }

    /// Lets time pass until something has happened that is to be dealt with, though not beyond `limit`; appends it, and returns
    /// when that was. What happens on the way and concerns nobody outside costs its driver nothing.
    pub fn advance_to_event(&mut self, limit: Nanos, events: &mut Vec<ClusterEvent>) -> Nanos {
        while !self.outbox.has_news() && self.step(limit) {}
        if !self.outbox.has_news() {
            self.clock.advance_to(limit);
        }
        self.tell_of_change();
        self.outbox.take(events);
        self.clock.now()
    }

    /// From now on [`ClusterEvent::StateChanged`] says what is to be stored for a restart, beginning with the present state.
    pub fn remember_changes(&mut self) {
        self.outbox.emit_states();
    }

    /// Emits the present state, if it has changed since it was emitted last; see [`Outbox::push_state`].
    pub(super) fn tell_of_change(&mut self) {
        if self.outbox.has_unsaved_change() {
            let state = self.state();
            self.outbox.push_state(state);
        }
    }

    /// Whether a request, a copy or a message is under way. What only waits for a timer does not count.
    pub fn is_busy(&self) -> bool {
        self.operations.len() + self.parts.len() + self.subs.len() > 0
    }

    pub(super) fn run_until(&mut self, now: Nanos) {
        while self.step(now) {}
        self.clock.advance_to(now);
    }

    /// What happens next, if it happens by `limit`; tells whether it did.
    // Always in its loops: a call per step costs a tenth of it.
    #[inline(always)]
    fn step(&mut self, limit: Nanos) -> bool {
        let timer = self.clock.next_timer();
        let (next, group) = self.wakeups.first();
        if timer.min(next) > limit.0 {
            return false;
        }
        if timer <= next {
            let Some(timer) = self.clock.take_timer() else { return false };
            self.fire(timer);
        } else {
            self.clock.advance_to(Nanos(next));
            self.advance_group(group);
        }
        true
    }

    #[inline(always)]
    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Start { operation } => self.start_operation(operation),
            Timer::Arrive { sub } => self.deliver(sub),
            Timer::Answer { sub } => self.answered(sub),
            Timer::LastAnswer { part } => self.all_answered(part),
            Timer::Detect { epoch } => self.detect(epoch),
            Timer::GiveUp { device, epoch } => self.give_up(device, epoch),
            Timer::Repair { component, absence } => self.repair_due(component, absence),
            Timer::RepairWitnesses => self.repair_witnesses(),
            Timer::Rebalance => self.rebalance_tick(),
            Timer::RetryCopies => self.retry_copies(),
        }
    }

    #[inline]
    fn advance_group(&mut self, index: usize) {
        let engine = &mut self.groups[index].engine;
        let only = engine.advance_to_one(self.clock.now(), &mut self.finished);
        self.wakeups.set(index, engine.wakeup().0);
        if let Some(done) = only {
            return self.group_finished(Key::from_u64(done.id.0), &done);
        }
        // By number: dealing with one may need all of the cluster, though it never comes back here.
        for number in 0..self.finished.len() {
            let done = self.finished[number];
            self.group_finished(Key::from_u64(done.id.0), &done);
        }
        self.finished.clear();
    }

    /// Asks the group when it wants to be called next; needed after each call that may change it.
    #[inline]
    pub(super) fn note_wakeup(&mut self, index: usize) {
        let at = self.groups[index].engine.wakeup().0;
        if at != self.wakeups.at(index) {
            self.wakeups.set(index, at);
        }
    }

    pub(super) fn component(&self, id: ComponentId) -> Option<&Component> {
        self.components.get(id.0 as usize)?.as_deref()
    }

    pub(super) fn component_mut(&mut self, id: ComponentId) -> Option<&mut Component> {
        self.components.get_mut(id.0 as usize)?.as_deref_mut()
    }

    pub(super) fn volume(&self, id: VolumeId) -> Option<&Volume> {
        self.volumes.get(id.0 as usize)?.as_deref()
    }

    pub(super) fn volume_mut(&mut self, id: VolumeId) -> Option<&mut Volume> {
        self.volumes.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// One of the layouts of a volume.
    pub(super) fn object(&self, volume: VolumeId, layout: Layout) -> Option<&Object> {
        let volume = self.volume(volume)?;
        match layout {
            Layout::Present => Some(&volume.object),
            Layout::Next => volume.reshape.as_ref().map(|reshape| &reshape.object),
        }
    }

    pub(super) fn object_mut(&mut self, volume: VolumeId, layout: Layout) -> Option<&mut Object> {
        let volume = self.volume_mut(volume)?;
        match layout {
            Layout::Present => Some(&mut volume.object),
            Layout::Next => volume.reshape.as_mut().map(|reshape| &mut reshape.object),
        }
    }

    pub(super) fn map(&self) -> Map<'_> {
        Map {
            hosts: &self.hosts,
            groups: &self.groups,
            components_per_host: self.settings.components_per_host,
        }
    }

    pub(super) fn host_of(&self, group: GroupId) -> HostId {
        self.groups[group.0 as usize].host
    }

    /// Gives a request to a disk group.
    pub(super) fn submit_to_group(&mut self, sub: Key) {
        let Some(entry) = self.subs.get_mut(sub) else { return };
        entry.state = SubState::InGroup;
        let io = entry.group_io(GroupRequestId(sub.to_u64()));
        let (index, head_start) = (entry.group.0 as usize, entry.head_start);
        self.groups[index].engine.submit_early(self.clock.now(), io, head_start);
        self.note_wakeup(index);
    }
}
