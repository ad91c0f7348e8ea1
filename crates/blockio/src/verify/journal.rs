//! The journal: what was begun, acknowledged and flushed, in a file that is not on the target.
//!
//! A page of text says what the run wrote; then come records of 32 bytes, appended. A record of a write that was begun
//! is in the file before the write is handed to the kernel; a flush covers the acknowledgements that are before
//! its begin. The file therefore never contains more than what happened: a lost tail only makes the
//! check weaker. The file outlives the generator as it is; to outlive a power cut of its own host it is opened
//! with `O_DSYNC`, which costs a durable write per batch of requests.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use underlay_core::{Bytes, RootSeed};
use underlay_workload::block::ContentSpec;

const HEADER_BYTES: usize = 4096;
const RECORD_BYTES: usize = 32;
const TITLE: &str = "underlay io journal 1";

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A write is about to be handed over.
    Begun = 1,
    /// It was acknowledged.
    Acknowledged = 2,
    /// It was acknowledged, and went through the caches.
    Durable = 3,
    /// A flush is about to be handed over.
    FlushBegun = 4,
    /// It was acknowledged.
    Flushed = 5,
}

impl Mark {
    const ALL: [Mark; 5] =
        [Mark::Begun, Mark::Acknowledged, Mark::Durable, Mark::FlushBegun, Mark::Flushed];
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) mark: Mark,
    pub(crate) target: u32,
    /// Number of the write or flush.
    pub(crate) number: u64,
    pub(crate) first_unit: u64,
    pub(crate) units: u32,
}

/// The record's bytes.
pub(super) fn record(mark: Mark, target: u32, number: u64, first: u64, units: u32) -> [u8; 32] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[0] = mark as u8;
    bytes[4..8].copy_from_slice(&units.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..24].copy_from_slice(&first.to_le_bytes());
    bytes[24..28].copy_from_slice(&target.to_le_bytes());
    let sum = crc32c::crc32c(&bytes[..28]);
    bytes[28..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn parse(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    if half(28) != crc32c::crc32c(&bytes[..28]) {
        return None;
    }
    let mark = Mark::ALL.into_iter().find(|mark| *mark as u8 == bytes[0])?;
    Some(Record { mark, target: half(24), number: word(8), first_unit: word(16), units: half(4) })
}

/// A target, as the journal describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalTarget {
    /// Where it was.
    pub path: PathBuf,
    /// Bytes followed, from its beginning.
    pub working_set: Bytes,
}

/// What a run wrote, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Identity of the run.
    pub run: u64,
    /// Of the content.
    pub seed: RootSeed,
    /// What the content is like.
    pub content: ContentSpec,
    /// Bytes with a mark of their own.
    pub unit_bytes: u32,
    /// By number.
    pub targets: Vec<JournalTarget>,
}

/// Why a journal could not be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A system call failed.
    #[error("could not {action} the journal {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Not a journal, or a later one's.
    #[error("{} is not a journal that this version of `underlay io` wrote", path.display())]
    NotAJournal {
        /// Where.
        path: PathBuf,
    },
    /// More than fits the first page.
    #[error("the names of {targets} targets are too long for a journal; use fewer or shorter ones")]
    TooManyTargets {
        /// How many.
        targets: usize,
    },
}

/// A journal being written. Clones write to the same file.
#[derive(Clone, Debug)]
pub struct Journal {
    file: Arc<File>,
    path: PathBuf,
}

impl Journal {
    /// Creates the file, which must not exist. `durable`: it must survive a power cut of this host.
    ///
    /// # Errors
    /// When it exists or cannot be written.
    pub fn create(path: &Path, header: &Header, durable: bool) -> Result<Journal, JournalError> {
        let failed =
            |action| move |source| JournalError::File { action, path: path.to_path_buf(), source };
        let text = header_text(header);
        if text.len() > HEADER_BYTES {
            return Err(JournalError::TooManyTargets { targets: header.targets.len() });
        }
        let flags = if durable { libc::O_DSYNC } else { 0 };
        // Appends do not overtake each other, so a record is never in the middle of another.
        let file = OpenOptions::new().append(true).create_new(true).custom_flags(flags).open(path);
        let mut file = file.map_err(failed("create"))?;
        let mut page = text.into_bytes();
        page.resize(HEADER_BYTES, b'\n');
        file.write_all(&page).map_err(failed("write"))?;
        Ok(Journal { file: Arc::new(file), path: path.to_path_buf() })
    }

    /// Appends records.
    pub(crate) fn append(&self, records: &[u8]) -> Result<(), JournalError> {
        (&*self.file).write_all(records).map_err(|source| JournalError::File {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }
}

fn header_text(header: &Header) -> String {
    let mut text = format!(
        "{TITLE}\nrun {:016x}\nseed {}\ncompress-ratio {}\nduplicate-share {}\nunit-bytes {}\n",
        header.run,
        header.seed.0,
        header.content.compress_ratio,
        header.content.duplicate_share,
        header.unit_bytes
    );
    for target in &header.targets {
        writeln!(text, "target {} {}", target.working_set.0, target.path.display())
            .expect("writing to a String cannot fail");
    }
    text
}

/// Reads a journal: its header, and the records up to the first incomplete one.
///
/// # Errors
/// When it cannot be read or is not a journal.
pub fn read_journal(path: &Path) -> Result<(Header, JournalRecords), JournalError> {
    let failed = |source| JournalError::File { action: "read", path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(failed)?;
    let mut page = vec![0; HEADER_BYTES];
    let strange = || JournalError::NotAJournal { path: path.to_path_buf() };
    file.read_exact(&mut page).map_err(|_| strange())?;
    let header = parse_header(&page).ok_or_else(strange)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let records =
        bytes.as_chunks::<RECORD_BYTES>().0.iter().map_while(parse).collect::<Vec<Record>>();
    Ok((header, JournalRecords(records)))
}

/// What happened, in order.
#[derive(Debug)]
pub struct JournalRecords(pub(super) Vec<Record>);

impl JournalRecords {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

fn parse_header(page: &[u8]) -> Option<Header> {
    let text = std::str::from_utf8(page).ok()?;
    let mut lines = text.lines();
    if lines.next()? != TITLE {
        return None;
    }
    let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
    let run = u64::from_str_radix(value("run")?, 16).ok()?;
    let seed = RootSeed(value("seed")?.parse().ok()?);
    let compress_ratio = value("compress-ratio")?.parse().ok()?;
    let duplicate_share = value("duplicate-share")?.parse().ok()?;
    let unit_bytes = value("unit-bytes")?.parse().ok()?;
    let target = |line: &str| {
        let (bytes, path) = line.strip_prefix("target ")?.split_once(' ')?;
        Some(JournalTarget { path: path.into(), working_set: Bytes(bytes.parse().ok()?) })
    };
    let targets = lines.filter(|line| !line.is_empty()).map(target).collect::<Option<Vec<_>>>()?;
    let content = ContentSpec { compress_ratio, duplicate_share };
    let sound = !targets.is_empty() && (512..=4096).contains(&unit_bytes);
    sound.then_some(Header { run, seed, content, unit_bytes, targets })
}

#[cfg(test)]
mod tests {
    use super::{Header, Journal, JournalTarget, Mark, Record, read_journal, record};
    use std::fs;
    use underlay_core::{Bytes, RootSeed};
    use underlay_workload::block::ContentSpec;

    #[test]
    fn a_journal_comes_back_up_to_its_torn_tail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let header = Header {
            run: 0xABCD,
            seed: RootSeed(9),
            content: ContentSpec { compress_ratio: 2.5, duplicate_share: 0.0 },
            unit_bytes: 4096,
            targets: vec![JournalTarget {
                path: "/dev/a disk".into(),
                working_set: Bytes::from_mib(64),
            }],
        };
        let journal = Journal::create(&path, &header, false).unwrap();
        journal.append(&record(Mark::Begun, 0, 1, 5, 2)).unwrap();
        journal.append(&record(Mark::Acknowledged, 0, 1, 5, 2)).unwrap();
        journal.append(&record(Mark::FlushBegun, 0, 1, 0, 0)[..20]).unwrap();
        let (read, records) = read_journal(&path).unwrap();
        assert_eq!(read, header);
        let begun = Record { mark: Mark::Begun, target: 0, number: 1, first_unit: 5, units: 2 };
        assert_eq!(records.0, [begun, Record { mark: Mark::Acknowledged, ..begun }]);
        assert!(Journal::create(&path, &header, false).is_err(), "never overwritten");
        // A record whose bytes are wrong ends what is believed.
        let mut bytes = fs::read(&path).unwrap();
        bytes[4096 + 32 + 9] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(read_journal(&path).unwrap().1.count(), 1);
        fs::write(&path, [b'x'; 5000]).unwrap();
        assert!(read_journal(&path).is_err());
    }
}
