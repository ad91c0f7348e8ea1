//! What the service does with a request to a volume of a cluster.
//!
//! While models are in force the request goes through the cluster and is answered when it comes back. While timing is off, or
//! a constant stands in for the models, its data is carried through at once, and only the answer may wait.
//!
//! A request that is not one request to the cluster (a discard that begins or ends within a block, or is longer than a request
//! can be) becomes several; the answer goes out when all of them are done.

use rustix::io::Errno;
use underlay_core::Nanos;
use underlay_model::Request;

use super::request::{InFlight, Payload, widened};
use crate::control::TimingMode;
use crate::server::reply::{Client, Content, Reply};
use crate::server::service::Service;

/// Whole blocks, and below what a request's length can say.
const DISCARD_MAX_BYTES: u64 = 1 << 30;

/// One of the requests that a client's request became.
struct Part {
    request: Request,
    /// Zeros to be written, and which part of them is meant.
    zeros: Option<std::ops::Range<usize>>,
}

impl Service {
    pub(in crate::server) fn cluster_read(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        length: u32,
        arrived: Nanos,
    ) -> Result<(), Errno> {
        let (start, wide) = widened(offset, u64::from(length));
        let request = Request::read(start, wide as u32);
        let from = (offset - start) as usize;
        debug_assert!(from + length as usize <= wide as usize, "the answer lies in what is read");
        let content = Content::FromCluster { buffer: Vec::new(), from, length: length as usize };
        let in_flight =
            InFlight { reply: Reply { client, content }, volume, bytes: length, arrived };
        let buffer = self.buffers.take(wide as usize).into_vec();
        self.carry(in_flight, &request, Payload::Read(buffer));
        Ok(())
    }

    pub(in crate::server) fn cluster_write(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        data: &[u8],
        request: Request,
        arrived: Nanos,
    ) -> Result<(), Errno> {
        let (start, wide) = widened(offset, data.len() as u64);
        let from = (offset - start) as usize;
        let given = from..from + data.len();
        let mut buffer = self.buffers.take(wide as usize).into_vec();
        buffer[..given.start].fill(0);
        buffer[given.clone()].copy_from_slice(data);
        buffer[given.end..].fill(0);
        debug_assert_eq!(given.len(), data.len(), "all that the client gave, and no more");
        let bytes = data.len() as u32;
        let request = Request { offset_bytes: start, length_bytes: wide as u32, ..request };
        let reply = Reply { client, content: Content::Written { length: bytes } };
        self.carry(
            InFlight { reply, volume, bytes, arrived },
            &request,
            Payload::Write(buffer, given),
        );
        Ok(())
    }

    pub(in crate::server) fn cluster_flush(
        &mut self,
        client: Client,
        volume: usize,
    ) -> Result<(), Errno> {
        let arrived = self.clock.now();
        let reply = Reply { client, content: Content::Done };
        let in_flight = InFlight { reply, volume, bytes: 0, arrived };
        self.carry(in_flight, &Request::flush(), Payload::Nothing);
        Ok(())
    }

    /// The range reads as zeros afterwards.
    pub(in crate::server) fn cluster_discard(
        &mut self,
        client: Client,
        volume: usize,
        offset: u64,
        length: u64,
    ) -> Result<(), Errno> {
        let arrived = self.clock.now();
        let parts = parts_of(offset, length);
        let joint = self.joints.insert(Joint { client, left: parts.len(), failed: false });
        if parts.is_empty() {
            self.joint_done(joint, Ok(()));
        }
        for Part { request, zeros } in parts {
            let reply = Reply { client: Client::Joint { joint }, content: Content::Done };
            let bytes = zeros.as_ref().map_or(request.length_bytes, |zeros| zeros.len() as u32);
            let payload = zeros.map_or(Payload::Nothing, |given| {
                let mut buffer = self.buffers.take(request.length_bytes as usize).into_vec();
                buffer.fill(0);
                Payload::Write(buffer, given)
            });
            self.carry(InFlight { reply, volume, bytes, arrived }, &request, payload);
        }
        Ok(())
    }

    fn carry(&mut self, in_flight: InFlight<Reply>, request: &Request, payload: Payload) {
        let at_once = self.engine.mode() != TimingMode::Modelled;
        let Some(done) = self.engine.carry(in_flight, request, payload, at_once) else { return };
        let mut reply = done.in_flight.reply;
        self.deliver(&mut reply, done.buffer);
        if done.failed {
            self.engine.statistics.count_failure(done.in_flight.volume);
            self.fail(reply);
        } else {
            self.answer_or_submit(done.in_flight.arrived, done.in_flight.volume, request, reply);
        }
    }

    /// Gives a reply the buffer that a cluster carried for it; what needs none gives it back.
    pub(in crate::server) fn deliver(&mut self, reply: &mut Reply, data: Vec<u8>) {
        match &mut reply.content {
            Content::FromCluster { buffer, .. } => *buffer = data,
            _ => self.give_back(data),
        }
    }

    /// Keeps the buffer of a request for others. Its length is its capacity: it came from the pool.
    pub(in crate::server) fn give_back(&mut self, buffer: Vec<u8>) {
        if !buffer.is_empty() {
            self.buffers.give(buffer.into_boxed_slice());
        }
    }

    /// One of several requests is done.
    pub(in crate::server) fn joint_done(&mut self, joint: u64, outcome: Result<(), Errno>) {
        let Some(found) = self.joints.get_mut(joint) else { return };
        found.failed |= outcome.is_err();
        found.left = found.left.saturating_sub(1);
        if found.left > 0 {
            return;
        }
        let Some(Joint { client, failed, .. }) = self.joints.remove(joint) else { return };
        if failed {
            self.refuse(client, Errno::IO);
        } else {
            self.send_done(client);
        }
    }
}

/// A client's request that became several.
pub(crate) struct Joint {
    client: Client,
    left: usize,
    failed: bool,
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
