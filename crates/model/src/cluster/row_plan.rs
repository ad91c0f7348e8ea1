//! Which bytes of which slots a request in one row touches: its own units, and the parity over them.

use super::geometry::{RowRange, SetKind};

/// Most slots of a set.
pub(super) const SLOTS_MAX: usize = 6;

/// A byte range within a unit, empty if `from == to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitRange {
    pub(super) from: u32,
    pub(super) to: u32,
}

impl UnitRange {
    /// Whether nothing is in it.
    pub(super) fn is_empty(self) -> bool {
        self.from == self.to
    }

    /// The smallest range that holds both.
    pub(super) fn unite(self, other: UnitRange) -> UnitRange {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => UnitRange { from: self.from.min(other.from), to: self.to.max(other.to) },
        }
    }

    /// Number of bytes.
    pub(super) fn length(self) -> u32 {
        self.to - self.from
    }
}

/// The range of each data unit that a range of a row covers. The length of a unit is a power of two.
pub(super) fn unit_ranges(
    unit_bytes: u32,
    start: u32,
    length: u32,
) -> impl Iterator<Item = (u8, UnitRange)> {
    let end = start + length;
    let shift = unit_bytes.trailing_zeros();
    (start >> shift..(end + unit_bytes - 1) >> shift).map(move |index| {
        let base = index << shift;
        let from = start.max(base) - base;
        let to = end.min(base + unit_bytes) - base;
        (index as u8, UnitRange { from, to })
    })
}

/// A part of one unit, and the slots of its row that hold it and the parity over it: one bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneUnit {
    pub(super) range: UnitRange,
    pub(super) data_slots: u8,
    pub(super) parity_slots: u8,
}

impl OneUnit {
    /// All that a write touches.
    pub(super) fn slots(&self) -> u8 {
        self.data_slots | self.parity_slots
    }
}

/// The unit that a range of a row lies in, unless it reaches over several. There are one or two units of parity.
#[inline]
pub(super) fn one_unit(kind: SetKind, unit_bytes: u32, range: &RowRange) -> Option<OneUnit> {
    debug_assert!(unit_bytes.is_power_of_two(), "a unit of {unit_bytes} bytes");
    let from = range.start & (unit_bytes - 1);
    let to = from + range.length;
    if to > unit_bytes {
        return None;
    }
    let (data_slots, parity_slots) = match kind {
        SetKind::Mirror { copies } => ((1 << copies) - 1, 0),
        SetKind::Parity { parity, .. } => {
            let index = (range.start >> unit_bytes.trailing_zeros()) as u8;
            let first = kind.parity_member(range.row, 0);
            let second = if parity > 1 { 1 << kind.following(first, 1) } else { 0 };
            (1 << kind.following(first, parity + index), 1 << first | second)
        }
    };
    Some(OneUnit { range: UnitRange { from, to }, data_slots, parity_slots })
}

/// The ranges that a write touches, per slot.
pub(super) fn touched(kind: SetKind, unit_bytes: u32, range: &RowRange) -> [UnitRange; SLOTS_MAX] {
    let mut ranges = [UnitRange::default(); SLOTS_MAX];
    if let SetKind::Mirror { copies } = kind {
        let all = UnitRange { from: range.start, to: range.start + range.length };
        ranges[..usize::from(copies)].fill(all);
        return ranges;
    }
    let (members, data) = (kind.members(), kind.data_units());
    let first = kind.first_data_member(range.row);
    let slot = |index: u8| {
        let slot = first + index;
        usize::from(if slot < members { slot } else { slot - members })
    };
    if let Some(unit) = one_unit(kind, unit_bytes, range) {
        let slots = (0..members).filter(|slot| unit.slots() >> slot & 1 == 1);
        slots.for_each(|slot| ranges[usize::from(slot)] = unit.range);
        return ranges;
    }
    let mut all = UnitRange::default();
    for (index, part) in unit_ranges(unit_bytes, range.start, range.length) {
        ranges[slot(index)] = part;
        all = all.unite(part);
    }
    (data..members).for_each(|index| ranges[slot(index)] = all);
    ranges
}

/// The ranges that must be read to serve a read of a row with parity, per slot; none if too few members are current. `current` has
/// a bit per slot, as in what follows.
pub(super) fn parity_read(
    kind: SetKind,
    unit_bytes: u32,
    range: &RowRange,
    current: u8,
) -> Option<[UnitRange; SLOTS_MAX]> {
    let mut ranges = [UnitRange::default(); SLOTS_MAX];
    let mut missing = UnitRange::default();
    for (index, part) in unit_ranges(unit_bytes, range.start, range.length) {
        let slot = kind.data_member(range.row, index);
        if current >> slot & 1 == 1 {
            ranges[usize::from(slot)] = part;
        } else {
            missing = missing.unite(part);
        }
    }
    if missing.is_empty() { Some(ranges) } else { decode(kind, current, missing, ranges) }
}

/// Extends `ranges` so that `missing` can be decoded: the same range of as many members as there are data units.
pub(super) fn decode(
    kind: SetKind,
    current: u8,
    missing: UnitRange,
    mut ranges: [UnitRange; SLOTS_MAX],
) -> Option<[UnitRange; SLOTS_MAX]> {
    // Members that are read anyway come first.
    let mut slots: Vec<u8> = (0..kind.members()).filter(|slot| current >> slot & 1 == 1).collect();
    slots.sort_by_key(|slot| ranges[usize::from(*slot)].is_empty());
    if slots.len() < usize::from(kind.data_units()) {
        return None;
    }
    for slot in &slots[..usize::from(kind.data_units())] {
        let range = &mut ranges[usize::from(*slot)];
        *range = range.unite(missing);
    }
    Some(ranges)
}

/// The ranges that must be read before a write of a row with parity, per slot; empty for a full row, none if too few members
/// are current.
pub(super) fn parity_write_reads(
    kind: SetKind,
    unit_bytes: u32,
    range: &RowRange,
    current: u8,
) -> Option<[UnitRange; SLOTS_MAX]> {
    let nothing = [UnitRange::default(); SLOTS_MAX];
    if current.count_ones() < u32::from(kind.data_units()) {
        return None;
    }
    if range.length == unit_bytes * u32::from(kind.data_units()) {
        return Some(nothing);
    }
    let touched = touched(kind, unit_bytes, range);
    let is_touched = |slot: &u8| !touched[usize::from(*slot)].is_empty();
    if (0..kind.members()).filter(is_touched).all(|slot| current >> slot & 1 == 1) {
        // Read-modify-write: the old data and the old parity give the new parity.
        return Some(touched);
    }
    let all = touched.iter().fold(UnitRange::default(), |all, range| all.unite(*range));
    decode(kind, current, all, nothing)
}
