//! A cluster as the back end of an export: requests for any bytes become requests for whole blocks, and completions of the
//! cluster become replies.
//!
//! While timing is on, a request goes through the cluster and is answered when it completes. While timing is off, it is
//! completed immediately.
//!
//! A request that is not one request to the cluster (a discard that begins or ends within a block, or is longer than a request
//! can be) becomes several; the answer goes out when all of them are done.

use std::ops::Range;

use rustix::io::Errno;
use underlay_core::Nanos;
use underlay_export::path_cost::PathCost;
use underlay_export::{Answer, Asked, BackEnd, BlockRequest, Exchange, Extent, Force, Modelled};
use underlay_model::cluster::{HostId, Policy};
use underlay_model::{Operation, Request, ServiceFactor};

use super::in_flight::{InFlight, widened};
use super::plane::ClusterPlane;
use super::prolonged::Prolonged;
use crate::config::VolumeConfig;
use crate::control::TimingMode;
use crate::server::slab::Slab;

/// Whole blocks, and below what a request's length can say.
const DISCARD_MAX_BYTES: u64 = 1 << 30;

/// A cluster and the volumes on it. `C` names the client that is answered.
pub(crate) struct ClusterBackEnd<C> {
    pub(crate) plane: ClusterPlane<Recipient<C>>,
    /// Requests that the cluster has done, about to be answered; empty in between, kept for its memory.
    done: Vec<Answer<Recipient<C>>>,
    /// Requests that are done and held back by the factor of their purpose.
    prolonged: Prolonged<Recipient<C>>,
    /// Requests of clients that became several.
    joints: Slab<Joint<C>>,
    /// Per volume, in the order of `Operation::ALL`; those that are missing are 1.
    factors: Vec<[ServiceFactor; 4]>,
    /// Requests to the cluster that are not done, per volume.
    in_flight: Vec<u64>,
    mode: TimingMode,
    is_powered: bool,
}

/// Who waits for a request to the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recipient<C> {
    Client(C),
    /// The request of which it is a part.
    Joint(u64),
}

/// A client's request that became several.
struct Joint<C> {
    client: C,
    /// Parts that are not done.
    left: usize,
    failed: bool,
}

/// One of the requests that a client's request became.
struct Part {
    request: Request,
    /// Zeros to be written, and which part of them is meant.
    zeros: Option<Range<usize>>,
}

impl<C> ClusterBackEnd<C> {
    /// A cluster without volumes.
    pub(crate) fn new(plane: ClusterPlane<Recipient<C>>) -> ClusterBackEnd<C> {
        ClusterBackEnd {
            plane,
            done: Vec::new(),
            prolonged: Prolonged::default(),
            joints: Slab::with_capacity(64),
            factors: Vec::new(),
            in_flight: Vec::new(),
            mode: TimingMode::Modelled,
            is_powered: true,
        }
    }

    /// Places a volume and returns its number; an error says why it cannot be placed.
    pub(crate) fn add_volume(
        &mut self,
        now: Nanos,
        volume: &VolumeConfig,
    ) -> Result<usize, String> {
        let policy = volume.policy.map_or(Policy::DEFAULT, Policy::from);
        let placed = self.plane.add_volume(now, &volume.name, volume.capacity_bytes, policy);
        let number = placed.map_err(|refusal| refusal.to_string())?;
        if let Some(host) = volume.host {
            self.plane
                .use_from(now, number, HostId(host))
                .map_err(|problem| problem.to_string())?;
        }
        self.in_flight.push(0);
        assert_eq!(number + 1, self.in_flight.len(), "a volume without its counter");
        Ok(number)
    }

    pub(super) fn set_mode(&mut self, mode: TimingMode) {
        self.mode = mode;
    }

    /// Services of each volume's operations take longer by these factors from now on. A request becomes many, on devices
    /// that also destage and resynchronise: so its answer is held back for a share of the time that it took, and nothing
    /// can become faster.
    pub(super) fn set_factors(&mut self, factors: Vec<[ServiceFactor; 4]>) {
        self.factors = factors;
    }

    /// All hosts lose their power. Returns the clients that wait for an answer.
    pub(super) fn power_off(&mut self, now: Nanos) -> Vec<C> {
        self.is_powered = false;
        self.in_flight.fill(0);
        self.plane.power_off(now);
        let mut recipients = self.plane.abandon();
        recipients.extend(self.prolonged.abandon().filter_map(|answer| answer.client));
        let joints = &mut self.joints;
        let client = |recipient| match recipient {
            Recipient::Client(client) => Some(client),
            Recipient::Joint(joint) => part_done(joints, joint, true).0,
        };
        recipients.into_iter().filter_map(client).collect()
    }

    /// All hosts run again.
    pub(super) fn power_on(&mut self, now: Nanos) {
        self.is_powered = true;
        self.plane.power_on(now);
    }

    /// Hands a request to the cluster; it comes back in [`BackEnd::take_due`], or at once while timing is off, if nothing
    /// keeps it.
    fn carry(
        &mut self,
        request: &Request,
        buffer: Vec<u8>,
        in_flight: InFlight<Recipient<C>>,
        exchange: &mut Exchange<C>,
    ) {
        let volume = in_flight.volume;
        if self.mode == TimingMode::Modelled {
            let head_start = exchange.path.compensation_of(request.operation);
            self.plane.submit(request, buffer, in_flight, head_start);
        } else {
            // What is carried through at once is not early for anybody.
            let id = self.plane.submit(request, buffer, in_flight, Nanos::ZERO);
            if let Some(done) = self.plane.complete_now(id) {
                let answer = leaving(&mut self.joints, &exchange.path, done);
                exchange.answers.push(Answer { modelled: None, ..answer });
                return;
            }
        }
        self.in_flight[volume] += 1;
    }

    /// The range reads as zeros afterwards.
    fn discard(
        &mut self,
        request: BlockRequest<'_, C>,
        (offset, length): (u64, u64),
        exchange: &mut Exchange<C>,
    ) {
        let BlockRequest { client, volume, arrived, .. } = request;
        let parts = parts_of(offset, length);
        if parts.is_empty() {
            // Of nothing.
            return exchange.answers.push(Answer {
                client: Some(client),
                volume,
                operation: Operation::Discard,
                bytes: 0,
                arrived,
                modelled: None,
                early: exchange.path.compensation_of(Operation::Discard),
                failed: false,
                buffer: Vec::new(),
                wanted: 0..0,
            });
        }
        let joint = self.joints.insert(Joint { client, left: parts.len(), failed: false });
        for Part { request, zeros } in parts {
            let length = request.length_bytes as usize;
            let buffer = zeros.as_ref().map_or_else(Vec::new, |_| {
                let mut buffer = exchange.buffers.take(length);
                buffer.fill(0);
                buffer
            });
            let wanted = zeros.unwrap_or(0..length);
            let in_flight = InFlight::new(Recipient::Joint(joint), volume, arrived, wanted);
            self.carry(&request, buffer, in_flight, exchange);
        }
    }
}

impl<C> BackEnd<C> for ClusterBackEnd<C> {
    fn is_powered(&self) -> bool {
        self.is_powered
    }

    fn is_durable(&self) -> bool {
        self.plane.is_durable()
    }

    fn submit(
        &mut self,
        request: BlockRequest<'_, C>,
        exchange: &mut Exchange<C>,
    ) -> Result<(), Errno> {
        let (offset, length) = match request.asked {
            Asked::Read { offset, length } => (offset, u64::from(length)),
            Asked::Write { offset, data, .. } => (offset, data.len() as u64),
            Asked::Flush => (0, 0),
            Asked::Discard { offset, length, .. } => {
                self.discard(request, (offset, length), exchange);
                return Ok(());
            }
        };
        let BlockRequest { client, volume, arrived, asked } = request;
        let (start, wide) = widened(offset, length);
        let from = (offset - start) as usize;
        let wanted = from..from + length as usize;
        debug_assert!(wanted.end as u64 <= wide, "what is wanted lies in the blocks around it");
        let (buffer, request) = match asked {
            Asked::Write { data, force, .. } => {
                let mut buffer = exchange.buffers.take(wide as usize);
                buffer[..wanted.start].fill(0);
                buffer[wanted.clone()].copy_from_slice(data);
                buffer[wanted.end..].fill(0);
                let force_unit_access = force == Force::UnitAccess;
                (buffer, Request { force_unit_access, ..Request::write(start, wide as u32) })
            }
            Asked::Read { .. } => {
                (exchange.buffers.take(wide as usize), Request::read(start, wide as u32))
            }
            Asked::Flush | Asked::Discard { .. } => (Vec::new(), Request::flush()),
        };
        let in_flight = InFlight::new(Recipient::Client(client), volume, arrived, wanted);
        self.carry(&request, buffer, in_flight, exchange);
        Ok(())
    }

    fn take_due(&mut self, now: Nanos, exchange: &mut Exchange<C>) {
        // Its clock must not run ahead of arrivals; its answers come early by themselves.
        self.plane.advance(now, &mut self.done);
        let ClusterBackEnd { done, prolonged, joints, factors, in_flight, .. } = self;
        let Exchange { path, answers, .. } = exchange;
        let path = &*path;
        let mut answer = |done: Answer<Recipient<C>>| {
            debug_assert!(in_flight[done.volume] > 0, "answered more often than asked");
            in_flight[done.volume] -= 1;
            answers.push(leaving(joints, path, done));
        };
        for done in done.drain(..) {
            let factor = factors.get(done.volume).map(|of| of[done.operation.index()]);
            match factor.filter(|factor| *factor > ServiceFactor::ONE) {
                Some(factor) => prolonged.hold(done, factor),
                None => answer(done),
            }
        }
        prolonged.release(|done| now + path.compensation_of(done.operation), answer);
    }

    fn next_answer(&self, path: &PathCost) -> Option<Nanos> {
        let prolonged = self.prolonged.next(|operation| path.compensation_of(operation));
        [self.plane.next_wakeup(), prolonged].into_iter().flatten().min()
    }

    fn keeps_time(&self) -> bool {
        self.mode == TimingMode::Modelled && !self.plane.is_instant
    }

    fn extents(&mut self, volume: usize, offset: u64, length: u32) -> Result<Vec<Extent>, Errno> {
        self.plane.extents(volume, offset, length).ok_or(Errno::IO)
    }

    /// A read does nothing when it arrives: the cluster decides later what it reads.
    fn probe(&mut self, _volume: usize, _buffer: &mut [u8]) -> Result<(), Errno> {
        Ok(())
    }

    fn in_flight(&self, volume: usize) -> u64 {
        self.in_flight[volume]
    }

    fn remove_volume(&mut self, now: Nanos, volume: usize) {
        self.plane.remove_volume(now, volume);
        assert_eq!(self.in_flight[volume], 0, "the caller waits until its requests are answered");
    }
}

/// What the cluster has done, as it is answered. A request that the host was slower with than the cluster was not held back.
fn leaving<C>(
    joints: &mut Slab<Joint<C>>,
    path: &PathCost,
    done: Answer<Recipient<C>>,
) -> Answer<C> {
    debug_assert!(done.deadline() >= done.arrived, "done before it arrived");
    let early = path.compensation_of(done.operation);
    let (client, failed) = match done.client {
        Some(Recipient::Client(client)) => (Some(client), done.failed),
        Some(Recipient::Joint(joint)) => part_done(joints, joint, done.failed),
        None => (None, done.failed),
    };
    let arrived = done.arrived;
    let modelled = done
        .modelled
        .map(|modelled| Modelled { delayed: modelled.deadline > arrived + early, ..modelled });
    Answer {
        client,
        volume: done.volume,
        operation: done.operation,
        bytes: done.bytes,
        arrived,
        modelled,
        early,
        failed,
        buffer: done.buffer,
        wanted: done.wanted,
    }
}

/// One of several requests is done: who is answered with that, if it was the last one, and whether with an error.
fn part_done<C>(joints: &mut Slab<Joint<C>>, joint: u64, failed: bool) -> (Option<C>, bool) {
    let Some(found) = joints.get_mut(joint) else { return (None, failed) };
    debug_assert!(found.left > 0, "a part is done once");
    found.failed |= failed;
    found.left = found.left.saturating_sub(1);
    if found.left > 0 {
        return (None, failed);
    }
    joints.remove(joint).map_or((None, failed), |joint| (Some(joint.client), joint.failed))
}

/// Zeros for a first and a last block that are not whole, discards for all between.
fn parts_of(offset: u64, length: u64) -> Vec<Part> {
    let end = offset + length;
    let (first, last) = (offset.next_multiple_of(4096), end / 4096 * 4096);
    let zeros = |from: u64, to: u64| {
        let start = from / 4096 * 4096;
        let range = (from - start) as usize..(to - start) as usize;
        Part { request: Request::write(start, 4096), zeros: Some(range) }
    };
    let mut parts = Vec::new();
    if first > last {
        parts.push(zeros(offset, end));
        return parts;
    }
    if offset < first {
        parts.push(zeros(offset, first));
    }
    let mut at = first;
    while at < last {
        let length = (last - at).min(DISCARD_MAX_BYTES);
        parts.push(Part { request: Request::discard(at, length as u32), zeros: None });
        at += length;
    }
    if last < end {
        parts.push(zeros(last, end));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::parts_of;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        /// The parts cover the range exactly, once, in order; discards are of whole blocks.
        #[test]
        fn parts_cover_the_range(offset in 0..40_000u64, length in 0..40_000u64) {
            let mut at = offset;
            for part in parts_of(offset, length) {
                let start = part.request.offset_bytes;
                prop_assert!(start.is_multiple_of(4096));
                prop_assert!(part.request.length_bytes.is_multiple_of(4096));
                let range = part.zeros.unwrap_or(0..part.request.length_bytes as usize);
                prop_assert_eq!(start + range.start as u64, at);
                at = start + range.end as u64;
            }
            prop_assert_eq!(at, offset + length);
        }
    }
}
