//! One device of a [`crate::Store`]: a drive, or several equal ones that hold the same bytes (RAID-1).
//!
//! A write is complete when every available copy has it. Reads alternate between the copies. A copy that is lost, or
//! that fails a write, is no longer used: the others continue, and the ranges that it misses are recorded. When it
//! returns, these ranges are copied to it one after the other, alongside requests. Until then nothing is read from it.
//!
//! Not modelled: the state after a power cut. Copies of a real mirror may then differ in unacknowledged writes and are
//! compared; here all copies share the same bytes. The rate of copying has no limit except that one range is copied at a
//! time.

use crate::device::Device;
use crate::device_condition::{DeviceClock, DeviceCondition};
use crate::profile::DeviceProfile;
use crate::request::{Operation, Request};
use crate::service_factor::ServiceFactor;
use crate::service_time::unit_interval;
use crate::store_outcome::StoreOutcome;
use rand_pcg::Pcg64;
use std::collections::BTreeSet;
use underlay_core::{Bytes, Nanos, RootSeed};

/// What is copied, and remembered as missing, at once.
const PIECE_BYTES: u64 = 256 << 10;

/// Equal drives that hold the same; mostly one.
#[derive(Clone, Debug)]
pub(crate) struct CopySet {
    copies: Vec<Drive>,
    /// Which copy is asked for the next read.
    turn: usize,
    /// The latest submission to any copy; only several need it.
    latest: Nanos,
    resync: Option<PieceInFlight>,
    /// Bytes that volumes take, in whole pieces.
    pieces: u64,
}

#[derive(Clone, Debug)]
struct Drive {
    device: Device,
    condition: DeviceCondition,
    clock: DeviceClock,
    /// Pieces that were written while it was away.
    missed: BTreeSet<u64>,
}

/// A piece on its way to a copy that misses it.
#[derive(Clone, Copy, Debug)]
struct PieceInFlight {
    piece: u64,
    from: usize,
    to: usize,
    /// Whether it was read, and is being written.
    is_read: bool,
    /// When that is done.
    until: Nanos,
}

/// How a request went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) at: Nanos,
    pub(crate) queue: Nanos,
    pub(crate) outcome: StoreOutcome,
}

/// How one copy of a mirrored device is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyState {
    /// How it works.
    pub condition: DeviceCondition,
    /// What it must still be given before it is read from; whole pieces.
    pub missed: Bytes,
}

impl CopySet {
    /// The drives of a profile, healthy and idle; `extent` = the part of each that is used.
    pub(crate) fn new(
        profile: &DeviceProfile,
        extent: Bytes,
        seed: RootSeed,
        name: &str,
    ) -> CopySet {
        let copy = |name: &str| Drive {
            device: Device::with_extent(profile, extent, seed, name),
            condition: DeviceCondition::Healthy,
            clock: DeviceClock::wall(),
            missed: BTreeSet::new(),
        };
        let copies = match profile.copies {
            0 | 1 => vec![copy(name)],
            several => (0..several).map(|n| copy(&format!("{name}/disk{n}"))).collect(),
        };
        CopySet {
            copies,
            turn: 0,
            latest: Nanos::ZERO,
            resync: None,
            pieces: extent.0.div_ceil(PIECE_BYTES),
        }
    }

    /// Number of copies.
    pub(crate) fn len(&self) -> usize {
        self.copies.len()
    }

    /// Whether a request of this kind has to wait until a stuck copy works again, or is gone.
    pub(crate) fn waits(&self, operation: Operation) -> bool {
        let is_stuck = |copy: &Drive| copy.condition == DeviceCondition::Stuck;
        match operation {
            Operation::Read => {
                let mut whole = self.copies.iter().filter(|copy| copy.is_whole()).peekable();
                whole.peek().is_some() && whole.all(is_stuck)
            }
            _ => self.copies.iter().any(is_stuck),
        }
    }

    /// Hands a request to the copies; the caller has made sure that it need not wait.
    pub(crate) fn serve(
        &mut self,
        now: Nanos,
        request: &Request,
        factor: ServiceFactor,
        random: &mut Pcg64,
    ) -> Served {
        if let [only] = self.copies.as_mut_slice() {
            return only.serve(now, request, factor, random);
        }
        // Pieces that are copied may have been submitted a little ahead of requests.
        let now = self.not_before(now);
        if !self.copies.iter().any(Drive::is_whole) {
            return Served { at: now, queue: Nanos::ZERO, outcome: StoreOutcome::DeviceLost };
        }
        match request.operation {
            Operation::Read => self.read(now, request, factor, random),
            Operation::Write | Operation::Flush | Operation::Discard => {
                self.write(now, request, factor, random)
            }
        }
    }

    fn not_before(&mut self, now: Nanos) -> Nanos {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// From the next copy; if it fails, the one after it is read, which adds its own time.
    fn read(
        &mut self,
        now: Nanos,
        request: &Request,
        factor: ServiceFactor,
        random: &mut Pcg64,
    ) -> Served {
        let count = self.copies.len();
        let mut total = Served { at: now, queue: Nanos::ZERO, outcome: StoreOutcome::DeviceError };
        let mut first = None;
        for step in 0..count {
            let number = (self.turn + step) % count;
            let copy = &mut self.copies[number];
            if !copy.is_whole() || !copy.works() {
                continue;
            }
            first.get_or_insert(number);
            let served = copy.serve(now, request, factor, random);
            total.at += served.at - now;
            total.queue += served.queue;
            if served.outcome == StoreOutcome::Done {
                total.outcome = StoreOutcome::Done;
                break;
            }
        }
        // A copy that fails has had its turn.
        self.turn = first.map_or(self.turn, |first| (first + 1) % count);
        total
    }

    /// To every copy that is there. One that fails it while another has it is left out from now on.
    fn write(
        &mut self,
        now: Nanos,
        request: &Request,
        factor: ServiceFactor,
        random: &mut Pcg64,
    ) -> Served {
        let mut last = Served { at: now, queue: Nanos::ZERO, outcome: StoreOutcome::DeviceError };
        let mut failed: u64 = 0;
        for (number, copy) in self.copies.iter_mut().enumerate() {
            if copy.condition == DeviceCondition::Lost {
                continue;
            }
            let served = copy.serve(now, request, factor, random);
            match served.outcome {
                StoreOutcome::Done if copy.is_whole() => last.outcome = StoreOutcome::Done,
                StoreOutcome::Done => {}
                _ => failed |= 1 << number,
            }
            if served.at >= last.at {
                (last.at, last.queue) = (served.at, served.queue);
            }
        }
        if last.outcome == StoreOutcome::Done {
            for (number, copy) in self.copies.iter_mut().enumerate() {
                if failed & (1 << number) != 0 {
                    copy.change(now, DeviceCondition::Lost);
                }
                if copy.condition == DeviceCondition::Lost {
                    copy.missed.extend(pieces_of(request));
                }
            }
        }
        if failed != 0 {
            self.begin_piece(now);
        }
        last
    }

    /// Changes how a copy works, or all of them.
    pub(crate) fn set_condition(
        &mut self,
        now: Nanos,
        copy: Option<usize>,
        condition: DeviceCondition,
    ) {
        for (number, one) in self.copies.iter_mut().enumerate() {
            if copy.is_none_or(|copy| copy == number) {
                one.change(now, condition);
            }
        }
        self.begin_piece(now);
    }

    /// The condition of all copies together: lost when none of them can serve, else that of the first that is there and
    /// not healthy.
    pub(crate) fn condition(&self) -> DeviceCondition {
        if let [only] = self.copies.as_slice() {
            return only.condition;
        }
        if !self.copies.iter().any(Drive::is_whole) {
            return DeviceCondition::Lost;
        }
        let ill = |condition: &DeviceCondition| {
            !matches!(condition, DeviceCondition::Healthy | DeviceCondition::Lost)
        };
        let mut conditions = self.copies.iter().map(|copy| copy.condition);
        conditions.find(ill).unwrap_or(DeviceCondition::Healthy)
    }

    /// Whether every copy is there, healthy, and has everything.
    pub(crate) fn is_whole(&self) -> bool {
        let good =
            |copy: &Drive| copy.condition == DeviceCondition::Healthy && copy.missed.is_empty();
        self.copies.iter().all(good)
    }

    /// How each copy is; nothing for a single drive.
    pub(crate) fn states(&self) -> Vec<CopyState> {
        if self.copies.len() == 1 {
            return Vec::new();
        }
        let state = |copy: &Drive| CopyState {
            condition: copy.condition,
            missed: Bytes(copy.missed.len() as u64 * PIECE_BYTES),
        };
        self.copies.iter().map(state).collect()
    }

    /// Takes over the condition of the copies from before a change of layout. If the device's bytes were laid out
    /// differently, a copy that missed anything counts as missing everything.
    pub(crate) fn succeed(&mut self, now: Nanos, old: &CopySet, layout_changed: bool) {
        for (copy, old) in self.copies.iter_mut().zip(&old.copies) {
            copy.change(now, old.condition);
            copy.missed = match old.missed.is_empty() || !layout_changed {
                true => old.missed.clone(),
                false => (0..self.pieces).collect(),
            };
        }
    }

    /// Copies what is missed from `now` on.
    pub(crate) fn resume_copying(&mut self, now: Nanos) {
        self.begin_piece(now);
    }

    /// When the piece in flight is done with its present step.
    pub(crate) fn next_wakeup(&self) -> Option<Nanos> {
        self.resync.map(|piece| piece.until)
    }

    /// Carries the copying of pieces on up to `now`; returns whether a copy has been given everything.
    pub(crate) fn advance(&mut self, now: Nanos, random: &mut Pcg64) -> bool {
        let mut is_any_given = false;
        while let Some(piece) = self.resync.filter(|piece| piece.until <= now) {
            self.step(piece, random);
            is_any_given |= self.copies[piece.to].is_whole();
        }
        is_any_given
    }

    fn step(&mut self, piece: PieceInFlight, random: &mut Pcg64) {
        self.resync = None;
        let at = self.not_before(piece.until);
        let target = &mut self.copies[piece.to];
        if piece.is_read {
            target.missed.remove(&piece.piece);
            return self.begin_piece(at);
        }
        let request = Request::write(piece.piece * PIECE_BYTES, PIECE_BYTES as u32);
        let served = target.serve(at, &request, ServiceFactor::ONE, random);
        if served.outcome == StoreOutcome::Done {
            self.resync = Some(PieceInFlight { is_read: true, until: served.at, ..piece });
        } else {
            target.change(at, DeviceCondition::Lost);
            self.begin_piece(at);
        }
    }

    /// Reads the next missing piece, if there is one. One that is in flight goes on, unless its drives no longer work.
    fn begin_piece(&mut self, now: Nanos) {
        if let Some(piece) = self.resync {
            if self.copies[piece.to].works() && (piece.is_read || self.copies[piece.from].works()) {
                return;
            }
            self.resync = None;
        }
        let source = self.copies.iter().position(|copy| copy.works() && copy.is_whole());
        let target = self.copies.iter().position(|copy| copy.works() && !copy.missed.is_empty());
        let (Some(from), Some(to)) = (source, target) else { return };
        let Some(piece) = self.copies[to].missed.first().copied() else { return };
        let at = self.not_before(now);
        let request = Request::read(piece * PIECE_BYTES, PIECE_BYTES as u32);
        // A copy is not dropped for a failing read: its drive may be the only one with the data, and
        // a retry costs only time.
        let until = self.copies[from].time(at, &request);
        self.resync = Some(PieceInFlight { piece, from, to, is_read: false, until });
    }

    /// From `now` on, what is in write buffers at an offset drains `new / old` times as slowly, with `(old, new)` of `change`.
    pub(crate) fn repace_buffers(
        &mut self,
        now: Nanos,
        change: impl Fn(u64) -> (ServiceFactor, ServiceFactor),
    ) {
        for copy in &mut self.copies {
            copy.device.repace_buffer(copy.clock.at(now), &change);
        }
    }

    /// The most that any copy holds in its write buffer.
    pub(crate) fn buffer_fill(&mut self, now: Nanos) -> Bytes {
        let fills = self.copies.iter_mut().map(|copy| copy.device.buffer_fill(copy.clock.at(now)));
        fills.max().unwrap_or(Bytes::ZERO)
    }

    /// The most that left the write buffer of any copy.
    pub(crate) fn drained_bytes(&mut self, now: Nanos) -> Bytes {
        let drained =
            self.copies.iter_mut().map(|copy| copy.device.drained_bytes(copy.clock.at(now)));
        drained.max().unwrap_or(Bytes::ZERO)
    }
}

impl Drive {
    /// Whether it is there and has everything.
    fn is_whole(&self) -> bool {
        self.condition != DeviceCondition::Lost && self.missed.is_empty()
    }

    /// Whether requests to it come back.
    fn works(&self) -> bool {
        !matches!(self.condition, DeviceCondition::Lost | DeviceCondition::Stuck)
    }

    fn change(&mut self, now: Nanos, condition: DeviceCondition) {
        self.condition = condition;
        self.clock.change(now, condition);
    }

    fn serve(
        &mut self,
        now: Nanos,
        request: &Request,
        factor: ServiceFactor,
        random: &mut Pcg64,
    ) -> Served {
        if self.condition == DeviceCondition::Lost {
            return Served { at: now, queue: Nanos::ZERO, outcome: StoreOutcome::DeviceLost };
        }
        let began = self.clock.at(now);
        let completion = self.device.submit_at_pace(began, request, factor);
        let took = self.clock.on_the_wall(completion.at.saturating_sub(began));
        let fails = matches!(self.condition, DeviceCondition::Erroring { probability }
            if unit_interval(random) < probability);
        let outcome = if fails { StoreOutcome::DeviceError } else { StoreOutcome::Done };
        let queue = self.clock.on_the_wall(completion.queue).min(took);
        Served { at: now + took, queue, outcome }
    }

    /// When a request that does not fail is done.
    fn time(&mut self, now: Nanos, request: &Request) -> Nanos {
        let began = self.clock.at(now);
        let completion = self.device.submit(began, request);
        now + self.clock.on_the_wall(completion.at.saturating_sub(began))
    }
}

/// What faults and pages call a device: its own name, then those of its copies (`log`, `log/disk0`, `log/disk1`) where
/// there are several.
pub fn device_names(name: &str, profile: &DeviceProfile) -> Vec<String> {
    let copies = if profile.copies > 1 { profile.copies } else { 0 };
    let copies = (0..copies).map(|copy| format!("{name}/disk{copy}"));
    std::iter::once(name.to_string()).chain(copies).collect()
}

/// The pieces that a request changes.
fn pieces_of(request: &Request) -> std::ops::Range<u64> {
    match request.operation {
        Operation::Read | Operation::Flush => 0..0,
        Operation::Write | Operation::Discard => {
            let end = request.offset_bytes + u64::from(request.length_bytes);
            request.offset_bytes / PIECE_BYTES..end.div_ceil(PIECE_BYTES)
        }
    }
}
