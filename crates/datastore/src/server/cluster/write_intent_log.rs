//! Records of what a command is about to store, in a file that outlives the server.
//!
//! ```text
//! <directory>/intents    magic, 8 bytes; length of the notes that count, 8 bytes (0: nothing is under way); the notes
//! a note                 kind, component: 4 bytes each; first byte, number of blocks: 8 bytes each; then a checksum of
//!                        4 bytes per block and zeros up to a multiple of 8, then the blocks, as the kind has them
//! ```
//!
//! The file is mapped: a note is a copy in memory, not a system call, and the page cache outlives a kill of the process. It
//! is not synchronised with the host's disk; it is as durable as the components, see `persistent`. Only one command is in
//! progress at any time, so there is one entry, which is overwritten each time.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::data_plane::{BLOCK_BYTES, Intent, IntentLog};
use rustix::fs::{FallocateFlags, fallocate};
use underlay_model::cluster::ComponentId;

use super::mapping::Mapping;
use crate::error::DatastoreError;

const NAME: &str = "intents";
const MAGIC: u64 = u64::from_le_bytes(*b"UL-INTE1");
/// Where the length of the notes is.
const LENGTH_AT: usize = 8;
const NOTES_AT: usize = 16;
const NOTE_HEAD: usize = 24;
const SUM_BYTES: usize = 4;

/// Kinds of notes: [`Intent::Store`], [`Intent::Sums`], [`Intent::Discard`].
const STORE: u32 = 1;
const SUMS: u32 = 2;
const DISCARD: u32 = 3;

/// Most components that one command changes: six members of a row, and for each the one that is to replace it.
const COMPONENTS_MAX: usize = 12;

/// The file, mapped.
pub(crate) struct WriteIntentLog {
    mapping: Mapping,
    capacity: usize,
    /// End of the notes of the command that is about to begin.
    end: usize,
    /// Whether one of them found no room: then none of them counts.
    is_full: bool,
}

impl std::fmt::Debug for WriteIntentLog {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("WriteIntentLog").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl WriteIntentLog {
    /// An empty one below a directory, large enough for any command on units of so many bytes.
    pub(crate) fn create(
        directory: &Path,
        unit_bytes: u64,
    ) -> Result<WriteIntentLog, DatastoreError> {
        let path = directory.join(NAME);
        let blocks = unit_bytes as usize / BLOCK_BYTES;
        let note = NOTE_HEAD + padded(blocks * SUM_BYTES) + unit_bytes as usize;
        WriteIntentLog::with_capacity(&path, NOTES_AT + COMPONENTS_MAX * note)
            .map_err(DatastoreError::file("create", &path))
    }

    fn with_capacity(path: &Path, capacity: usize) -> io::Result<WriteIntentLog> {
        let mut how = OpenOptions::new();
        // The file keeps its space: on a full disk, another program could take it otherwise.
        let file = how.read(true).write(true).create(true).truncate(false).open(path)?;
        file.set_len(capacity as u64)?;
        // All of it is there from the beginning: a page of a mapping that finds no room later would end the process.
        fallocate(&file, FallocateFlags::empty(), 0, capacity as u64)?;
        let mapping = Mapping::shared_writable(&file, capacity)?;
        let mut intents = WriteIntentLog { mapping, capacity, end: NOTES_AT, is_full: false };
        // The caller that opened the file has completed the entries that counted.
        intents.length().store(0, Ordering::Release);
        intents.put(0, &MAGIC.to_le_bytes());
        Ok(intents)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let target = self.mapping.at(at..at + bytes.len());
        // SAFETY: the range lies within the mapping, which is ours alone to write; a slice from elsewhere does not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }

    fn length(&self) -> &AtomicU64 {
        let place = self.mapping.at(LENGTH_AT..LENGTH_AT + 8);
        // SAFETY: eight bytes of the mapping, at a multiple of eight, that live as long as it does and are only reached so.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    /// Puts a note behind the others, if there is room.
    fn note(
        &mut self,
        kind: u32,
        component: ComponentId,
        offset: u64,
        blocks: usize,
        sums: &[u32],
        bytes: &[u8],
    ) {
        let sums_at = self.end + NOTE_HEAD;
        let bytes_at = sums_at + padded(sums.len() * SUM_BYTES);
        let end = bytes_at + bytes.len();
        self.is_full |= end > self.capacity;
        if self.is_full {
            return;
        }
        // What is read back after a crash finds its way by these lengths alone.
        debug_assert!(kind == DISCARD || sums.len() == blocks, "a checksum for every block");
        debug_assert!(
            kind != STORE || bytes.len() == blocks * BLOCK_BYTES,
            "bytes of whole blocks"
        );
        let mut head = [0; NOTE_HEAD];
        head[..4].copy_from_slice(&kind.to_le_bytes());
        head[4..8].copy_from_slice(&component.0.to_le_bytes());
        head[8..16].copy_from_slice(&offset.to_le_bytes());
        head[16..].copy_from_slice(&(blocks as u64).to_le_bytes());
        self.put(self.end, &head);
        for (index, sum) in sums.iter().enumerate() {
            self.put(sums_at + index * SUM_BYTES, &sum.to_le_bytes());
        }
        self.put(bytes_at, bytes);
        self.end = end;
    }
}

impl IntentLog for WriteIntentLog {
    fn store(&mut self, component: ComponentId, offset_bytes: u64, bytes: &[u8], sums: &[u32]) {
        self.note(STORE, component, offset_bytes, sums.len(), sums, bytes);
    }

    fn sums(&mut self, component: ComponentId, offset_bytes: u64, sums: &[u32]) {
        self.note(SUMS, component, offset_bytes, sums.len(), sums, &[]);
    }

    fn discard(&mut self, component: ComponentId, offset_bytes: u64, length_bytes: u64) {
        let blocks = length_bytes as usize / BLOCK_BYTES;
        self.note(DISCARD, component, offset_bytes, blocks, &[], &[]);
    }

    fn begin(&mut self) {
        if self.is_full {
            tracing::error!("a command's intents need more than {} bytes", self.capacity);
        } else {
            debug_assert!((NOTES_AT..=self.capacity).contains(&self.end), "notes outside the file");
            // The entries are written before their length; no other process reads them while this
            // one lives.
            self.length().store((self.end - NOTES_AT) as u64, Ordering::Release);
        }
    }

    fn end(&mut self) {
        // What has happened comes before.
        self.length().store(0, Ordering::Release);
        self.end = NOTES_AT;
        self.is_full = false;
    }
}

/// Bytes up to the next multiple of eight.
fn padded(length: usize) -> usize {
    length.next_multiple_of(8)
}

/// What a server that was killed had begun and not ended; nothing where there is no file.
pub(crate) fn begun(directory: &Path) -> Result<Vec<Intent>, DatastoreError> {
    let path = directory.join(NAME);
    let read = match fs::read(&path) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DatastoreError::file("read", &path)(error)),
    };
    parse(&read).ok_or_else(|| malformed(path))
}

fn malformed(path: PathBuf) -> DatastoreError {
    let reason = "this is not a write-intent log".to_string();
    DatastoreError::BadMemory { path, reason }
}

/// Takes bytes from the front.
fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?))
}

fn parse(file: &[u8]) -> Option<Vec<Intent>> {
    if file.is_empty() {
        // Killed before it had its length.
        return Some(Vec::new());
    }
    let mut rest = file;
    let magic = take_u64(&mut rest)?;
    let length = take_u64(&mut rest)?;
    if magic == 0 && length == 0 {
        // Killed before there was a first word in it.
        return Some(Vec::new());
    }
    if magic != MAGIC {
        return None;
    }
    let mut rest = take(&mut rest, usize::try_from(length).ok()?)?;
    let mut intents = Vec::new();
    while !rest.is_empty() {
        intents.push(take_note(&mut rest)?);
    }
    Some(intents)
}

fn take_note(rest: &mut &[u8]) -> Option<Intent> {
    let kind = take_u32(rest)?;
    let component = ComponentId(take_u32(rest)?);
    let offset_bytes = take_u64(rest)?;
    let blocks = usize::try_from(take_u64(rest)?).ok()?;
    if kind == DISCARD {
        let length_bytes = (blocks as u64).checked_mul(BLOCK_BYTES as u64)?;
        return Some(Intent::Discard { component, offset_bytes, length_bytes });
    }
    let sums_bytes = blocks.checked_mul(SUM_BYTES)?;
    let encoded = take(rest, sums_bytes.checked_next_multiple_of(8)?)?;
    let (words, _) = encoded[..sums_bytes].as_chunks::<SUM_BYTES>();
    let sums: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    match kind {
        STORE => {
            let bytes = take(rest, blocks.checked_mul(BLOCK_BYTES)?)?.to_vec();
            Some(Intent::Store { component, offset_bytes, bytes, sums })
        }
        SUMS => Some(Intent::Sums { component, offset_bytes, sums }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

    use super::{
        BLOCK_BYTES, ComponentId, Intent, IntentLog, NAME, NOTES_AT, WriteIntentLog, begun, parse,
    };

    fn note(file: &mut WriteIntentLog, intent: &Intent) {
        match intent {
            Intent::Store { component, offset_bytes, bytes, sums } => {
                file.store(*component, *offset_bytes, bytes, sums);
            }
            Intent::Sums { component, offset_bytes, sums } => {
                file.sums(*component, *offset_bytes, sums);
            }
            Intent::Discard { component, offset_bytes, length_bytes } => {
                file.discard(*component, *offset_bytes, *length_bytes);
            }
        }
    }

    fn intents() -> impl Strategy<Value = Vec<Intent>> {
        let place = || (any::<u32>().prop_map(ComponentId), any::<u64>());
        let sums = || proptest::collection::vec(any::<u32>(), 0..4);
        let one = prop_oneof![
            (place(), sums(), any::<u8>()).prop_map(|((component, offset_bytes), sums, fill)| {
                let bytes = vec![fill; sums.len() * BLOCK_BYTES];
                Intent::Store { component, offset_bytes, bytes, sums }
            }),
            (place(), sums()).prop_map(|((component, offset_bytes), sums)| {
                Intent::Sums { component, offset_bytes, sums }
            }),
            (place(), 0..1_000u64).prop_map(|((component, offset_bytes), blocks)| {
                let length_bytes = blocks * BLOCK_BYTES as u64;
                Intent::Discard { component, offset_bytes, length_bytes }
            }),
        ];
        prop_oneof![Just(Vec::new()), proptest::collection::vec(one, 1..6)]
    }

    proptest! {
        /// What has begun is found by whoever looks while the writer is still there, as after a kill; what has ended is not, and
        /// earlier notes never shine through.
        #[test]
        fn what_was_begun_is_found(commands in proptest::collection::vec(intents(), 1..4)) {
            let directory = tempfile::tempdir().unwrap();
            let mut file = WriteIntentLog::create(directory.path(), 64 << 10).unwrap();
            for command in &commands {
                for intent in command {
                    note(&mut file, intent);
                    prop_assert_eq!(begun(directory.path()).unwrap(), []);
                }
                file.begin();
                prop_assert_eq!(&begun(directory.path()).unwrap(), command);
                file.end();
                prop_assert_eq!(begun(directory.path()).unwrap(), []);
            }
        }

        /// Whatever is in the file, it is read or refused.
        #[test]
        fn anything_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0..400usize) {
            let _whatever_it_is = parse(&bytes);
            let directory = tempfile::tempdir().unwrap();
            let mut file = WriteIntentLog::create(directory.path(), 64 << 10).unwrap();
            file.sums(ComponentId(1), 0, &[1, 2, 3]);
            file.discard(ComponentId(1), 0, 4096);
            file.begin();
            let whole = std::fs::read(directory.path().join(NAME)).unwrap();
            let end = NOTES_AT + 24 + 16 + 24;
            prop_assert_eq!(parse(&whole[..cut]).is_some(), cut == 0 || cut >= end);
            let mut changed = whole[..end].to_vec();
            for (byte, with) in changed.iter_mut().zip(&bytes) {
                *byte ^= with;
            }
            let _whatever_it_is = parse(&changed);
        }
    }

    #[test]
    fn notes_that_find_no_room_do_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = WriteIntentLog::with_capacity(&directory.path().join(NAME), 4_200).unwrap();
        let block = vec![1; BLOCK_BYTES];
        file.store(ComponentId(1), 0, &block, &[1]);
        file.store(ComponentId(2), 0, &block, &[1]);
        file.begin();
        assert_eq!(begun(directory.path()).unwrap(), []);
        file.end();
        file.store(ComponentId(2), 0, &block, &[1]);
        file.begin();
        assert_eq!(begun(directory.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_is_not_there_is_empty_and_another_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(begun(directory.path()).unwrap(), []);
        std::fs::write(directory.path().join(NAME), b"something else, of enough bytes").unwrap();
        let refused = begun(directory.path()).unwrap_err().to_string();
        assert!(refused.contains(NAME), "{refused}");
    }
}
