//! The operations of a group that are not finished: requests from outside, and runs of the elevator.

use super::request::{GroupIo, GroupOutcome};
use crate::scheduler::Lane;
use underlay_core::Nanos;

/// What an operation is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// A request from outside.
    Request(GroupIo),
    /// A run of blocks on its way from the buffer to a capacity device.
    Destage(Run),
}

/// Contiguous blocks that leave the buffer together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) disk: usize,
    pub(crate) first_block: u64,
    pub(crate) blocks: u64,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// For room in the buffer.
    Admission,
    /// For metadata, before the data can be read.
    Maps,
    /// For data, the last thing a request waits for.
    Data,
    /// A destage: for its data from the cache device.
    Fetch,
    /// A destage: for the processor that fingerprints and compresses.
    Compute,
    /// A destage: for its capacity device.
    Store,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(crate) work: Work,
    pub(crate) lane: Lane,
    pub(crate) stage: Stage,
    /// Pieces that have not come back.
    pub(crate) pieces: u32,
    pub(crate) arrived: Nanos,
    pub(crate) service: Nanos,
    /// By how much its answer may be handed out early.
    pub(crate) head_start: Nanos,
    /// By how much it has been early so far, all stages together.
    pub(crate) early: Nanos,
    /// When the pieces that came back of the present stage would have come back without a head start.
    pub(crate) ends: Nanos,
    pub(crate) is_delayed: bool,
    pub(crate) outcome: GroupOutcome,
    /// Where on the capacity device a read that waits for maps continues.
    pub(crate) rest: (u64, u32),
}

/// Operations by index; indices are reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations {
    slots: Vec<Option<Op>>,
    free: Vec<u32>,
}

impl Operations {
    #[inline]
    pub(crate) fn open(&mut self, op: Op) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| self.push());
        // In one place, so that the operation is written where it stays and not copied there.
        debug_assert!(self.slots[index as usize].is_none(), "an index names one operation");
        self.slots[index as usize] = Some(op);
        index
    }

    #[cold]
    fn push(&mut self) -> u32 {
        self.slots.push(None);
        self.slots.len() as u32 - 1
    }

    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> &mut Op {
        self.slots[index as usize]
            .as_mut()
            .expect("an operation is open until its last piece is back")
    }

    #[inline]
    pub(crate) fn close(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        assert!(slot.is_some(), "an operation is closed once");
        *slot = None;
        self.free.push(index);
    }

    /// The operations that are open, oldest index first.
    pub(crate) fn open_indices(&self) -> Vec<u32> {
        debug_assert!(self.free.len() <= self.slots.len(), "an index is free once");
        let open = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
        open.map(|(index, _)| index as u32).collect()
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.free.clear();
    }
}
