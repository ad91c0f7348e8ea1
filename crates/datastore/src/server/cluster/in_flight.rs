//! A request to a cluster in flight: its data until the cluster has completed it.

use std::ops::Range;

use crate::data_plane::BLOCK_BYTES;
use underlay_core::Nanos;
use underlay_model::RequestId;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A request while the cluster has it. Its bytes are in the data plane meanwhile.
#[derive(Debug)]
pub(crate) struct InFlight<C> {
    /// The client that waits for it.
    pub(super) client: C,
    /// The server's number of the volume.
    pub(super) volume: usize,
    pub(super) arrived: Nanos,
    /// Of the whole blocks around it, the bytes that the client gave or wants; the rest of a write's first and last block is
    /// filled in.
    pub(super) wanted: Range<usize>,
    /// How the cluster knows it.
    pub(super) id: RequestId,
    /// How far the cluster's clock had fallen behind when it came.
    pub(super) behind: Nanos,
    /// Whether a part of it was not carried out: it is answered with an error.
    pub(super) refused: bool,
}

impl<C> InFlight<C> {
    /// One that the cluster does not have yet.
    pub(super) fn new(
        client: C,
        volume: usize,
        arrived: Nanos,
        wanted: Range<usize>,
    ) -> InFlight<C> {
        let (id, behind) = (RequestId(0), Nanos::ZERO);
        InFlight { client, volume, arrived, wanted, id, behind, refused: false }
    }

    /// Bytes that the client asked for.
    pub(super) fn bytes(&self) -> u32 {
        u32::try_from(self.wanted.len()).expect("no longer than a request")
    }
}

/// The whole blocks around a range: where they begin, and how many bytes.
pub(super) fn widened(offset: u64, length: u64) -> (u64, u64) {
    let start = offset / BLOCK * BLOCK;
    let wide = (offset + length).next_multiple_of(BLOCK) - start;
    debug_assert!(wide >= length && wide < length + 2 * BLOCK, "more than the blocks around it");
    (start, wide)
}
