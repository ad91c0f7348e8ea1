//! One device: what a request costs, known at its arrival.
//!
//! Each request reserves what it needs (command stage, unit or arm, link, buffer room) at the moment it
//! arrives, and the reservation tells when it completes. Nothing is revised later. That is what lets
//! the same model run in real time, where the deadline must be known in advance, and in virtual time,
//! where it makes a request one step instead of several events.
//!
//! Requests must be submitted in order of time. Discards cost a command and change nothing: a profile has
//! no number for what they free.

use crate::disk::{Arm, Direction};
use crate::flash::{UnitService, Units};
use crate::link::{LinkState, Transfer};
use crate::profile::{DeviceProfile, Flash, Medium};
use crate::request::{Operation, Request};
use crate::service_factor::ServiceFactor;
use crate::stage::{CREDIT, Stage};
use crate::write_buffer::WriteBufferState;
use rand::Rng;
use underlay_core::{Bytes, Nanos, RootSeed};

/// When and why a request completes. `at = arrival + queue + service`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The moment of completion.
    pub at: Nanos,
    /// Time spent waiting for other requests.
    pub queue: Nanos,
    /// Time the request itself took.
    pub service: Nanos,
    /// When the request's data cannot be lost any more: for a buffered write the end of its drain, for
    /// everything else the completion.
    pub drained: Nanos,
}

/// One device in some state.
#[derive(Clone, Debug)]
pub struct Device {
    profile: DeviceProfile,
    medium: MediumState,
    link: Option<LinkState>,
    buffer: Option<WriteBufferState>,
    commands: Stage,
    last_arrival: Nanos,
}

#[derive(Clone, Debug)]
enum MediumState {
    Instant,
    Flash(Flash, Box<Units>),
    Disk(Box<Arm>),
}

impl Device {
    /// An idle device whose whole capacity is in use.
    ///
    /// Equal arguments give equal behaviour. `name` tells devices of one run apart.
    ///
    /// # Panics
    /// If the profile has [`DeviceProfile::problems`].
    pub fn new(profile: &DeviceProfile, seed: RootSeed, name: &str) -> Device {
        Device::with_extent(profile, profile.capacity, seed, name)
    }

    /// An idle device of which only the first `extent` bytes are used; a disk's seek distances are
    /// relative to it (see the module `disk`).
    ///
    /// # Panics
    /// If the profile has [`DeviceProfile::problems`].
    pub fn with_extent(
        profile: &DeviceProfile,
        extent: Bytes,
        seed: RootSeed,
        name: &str,
    ) -> Device {
        let problems = profile.problems();
        assert!(problems.is_empty(), "profile `{}`: {problems:?}", profile.name);
        let mut random = seed.stream(&format!("device.{name}"), 0);
        let hash_key = random.next_u64();
        let divisor = profile.divisor;
        let (medium, program_bytes) = match &profile.medium {
            Medium::Instant => (MediumState::Instant, 4096),
            Medium::Flash(flash) => {
                let units = Box::new(Units::new(flash, divisor, hash_key, random));
                (MediumState::Flash(flash.clone(), units), flash.program_bytes)
            }
            Medium::Disk(disk) => {
                (MediumState::Disk(Box::new(Arm::new(disk, divisor, extent, random))), 64 << 10)
            }
        };
        Device {
            medium,
            link: profile.link.map(|link| LinkState::new(link, divisor)),
            buffer: profile
                .write_buffer
                .map(|buffer| WriteBufferState::new(buffer, divisor, program_bytes)),
            commands: Stage::new(divisor, CREDIT),
            last_arrival: Nanos::ZERO,
            profile: profile.clone(),
        }
    }

    /// What the device is.
    pub fn profile(&self) -> &DeviceProfile {
        &self.profile
    }

    /// Uses the tables of another device of the same kind. Behaviour does not change.
    pub(crate) fn share_tables(&mut self, other: &Device) {
        if let (MediumState::Flash(_, mine), MediumState::Flash(_, theirs)) =
            (&mut self.medium, &other.medium)
        {
            mine.share(theirs);
        }
    }

    /// When the last request arrived; the earliest time of the next one.
    pub fn last_arrival(&self) -> Nanos {
        self.last_arrival
    }

    /// Accepts a request that arrives at `now` and tells when it completes.
    ///
    /// # Panics
    /// If `now` lies before the previous submission.
    #[inline(always)]
    pub fn submit(&mut self, now: Nanos, request: &Request) -> Completion {
        self.submit_at_pace(now, request, ServiceFactor::ONE)
    }

    /// The same for a request whose service takes `factor` times as long, everything that it occupies included: so that others
    /// wait for it as they would for a slower device.
    ///
    /// # Panics
    /// If `now` lies before the previous submission.
    #[inline(always)]
    pub fn submit_at_pace(
        &mut self,
        now: Nanos,
        request: &Request,
        factor: ServiceFactor,
    ) -> Completion {
        assert!(now >= self.last_arrival, "requests are submitted in order of time");
        self.last_arrival = now;
        self.run_programs(now);
        let (at, service, drained) = match request.operation {
            Operation::Read => self.read(now, request, factor),
            Operation::Write => self.write(now, request, factor),
            Operation::Flush => self.flush(now, factor),
            Operation::Discard => self.command_only(now, factor),
        };
        debug_assert!(
            at >= now && drained >= at,
            "a request ends after it arrived, and drains after that"
        );
        let queue = (at - now).saturating_sub(service);
        Completion { at, queue, service: at - now - queue, drained }
    }

    /// From `now` on, what is in the write buffer at an offset drains `new / old` times as slowly, with `(old, new)` of
    /// `change`.
    pub(crate) fn repace_buffer(
        &mut self,
        now: Nanos,
        change: impl Fn(u64) -> (ServiceFactor, ServiceFactor),
    ) {
        if let Some(buffer) = &mut self.buffer {
            buffer.repace(now, change);
        }
    }

    /// Bytes in the write buffer at `now`; zero without one.
    pub fn buffer_fill(&mut self, now: Nanos) -> Bytes {
        self.buffer.as_mut().map_or(Bytes::ZERO, |buffer| buffer.fill(now))
    }

    /// Bytes that left the write buffer for the medium up to `now`.
    pub fn drained_bytes(&mut self, now: Nanos) -> Bytes {
        self.buffer.as_mut().map_or(Bytes::ZERO, |buffer| buffer.drained_bytes(now))
    }

    /// The earliest moment at which every stage that serves one request at a time is free for another such
    /// request: the command stage, the link in its direction, and for a write the room in the buffer. An arm is
    /// not among them: a drive chooses among what waits for it.
    pub fn serial_free(&self, operation: Operation) -> Nanos {
        let link = |pick: fn(&LinkState) -> Nanos| self.link.as_ref().map_or(Nanos::ZERO, pick);
        match operation {
            Operation::Read => self.commands.free().max(link(LinkState::read_free)),
            Operation::Write => {
                let room = self.buffer.as_ref().map_or(Nanos::ZERO, |buffer| buffer.room_free());
                self.commands.free().max(link(LinkState::write_free)).max(room)
            }
            // A flush waits for the drain, not for one of these stages.
            Operation::Flush => Nanos::ZERO,
            Operation::Discard => self.commands.free(),
        }
    }

    /// Lets the program operations of the drain that began by now occupy their units.
    #[inline]
    fn run_programs(&mut self, now: Nanos) {
        let (Some(buffer), MediumState::Flash(_, units)) = (&mut self.buffer, &mut self.medium)
        else {
            return;
        };
        while let Some(start) = buffer.next_program(now) {
            buffer.delay(units.drain_program(start));
        }
    }

    /// Passes the serial command stage; returns its end.
    fn command(&mut self, now: Nanos, duration: Nanos) -> Nanos {
        self.commands.serve(now, duration) + duration
    }

    // Reads and writes apart, and neither in `submit`: together they have too much to keep in registers.
    #[inline(never)]
    fn read(
        &mut self,
        now: Nanos,
        request: &Request,
        factor: ServiceFactor,
    ) -> (Nanos, Nanos, Nanos) {
        let bytes = u64::from(request.length_bytes);
        let command = match &self.medium {
            MediumState::Flash(flash, _) => factor.of(flash.read_command),
            MediumState::Instant | MediumState::Disk(_) => Nanos::ZERO,
        };
        let ready = self.command(now, command);
        let transfer = self.transfer_read(ready, bytes, factor);
        let (at, service) = match &mut self.medium {
            MediumState::Instant => (transfer.start.max(now) + transfer.extra, transfer.extra),
            MediumState::Flash(flash, units) => {
                let unit = units.read(ready, request.offset_bytes, bytes, factor);
                let base = factor.of(flash.base);
                (
                    read_end(flash, transfer, &unit, bytes) + base,
                    unit.service + transfer.extra + base,
                )
            }
            MediumState::Disk(arm) => {
                let served = arm.serve(now, Direction::Read, request.offset_bytes, bytes, factor);
                (served.done.max(transfer.start + transfer.extra), served.service)
            }
        };
        (at, command + service, at)
    }

    #[inline(never)]
    fn write(
        &mut self,
        now: Nanos,
        request: &Request,
        factor: ServiceFactor,
    ) -> (Nanos, Nanos, Nanos) {
        let bytes = u64::from(request.length_bytes);
        let command = match &self.medium {
            MediumState::Flash(flash, _) => factor.of(flash.write_command),
            MediumState::Instant | MediumState::Disk(_) => Nanos::ZERO,
        };
        let ready = self.command(now, command);
        let transfer = self.transfer_write(ready, bytes, factor);
        let received = transfer.start.max(ready) + transfer.extra;
        let through = command + transfer.extra;
        if self.buffer.is_some() {
            return self.buffered_write(received, through, request, factor);
        }
        let (at, service) = self.direct_write(received, request, factor);
        (at, through + service, at)
    }

    fn buffered_write(
        &mut self,
        received: Nanos,
        through: Nanos,
        request: &Request,
        factor: ServiceFactor,
    ) -> (Nanos, Nanos, Nanos) {
        let buffer = self.buffer.as_mut().expect("the caller checked");
        let bytes = u64::from(request.length_bytes);
        let admission = buffer.admit(received, request.offset_bytes, bytes, factor);
        let settings = self.profile.write_buffer.as_ref().expect("the state exists");
        let further_pages = bytes.saturating_sub(1) / 4096;
        let latency = settings.latency + Nanos(settings.latency_per_4k.0 * further_pages);
        let latency = factor.of(latency);
        let acknowledged = admission.admitted + latency;
        // Without power-loss protection only the medium is durable.
        let must_drain = request.force_unit_access && !self.profile.power_loss_protected;
        let at = if must_drain { acknowledged.max(admission.drained) } else { acknowledged };
        (at, through + latency, admission.drained.max(at))
    }

    fn direct_write(
        &mut self,
        received: Nanos,
        request: &Request,
        factor: ServiceFactor,
    ) -> (Nanos, Nanos) {
        let bytes = u64::from(request.length_bytes);
        match &mut self.medium {
            MediumState::Instant => (received, Nanos::ZERO),
            MediumState::Flash(flash, units) => {
                let unit = units.write(received, request.offset_bytes, bytes, factor);
                let base = factor.of(flash.base);
                (unit.last_done + base, unit.service + base)
            }
            MediumState::Disk(arm) => {
                let offset = request.offset_bytes;
                let served = arm.serve(received, Direction::Write, offset, bytes, factor);
                (served.done, served.service)
            }
        }
    }

    fn flush(&mut self, now: Nanos, factor: ServiceFactor) -> (Nanos, Nanos, Nanos) {
        let cost = factor.of(self.profile.flush);
        let settled = match &self.buffer {
            // A protected buffer is durable as it is, so a flush has nothing to wait for.
            Some(buffer) if !self.profile.power_loss_protected => buffer.drained_at(),
            _ => Nanos::ZERO,
        };
        let at = settled.max(now) + cost;
        (at, cost, at)
    }

    fn command_only(&mut self, now: Nanos, factor: ServiceFactor) -> (Nanos, Nanos, Nanos) {
        let (cost, base) = match &self.medium {
            MediumState::Instant => (Nanos::ZERO, Nanos::ZERO),
            MediumState::Flash(flash, _) => (flash.write_command, flash.base),
            MediumState::Disk(_) => (Nanos::ZERO, self.profile.flush),
        };
        let (cost, base) = (factor.of(cost), factor.of(base));
        let at = self.command(now, cost) + base;
        (at, cost + base, at)
    }

    fn transfer_read(&mut self, ready: Nanos, bytes: u64, factor: ServiceFactor) -> Transfer {
        let none = Transfer { start: Nanos::ZERO, extra: Nanos::ZERO };
        self.link.as_mut().map_or(none, |link| link.read(ready, bytes, factor))
    }

    fn transfer_write(&mut self, ready: Nanos, bytes: u64, factor: ServiceFactor) -> Transfer {
        let none = Transfer { start: Nanos::ZERO, extra: Nanos::ZERO };
        self.link.as_mut().map_or(none, |link| link.write(ready, bytes, factor))
    }
}

/// When the last byte of a read has left the units and the link of a flash device: data flows while later blocks are still being
/// read, but the last block's own transfer follows its read.
fn read_end(flash: &Flash, transfer: Transfer, unit: &UnitService, bytes: u64) -> Nanos {
    let streamed = unit.first_done.max(transfer.start) + transfer.extra;
    let unit_bytes = u64::from(flash.unit_bytes);
    let last_transfer = if bytes <= unit_bytes {
        transfer.extra
    } else {
        Nanos(transfer.extra.0 * unit_bytes / bytes)
    };
    streamed.max(unit.last_done + last_transfer)
}
