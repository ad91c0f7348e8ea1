//! What a unit may hold, and what it does hold. Pure.
//!
//! Writes to one unit follow each other, each with a higher number. `floor` is the last one that must not be lost;
//! `later` are those begun after it: any of them may have arrived, or none.

use super::stamp::{Stamp, take};
use underlay_workload::block::Content;

/// Sectors are written whole or not at all; a unit of several may be torn between them.
const SECTOR_BYTES: usize = 512;

/// What must have survived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// Every acknowledged write: the generator died, the storage did not.
    Acknowledged,
    /// Every write that was acknowledged and then covered by a flush: the power was cut.
    Flushed,
}

/// What a unit turned out to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Finding {
    /// The last write that was acknowledged.
    Last,
    /// A write that was begun and never acknowledged: it arrived.
    InFlight,
    /// An acknowledged write is gone that no flush had covered: allowed only after a power cut.
    UnflushedLost,
    /// Sectors of several writes, none of which had to be there: allowed.
    Torn,
    /// Nothing was ever written here, or nothing that had to stay.
    Untouched,
    /// Violation: a write that had to be there is gone.
    Lost,
    /// Violation: what is there belongs somewhere else.
    Misplaced,
    /// Violation: what is there was never written.
    Corrupt,
}

/// A unit that does not contain what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number of the target.
    pub target: u32,
    /// First byte of the unit.
    pub offset_bytes: u64,
    /// What is wrong with it.
    pub finding: Finding,
    /// The write that it should hold.
    pub expected_write: u64,
}

impl Finding {
    /// All of them.
    pub const ALL: [Finding; 8] = [
        Finding::Last,
        Finding::InFlight,
        Finding::UnflushedLost,
        Finding::Torn,
        Finding::Untouched,
        Finding::Lost,
        Finding::Misplaced,
        Finding::Corrupt,
    ];

    /// Whether the storage broke its promise.
    pub const fn is_violation(self) -> bool {
        matches!(self, Finding::Lost | Finding::Misplaced | Finding::Corrupt)
    }

    /// The word used in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Finding::Last => "last",
            Finding::InFlight => "in-flight",
            Finding::UnflushedLost => "unflushed-lost",
            Finding::Torn => "torn",
            Finding::Untouched => "untouched",
            Finding::Lost => "lost",
            Finding::Misplaced => "misplaced",
            Finding::Corrupt => "corrupt",
        }
    }
}

/// Who wrote to a target, and what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Author {
    pub(super) run: u64,
    pub(super) target: u32,
    pub(super) unit_bytes: usize,
    pub(super) content: Content,
}

/// What is known about one unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// The last write that must not be lost; 0 = none.
    pub(super) floor: u64,
    /// The last write that was acknowledged; 0 = none. At least `floor`.
    pub(super) acknowledged: u64,
    /// Writes begun after `floor`, ascending.
    pub(super) later: &'a [u64],
}

impl Author {
    /// Judges what unit `unit` holds.
    pub(super) fn judge(&self, unit: u64, bytes: &[u8], known: &Known<'_>) -> Finding {
        if known.floor == 0 && known.later.is_empty() {
            return Finding::Untouched;
        }
        match take(bytes) {
            Some(stamp) => self.judge_whole(unit, &stamp, known),
            // What was there before the run is unknown; unless something had to be there it may still be.
            None if known.floor == 0 => self.gone(known),
            None if self.is_torn(unit, bytes, known) => Finding::Torn,
            None => Finding::Corrupt,
        }
    }

    fn judge_whole(&self, unit: u64, stamp: &Stamp, known: &Known<'_>) -> Finding {
        if stamp.run != self.run {
            // An earlier run's.
            return if known.floor == 0 { self.gone(known) } else { Finding::Lost };
        }
        if stamp.unit != unit || stamp.target != self.target {
            return Finding::Misplaced;
        }
        if stamp.write == known.acknowledged {
            return Finding::Last;
        }
        if stamp.write != known.floor && !known.later.contains(&stamp.write) {
            return if stamp.write < known.floor { Finding::Lost } else { Finding::Corrupt };
        }
        if stamp.write > known.acknowledged { Finding::InFlight } else { Finding::UnflushedLost }
    }

    /// Nothing of the run is there, and nothing had to be.
    fn gone(&self, known: &Known<'_>) -> Finding {
        if known.acknowledged > 0 { Finding::UnflushedLost } else { Finding::Untouched }
    }

    /// Whether each sector is that of a write that may be there. Of the stamp, thread and checksum cannot be
    /// computed and are not compared.
    fn is_torn(&self, unit: u64, bytes: &[u8], known: &Known<'_>) -> bool {
        if known.later.is_empty() {
            return false;
        }
        let offset = unit * self.unit_bytes as u64;
        let mut matched = vec![false; bytes.len() / SECTOR_BYTES];
        let mut expected = vec![0; bytes.len()];
        for write in std::iter::once(&known.floor).chain(known.later) {
            self.content.fill(offset, *write, &mut expected);
            let stamp =
                Stamp { run: self.run, unit, write: *write, thread: 0, target: self.target };
            super::stamp::put(&mut expected, &stamp);
            // The stamp begins with magic, run, unit and write.
            let comparable = bytes.len() - super::stamp::STAMP_BYTES + 32;
            for (sector, matched) in matched.iter_mut().enumerate() {
                let begin = sector * SECTOR_BYTES;
                let end = (begin + SECTOR_BYTES).min(comparable);
                *matched |= bytes[begin..end] == expected[begin..end];
            }
        }
        matched.iter().all(|matched| *matched)
    }

    /// Fills and marks the units of a request.
    pub(super) fn write(&self, offset: u64, write: u64, thread: u32, bytes: &mut [u8]) {
        self.content.fill(offset, write, bytes);
        let first = offset / self.unit_bytes as u64;
        for (unit, bytes) in (first..).zip(bytes.chunks_exact_mut(self.unit_bytes)) {
            let stamp = Stamp { run: self.run, unit, write, thread, target: self.target };
            super::stamp::put(bytes, &stamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Author, Finding, Known};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use underlay_core::RootSeed;
    use underlay_workload::block::{Content, ContentSpec};

    fn author() -> Author {
        let spec = ContentSpec { compress_ratio: 2.0, duplicate_share: 0.0 };
        let content = Content::new(spec, RootSeed(1)).unwrap();
        Author { run: 7, target: 0, unit_bytes: 4096, content }
    }

    fn unit(author: &Author, number: u64, write: u64) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        author.write(number * 4096, write, 5, &mut bytes);
        bytes
    }

    /// Floor 10, acknowledged 12, in flight 13.
    const KNOWN: Known<'static> = Known { floor: 10, acknowledged: 12, later: &[11, 12, 13] };

    #[test]
    fn each_version_is_judged_by_what_was_promised() {
        let author = author();
        let judge = |write| author.judge(3, &unit(&author, 3, write), &KNOWN);
        assert_eq!(judge(12), Finding::Last);
        assert_eq!(judge(13), Finding::InFlight);
        assert_eq!(judge(11), Finding::UnflushedLost);
        assert_eq!(judge(10), Finding::UnflushedLost);
        assert_eq!(judge(9), Finding::Lost);
        assert_eq!(judge(14), Finding::Corrupt, "a write that never was");
    }

    #[test]
    fn what_belongs_elsewhere_or_to_an_earlier_run_is_not_accepted() {
        let author = author();
        assert_eq!(author.judge(3, &unit(&author, 4, 12), &KNOWN), Finding::Misplaced);
        let earlier = Author { run: 6, ..author };
        assert_eq!(author.judge(3, &unit(&earlier, 3, 12), &KNOWN), Finding::Lost);
        let nothing = Known { floor: 0, acknowledged: 0, later: &[] };
        assert_eq!(author.judge(3, &unit(&earlier, 3, 12), &nothing), Finding::Untouched);
        let unflushed = Known { floor: 0, acknowledged: 2, later: &[2] };
        assert_eq!(author.judge(3, &unit(&earlier, 3, 12), &unflushed), Finding::UnflushedLost);
        assert_eq!(author.judge(3, &[0; 4096], &unflushed), Finding::UnflushedLost);
        assert_eq!(author.judge(3, &[0; 4096], &KNOWN), Finding::Corrupt);
    }

    proptest! {
        /// Sectors of writes that may be there are a torn write; any other byte is corruption.
        #[test]
        fn torn_is_distinguished_from_corrupt(sources in proptest::collection::vec(10u64..14, 8), at in 0usize..4080, bit in 0u32..8) {
            let author = author();
            let mut bytes = vec![0; 4096];
            for (sector, write) in sources.iter().enumerate() {
                let whole = unit(&author, 3, *write);
                let range = sector * 512..(sector + 1) * 512;
                bytes[range.clone()].copy_from_slice(&whole[range]);
            }
            let finding = author.judge(3, &bytes, &KNOWN);
            prop_assert!(!finding.is_violation(), "{:?}", finding);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(author.judge(3, &bytes, &KNOWN), Finding::Corrupt);
            // When nothing was in flight, nothing may be torn.
            let settled = Known { floor: 12, acknowledged: 12, later: &[] };
            prop_assert!(author.judge(3, &bytes, &settled).is_violation());
        }
    }
}
