//! Reads: from the buffer what is there, the rest from the capacity device.
//!
//! A read is split into at most two pieces. If only parts of it are buffered, it reads the buffered blocks
//! from the cache device as if they were contiguous, and the span of the others from the capacity device.
//! That is exact in the usual case of one boundary, and reads a little too much if several alternate.

use super::buffered::BLOCK_BYTES;
use super::group::{DiskGroup, Task};
use super::operations::Stage;
use super::request::{GroupIo, GroupOutcome};
use super::write_path::touched_blocks;
use crate::request::Operation;
use crate::scheduler::Lane;

impl DiskGroup {
    pub(super) fn submit_read(&mut self, op: u32, io: &GroupIo) {
        let lane = Lane::of(io.class);
        let (first, blocks) = touched_blocks(io);
        let presence = self.blocks[io.disk].presence(first, blocks);
        let from_cache = presence.present_span.map(|(block, _)| Task {
            member: 0,
            lane,
            operation: Operation::Read,
            offset_bytes: self.log.address(io.disk, block),
            length_bytes: bytes_of(presence.present).min(io.length_bytes),
        });
        let from_disk = presence.missing_span.map(|(start, last)| {
            // Only what was asked for of the first and the last block.
            let begin = (start * BLOCK_BYTES).max(io.offset_bytes);
            let end = ((last + 1) * BLOCK_BYTES).min(io.offset_bytes + u64::from(io.length_bytes));
            (begin, u32::try_from(end.saturating_sub(begin)).unwrap_or(u32::MAX))
        });
        let reads = &mut self.buffer_reads;
        match (&from_cache, &from_disk) {
            (Some(_), None) => reads.hits += 1,
            (Some(_), Some(_)) => reads.partial_hits += 1,
            (None, _) => reads.misses += 1,
        }
        let Some((offset_bytes, length_bytes)) = from_disk else {
            let task = from_cache.expect("what is not missing is present");
            return self.enqueue_one(op, task);
        };
        let member = io.disk + 1;
        if self.elevator.is_given_up(member) {
            return self.finish_with(op, GroupOutcome::DeviceError { device: member });
        }
        let from_disk = self.disk_read(op, member, lane, offset_bytes, length_bytes);
        match from_cache {
            Some(from_cache) => self.enqueue(op, &[from_cache, from_disk]),
            None => self.enqueue_one(op, from_disk),
        }
    }

    /// The read of a capacity device, or of the map that says where on it the data is.
    fn disk_read(&mut self, op: u32, member: usize, lane: Lane, offset: u64, length: u32) -> Task {
        let extent = self.members[member].profile().capacity.0;
        let task = Task {
            member,
            lane,
            operation: Operation::Read,
            offset_bytes: offset,
            length_bytes: length,
        };
        let Some(reducer) = &mut self.reducer else { return task };
        let stored = Task { length_bytes: reducer.stored_read_bytes(length), ..task };
        if !reducer.reads_address_map() {
            return stored;
        }
        // Where a reduced block is stored has to be looked up before it can be read.
        let map = Task { offset_bytes: reducer.scatter(extent), length_bytes: 4096, ..task };
        let operation = self.operations.get(op);
        operation.stage = Stage::Maps;
        operation.rest = (stored.offset_bytes, stored.length_bytes);
        map
    }

    pub(super) fn read_done(&mut self, op: u32, io: &GroupIo) {
        let operation = self.operations.get(op);
        if operation.stage != Stage::Maps || operation.outcome != GroupOutcome::Ok {
            return self.finish(op);
        }
        operation.stage = Stage::Data;
        let (offset_bytes, length_bytes) = operation.rest;
        let task = Task {
            member: io.disk + 1,
            lane: operation.lane,
            operation: Operation::Read,
            offset_bytes,
            length_bytes,
        };
        self.enqueue_one(op, task);
    }
}

fn bytes_of(blocks: u64) -> u32 {
    u32::try_from(blocks * BLOCK_BYTES).unwrap_or(u32::MAX)
}
