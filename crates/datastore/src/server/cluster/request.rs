//! A request to a cluster on its way: what comes with it, and what becomes of it.

use std::ops::Range;

use crate::data_plane::BLOCK_BYTES;
use underlay_core::Nanos;
use underlay_model::{Operation, RequestId};

use crate::path_cost::PathCost;
use crate::server::engine::Due;
use crate::server::statistics::{Answered, Modelled};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A request that the cluster has.
pub(super) struct Pending<R> {
    pub(super) id: RequestId,
    pub(super) in_flight: InFlight<R>,
    /// The part of a write that the client gave; the rest of its first and last block is filled in.
    pub(super) given: Range<usize>,
    /// How far the cluster's clock had fallen behind when it came.
    pub(super) behind: Nanos,
    /// Whether a part of it was not carried out: it is answered with an error.
    pub(super) refused: bool,
}

/// A request on its way.
pub(crate) struct InFlight<R> {
    pub(crate) reply: R,
    /// The server's number of the volume.
    pub(crate) volume: usize,
    /// Bytes that the client asked for.
    pub(crate) bytes: u32,
    pub(crate) arrived: Nanos,
}

/// A request that is done.
pub(crate) struct Finished<R> {
    pub(super) id: RequestId,
    pub(crate) in_flight: InFlight<R>,
    pub(crate) operation: Operation,
    /// On the wall's clock.
    pub(crate) at: Nanos,
    pub(crate) queue: Nanos,
    pub(crate) failed: bool,
    /// The buffer that came with the request, filled if it was a read; empty without one.
    pub(crate) buffer: Vec<u8>,
}

/// What a request brings or wants.
pub(crate) enum Payload {
    Nothing,
    /// A buffer of at least the request's length, to be filled.
    Read(Vec<u8>),
    /// A buffer of at least the request's length, and the part of it that the client gave.
    Write(Vec<u8>, Range<usize>),
}

impl<R> Finished<R> {
    /// What is to be answered and counted. A request that the host was slower with than the cluster was not held back.
    pub(crate) fn into_due(self, path: &PathCost) -> Due<R> {
        let InFlight { reply, volume, bytes, arrived } = self.in_flight;
        debug_assert!(self.at >= arrived, "done before it arrived");
        let delayed = self.at > arrived + path.compensation_of(self.operation);
        let modelled = Some(Modelled { deadline: self.at, queue: self.queue, delayed });
        let operation = self.operation;
        let answered = Answered { volume, operation, bytes, arrived, replied: self.at, modelled };
        let answered = Some(answered);
        Due { reply, answered, failed: self.failed, buffer: self.buffer }
    }
}

/// The whole blocks around a range: where they begin, and how many bytes.
pub(crate) fn widened(offset: u64, length: u64) -> (u64, u64) {
    let start = offset / BLOCK * BLOCK;
    let wide = (offset + length).next_multiple_of(BLOCK) - start;
    debug_assert!(wide >= length && wide < length + 2 * BLOCK, "more than the blocks around it");
    (start, wide)
}
