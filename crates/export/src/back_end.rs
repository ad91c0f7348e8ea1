//! The line between exports and back ends: the requests to a volume, independent of clients and back ends.
//!
//! A request has one type per stage, named for it:
//!
//! 1. as it was received: `FuseRequest` or `NbdRequest`;
//! 2. as a back end is asked: [`BlockRequest`];
//! 3. as the back end's model is asked, 4. while it waits, 5. as the model has finished it: types of the back end;
//! 6. as it is answered: [`Answer`].

use std::ops::Range;

use rustix::io::Errno;
use underlay_core::{Nanos, Operation};

use crate::buffers::BufferPool;
use crate::clock::Clock;
use crate::path_cost::PathCost;

/// What serves volumes. `C` names the client: a back end keeps it and hands it back.
///
/// Everything happens on one thread, and nothing may wait for anything else: what takes time is answered later, by
/// [`BackEnd::take_due`].
pub trait BackEnd<C> {
    /// Whether requests are served. Without power they are all refused before they get here.
    fn is_powered(&self) -> bool;

    /// Whether what was answered is durable already, so that there is nothing to flush; for all volumes and for good.
    fn is_durable(&self) -> bool;

    /// Accepts a request for a range that lies within a volume. It is answered once: here, or by a later
    /// [`BackEnd::take_due`].
    ///
    /// # Errors
    /// When it cannot be served. It is refused with this then, and not answered.
    fn submit(
        &mut self,
        request: BlockRequest<'_, C>,
        exchange: &mut Exchange<C>,
    ) -> Result<(), Errno>;

    /// Hands over what is to be answered at `now`. Answers leave early by what [`Exchange::path`] says.
    fn take_due(&mut self, now: Nanos, exchange: &mut Exchange<C>);

    /// When [`BackEnd::take_due`] is to be called next; none = nothing is in flight.
    fn next_answer(&self, path: &PathCost) -> Option<Nanos>;

    /// Whether answers have to leave at moments of their own.
    fn keeps_time(&self) -> bool;

    /// Where a range of a volume holds data: runs in order, one at least unless the range is empty.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn extents(&mut self, volume: usize, offset: u64, length: u32) -> Result<Vec<Extent>, Errno>;

    /// Does at the beginning of a volume what a read does when it arrives, whatever the model says. What is in the buffer
    /// afterwards does not matter: this is to see what the way to a back end costs.
    ///
    /// # Errors
    /// When a read would fail as well.
    fn probe(&mut self, volume: usize, buffer: &mut [u8]) -> Result<(), Errno>;

    /// Requests to a volume that are not answered.
    fn in_flight(&self, volume: usize) -> u64;

    /// Takes a volume away that has nothing in flight. Its number is not given to another one.
    fn remove_volume(&mut self, now: Nanos, volume: usize);
}

/// A request to a volume.
#[derive(Debug)]
pub struct BlockRequest<'a, C> {
    /// Who is answered.
    pub client: C,
    /// The volume's number.
    pub volume: usize,
    /// When it arrived.
    pub arrived: Nanos,
    /// What is asked.
    pub asked: Asked<'a>,
}

/// What a volume is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Return bytes.
    Read {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Store bytes.
    Write {
        /// First byte.
        offset: u64,
        /// What is stored.
        data: &'a [u8],
        /// When it is done.
        force: Force,
    },
    /// Make every answered write durable.
    Flush,
    /// Let a range read as zeros, durably.
    Discard {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// What becomes of its space.
        zeroing: Zeroing,
    },
}

/// Whether a write is done when it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It may stay volatile until the next flush.
    Nothing,
    /// It is durable when it is answered.
    UnitAccess,
}

/// What becomes of the space of a range that is to read as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeroing {
    /// It may be given back.
    FreesSpace,
    /// It stays.
    KeepsSpace,
}

/// A run of bytes of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of bytes.
    pub length_bytes: u32,
    /// Whether it may hold something; a hole reads as zeros.
    pub holds_data: bool,
}

/// The answer to a request, which is to leave now.
#[derive(Debug)]
pub struct Answer<C> {
    /// The client; `None` for a part of a request whose other parts are not done, which only counts.
    pub client: Option<C>,
    /// The volume's number.
    pub volume: usize,
    /// What was done.
    pub operation: Operation,
    /// Bytes that were asked for; 0 for a flush.
    pub bytes: u32,
    /// When the request arrived.
    pub arrived: Nanos,
    /// What the model said; none when no model was asked.
    pub modelled: Option<Modelled>,
    /// How long before its deadline it leaves, if it was held back until then.
    pub early: Nanos,
    /// The client gets an I/O error.
    pub failed: bool,
    /// A buffer of [`Exchange::buffers`], to be given back; empty if there is none.
    pub buffer: Vec<u8>,
    /// The part of it that the client of a read gets.
    pub wanted: Range<usize>,
}

/// What a model said about a request.
#[derive(Clone, Copy, Debug)]
pub struct Modelled {
    /// When its client is to see the answer.
    pub deadline: Nanos,
    /// How long it waited for other requests.
    pub queue: Nanos,
    /// Whether the answer had to be held back.
    pub delayed: bool,
}

impl<C> Answer<C> {
    /// What the client of a read gets; empty for everything else.
    pub fn data(&self) -> &[u8] {
        if self.operation == Operation::Read && !self.failed {
            &self.buffer[self.wanted.clone()]
        } else {
            &[]
        }
    }

    /// When its client is to see it: the model's deadline, or at once.
    pub fn deadline(&self) -> Nanos {
        self.modelled.map_or(self.arrived, |modelled| modelled.deadline)
    }
}

/// Where a back end and its export meet.
#[derive(Debug)]
pub struct Exchange<C> {
    /// The time.
    pub clock: Clock,
    /// How early answers leave.
    pub path: PathCost,
    /// Buffers for what is read, and for what a back end must keep.
    pub buffers: BufferPool,
    /// What is to be answered now. The export takes it; it is empty in between.
    pub answers: Vec<Answer<C>>,
}

/// Answers of one turn that need no memory to be allocated.
const ANSWERS_EXPECTED: usize = 1024;
/// Small buffers ready from the start.
const READY_BUFFERS: usize = 256;

impl<C> Exchange<C> {
    /// With nothing to be answered.
    pub fn new(clock: Clock) -> Exchange<C> {
        Exchange {
            clock,
            path: PathCost::default(),
            buffers: BufferPool::new(READY_BUFFERS),
            answers: Vec::with_capacity(ANSWERS_EXPECTED),
        }
    }
}
