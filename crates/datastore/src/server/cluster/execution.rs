//! What a cluster says is to be done, carried out on the components: in the order in which it says so.

use underlay_core::Nanos;
use underlay_model::cluster::{ClusterEvent, DataCommand, Outcome, Piece, VolumeFinished};
use underlay_model::data_plane::{BLOCK_BYTES, Delivered};
use underlay_model::{Operation, RequestId};

use super::plane::ClusterPlane;
use super::request::{Finished, Pending};

/// Names the reads that fill in what surrounds a small write; no request has that name.
const FILLING: RequestId = RequestId(u64::MAX);

impl<R> ClusterPlane<R> {
    /// Lets the cluster's time pass up to `at`, and carries out what happened.
    pub(super) fn pass(&mut self, at: Nanos) {
        if at > self.now {
            self.now = at;
        }
        let mut events = std::mem::take(&mut self.events);
        self.cluster.advance(self.now, &mut events);
        for event in events.drain(..) {
            if self.is_killed() {
                break;
            }
            match event {
                ClusterEvent::Data(command) => self.carry_out(&command),
                ClusterEvent::StateChanged(state) => self.remember(*state),
                ClusterEvent::Finished(done) => self.finish(&done),
                ClusterEvent::Notice { at, notice } => {
                    let at = self.pace.on_wall(at);
                    self.journal.note(at, &self.cluster, &notice);
                }
            }
        }
        self.events = events;
        if self.forgets() {
            self.remember(self.cluster.state());
        }
        if let Some(reduction) = &mut self.reduction {
            reduction.look(self.now, &mut self.cluster, &mut self.data);
        }
        let now = self.pace.on_wall(self.now);
        if let Some(behind) = self.pace.news() {
            let text = format!(
                "this host copies more slowly than the modelled devices: the cluster is {behind} behind the clock, and \
                 answers were late by as much in all"
            );
            self.journal.say(now, "storage", text);
        }
        for finding in self.data.take_findings() {
            self.journal.note_finding(now, finding);
        }
    }

    /// Whether the server is killed just here: only ever true in tests, which then open what is left.
    fn is_killed(&mut self) -> bool {
        #[cfg(test)]
        {
            if super::mortality::is_over() {
                self.killed_after = Some(0);
            }
            if let Some(left) = &mut self.killed_after {
                if *left == 0 {
                    return true;
                }
                *left -= 1;
            }
        }
        false
    }

    pub(super) fn carry_out(&mut self, command: &DataCommand) {
        if matches!(command, DataCommand::Remove { .. }) && self.forgets() {
            return self.withheld.push(*command);
        }
        if let DataCommand::Write { request, buffer_offset, piece } = command {
            self.fill_in(*request, *buffer_offset, piece);
        }
        self.data.execute(command);
        if matches!(command, DataCommand::Resync { .. } | DataCommand::Reshape { .. }) {
            self.pace.copied(self.now);
        }
        if let Some(reduction) = &mut self.reduction {
            reduction.follow(self.now, command, &mut self.data);
        }
    }

    /// Completes the first and the last block of a small write with what is there now.
    fn fill_in(&mut self, request: RequestId, buffer_offset: u32, piece: &Piece) {
        let Some(pending) = self.pending_of(request) else { return };
        let given = pending.given.clone();
        let part = buffer_offset as usize..(buffer_offset + piece.length_bytes) as usize;
        let head = (!given.start.is_multiple_of(BLOCK_BYTES)).then(|| block_of(given.start));
        let tail = (!given.end.is_multiple_of(BLOCK_BYTES)).then(|| block_of(given.end));
        let edges = [head, tail.filter(|tail| Some(*tail) != head)];
        for block in edges.into_iter().flatten().filter(|block| part.contains(block)) {
            let start = piece.start + (block - part.start) as u32;
            let surroundings = self.peek(piece.with_range(start, BLOCK_BYTES as u32));
            let Some(Delivered::Bytes(mut bytes)) = self.data.finish(request) else { return };
            for (at, old) in (block..block + BLOCK_BYTES).zip(surroundings) {
                if !given.contains(&at) {
                    bytes[at] = old;
                }
            }
            self.data.stage_write(request, bytes);
        }
    }

    /// What a range holds now. What cannot be read is zeros, as it would be for everybody.
    fn peek(&mut self, piece: Piece) -> Vec<u8> {
        self.data.stage_read(FILLING, vec![0; piece.length_bytes as usize]);
        self.data.execute(&DataCommand::Read { request: FILLING, buffer_offset: 0, piece });
        match self.data.finish(FILLING) {
            Some(Delivered::Bytes(bytes) | Delivered::Unreadable(bytes)) => bytes,
            None => vec![0; piece.length_bytes as usize],
        }
    }

    fn pending_of(&mut self, id: RequestId) -> Option<&mut Pending<R>> {
        let key = id.0 & u64::from(u32::MAX);
        self.pending.get_mut(key).filter(|pending| pending.id == id)
    }

    fn finish(&mut self, done: &VolumeFinished) {
        let delivered = self.data.finish(done.request);
        if self.pending_of(done.request).is_none() {
            return;
        }
        let key = done.request.0 & u64::from(u32::MAX);
        let Some(Pending { carried, behind, .. }) = self.pending.remove(key) else { return };
        let (buffer, unreadable) = match delivered {
            Some(Delivered::Bytes(bytes)) => (bytes, false),
            Some(Delivered::Unreadable(bytes)) => (bytes, true),
            None => (Vec::new(), false),
        };
        if unreadable && done.outcome == Outcome::Ok {
            self.cluster.count_unreadable(done.volume);
        }
        // A write that is not answered well may have happened; one that is must not be forgotten.
        let forgotten = done.operation != Operation::Read && self.forgets();
        self.finished.push(Finished {
            id: done.request,
            at: self.pace.deadline(done.at, behind).max(carried.arrived),
            operation: done.operation,
            queue: done.queue,
            failed: unreadable || forgotten || done.outcome != Outcome::Ok,
            buffer,
            carried,
        });
    }
}

fn block_of(at: usize) -> usize {
    at / BLOCK_BYTES * BLOCK_BYTES
}
