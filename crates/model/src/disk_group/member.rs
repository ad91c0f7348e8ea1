//! One device of a group, the queues in front of it, and its state.
//!
//! A device answers for a request at its arrival and revises nothing, so an order of service exists only for
//! what has not been sent to it. So the queues send a piece only when the stages of the device that serve one
//! request at a time (commands, link, space in its own buffer) are about to become free. The queue inside the
//! device stays short, and no throughput is lost, because these stages never idle. Parallel units are bounded
//! by number, and only while classes compete. A disk gets as many commands as its own queue holds, because
//! choosing among them is what makes it fast.
//!
//! A piece that arrives while nothing waits, and that the device can take, is sent without being queued.

use super::piece::{Piece, Sent};
use super::request::MemberState;
use super::slow_clock::SlowClock;
use crate::device::Device;
use crate::profile::{DeviceProfile, Medium};
use crate::request::{Operation, Request};
use crate::scheduler::{LANES, Lane, Lanes, Order, Policy, Regulator, SchedulerSpec, Waiting};
use crate::service_time::unit_interval;
use rand_pcg::Pcg64;
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};

/// A class that sent something this recently still competes.
const COMPETES_FOR: Nanos = Nanos::from_millis(20);
/// Never.
pub(crate) const NEVER: Nanos = Nanos(u64::MAX);

/// What a device has done since the start. Cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) errors: u64,
    /// By lane: requests, bytes, time waited, time taken; the times of all are their sums.
    pub(crate) lanes: [[u64; 4]; LANES],
}

/// Latencies of a device's requests, those waited for in the group's queues included, ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemberLatencies {
    pub(crate) read: Histogram,
    pub(crate) write: Histogram,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    device: Device,
    clock: SlowClock,
    pub(crate) lanes: Lanes<Piece>,
    regulator: Option<Regulator>,
    pub(crate) state: MemberState,
    wake: Nanos,
    pub(crate) done: Done,
    pub(crate) latencies: MemberLatencies,
    under_way: u32,
    under_way_max: u32,
    under_way_max_competing: u32,
    ahead: Nanos,
    window: u32,
    last_vm: Option<Nanos>,
    last_other: Option<Nanos>,
    random: Pcg64,
}

impl Member {
    pub(crate) fn new(
        name: &str,
        profile: &DeviceProfile,
        extent: Bytes,
        scheduler: &SchedulerSpec,
        seed: RootSeed,
    ) -> Member {
        let order = match scheduler.policy {
            Policy::Adaptive { .. } => Order::Priority,
            _ => Order::Arrival,
        };
        let mut lanes = Lanes::new(order);
        if let Policy::Adaptive { resync_floor } = scheduler.policy {
            lanes.set_floor(Lane::Resync, resync_floor);
            lanes.set_floor(Lane::Metadata, METADATA_FLOOR);
            lanes.set_floor(Lane::Namespace, NAMESPACE_FLOOR);
        }
        let (under_way_max, under_way_max_competing) = parallelism(profile);
        // The other policies limit resynchronisation by its rate, or not at all.
        let window = match scheduler.policy {
            Policy::Adaptive { .. } => scheduler.window,
            _ => u32::MAX,
        };
        Member {
            device: Device::with_extent(profile, extent, seed, name),
            clock: SlowClock::default(),
            lanes,
            regulator: Regulator::new(scheduler.policy),
            state: MemberState::Healthy,
            wake: NEVER,
            done: Done::default(),
            latencies: MemberLatencies::default(),
            under_way: 0,
            under_way_max,
            under_way_max_competing,
            ahead: ahead(profile),
            window,
            last_vm: None,
            last_other: None,
            random: seed.stream(&format!("member.{name}"), 0),
        }
    }

    /// Uses the tables of another device of the same kind.
    pub(crate) fn share_tables(&mut self, other: &Member) {
        self.device.share_tables(&other.device);
    }

    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.state, MemberState::Lost)
    }

    pub(crate) fn is_stuck(&self) -> bool {
        matches!(self.state, MemberState::Stuck)
    }

    /// When to look at the queues again, unless something comes back earlier.
    pub(crate) fn wake(&self) -> Nanos {
        self.wake
    }

    pub(crate) fn profile(&self) -> &DeviceProfile {
        self.device.profile()
    }

    /// Requests sent and not answered.
    pub(crate) fn under_way(&self) -> u32 {
        self.under_way
    }

    /// The limit on resynchronisation, where the policy has one.
    pub(crate) fn resync_limit(&self) -> Option<u64> {
        self.regulator.as_ref().map(Regulator::bytes_per_second)
    }

    pub(crate) fn set_state(&mut self, now: Nanos, state: MemberState) {
        self.state = state;
        let factor = match state {
            MemberState::Slow { factor } => factor.max(1.0),
            _ => 1.0,
        };
        self.clock.set_factor(now, factor);
    }

    /// Sends the next piece, if one may go now, and says when it comes back; otherwise says in `wake` when to ask again.
    pub(crate) fn send_next(&mut self, now: Nanos) -> Option<(Nanos, Sent)> {
        self.wake = NEVER;
        if self.lanes.is_empty() || self.is_stuck() || self.is_lost() {
            return None;
        }
        if self.has_enough(now) {
            return None; // What comes back asks again.
        }
        let (device, clock) = (&self.device, &self.clock);
        let ahead = clock.stretch(self.ahead);
        let resync_full = self.lanes.under_way(Lane::Resync) >= self.window && self.serves_vm(now);
        let resync_from = self.regulator.as_ref().map_or(Nanos::ZERO, Regulator::next);
        let mut wake = NEVER;
        let chosen = self.lanes.choose(|lane, piece| {
            let free = clock.to_host(device.serial_free(piece.operation)).saturating_sub(ahead);
            let from = if lane == Lane::Resync { free.max(resync_from) } else { free };
            if lane == Lane::Resync && resync_full {
                return false;
            }
            if from > now {
                wake = wake.min(from);
            }
            from <= now
        });
        let Some(lane) = chosen else {
            self.wake = wake;
            return None;
        };
        Some(self.send(now, lane))
    }

    /// Sends a piece that has just come, if nothing waits and it may go whole: the usual case.
    pub(crate) fn send_at_once(
        &mut self,
        now: Nanos,
        lane: Lane,
        piece: &Piece,
    ) -> Option<(Nanos, Sent)> {
        // Resynchronisation goes through `send_next`, which applies its window and its rate limit.
        let is_usual = self.lanes.is_empty()
            && self.under_way < self.under_way_max_competing
            && piece.length_bytes <= piece.quantum_max_bytes
            && lane != Lane::Resync
            && !self.is_stuck()
            && !self.is_lost();
        if !is_usual {
            return None;
        }
        let free = self.clock.to_host(self.device.serial_free(piece.operation));
        if free.saturating_sub(self.clock.stretch(self.ahead)) > now {
            return None;
        }
        self.wake = NEVER;
        self.lanes.served(lane, piece.quantum_bytes());
        Some(self.submit(now, lane, piece, piece.length_bytes, false))
    }

    /// Whether the device has as many requests as it profits from.
    fn has_enough(&self, now: Nanos) -> bool {
        if self.under_way < self.under_way_max_competing {
            return false;
        }
        // More requests in the device would only lengthen a queue that cannot be reordered any
        // more. That matters only while classes compete.
        let competing = self.serves_vm(now)
            && self.is_active(now, self.last_other, &[Lane::Resync, Lane::Elevator]);
        competing || self.under_way >= self.under_way_max
    }

    /// Whether virtual machines use the device.
    fn serves_vm(&self, now: Nanos) -> bool {
        self.is_active(now, self.last_vm, &[Lane::Vm])
    }

    /// Notes that what was sent came back.
    #[inline(always)]
    pub(crate) fn came_back(&mut self, now: Nanos, sent: &Sent) {
        debug_assert!(self.under_way > 0, "what was sent comes back once");
        self.under_way -= 1;
        self.lanes.end(sent.lane);
        let total = (now + sent.early).saturating_sub(sent.since);
        if let (Some(regulator), Lane::Vm) = (&mut self.regulator, sent.lane) {
            regulator.vm_latency(now, total);
        }
        let done = &mut self.done;
        let service = sent.service.min(total);
        let lane = &mut done.lanes[sent.lane.index()];
        lane[0] += 1;
        lane[1] += u64::from(sent.bytes);
        lane[2] += (total - service).0;
        lane[3] += service.0;
        match sent.operation {
            Operation::Read => {
                self.latencies.read.record(total.0);
                done.reads += 1;
                done.read_bytes += u64::from(sent.bytes);
            }
            Operation::Write => {
                self.latencies.write.record(total.0);
                done.writes += 1;
                done.written_bytes += u64::from(sent.bytes);
            }
            Operation::Flush | Operation::Discard => {}
        }
        done.errors += u64::from(sent.failed);
    }

    /// Forgets what was sent and not answered: a power cut.
    pub(crate) fn forget(&mut self) {
        self.under_way = 0;
        self.lanes.forget_under_way();
        self.lanes.drain(|_| {});
        self.wake = NEVER;
    }

    fn is_active(&self, now: Nanos, last: Option<Nanos>, lanes: &[Lane]) -> bool {
        last.is_some_and(|last| now.saturating_sub(last) < COMPETES_FOR)
            || lanes.iter().any(|lane| self.lanes.waits(*lane) || self.lanes.under_way(*lane) > 0)
    }

    /// Sends what is first in a lane, or as much of it as one turn sends.
    fn send(&mut self, now: Nanos, lane: Lane) -> (Nanos, Sent) {
        let waiting = self.lanes.front_mut(lane).expect("a lane is chosen for its front");
        let piece = *waiting;
        let bytes = piece.length_bytes.min(piece.quantum_max_bytes);
        waiting.offset_bytes += u64::from(bytes);
        waiting.length_bytes -= bytes;
        let more = waiting.length_bytes > 0;
        self.lanes.served(lane, piece.quantum_bytes());
        if !more {
            self.lanes.pop(lane);
        }
        self.submit(now, lane, &piece, bytes, more)
    }

    /// Gives the first bytes of a piece to the device.
    #[inline(always)]
    fn submit(
        &mut self,
        now: Nanos,
        lane: Lane,
        piece: &Piece,
        bytes: u32,
        more: bool,
    ) -> (Nanos, Sent) {
        let request = Request {
            operation: piece.operation,
            offset_bytes: piece.offset_bytes,
            length_bytes: bytes,
            // What is acknowledged must be durable, whatever the device's own buffer.
            force_unit_access: true,
        };
        self.lanes.begin(lane);
        self.under_way += 1;
        match lane {
            Lane::Vm => self.last_vm = Some(now),
            Lane::Resync | Lane::Elevator => self.last_other = Some(now),
            Lane::Metadata | Lane::Namespace => {}
        }
        if let (Some(regulator), Lane::Resync) = (&mut self.regulator, lane) {
            regulator.sent(now, u64::from(bytes));
        }
        let device_now = self.clock.to_device(now).max(self.device.last_arrival());
        let completion = self.device.submit(device_now, &request);
        let sent = Sent {
            op: piece.op,
            lane,
            operation: request.operation,
            bytes,
            service: self.clock.stretch(completion.service),
            since: piece.since,
            failed: self.fails(),
            more,
            early: Nanos::ZERO,
        };
        (self.clock.to_host(completion.at).max(now), sent)
    }

    /// Whether the device answers the next request with an error.
    fn fails(&mut self) -> bool {
        matches!(self.state, MemberState::Erroring { probability }
            if unit_interval(&mut self.random) < probability)
    }
}

/// Guaranteed to metadata while virtual machines are served (assumed: only the existence of the queue is
/// known).
const METADATA_FLOOR: f64 = 0.05;
/// Guaranteed to the namespace, likewise.
const NAMESPACE_FLOOR: f64 = 0.02;

/// Requests under way that a device profits from: at all, and while classes compete.
fn parallelism(profile: &DeviceProfile) -> (u32, u32) {
    match &profile.medium {
        Medium::Instant => (u32::MAX, u32::MAX),
        // Four per unit keep hashed units 90 % busy; the constant covers what is in the pipeline.
        Medium::Flash(flash) => (u32::MAX, 4 * flash.units.div_ceil(profile.divisor) + 8),
        Medium::Disk(disk) => (disk.queue_depth, disk.queue_depth),
    }
}

/// How long before its serial stages become free a device is sent the next request: long enough for the
/// request to have passed the command stage when the link becomes free.
fn ahead(profile: &DeviceProfile) -> Nanos {
    let command = match &profile.medium {
        Medium::Flash(flash) => flash.read_command.max(flash.write_command),
        Medium::Instant | Medium::Disk(_) => Nanos::ZERO,
    };
    let page = profile
        .link
        .map_or(Nanos::ZERO, |link| crate::link::transfer_time(4096, link.read_bytes_per_second));
    Nanos(2 * command.0 + page.0)
}
