//! The group itself: accepting requests, passing time, answering.
//!
//! Requests and runs of the elevator are *operations*; each waits for *pieces* of work at the devices. The
//! calendar says when a piece comes back; then the operation enters its next stage or is answered. The
//! stages of writes, reads and destaging are in files of their own.

use super::admission::Admission;
use super::buffered::BufferedBlocks;
use super::congestion::{self, RateAverage};
use super::counters::ClassCounters;
use super::flights::{Calendar, Event};
use super::latencies::Latencies;
use super::log::Log;
use super::member::{Member, NEVER};
use super::operations::{Op, Operations, Stage, Work};
use super::piece::Sent;
use super::reduction_costs::Reducer;
use super::request::{GroupFinished, GroupIo, GroupOutcome};
use super::spec::{DiskGroupSpec, WriteBufferSpec};
use super::sweeps::Elevator;
use crate::profile::DeviceProfile;
use crate::request::Operation;
use crate::scheduler::{IoClass, Lane, Lanes, Order, Policy};
use rand_pcg::Pcg64;
use underlay_core::{Bytes, Nanos, RootSeed};

/// One disk group in some state.
///
/// Time is passed in and never goes back. Requests come back from [`DiskGroup::advance`] in order of time, each
/// exactly once, unless the power is cut; a stuck device keeps those that need it until its state is set
/// again.
#[derive(Clone, Debug)]
pub struct DiskGroup {
    pub(super) spec: DiskGroupSpec,
    /// The cache device, then the capacity devices.
    pub(super) members: Vec<Member>,
    /// When to look at the queues of each member again, and the earliest of these; apart from the members, because it is
    /// asked at every step.
    pub(super) wakes: Vec<Nanos>,
    pub(super) first_wake: Nanos,
    /// Answers of stuck devices, per member.
    pub(super) parked: Vec<Vec<Sent>>,
    pub(super) calendar: Calendar,
    pub(super) operations: Operations,
    pub(super) finished: Vec<GroupFinished>,
    pub(super) clock: Nanos,
    pub(super) sequence: u64,
    pub(super) power: Power,
    pub(super) log: Log,
    pub(super) limits: FillLimits,
    /// Whether a device is lost; a short cut for the usual case.
    pub(super) any_lost: bool,
    /// Per capacity device.
    pub(super) blocks: Vec<BufferedBlocks>,
    /// Writes that wait for room.
    pub(super) admission: Lanes<Admission>,
    pub(super) last_vm_write: Option<Nanos>,
    pub(super) mean_write_bytes: f64,
    pub(super) elevator: Elevator,
    pub(super) destage_rate: RateAverage,
    pub(super) reducer: Option<Reducer>,
    pub(super) destaged: Option<Vec<(usize, u64, u32)>>,
    pub(super) back_off: Pcg64,
    pub(super) classes: [ClassCounters; 4],
    pub(super) buffer_reads: BufferReads,
    pub(super) latencies: Latencies,
}

/// Whether the group has power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    On,
    Off,
}

/// Reads by where their data was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BufferReads {
    pub(super) hits: u64,
    pub(super) partial_hits: u64,
    pub(super) misses: u64,
}

/// Bytes in the buffer at which something changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FillLimits {
    /// The most without congestion, and the fewest at which resynchronisation needs credit.
    pub(super) uncongested_most: u64,
    pub(super) resync_held_fewest: u64,
    /// The fewest at which the elevator starts, and the most at which it stops.
    pub(super) start_fewest: u64,
    pub(super) stop_most: u64,
}

impl FillLimits {
    fn of(log: &Log, spec: &DiskGroupSpec) -> FillLimits {
        FillLimits {
            uncongested_most: log.most_bytes_at(spec.congestion.low_fill),
            resync_held_fewest: log.fewest_bytes_at(spec.congestion.low_fill),
            start_fewest: log.fewest_bytes_at(spec.write_buffer.elevator_start),
            stop_most: log.most_bytes_at(spec.write_buffer.elevator_stop),
        }
    }
}

/// Where a piece of an operation goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) member: usize,
    pub(super) lane: Lane,
    pub(super) operation: Operation,
    pub(super) offset_bytes: u64,
    pub(super) length_bytes: u32,
}

impl DiskGroup {
    /// An idle group with an empty buffer. Equal arguments give equal behaviour.
    ///
    /// # Panics
    /// If the specification has [`DiskGroupSpec::problems`].
    pub fn new(spec: DiskGroupSpec, seed: RootSeed) -> DiskGroup {
        let problems = spec.problems();
        assert!(problems.is_empty(), "disk group `{}`: {problems:?}", spec.name);
        let profiles: Vec<_> = std::iter::once(&spec.cache).chain(&spec.capacity).collect();
        let members: Vec<Member> = profiles
            .iter()
            .enumerate()
            .map(|(index, profile)| {
                let extent = spec.extents.get(index).copied().unwrap_or(profile.capacity);
                let extent = extent.max(Bytes::from_mib(1));
                let name = format!("{}.{index}", spec.name);
                Member::new(&name, profile, extent, &spec.scheduler, seed)
            })
            .collect();
        let mut admission = Lanes::new(match spec.scheduler.policy {
            Policy::Adaptive { .. } => Order::Priority,
            _ => Order::Arrival,
        });
        if let Policy::Adaptive { resync_floor } = spec.scheduler.policy {
            admission.set_floor(Lane::Resync, resync_floor);
        }
        let usable = spec.write_buffer.usable.min(WriteBufferSpec::LOGICAL_LIMIT);
        DiskGroup {
            wakes: vec![NEVER; members.len()],
            first_wake: NEVER,
            parked: vec![Vec::new(); members.len()],
            calendar: Calendar::new(),
            operations: Operations::default(),
            finished: Vec::with_capacity(1024),
            clock: Nanos::ZERO,
            sequence: 0,
            power: Power::On,
            limits: FillLimits::of(&Log::new(usable), &spec),
            any_lost: false,
            log: Log::new(usable),
            blocks: vec![BufferedBlocks::default(); spec.capacity.len()],
            admission,
            last_vm_write: None,
            mean_write_bytes: 8192.0,
            elevator: Elevator::new(spec.capacity.len()),
            destage_rate: RateAverage::new(),
            reducer: Reducer::new(&spec.reduction),
            destaged: None,
            back_off: seed.stream(&format!("group.{}.back-off", spec.name), 0),
            classes: [ClassCounters::default(); 4],
            buffer_reads: BufferReads::default(),
            latencies: Latencies::new(),
            members,
            spec,
        }
    }

    /// Adds an empty capacity device at `now`, as the last one. `seed` is the group's own.
    ///
    /// # Panics
    /// If `now` lies before an earlier call, or the profile has [`DeviceProfile::problems`].
    pub(crate) fn add_capacity(&mut self, now: Nanos, profile: &DeviceProfile, seed: RootSeed) {
        self.run_until(now);
        let name = format!("{}.{}", self.spec.name, self.members.len());
        let extent = profile.capacity.max(Bytes::from_mib(1));
        self.members.push(Member::new(&name, profile, extent, &self.spec.scheduler, seed));
        self.wakes.push(NEVER);
        self.parked.push(Vec::new());
        self.blocks.push(BufferedBlocks::default());
        self.elevator.add_disk();
        // Extents are given for all devices or for none.
        if !self.spec.extents.is_empty() {
            self.spec.extents.push(profile.capacity);
        }
        self.spec.capacity.push(profile.clone());
    }

    /// Uses the tables of another group's devices where they are the same. Behaviour does not change.
    pub(crate) fn share_tables(&mut self, other: &DiskGroup) {
        for mine in &mut self.members {
            other.members.iter().for_each(|theirs| mine.share_tables(theirs));
        }
    }

    /// What the group is.
    pub fn spec(&self) -> &DiskGroupSpec {
        &self.spec
    }

    /// Accepts a request at `now`. While the power is off it vanishes, like those in flight at the cut.
    ///
    /// # Panics
    /// If `now` lies before an earlier call, or the disk does not exist.
    pub fn submit(&mut self, now: Nanos, io: GroupIo) {
        self.submit_early(now, io, Nanos::ZERO);
    }

    /// Accepts a request whose answer is handed out up to `head_start` before its time, though not before it is known: once
    /// the device has been asked. Nothing else changes; the answer says how early it is. For drivers by the
    /// wall clock, whose way back to the client takes that long.
    ///
    /// # Panics
    /// As [`DiskGroup::submit`].
    pub fn submit_early(&mut self, now: Nanos, io: GroupIo, head_start: Nanos) {
        assert!(io.disk < self.spec.capacity.len(), "there is no disk {}", io.disk);
        self.run_until(now);
        if self.power == Power::Off {
            return;
        }
        let class = &mut self.classes[io.class.index()];
        class.outstanding += 1;
        class.outstanding_bytes += u64::from(io.length_bytes);
        let op = self.operations.open(Op {
            work: Work::Request(io),
            lane: Lane::of(io.class),
            stage: Stage::Data,
            pieces: 0,
            arrived: now,
            service: Nanos::ZERO,
            head_start,
            early: Nanos::ZERO,
            ends: Nanos::ZERO,
            is_delayed: false,
            outcome: GroupOutcome::Ok,
            rest: (0, 0),
        });
        if let Some(device) = self.lost_device(io.disk) {
            return self.finish_with(op, GroupOutcome::DeviceLost { device });
        }
        match io.operation {
            Operation::Write => self.submit_write(op, &io),
            Operation::Read => self.submit_read(op, &io),
            // Every acknowledged write is durable already.
            Operation::Flush => self.finish(op),
            Operation::Discard => self.submit_discard(op, &io),
        }
    }

    /// When [`DiskGroup::advance`] has something to do; none while nothing is under way.
    pub fn next_wakeup(&self) -> Option<Nanos> {
        Some(self.wakeup()).filter(|at| *at != NEVER)
    }

    /// The same; `u64::MAX` while nothing is under way.
    #[inline]
    pub(crate) fn wakeup(&self) -> Nanos {
        if self.finished.is_empty() { self.next_event() } else { self.clock }
    }

    /// No request of a virtual machine is answered before this; none while there are none. For drivers to whom nothing else
    /// matters: much of what [`DiskGroup::next_wakeup`] wakes for is destaging.
    pub fn next_answer(&self) -> Option<Nanos> {
        if !self.finished.is_empty() {
            return Some(self.clock);
        }
        if self.classes[IoClass::Vm.index()].outstanding == 0 {
            return None;
        }
        // What has not been sent is answered some time after something else has happened.
        let waits = self.members.iter().any(|member| member.lanes.waits(Lane::Vm))
            || !self.admission.is_empty();
        if waits { self.next_wakeup() } else { self.calendar.next_answer() }
    }

    /// Lets time pass up to `now` and hands out what was answered until then, in order of time.
    ///
    /// # Panics
    /// If `now` lies before an earlier call.
    pub fn advance(&mut self, now: Nanos, finished: &mut Vec<GroupFinished>) {
        self.run_until(now);
        if finished.is_empty() {
            std::mem::swap(finished, &mut self.finished);
        } else {
            finished.append(&mut self.finished);
        }
    }

    /// The same, but what was answered is returned if it is one request only, as it nearly always is.
    #[inline]
    pub(crate) fn advance_to_one(
        &mut self,
        now: Nanos,
        finished: &mut Vec<GroupFinished>,
    ) -> Option<GroupFinished> {
        self.run_until(now);
        if self.finished.len() <= 1 {
            return self.finished.pop();
        }
        std::mem::swap(finished, &mut self.finished);
        None
    }

    /// How congested the group is at `now`: 0 = not at all, 255 = the buffer is as full as it may get.
    pub fn congestion(&mut self, now: Nanos) -> u8 {
        self.run_until(now);
        congestion::value(&self.spec.congestion, self.log.fill())
    }

    /// Whether a write would not have to wait at its client, as long as nothing has happened since the last call.
    pub(crate) fn is_uncongested(&self) -> bool {
        self.log.used_bytes() <= self.limits.uncongested_most
    }

    /// How long a virtual machine's next write waits at its client before it is submitted: a random back-off
    /// that grows with the congestion. Resynchronisation needs none: the group itself makes its writes wait.
    pub fn ingress_delay(&mut self, now: Nanos) -> Nanos {
        let value = self.congestion(now);
        let per_byte_ns =
            self.destage_rate.bytes_per_second(now).map_or(0.0, |rate| 1e9 / rate.max(1.0));
        let unit = Nanos((self.mean_write_bytes * per_byte_ns) as u64);
        congestion::delay(&self.spec.congestion, value, unit, &mut self.back_off)
    }

    /// Tells what deduplication and compression made of the real bytes; from here on destaging costs
    /// accordingly. Both in 0 to 1; without effect while reduction is off.
    pub fn set_reduction_observed(
        &mut self,
        stored_bytes_per_destaged_byte: f64,
        unique_share: f64,
    ) {
        if let Some(reducer) = &mut self.reducer {
            reducer.observe(stored_bytes_per_destaged_byte, unique_share);
        }
    }

    /// What was destaged since the last call, as (disk, offset, length), neighbours joined. The first call
    /// starts the recording and returns nothing.
    pub fn take_destaged(&mut self) -> Vec<(usize, u64, u32)> {
        self.destaged.replace(Vec::new()).unwrap_or_default()
    }

    /// Which of the 64 blocks of 4 KiB of a disk from `first` on have a version in the write buffer: one bit each.
    ///
    /// # Panics
    /// If the disk does not exist.
    pub fn buffered(&self, disk: usize, first: u64) -> u64 {
        self.blocks[disk].mask(first)
    }

    /// Requests not yet handed out.
    pub fn in_flight(&self) -> usize {
        let outstanding: u64 = self.classes.iter().map(|class| class.outstanding).sum();
        outstanding as usize + self.finished.len()
    }

    /// The device whose loss takes a disk away, if any.
    #[inline]
    pub(super) fn lost_device(&self, disk: usize) -> Option<usize> {
        if self.any_lost { self.find_lost(disk) } else { None }
    }

    #[cold]
    fn find_lost(&self, disk: usize) -> Option<usize> {
        let lost = |member: &usize| self.members[*member].is_lost();
        let reduces = self.reducer.is_some();
        // The cache device holds the only copy of buffered data, and with deduplication the blocks
        // of a disk may be stored on any device.
        let fatal = (0..self.members.len()).filter(|m| *m == 0 || reduces || *m == disk + 1);
        fatal.into_iter().find(lost)
    }

    /// Processes everything that happens up to `now`. Usually, before a request is accepted, nothing does.
    #[inline(always)]
    pub(super) fn run_until(&mut self, now: Nanos) {
        assert!(now >= self.clock, "time does not go back: {now} after {}", self.clock);
        if self.next_event() <= now {
            self.run_events(now);
        }
        self.clock = now;
    }

    #[inline(never)]
    fn run_events(&mut self, now: Nanos) {
        loop {
            let at = self.next_event();
            if at > now {
                break;
            }
            self.step(at);
        }
    }

    /// The next event, or what waits for that moment.
    #[inline]
    fn step(&mut self, at: Nanos) {
        self.clock = self.clock.max(at);
        if self.calendar.next() == at {
            match self.calendar.take() {
                Some(Event::Answer { member, sent }) => self.answer(member, sent),
                Some(Event::Computed { op }) => self.computed(op),
                Some(Event::Withdrawn) | None => {}
            }
            return;
        }
        if self.first_wake <= at {
            for member in 0..self.members.len() {
                if self.wakes[member] <= at {
                    self.pump(member);
                }
            }
        }
        self.elevator_wakes(at);
    }

    #[inline]
    fn next_event(&self) -> Nanos {
        self.calendar.next().min(self.first_wake).min(self.elevator.wake)
    }
}
