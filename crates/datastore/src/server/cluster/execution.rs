//! Carries out the commands of a cluster on its components, in the order in which the cluster emits
//! them.

use crate::data_plane::{BLOCK_BYTES, Delivered};
use underlay_core::Nanos;
use underlay_export::{Answer, Modelled};
use underlay_model::cluster::{ClusterEvent, DataCommand, Outcome, Piece, SetKind, VolumeFinished};
use underlay_model::{Operation, RequestId};

use super::clock_skew::SkewNotice;
use super::in_flight::InFlight;
use super::plane::ClusterPlane;
use super::stores::Stores;

/// Names the reads that fill in what surrounds a small write; no request has that name.
const FILLING: RequestId = RequestId(u64::MAX);

/// Interval between two reports that this host's storage refuses writes.
const REPORT_AGAIN_AFTER: Nanos = Nanos::from_secs(60);

impl<C, S: Stores> ClusterPlane<C, S> {
    /// Lets the cluster's time pass up to `at`, and carries out what happened.
    pub(super) fn pass(&mut self, at: Nanos) {
        if at > self.now {
            self.now = at;
        }
        // Events of an earlier turn would be carried out after those that follow from them.
        debug_assert!(self.events.is_empty(), "a turn carries out all of its events");
        let mut events = std::mem::take(&mut self.events);
        self.cluster.advance(self.now, &mut events);
        for event in events.drain(..) {
            match event {
                ClusterEvent::Data(command) => self.carry_out(&command),
                ClusterEvent::StateChanged(state) => self.remember(*state),
                ClusterEvent::Finished(done) => self.finish(&done),
                ClusterEvent::Notice { at, notice } => {
                    let at = self.skew.on_wall(at);
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
        let now = self.skew.on_wall(self.now);
        match self.skew.notice(now) {
            None => {}
            Some(SkewNotice::FallsBehind { lost, within }) => {
                let text = format!(
                    "this host copies more slowly than the modelled devices: the cluster's clock falls behind, by \
                     {lost} in the last {within}; copying takes longer, and the additional waiting of clients counts \
                     as lateness"
                );
                self.journal.say(now, "storage", text);
            }
            Some(SkewNotice::KeepsUp { lost, within, since }) => {
                let text = format!(
                    "this host keeps up with the modelled devices again: the cluster's clock fell behind by {lost} in {within}"
                );
                self.journal.say(since, "storage", text);
            }
        }
        if let Some(error) = self.data.take_failure()
            && self.refusal_reported.is_none_or(|told| now >= told + REPORT_AGAIN_AFTER)
        {
            self.refusal_reported = Some(now);
            let text = format!(
                "this host's own storage refuses writes ({error}): such writes fail with I/O errors, and data that \
                 was being copied counts as lost at its destination"
            );
            self.journal.say(now, "storage", text);
        }
        for finding in self.data.take_findings() {
            self.journal.note_finding(now, finding);
        }
    }

    pub(super) fn carry_out(&mut self, command: &DataCommand) {
        if self.forgets() && self.is_refused(command) {
            return;
        }
        if let DataCommand::Write { request, buffer_offset, piece } = command
            && !self.fill_in(*request, *buffer_offset, piece)
        {
            // What was there is lost, and stays so: with a part of it new, the rest would be taken for data.
            return self.data.spoil(*request);
        }
        self.data.execute(command);
        if matches!(command, DataCommand::Resync { .. } | DataCommand::Reshape { .. }) {
            self.skew.copied(self.now);
        }
        if let Some(reduction) = &mut self.reduction {
            reduction.follow(self.now, command, &mut self.data);
        }
    }

    /// Whether a command must not be carried out while the state cannot be stored that it relies on: the next server would not know
    /// which members are behind. Writes to mirrors are harmless, since replicas are brought in line with each other.
    fn is_refused(&mut self, command: &DataCommand) -> bool {
        match command {
            DataCommand::Remove { .. } => {
                self.withheld.push(*command);
                true
            }
            DataCommand::Write { request, piece, .. } | DataCommand::Discard { request, piece } => {
                let has_parity = matches!(piece.kind, SetKind::Parity { .. });
                if let Some(pending) = self.pending_of(*request).filter(|_| has_parity) {
                    pending.refused = true;
                }
                has_parity
            }
            // Nothing is lost, then.
            DataCommand::RollBack { .. } | DataCommand::PowerCut { .. } => true,
            _ => false,
        }
    }

    /// Completes the first and the last block of a small write with what is there now. Returns whether that can be read.
    fn fill_in(&mut self, request: RequestId, buffer_offset: u32, piece: &Piece) -> bool {
        let Some(pending) = self.pending_of(request) else { return true };
        let given = pending.wanted.clone();
        let part = buffer_offset as usize..(buffer_offset + piece.length_bytes) as usize;
        let head = (!given.start.is_multiple_of(BLOCK_BYTES)).then(|| block_of(given.start));
        let tail = (!given.end.is_multiple_of(BLOCK_BYTES)).then(|| block_of(given.end));
        let edges = [head, tail.filter(|tail| Some(*tail) != head)];
        for block in edges.into_iter().flatten().filter(|block| part.contains(block)) {
            debug_assert!(
                block >= part.start && block + BLOCK_BYTES <= part.end,
                "within the part"
            );
            let start = piece.start + (block - part.start) as u32;
            let Some(surroundings) = self.peek(piece.with_range(start, BLOCK_BYTES as u32)) else {
                return false;
            };
            // In its place: what is known of the request, such as a part that was not stored, must stay known.
            let Some(bytes) = self.data.staged_mut(request) else { return true };
            for (at, old) in (block..block + BLOCK_BYTES).zip(surroundings) {
                if !given.contains(&at) {
                    bytes[at] = old;
                }
            }
        }
        true
    }

    /// What a range holds now; none if it cannot be read.
    fn peek(&mut self, piece: Piece) -> Option<Vec<u8>> {
        self.data.stage_read(FILLING, vec![0; piece.length_bytes as usize]);
        self.data.execute(&DataCommand::Read { request: FILLING, buffer_offset: 0, piece });
        match self.data.finish(FILLING) {
            Some(Delivered::Bytes(bytes)) => Some(bytes),
            Some(Delivered::Unreadable(_)) | None => None,
        }
    }

    fn pending_of(&mut self, id: RequestId) -> Option<&mut InFlight<C>> {
        let key = id.0 & u64::from(u32::MAX);
        self.pending.get_mut(key).filter(|pending| pending.id == id)
    }

    fn finish(&mut self, done: &VolumeFinished) {
        let delivered = self.data.finish(done.request);
        if self.pending_of(done.request).is_none() {
            return;
        }
        let key = done.request.0 & u64::from(u32::MAX);
        let Some(in_flight) = self.pending.remove(key) else { return };
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
        let bytes = in_flight.bytes();
        let InFlight { client, volume, arrived, wanted, behind, refused, .. } = in_flight;
        // Whether it is held back is seen when it leaves.
        let deadline = self.skew.deadline(done.at, behind).max(arrived);
        debug_assert!(wanted.end <= buffer.len() || buffer.is_empty(), "what is wanted is there");
        let modelled = Modelled { deadline, queue: done.queue, delayed: false };
        let answer = Answer {
            client: Some(client),
            volume,
            operation: done.operation,
            bytes,
            arrived,
            modelled: Some(modelled),
            early: Nanos::ZERO,
            failed: unreadable || forgotten || refused || done.outcome != Outcome::Ok,
            buffer,
            wanted,
        };
        self.finished.push((done.request, answer));
    }
}

fn block_of(at: usize) -> usize {
    at / BLOCK_BYTES * BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use crate::server::cluster::in_flight::InFlight;
    use crate::server::cluster::plane::ClusterPlane;
    use underlay_core::{Bytes, Nanos, RootSeed};
    use underlay_model::cluster::{
        ClusterSettings, ClusterSpec, DataCommand, HostSpec, NetworkSpec, Policy,
    };
    use underlay_model::{DiskGroupSpec, Request, builtin};

    const BLOCK: u32 = 4096;

    /// A volume of one copy.
    fn plane(directory: &std::path::Path) -> ClusterPlane<u32> {
        let profile = |name| builtin::find(name).unwrap();
        let group = DiskGroupSpec::new("g", profile("dc1500m-960"), vec![profile("dc500m-1920")]);
        let spec = ClusterSpec {
            hosts: vec![HostSpec {
                name: "h".to_string(),
                fault_domain: None,
                groups: vec![group],
            }],
            network: NetworkSpec {
                latency: Nanos::from_micros(50),
                bytes_per_second: 1_250_000_000,
                divisor: 1,
            },
            settings: ClusterSettings::default(),
        };
        let mut plane = ClusterPlane::open(spec, RootSeed(1), directory, None).unwrap();
        let policy = Policy { failures_to_tolerate: 0, ..Policy::DEFAULT };
        plane.add_volume(Nanos::ZERO, "data", Bytes::from_mib(1).0, policy).unwrap();
        plane
    }

    /// What is read, or how a write ended; none = with an I/O error.
    fn ask(
        plane: &mut ClusterPlane<u32>,
        request: &Request,
        value: u8,
        bytes: usize,
    ) -> Option<Vec<u8>> {
        let in_flight = InFlight::new(0, 0, Nanos::ZERO, 0..bytes);
        let buffer = vec![value; BLOCK as usize];
        let id = plane.submit(request, buffer, in_flight, Nanos::ZERO);
        let done = plane.complete_now(id).expect("nothing keeps it");
        (!done.failed).then_some(done.buffer)
    }

    fn write(plane: &mut ClusterPlane<u32>, value: u8, bytes: usize) -> Option<Vec<u8>> {
        ask(plane, &Request::write(0, BLOCK), value, bytes)
    }

    fn read(plane: &mut ClusterPlane<u32>) -> Option<Vec<u8>> {
        ask(plane, &Request::read(0, BLOCK), 0, BLOCK as usize)
    }

    #[test]
    fn a_small_write_to_a_lost_block_does_not_make_data_of_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let mut plane = plane(directory.path());
        assert!(write(&mut plane, 1, 4096).is_some());
        assert!(write(&mut plane, 2, 512).is_some());
        let block = read(&mut plane).unwrap();
        assert!(block[..512].iter().all(|byte| *byte == 2), "what was written");
        assert!(block[512..].iter().all(|byte| *byte == 1), "and what was there");
        let volume = plane.volume(0).unwrap();
        let component = plane.cluster.volume_status(volume).unwrap().components[0].component;
        plane.data.execute(&DataCommand::BitRot { component, offset_bytes: 1000, bit: 3 });
        assert_eq!(read(&mut plane), None);
        assert_eq!(write(&mut plane, 3, 512), None, "the rest of the block is lost");
        assert_eq!(read(&mut plane), None);
        assert!(write(&mut plane, 4, 4096).is_some());
        assert_eq!(read(&mut plane), Some(vec![4; 4096]));
    }
}
