//! The queues in front of a resource, and which of them is served next.
//!
//! A lane whose next piece cannot be served now (its part of the device is busy) does not hold up the
//! others. Floors are kept by credits in bytes, see the header of the module `scheduler`.

use super::spec::IoClass;
use std::collections::VecDeque;

/// Queues: one per class, and the elevator's.
pub(crate) const LANES: usize = 5;

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Vm,
    Resync,
    Metadata,
    Namespace,
    /// Destaging of the write buffer.
    Elevator,
}

impl Lane {
    /// In the order in which lanes without credit are served.
    pub(crate) const ALL: [Lane; LANES] =
        [Lane::Vm, Lane::Metadata, Lane::Namespace, Lane::Resync, Lane::Elevator];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    pub(crate) const fn of(class: IoClass) -> Lane {
        match class {
            IoClass::Vm => Lane::Vm,
            IoClass::Resync => Lane::Resync,
            IoClass::Metadata => Lane::Metadata,
            IoClass::Namespace => Lane::Namespace,
        }
    }
}

/// What waits in a lane.
pub(crate) trait Waiting {
    /// Bytes that one turn sends.
    fn quantum_bytes(&self) -> u64;
    /// Larger for what came later.
    fn sequence(&self) -> u64;
}

/// In which order lanes are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Credits, then the order of [`Lane::ALL`].
    Priority,
    /// The oldest first.
    Arrival,
}

/// The lanes of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Lanes<T> {
    queues: [VecDeque<T>; LANES],
    order: Order,
    /// Credit per byte of others: floor / (1 - floor).
    earning: [f64; LANES],
    credit_bytes: [f64; LANES],
    /// Whether a lane has credit.
    any_credit: bool,
    /// Lanes whose service is under way also earn: between two pieces their queue may be empty.
    under_way: [u32; LANES],
    /// One bit per lane in which something waits.
    waiting: u8,
}

/// A lane saves up credit for this many pieces at most, unless a single piece of another earns it more.
const CREDIT_PIECES: f64 = 2.0;
/// So much more than its floor a lane is given, so that it holds although pieces are whole and a
/// queue is empty now and then.
const FLOOR_MARGIN: f64 = 1.08;

impl<T: Waiting> Lanes<T> {
    pub(crate) fn new(order: Order) -> Lanes<T> {
        Lanes {
            queues: std::array::from_fn(|_| VecDeque::with_capacity(64)),
            order,
            earning: [0.0; LANES],
            credit_bytes: [0.0; LANES],
            any_credit: false,
            under_way: [0; LANES],
            waiting: 0,
        }
    }

    /// Guarantees a lane a share of the bytes while it and others wait. Range 0 to 0.9.
    pub(crate) fn set_floor(&mut self, lane: Lane, floor: f64) {
        debug_assert!((0.0..=0.9).contains(&floor), "floor {floor}");
        let aim = floor * FLOOR_MARGIN;
        self.earning[lane.index()] = aim / (1.0 - aim);
    }

    pub(crate) fn push(&mut self, lane: Lane, item: T) {
        self.queues[lane.index()].push_back(item);
        self.waiting |= 1 << lane.index();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether something waits in the lane.
    pub(crate) fn waits(&self, lane: Lane) -> bool {
        self.waiting & (1 << lane.index()) != 0
    }

    /// How many wait in the lane.
    pub(crate) fn waiting(&self, lane: Lane) -> usize {
        self.queues[lane.index()].len()
    }

    pub(crate) fn front_mut(&mut self, lane: Lane) -> Option<&mut T> {
        self.queues[lane.index()].front_mut()
    }

    pub(crate) fn pop(&mut self, lane: Lane) -> Option<T> {
        let queue = &mut self.queues[lane.index()];
        debug_assert!(
            queue.is_empty() == (self.waiting >> lane.index() & 1 == 0),
            "the bit says who waits"
        );
        let item = queue.pop_front();
        if queue.is_empty() {
            self.waiting &= !(1 << lane.index());
        }
        item
    }

    /// Whether a guaranteed share entitles the lane to its next piece.
    pub(crate) fn has_credit(&self, lane: Lane) -> bool {
        let front = self.queues[lane.index()].front();
        front.is_some_and(|item| self.credit_bytes[lane.index()] >= item.quantum_bytes() as f64)
    }

    /// The lane to serve now, of those whose next piece `can_go`.
    pub(crate) fn choose(&self, mut can_go: impl FnMut(Lane, &T) -> bool) -> Option<Lane> {
        let mut ready =
            |lane: &Lane| self.queues[lane.index()].front().is_some_and(|item| can_go(*lane, item));
        if self.waiting.is_power_of_two() {
            // The usual case: no other class to compare with.
            return Lane::ALL.into_iter().find(|lane| self.waits(*lane)).filter(|lane| ready(lane));
        }
        match self.order {
            Order::Priority => {
                let entitled = |lane: &&Lane| self.has_credit(**lane);
                let by_credit = Lane::ALL.iter().filter(entitled).find(|lane| ready(lane));
                by_credit.or_else(|| Lane::ALL.iter().find(|lane| ready(lane))).copied()
            }
            Order::Arrival => {
                let oldest = Lane::ALL.iter().filter(|lane| ready(lane)).min_by_key(|lane| {
                    self.queues[lane.index()].front().map_or(u64::MAX, Waiting::sequence)
                });
                oldest.copied()
            }
        }
    }

    /// Books that a lane sent `bytes`: it pays, the others who wait earn.
    #[inline]
    pub(crate) fn served(&mut self, lane: Lane, bytes: u64) {
        // The usual case: no class can earn credit, and none has any to spend.
        if self.any_credit || self.waiting & !(1 << lane.index()) != 0 {
            self.book(lane, bytes);
        }
    }

    #[inline(never)]
    fn book(&mut self, lane: Lane, bytes: u64) {
        self.pay_and_earn(lane, bytes);
        debug_assert!(
            self.credit_bytes.iter().all(|credit| *credit >= 0.0),
            "credit is never negative"
        );
        self.any_credit = self.credit_bytes.iter().any(|credit| *credit != 0.0);
    }

    fn pay_and_earn(&mut self, lane: Lane, bytes: u64) {
        let own = lane.index();
        self.credit_bytes[own] = (self.credit_bytes[own] - bytes as f64).max(0.0);
        if lane == Lane::Elevator {
            // It carries what the others wrote: floors are shares of what they do themselves.
            return;
        }
        for other in 0..LANES {
            if other == own || self.earning[other] == 0.0 {
                continue;
            }
            let Some(next) = self.queues[other].front() else {
                if self.under_way[other] == 0 {
                    self.credit_bytes[other] = 0.0;
                }
                continue;
            };
            let piece = (next.quantum_bytes() as f64).max(1.0);
            let earned = bytes as f64 * self.earning[other];
            let most = (piece * CREDIT_PIECES).max(piece + earned);
            let credit = &mut self.credit_bytes[other];
            *credit = credit.max((*credit + earned).min(most));
        }
    }

    /// Gives a waiting lane credit for `bytes`, within the usual bound.
    pub(crate) fn grant(&mut self, lane: Lane, bytes: f64) {
        let Some(next) = self.queues[lane.index()].front() else { return };
        debug_assert!(bytes >= 0.0, "a grant of {bytes} bytes");
        let most = (next.quantum_bytes() as f64).max(bytes) * CREDIT_PIECES;
        let credit = &mut self.credit_bytes[lane.index()];
        *credit = credit.max((*credit + bytes).min(most));
        self.any_credit = true;
    }

    /// Notes that a piece of the lane is under way.
    pub(crate) fn begin(&mut self, lane: Lane) {
        self.under_way[lane.index()] += 1;
    }

    /// Notes that a piece of the lane came back.
    pub(crate) fn end(&mut self, lane: Lane) {
        debug_assert!(self.under_way[lane.index()] > 0, "a piece comes back once");
        self.under_way[lane.index()] -= 1;
    }

    /// Pieces of the lane under way.
    pub(crate) fn under_way(&self, lane: Lane) -> u32 {
        self.under_way[lane.index()]
    }

    /// Takes everything out, lane by lane.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(T)) {
        for queue in &mut self.queues {
            queue.drain(..).for_each(&mut each);
        }
        self.waiting = 0;
        self.credit_bytes = [0.0; LANES];
        self.any_credit = false;
    }

    /// Forgets what is under way: a power cut.
    pub(crate) fn forget_under_way(&mut self) {
        self.under_way = [0; LANES];
    }
}

#[cfg(test)]
mod tests {
    use super::{LANES, Lane, Lanes, Order, Waiting};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    #[derive(Clone, Copy, Debug)]
    struct Piece {
        bytes: u64,
        sequence: u64,
    }

    impl Waiting for Piece {
        fn quantum_bytes(&self) -> u64 {
            self.bytes
        }
        fn sequence(&self) -> u64 {
            self.sequence
        }
    }

    fn serve_one(lanes: &mut Lanes<Piece>) -> Option<(Lane, Piece)> {
        let lane = lanes.choose(|_, _| true)?;
        let piece = lanes.pop(lane)?;
        lanes.served(lane, piece.bytes);
        Some((lane, piece))
    }

    /// Keeps the given lanes filled, serves `turns` pieces, and returns the bytes of each lane.
    fn shares(floors: &[(Lane, f64)], sizes: &[(Lane, u64)], turns: usize) -> [f64; LANES] {
        let mut lanes = Lanes::new(Order::Priority);
        floors.iter().for_each(|(lane, floor)| lanes.set_floor(*lane, *floor));
        let mut served = [0.0; LANES];
        for turn in 0..turns {
            for (lane, bytes) in sizes {
                if !lanes.waits(*lane) {
                    lanes.push(*lane, Piece { bytes: *bytes, sequence: turn as u64 });
                }
            }
            let (lane, piece) = serve_one(&mut lanes).expect("the lanes are kept filled");
            served[lane.index()] += piece.bytes as f64;
        }
        let total: f64 = served.iter().sum();
        served.map(|bytes| bytes / total)
    }

    #[test]
    fn a_floor_is_kept_and_not_exceeded() {
        let floors = [(Lane::Resync, 0.2)];
        for vm_bytes in [4096, 8192, 1 << 20] {
            let sizes = [(Lane::Vm, vm_bytes), (Lane::Resync, 64 << 10)];
            let shares = shares(&floors, &sizes, 20_000);
            let resync = shares[Lane::Resync.index()];
            assert!((0.2..0.23).contains(&resync), "{vm_bytes}: {resync}");
        }
    }

    #[test]
    fn without_a_floor_the_first_lane_takes_all() {
        let sizes = [(Lane::Vm, 4096), (Lane::Resync, 65_536)];
        assert_eq!(shares(&[], &sizes, 1_000)[Lane::Vm.index()], 1.0);
    }

    #[test]
    fn an_idle_lane_saves_up_little() {
        let mut lanes = Lanes::new(Order::Priority);
        lanes.set_floor(Lane::Resync, 0.2);
        let piece = |sequence| Piece { bytes: 4096, sequence };
        for sequence in 0..10_000 {
            lanes.push(Lane::Vm, piece(sequence));
            serve_one(&mut lanes);
        }
        (0..100).for_each(|sequence| lanes.push(Lane::Vm, piece(sequence)));
        (0..100).for_each(|sequence| lanes.push(Lane::Resync, piece(sequence)));
        let first: Vec<_> = (0..20).filter_map(|_| serve_one(&mut lanes)).collect();
        let resync = first.iter().filter(|(lane, _)| *lane == Lane::Resync).count();
        assert!(resync <= 5, "{resync} of the first 20");
    }

    #[test]
    fn order_of_arrival_ignores_classes() {
        let mut lanes = Lanes::new(Order::Arrival);
        for (sequence, lane) in
            [Lane::Resync, Lane::Vm, Lane::Elevator, Lane::Vm].iter().enumerate()
        {
            lanes.push(*lane, Piece { bytes: 1 << 20, sequence: sequence as u64 });
        }
        let served: Vec<_> = std::iter::from_fn(|| serve_one(&mut lanes)).collect();
        assert!(served.iter().map(|(_, piece)| piece.sequence).eq(0..4));
    }

    proptest! {
        /// Whatever the sizes, every lane with a floor gets at least that, everything is served, and what
        /// cannot go now does not hold up the others.
        #[test]
        fn floors_hold_for_all_sizes(
            vm in 1..64u64, resync in 1..64u64, metadata in 1..16u64, floor in 0.05..0.4f64,
        ) {
            let floors = [(Lane::Resync, floor), (Lane::Metadata, 0.05)];
            let sizes = [
                (Lane::Vm, vm << 12), (Lane::Resync, resync << 12), (Lane::Metadata, metadata << 12),
            ];
            let shares = shares(&floors, &sizes, 30_000);
            prop_assert!(shares[Lane::Resync.index()] > floor, "{shares:?}");
            prop_assert!(shares[Lane::Metadata.index()] > 0.05, "{shares:?}");
            let mut lanes = Lanes::new(Order::Priority);
            lanes.push(Lane::Vm, Piece { bytes: vm, sequence: 0 });
            lanes.push(Lane::Elevator, Piece { bytes: resync, sequence: 1 });
            prop_assert_eq!(lanes.choose(|lane, _| lane != Lane::Vm), Some(Lane::Elevator));
            prop_assert_eq!(lanes.choose(|_, _| false), None);
        }
    }
}
