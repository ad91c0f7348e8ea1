//! The commands for the data plane, which moves the real bytes, and their order.
//!
//! The cluster decides *when* and *where*; it never sees bytes. Each command carries all that is needed to carry it out:
//! the members of the set as they are at this moment. Commands are executed one after the other, in the order in which
//! the cluster emits them; each is atomic for the reader of the data plane.
//!
//! That order is the consistency model. A write is emitted once for all members together, when every live member has
//! acknowledged it. So replicas and parity can only diverge in a power cut, and rows that may have diverged are
//! copied again.

use super::geometry::SetKind;
use super::ids::{ComponentId, DeviceId};
use super::policy::Checksum;
use crate::store::RequestId;
use std::fmt;

/// Most components a command names: six members, and two replacements being filled.
pub const MEMBERS_MAX: usize = 8;

/// One component of a set, as it is at the moment of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceMember {
    /// Where the bytes are.
    pub component: ComponentId,
    /// The place in the set that it fills.
    pub slot: u8,
    /// Whether it may be read.
    pub content: Content,
}

/// Whether a component's content of a row is what the volume holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// It is.
    Current,
    /// It is not, or not entirely; it takes writes so that a copy in progress stays right.
    Stale,
}

/// A byte range within one row of one set, with the components that can be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// How the row is protected.
    pub kind: SetKind,
    /// Length of a stripe unit.
    pub unit_bytes: u32,
    /// The row within the set: it begins at `row * unit_bytes` of each component.
    pub row: u64,
    /// First byte within the row's data, 0 .. data units * unit.
    pub start: u32,
    /// Number of bytes.
    pub length_bytes: u32,
    /// Whether blocks are summed and verified.
    pub checksum: Checksum,
    /// The reachable components; entries from `member_count` on have no meaning.
    members: [PieceMember; MEMBERS_MAX],
    member_count: u8,
    /// One bit per slot whose current content can be reached.
    current_slots: u8,
}

impl Piece {
    /// A range without members.
    pub fn new(kind: SetKind, unit_bytes: u32, row: u64, checksum: Checksum) -> Piece {
        let nobody =
            PieceMember { component: ComponentId(u32::MAX), slot: 0, content: Content::Stale };
        Piece {
            kind,
            unit_bytes,
            row,
            start: 0,
            length_bytes: 0,
            checksum,
            members: [nobody; MEMBERS_MAX],
            member_count: 0,
            current_slots: 0,
        }
    }

    /// The same, for a range of the row's data.
    pub fn with_range(self, start: u32, length_bytes: u32) -> Piece {
        self.of_row(self.row, start, length_bytes)
    }

    /// The same members, for a range of another row's data.
    #[inline]
    pub(super) fn of_row(&self, row: u64, start: u32, length_bytes: u32) -> Piece {
        Piece { row, start, length_bytes, ..*self }
    }

    /// Adds a component.
    ///
    /// # Panics
    /// Beyond [`MEMBERS_MAX`].
    pub fn push(&mut self, member: PieceMember) {
        self.members[usize::from(self.member_count)] = member;
        self.member_count += 1;
        if member.content == Content::Current {
            self.current_slots |= 1 << member.slot;
        }
    }

    /// The reachable components; for reads of a mirror, the preferred one comes first.
    pub fn members(&self) -> &[PieceMember] {
        &self.members[..usize::from(self.member_count)]
    }

    /// Puts a component first among the members: it is the one to read.
    pub fn prefer(&mut self, component: ComponentId) {
        let members = &mut self.members[..usize::from(self.member_count)];
        if let Some(at) = members.iter().position(|member| member.component == component) {
            members.swap(0, at);
        }
    }

    /// Takes out the components for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(ComponentId) -> bool) {
        let mut kept = 0;
        for index in 0..usize::from(self.member_count) {
            if keep(self.members[index].component) {
                self.members[kept] = self.members[index];
                kept += 1;
            }
        }
        self.member_count = kept as u8;
        let current = self.members().iter().filter(|member| member.content == Content::Current);
        self.current_slots = current.fold(0, |slots, member| slots | 1 << member.slot);
    }

    /// The slots whose current content can be reached: one bit each.
    pub(super) fn current_slots(&self) -> u8 {
        self.current_slots
    }

    /// The component that holds the current content of a slot, if one can be reached.
    pub fn current(&self, slot: u8) -> Option<ComponentId> {
        if self.current_slots >> slot & 1 == 0 {
            return None;
        }
        self.members()
            .iter()
            .find(|member| member.slot == slot && member.content == Content::Current)
            .map(|member| member.component)
    }
}

/// In one line, and without the places that have no meaning: traces of a simulation are read by people.
impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} row {}: {}+{} of", self.kind, self.row, self.start, self.length_bytes)?;
        for member in self.members() {
            write!(f, " {}.{}", member.component, member.slot)?;
            if member.content == Content::Stale {
                write!(f, " (stale)")?;
            }
        }
        if self.checksum == Checksum::Off { write!(f, ", without sums") } else { Ok(()) }
    }
}

/// The point at which a write to a component is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurabilityPoint {
    /// An acknowledged write is durable.
    OnWrite,
    /// A power cut may take what was written since the last [`DataCommand::Persist`].
    OnFlush,
}

/// One step of the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataCommand {
    /// A new component, all zero.
    Create {
        /// Its name, never used before.
        component: ComponentId,
        /// Its length.
        length_bytes: u64,
        /// The device it lies on; member 1.. of its group.
        device: DeviceId,
        /// When its writes are durable.
        durability: DurabilityPoint,
    },
    /// The component is not needed any more.
    Remove {
        /// The component.
        component: ComponentId,
    },
    /// The device was replaced: everything in the component is gone. It reads as zeros.
    Blank {
        /// The component.
        component: ComponentId,
    },
    /// Fill a part of a request's buffer.
    Read {
        /// The request.
        request: RequestId,
        /// Where in its buffer.
        buffer_offset: u32,
        /// From where.
        piece: Piece,
    },
    /// Store a part of a request's buffer on all members.
    Write {
        /// The request.
        request: RequestId,
        /// Where in its buffer.
        buffer_offset: u32,
        /// To where.
        piece: Piece,
    },
    /// Store the beginning of a part of a request's buffer on one component of a mirror: what a power cut left of a write
    /// that was never acknowledged.
    WriteTorn {
        /// The request.
        request: RequestId,
        /// Where in its buffer.
        buffer_offset: u32,
        /// The place of the whole part; only [`Piece::members`] of `component` matters.
        piece: Piece,
        /// The component.
        component: ComponentId,
        /// Bytes of the part that were stored, a multiple of 512.
        keep_bytes: u32,
    },
    /// The range reads as zeros from now on.
    Discard {
        /// The request.
        request: RequestId,
        /// The range.
        piece: Piece,
    },
    /// Restore a range of one component from the other members: by copying, or by decoding. What is restored is durable
    /// at once, and so is what was written to the component before.
    Resync {
        /// The other members; `start` and `length_bytes` count within the unit.
        piece: Piece,
        /// The component to fill.
        target: ComponentId,
        /// The slot it fills.
        slot: u8,
    },
    /// Copy a range of the volume from its present layout to the next one, durably.
    Reshape {
        /// From where.
        from: Piece,
        /// To where; the same number of bytes.
        to: Piece,
    },
    /// The range of one component reads as zeros from now on, durably.
    Zero {
        /// The component.
        component: ComponentId,
        /// From its start.
        offset_bytes: u64,
        /// Number of bytes.
        length_bytes: u64,
    },
    /// Everything written to the component so far is durable.
    Persist {
        /// The component.
        component: ComponentId,
    },
    /// The component's host lost power: volatile writes are lost, torn or kept, as the seed decides.
    PowerCut {
        /// The component.
        component: ComponentId,
        /// Decides what is lost.
        seed: u64,
    },
    /// Members lost what they had not flushed, and what is left does not tell what the row held: it goes back to one of its contents
    /// since the last flush, the same on all members. A write in its midst may be torn, at the same place in all units.
    RollBack {
        /// The members with the row's content, within reach or not; the range is the whole row.
        piece: Piece,
        /// Decides which content.
        seed: u64,
    },
    /// A bit flips silently.
    BitRot {
        /// The component.
        component: ComponentId,
        /// The byte, from the component's start.
        offset_bytes: u64,
        /// The bit, 0 to 7.
        bit: u8,
    },
    /// The next write to the component stores only its first bytes, silently.
    TearNextWrite {
        /// The component.
        component: ComponentId,
        /// Bytes that are stored.
        keep_bytes: u32,
    },
}
