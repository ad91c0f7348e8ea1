//! The address map of an object: which member of which set holds a byte of the volume.
//!
//! A volume is cut into stripe units. A *row* is one unit for mirrors, and the data units under one parity for erasure
//! coding. Rows are dealt to the *sets* in turn (RAID-0); a set has one member per copy or per data and parity
//! unit, and row `q` of a set occupies the `q`-th unit of each member:
//!
//! ```text
//! RAID-5, one set:   member 0   1   2   3          RAID-1, stripe width 2:   set 0      set 1
//!            row 0          d0  d1  d2  P                             row 0  u0 u0      u1 u1
//!            row 1          d1  d2  P   d0                            row 1  u2 u2      u3 u3
//! ```
//!
//! Parity rotates with the row, so that parity writes load all members alike. An object that exceeds the largest
//! component gets as many sets as needed; the map is the same.

/// How one row is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetKind {
    /// Every member holds the same.
    Mirror {
        /// Number of members, 1 to 3.
        copies: u8,
    },
    /// Data units and parity units.
    Parity {
        /// Data units in a row.
        data: u8,
        /// Parity units in a row: 1 (XOR) or 2 (XOR and Reed-Solomon).
        parity: u8,
    },
}

impl SetKind {
    /// Members of a set.
    pub const fn members(self) -> u8 {
        match self {
            SetKind::Mirror { copies } => copies,
            SetKind::Parity { data, parity } => data + parity,
        }
    }

    /// Units of the volume in a row.
    pub const fn data_units(self) -> u8 {
        match self {
            SetKind::Mirror { .. } => 1,
            SetKind::Parity { data, .. } => data,
        }
    }

    /// Members that may be missing.
    pub const fn spare_members(self) -> u8 {
        self.members() - self.data_units()
    }

    /// The member that holds data unit `index` of a row.
    pub const fn data_member(self, row: u64, index: u8) -> u8 {
        match self {
            SetKind::Mirror { .. } => 0,
            SetKind::Parity { data, parity } => {
                let members = data + parity;
                // Below twice the members: nothing need be divided.
                let member = first_parity(row, members) + parity + index;
                if member < members { member } else { member - members }
            }
        }
    }

    /// The copy that a row is read from first: always the same, so that each holds its share in its caches.
    pub(super) const fn read_copy(self, row: u64) -> u8 {
        match self {
            SetKind::Mirror { copies: 1 } | SetKind::Parity { .. } => 0,
            SetKind::Mirror { copies: 2 } => (row % 2) as u8,
            SetKind::Mirror { copies } => divide(row, copies).1 as u8,
        }
    }

    /// The member that holds parity unit `index` of a row.
    ///
    /// # Panics
    /// For mirrors, which have none.
    pub const fn parity_member(self, row: u64, index: u8) -> u8 {
        match self {
            SetKind::Mirror { .. } => panic!("a mirror has no parity"),
            SetKind::Parity { data, parity } => {
                let members = data + parity;
                let member = first_parity(row, members) + index;
                if member < members { member } else { member - members }
            }
        }
    }

    /// The member that holds the first data unit of a row; the others follow it, round the set, and then the parity.
    pub(super) const fn first_data_member(self, row: u64) -> u8 {
        self.data_member(row, 0)
    }

    /// The member this many places after another one, cyclically in the set.
    pub(super) const fn following(self, member: u8, by: u8) -> u8 {
        let (members, member) = (self.members(), member + by);
        if member < members { member } else { member - members }
    }

    /// What a member holds in a row.
    pub const fn role(self, row: u64, member: u8) -> Role {
        match self {
            SetKind::Mirror { .. } => Role::Data(0),
            SetKind::Parity { data, parity } => {
                let members = data + parity;
                let distance = (member + members - first_parity(row, members)) % members;
                if distance < parity {
                    Role::Parity(distance)
                } else {
                    Role::Data(distance - parity)
                }
            }
        }
    }
}

/// What a member holds in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The data unit of that number.
    Data(u8),
    /// The parity unit of that number.
    Parity(u8),
}

const fn first_parity(row: u64, members: u8) -> u8 {
    members - 1 - divide(row, members).1 as u8
}

/// Quotient and rest. The numbers of units and members that policies have are known to the compiler here: it multiplies
/// instead of dividing.
const fn divide(number: u64, by: u8) -> (u64, u64) {
    match by {
        3 => (number / 3, number % 3),
        4 => (number / 4, number % 4),
        6 => (number / 6, number % 6),
        by => (number / by as u64, number % by as u64),
    }
}

/// The address map of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// How rows are protected.
    pub kind: SetKind,
    /// Sets over which rows are dealt, 1 or more.
    pub sets: u32,
    /// Length of a stripe unit, a power of two.
    pub unit_bytes: u32,
    /// Length of the volume.
    pub capacity_bytes: u64,
}

/// A part of a request that lies in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The set.
    pub set: u32,
    /// The row within the set.
    pub row: u64,
    /// First byte within the row's data.
    pub start: u32,
    /// Number of bytes.
    pub length: u32,
}

impl Geometry {
    /// Bytes of the volume in one row.
    pub const fn row_bytes(&self) -> u64 {
        self.kind.data_units() as u64 * self.unit_bytes as u64
    }

    /// Rows of one set; the last one may be used only in part.
    pub const fn rows_per_set(&self) -> u64 {
        self.capacity_bytes.div_ceil(self.row_bytes()).div_ceil(self.sets as u64)
    }

    /// Length of one component.
    pub const fn component_bytes(&self) -> u64 {
        self.rows_per_set() * self.unit_bytes as u64
    }

    /// Where a byte of the volume lies, and how much of `length` lies in the same row.
    pub fn locate(&self, offset: u64, length: u32) -> RowRange {
        let shift = self.unit_bytes.trailing_zeros();
        let (unit, within) = (offset >> shift, offset & (u64::from(self.unit_bytes) - 1));
        let (row, start) = match self.kind {
            SetKind::Mirror { .. } => (unit, within),
            SetKind::Parity { data, .. } => {
                let (row, index) = divide(unit, data);
                (row, (index << shift) + within)
            }
        };
        let length = u64::from(length).min(self.row_bytes() - start) as u32;
        let (set, row) = if self.sets == 1 {
            (0, row)
        } else {
            ((row % u64::from(self.sets)) as u32, row / u64::from(self.sets))
        };
        RowRange { set, row, start: start as u32, length }
    }

    /// The first byte of the volume in a row: the inverse of [`Geometry::locate`].
    pub const fn row_offset(&self, set: u32, row: u64) -> u64 {
        (row * self.sets as u64 + set as u64) * self.row_bytes()
    }

    /// The parts of a request, one per row.
    pub fn split(&self, offset: u64, length: u32) -> Rows {
        Rows { geometry: *self, next: self.locate(offset, length), offset, left: length }
    }
}

/// The parts of a request, one per row. The next one is known already: a copy of this need not look for it again.
#[derive(Clone, Debug)]
pub struct Rows {
    geometry: Geometry,
    /// Without meaning when nothing is left.
    next: RowRange,
    /// What it and those after it cover.
    offset: u64,
    left: u32,
}

impl Iterator for Rows {
    type Item = RowRange;

    #[inline]
    fn next(&mut self) -> Option<RowRange> {
        if self.left == 0 {
            return None;
        }
        let part = self.next;
        self.offset += u64::from(part.length);
        self.left -= part.length;
        if self.left > 0 {
            self.next = self.geometry.locate(self.offset, self.left);
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::{Geometry, Role, SetKind};
    use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use std::collections::HashSet;

    fn any_geometry() -> impl Strategy<Value = Geometry> {
        let kind = prop_oneof![
            (1..=3u8).prop_map(|copies| SetKind::Mirror { copies }),
            Just(SetKind::Parity { data: 3, parity: 1 }),
            Just(SetKind::Parity { data: 4, parity: 2 }),
        ];
        (kind, 1..=12u32, 12..=16u32, 1..400u64).prop_map(|(kind, sets, shift, blocks)| Geometry {
            kind,
            sets,
            unit_bytes: 1 << shift,
            capacity_bytes: blocks * 4096,
        })
    }

    proptest! {
        /// Every block of a volume has a place of its own, inside its component, and the way back is known.
        #[test]
        fn the_map_is_a_bijection(geometry in any_geometry()) {
            let mut places = HashSet::new();
            for block in 0..geometry.capacity_bytes / 4096 {
                let offset = block * 4096;
                let part = geometry.locate(offset, 4096);
                prop_assert_eq!(part.length, 4096);
                let index = (part.start / geometry.unit_bytes) as u8;
                let within = u64::from(part.start % geometry.unit_bytes);
                let member = geometry.kind.data_member(part.row, index);
                let at = part.row * u64::from(geometry.unit_bytes) + within;
                prop_assert!(at + 4096 <= geometry.component_bytes());
                prop_assert!(places.insert((part.set, member, at)));
                prop_assert_eq!(geometry.row_offset(part.set, part.row) + u64::from(part.start), offset);
                if let SetKind::Parity { .. } = geometry.kind {
                    prop_assert_eq!(geometry.kind.role(part.row, member), Role::Data(index));
                }
            }
        }

        /// The parts of a request cover it once and in order.
        #[test]
        fn parts_cover_the_request(geometry in any_geometry(), from in 0..100u64, blocks in 1..100u32) {
            let offset = (from * 4096).min(geometry.capacity_bytes - 4096);
            let length = (u64::from(blocks) * 4096).min(geometry.capacity_bytes - offset) as u32;
            let mut at = offset;
            for part in geometry.split(offset, length) {
                prop_assert_eq!(geometry.row_offset(part.set, part.row) + u64::from(part.start), at);
                at += u64::from(part.length);
            }
            prop_assert_eq!(at, offset + u64::from(length));
        }
    }

    #[test]
    fn parity_rotates_over_all_members() {
        for kind in [SetKind::Parity { data: 3, parity: 1 }, SetKind::Parity { data: 4, parity: 2 }]
        {
            let members = u64::from(kind.members());
            let firsts: HashSet<u8> = (0..members).map(|row| kind.parity_member(row, 0)).collect();
            assert_eq!(firsts.len() as u64, members);
            for row in 0..members {
                let all: HashSet<u8> = (0..kind.data_units())
                    .map(|index| kind.data_member(row, index))
                    .chain((0..kind.spare_members()).map(|index| kind.parity_member(row, index)))
                    .collect();
                assert_eq!(all.len() as u64, members, "each member has one role");
            }
        }
    }
}
