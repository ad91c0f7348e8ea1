//! A copy of a volume in large pieces: which block is next, and when it is due.
//!
//! Only the order: the caller asks what a place in the queue does next, and asks again when that is
//! done. As in real runs, each place reads a block, writes it, and takes the next one; with a rate,
//! block i is due at i / rate. Not here: requests in flight, the time they take.

use crate::background_spec::CopySpec;
use crate::next_request::NextRequest;
use underlay_core::Nanos;
use underlay_model::Request;

/// What a place in the queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Nothing,
    /// A block that is not due yet.
    Due(u64),
    /// A block that is being read.
    Read(u64),
}

/// A copy.
#[derive(Clone, Debug)]
pub(crate) struct Copying {
    spec: CopySpec,
    began: Nanos,
    blocks: u64,
    /// The first block that no place has taken.
    next: u64,
    /// Blocks that were read.
    read: u64,
    places: Vec<Holds>,
}

impl Copying {
    /// A copy that begins.
    pub(crate) fn new(spec: &CopySpec, began: Nanos) -> Copying {
        Copying {
            blocks: spec.from.length.0.div_ceil(u64::from(spec.block_bytes)),
            places: vec![Holds::Nothing; spec.queue_depth as usize],
            spec: spec.clone(),
            began,
            next: 0,
            read: 0,
        }
    }

    /// Places in the queue.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Whether every block was read.
    pub(crate) fn is_complete(&self) -> bool {
        self.read == self.blocks
    }

    /// What a place does next whose request is done, or whose block is due.
    pub(crate) fn next(&mut self, place: usize, now: Nanos) -> NextRequest {
        match self.finish(place, now) {
            NextRequest::None => {}
            write => return write,
        }
        let block = u64::from(self.spec.block_bytes);
        let index = match std::mem::replace(&mut self.places[place], Holds::Nothing) {
            Holds::Due(index) => index,
            _ if self.next == self.blocks => return NextRequest::None,
            _ => {
                self.next += 1;
                self.next - 1
            }
        };
        let due = match self.spec.bytes_per_second {
            None => now,
            Some(rate) => {
                let after = u128::from(index) * u128::from(block) * 1_000_000_000;
                Nanos(self.began.0 + (after / u128::from(rate)) as u64)
            }
        };
        if due > now {
            self.places[place] = Holds::Due(index);
            return NextRequest::Wait { until: due };
        }
        self.places[place] = Holds::Read(index);
        let offset = index * block;
        let length = block.min(self.spec.from.length.0 - offset) as u32;
        let request = Request::read(self.spec.from.offset.0 + offset, length);
        NextRequest::Ask { part: 0, request, intended: due }
    }

    /// The same of a copy that takes no more blocks: those that were read are still written.
    pub(crate) fn finish(&mut self, place: usize, now: Nanos) -> NextRequest {
        let Holds::Read(index) = self.places[place] else { return NextRequest::None };
        self.places[place] = Holds::Nothing;
        self.read += 1;
        let Some(to) = self.spec.to else { return NextRequest::None };
        let block = u64::from(self.spec.block_bytes);
        let at = index % (to.length.0 / block) * block;
        let request = Request::write(to.offset.0 + at, self.spec.block_bytes);
        NextRequest::Ask { part: 1, request, intended: now }
    }
}

#[cfg(test)]
mod tests {
    use super::Copying;
    use crate::background_spec::CopySpec;
    use crate::next_request::NextRequest;
    use crate::volume_use::VolumeUse;
    use underlay_core::{Bytes, Nanos};
    use underlay_model::Operation;

    const BLOCK: u32 = 1 << 20;

    fn part(volume: usize, offset: u64, length: u64) -> VolumeUse {
        VolumeUse { volume, offset: Bytes(offset), length: Bytes(length) }
    }

    fn spec(length: u64, bytes_per_second: Option<u64>) -> CopySpec {
        let to = Some(part(1, 8 << 20, (2 << 20) + 4096));
        let from = part(0, 4096, length);
        CopySpec { from, to, block_bytes: BLOCK, queue_depth: 2, bytes_per_second }
    }

    /// Offsets and lengths of what is asked by one place that is never kept waiting.
    fn asked(copying: &mut Copying, operation: Operation) -> Vec<(u64, u32)> {
        let mut asked = Vec::new();
        while let NextRequest::Ask { request, .. } = copying.next(0, Nanos::ZERO) {
            asked.push(request);
        }
        let of_kind = asked.into_iter().filter(|request| request.operation == operation);
        of_kind.map(|request| (request.offset_bytes, request.length_bytes)).collect()
    }

    #[test]
    fn every_byte_is_read_once_and_the_target_is_written_over_from_its_beginning() {
        let (block, mib) = (u64::from(BLOCK), 1 << 20);
        let spec = spec(3 * mib + 8192, None);
        let reads = asked(&mut Copying::new(&spec, Nanos::ZERO), Operation::Read);
        let whole = |index: u64| (4096 + index * block, BLOCK);
        assert_eq!(reads, [whole(0), whole(1), whole(2), (4096 + 3 * block, 8192)]);
        let mut copying = Copying::new(&spec, Nanos::ZERO);
        // As in real runs, the last block is written whole.
        let writes = asked(&mut copying, Operation::Write);
        assert_eq!(writes, [8 * mib, 9 * mib, 8 * mib, 9 * mib].map(|offset| (offset, BLOCK)));
        assert!(copying.is_complete());
    }

    #[test]
    fn a_block_is_due_by_the_rate_and_what_was_read_is_written_at_the_end() {
        let second = Nanos::from_secs(1);
        let spec = spec(4 << 20, Some(1 << 20));
        let mut copying = Copying::new(&spec, second);
        let ask = |next: NextRequest| match next {
            NextRequest::Ask { request, intended, .. } => (request.operation, intended),
            other => panic!("{other:?}"),
        };
        assert_eq!(ask(copying.next(0, second)), (Operation::Read, second));
        let until = Nanos::from_secs(2);
        assert_eq!(copying.next(1, second), NextRequest::Wait { until });
        let late = Nanos::from_millis(2_500);
        assert_eq!(ask(copying.next(1, late)), (Operation::Read, until), "from when it was due");
        assert_eq!(ask(copying.finish(1, late)), (Operation::Write, late));
        assert_eq!(copying.finish(1, late), NextRequest::None);
        assert!(!copying.is_complete());
    }
}
