//! After a crash: what a target holds, against what the journal says it must.

use super::expectation::{Author, Finding, Known, Tolerance, Violation};
use super::journal::{Header, JournalRecords, Mark, Record};
use crate::buffer::Buffers;
use crate::error::BlockIoError;
use crate::target::Target;
use rustix::io::pread;
use std::collections::{BTreeMap, HashMap, VecDeque};
use underlay_workload::block::Content;

/// Violations that are kept in full.
const KEPT: usize = 20;
/// Read at once.
const CHUNK_BYTES: u32 = 1 << 20;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Units by what they hold.
    pub findings: BTreeMap<Finding, u64>,
    /// The first violations.
    pub violations: Vec<Violation>,
    /// Writes that were begun.
    pub writes_begun: u64,
    /// Writes that were acknowledged.
    pub writes_acknowledged: u64,
    /// Writes that were acknowledged and covered by a flush, or went through the caches.
    pub writes_durable: u64,
}

impl RecoveryReport {
    /// Units that hold something else than they may.
    pub fn violation_count(&self) -> u64 {
        let violations = self.findings.iter().filter(|(finding, _)| finding.is_violation());
        violations.map(|(_, count)| count).sum()
    }

    /// Units with a finding.
    pub fn count(&self, finding: Finding) -> u64 {
        self.findings.get(&finding).copied().unwrap_or(0)
    }
}

/// Compares target number `number` of a journal with what it must hold.
///
/// # Errors
/// When the target cannot be read.
pub fn check_target(
    target: &Target,
    number: u32,
    header: &Header,
    records: &JournalRecords,
    tolerance: Tolerance,
    stop: &mut dyn FnMut() -> bool,
) -> Result<RecoveryReport, BlockIoError> {
    let unit_bytes = header.unit_bytes as usize;
    let length = header.targets[number as usize].working_set.0.min(target.size().0);
    let units = (length / unit_bytes as u64) as usize;
    let history = History::read(records, number, units);
    let content = Content::new(header.content, header.seed).expect("the run had checked it");
    let author = Author { run: header.run, target: number, unit_bytes, content };
    let mut report = RecoveryReport {
        writes_begun: history.begun,
        writes_acknowledged: history.acknowledged_count,
        writes_durable: history.durable_count,
        ..RecoveryReport::default()
    };
    read_through(target, (units * unit_bytes) as u64, stop, &mut |offset, bytes| {
        for (unit, bytes) in (offset / unit_bytes as u64..).zip(bytes.chunks_exact(unit_bytes)) {
            let (floor, later) = history.known(unit, tolerance);
            let acknowledged = history.acknowledged[unit as usize];
            let known = Known { floor, acknowledged, later: &later };
            let finding = author.judge(unit, bytes, &known);
            *report.findings.entry(finding).or_default() += 1;
            if finding.is_violation() && report.violations.len() < KEPT {
                report.violations.push(Violation {
                    target: number,
                    offset_bytes: unit * unit_bytes as u64,
                    finding,
                    expected_write: floor,
                });
            }
        }
    })?;
    Ok(report)
}

/// Reads the first `length` bytes of a target in large pieces.
pub(super) fn read_through(
    target: &Target,
    length: u64,
    stop: &mut dyn FnMut() -> bool,
    seen: &mut dyn FnMut(u64, &[u8]),
) -> Result<(), BlockIoError> {
    let mut random = underlay_core::RootSeed(0).stream("verify", 0);
    let mut buffers = Buffers::new(1, CHUNK_BYTES, &mut random)?;
    let path = || target.path().to_path_buf();
    let mut offset = 0;
    while offset < length {
        if stop() {
            return Err(BlockIoError::Interrupted);
        }
        let asked = (length - offset).min(u64::from(CHUNK_BYTES)) as u32;
        let bytes = buffers.bytes(0, asked);
        let moved = pread(target.file(), &mut *bytes, offset).map_err(|error| {
            BlockIoError::Target { action: "read", path: path(), source: error.into() }
        })?;
        if moved < asked as usize {
            return Err(BlockIoError::Short { path: path(), offset, asked, moved: moved as u32 });
        }
        seen(offset, bytes);
        offset += u64::from(asked);
    }
    Ok(())
}

/// What the journal says, per unit.
struct History {
    acknowledged: Vec<u64>,
    durable: Vec<u64>,
    /// Writes begun after the last durable one, ascending.
    begun_later: HashMap<u64, Vec<u64>>,
    begun: u64,
    acknowledged_count: u64,
    durable_count: u64,
}

impl History {
    fn read(records: &JournalRecords, target: u32, units: usize) -> History {
        let mut history = History {
            acknowledged: vec![0; units],
            durable: vec![0; units],
            begun_later: HashMap::new(),
            begun: 0,
            acknowledged_count: 0,
            durable_count: 0,
        };
        // Acknowledged, not yet covered: with the place in the journal.
        let mut waiting: VecDeque<(usize, Record)> = VecDeque::new();
        let mut flushes: HashMap<u64, usize> = HashMap::new();
        let of_target = records.0.iter().enumerate().filter(|(_, record)| record.target == target);
        for (place, record) in of_target {
            match record.mark {
                Mark::Begun => history.begin(record),
                Mark::Acknowledged => {
                    history.acknowledge(record);
                    waiting.push_back((place, *record));
                }
                Mark::Durable => {
                    history.acknowledge(record);
                    history.settle(record);
                }
                Mark::FlushBegun => {
                    flushes.insert(record.number, place);
                }
                Mark::Flushed => {
                    let Some(begun) = flushes.remove(&record.number) else { continue };
                    while waiting.front().is_some_and(|(place, _)| *place < begun) {
                        let (_, covered) = waiting.pop_front().expect("just seen");
                        history.settle(&covered);
                    }
                }
            }
        }
        history
    }

    fn units(&self, record: &Record) -> std::ops::Range<usize> {
        let end = record.first_unit + u64::from(record.units);
        record.first_unit as usize..(end as usize).min(self.durable.len())
    }

    fn begin(&mut self, record: &Record) {
        self.begun += 1;
        for unit in self.units(record) {
            self.begun_later.entry(unit as u64).or_default().push(record.number);
        }
    }

    fn acknowledge(&mut self, record: &Record) {
        self.acknowledged_count += 1;
        for unit in self.units(record) {
            self.acknowledged[unit] = self.acknowledged[unit].max(record.number);
        }
    }

    fn settle(&mut self, record: &Record) {
        self.durable_count += 1;
        for unit in self.units(record) {
            self.durable[unit] = self.durable[unit].max(record.number);
            let durable = self.durable[unit];
            if let Some(later) = self.begun_later.get_mut(&(unit as u64)) {
                later.retain(|write| *write > durable);
                if later.is_empty() {
                    self.begun_later.remove(&(unit as u64));
                }
            }
        }
    }

    /// The write that must be there, and those that may.
    fn known(&self, unit: u64, tolerance: Tolerance) -> (u64, Vec<u64>) {
        let floor = match tolerance {
            Tolerance::Acknowledged => self.acknowledged[unit as usize],
            Tolerance::Flushed => self.durable[unit as usize],
        };
        let later = self.begun_later.get(&unit).map_or(&[][..], Vec::as_slice);
        (floor, later.iter().copied().filter(|write| *write > floor).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::{JournalRecords, Mark, Record};
    use super::{History, Tolerance};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn record(mark: Mark, number: u64, first_unit: u64, units: u32) -> Record {
        Record { mark, target: 0, number, first_unit, units }
    }

    #[test]
    fn a_flush_covers_what_was_acknowledged_before_it_began() {
        let records = JournalRecords(vec![
            record(Mark::Begun, 1, 0, 2),
            record(Mark::Begun, 2, 2, 1),
            record(Mark::Acknowledged, 1, 0, 2),
            record(Mark::FlushBegun, 1, 0, 0),
            record(Mark::Acknowledged, 2, 2, 1),
            record(Mark::Flushed, 1, 0, 0),
            record(Mark::Begun, 3, 0, 1),
            record(Mark::FlushBegun, 2, 0, 0),
        ]);
        let history = History::read(&records, 0, 4);
        assert_eq!(history.known(0, Tolerance::Flushed), (1, vec![3]));
        assert_eq!(history.known(1, Tolerance::Flushed), (1, vec![]));
        assert_eq!(history.known(2, Tolerance::Flushed), (0, vec![2]));
        assert_eq!(history.known(2, Tolerance::Acknowledged), (2, vec![]));
        assert_eq!(history.known(3, Tolerance::Flushed), (0, vec![]));
        let counts = (history.begun, history.acknowledged_count, history.durable_count);
        assert_eq!(counts, (3, 2, 1));
    }

    proptest! {
        /// However short the journal is cut, it never promises more than the whole one.
        #[test]
        fn a_shorter_journal_promises_less(marks in proptest::collection::vec((1u8..6, 0u64..4), 0..60), cut in 0usize..60) {
            let mut write = 0;
            let mut open: Vec<(u64, u64)> = Vec::new();
            let mut flush = 0;
            let mut records = Vec::new();
            for (mark, unit) in marks {
                match mark {
                    1 => {
                        // Writes to a unit follow each other.
                        if open.iter().all(|(_, taken)| *taken != unit) {
                            write += 1;
                            open.push((write, unit));
                            records.push(record(Mark::Begun, write, unit, 1));
                        }
                    }
                    2 | 3 => if let Some((number, unit)) = open.pop() {
                        let mark = if mark == 2 { Mark::Acknowledged } else { Mark::Durable };
                        records.push(record(mark, number, unit, 1));
                    },
                    4 => { flush += 1; records.push(record(Mark::FlushBegun, flush, 0, 0)); }
                    _ => records.push(record(Mark::Flushed, flush, 0, 0)),
                }
            }
            let short = JournalRecords(records[..cut.min(records.len())].to_vec());
            let (whole, short) = (History::read(&JournalRecords(records), 0, 4), History::read(&short, 0, 4));
            for unit in 0..4 {
                for tolerance in [Tolerance::Acknowledged, Tolerance::Flushed] {
                    let (floor, later) = whole.known(unit, tolerance);
                    prop_assert!(short.known(unit, tolerance).0 <= floor);
                    prop_assert!(later.is_sorted() && later.iter().all(|write| *write > floor));
                }
                prop_assert!(whole.durable[unit as usize] <= whole.acknowledged[unit as usize]);
            }
            prop_assert_eq!(whole.begun, write);
        }
    }
}
