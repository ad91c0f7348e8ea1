//! Which further segments a PostgreSQL server has: its control segment lists them.
//!
//! Segments come and go with parallel queries, and one holds the server's statistics (from version 15 on); the
//! postmaster itself maps none of them. The list is what PostgreSQL's own next start in the same data
//! directory would remove after a crash (`dsm_cleanup_using_control_segment`); a run that is over has no
//! next start.
//!
//! ```text
//! 0   magic     0x9a503d32
//! 4   items in use
//! 8   items that there is room for
//! 16  items of equal size (24 bytes in version 13, 40 since 14); each begins with the number in the
//!     segment's name and how many use it, 0 for a free item. Odd numbers since 14 have no segment of their own.
//! ```
//!
//! The control segment in turn is named in the server's System V segment (`PGShmemHeader`), with the data directory. Its
//! beginning on hosts of 64 bits:
//!
//! ```text
//! 0   magic     679834894
//! 4   number of the process that created it
//! 24  number in the name of the control segment, 0 before there is one
//! 40  device that the data directory is on
//! 48  inode number of the data directory
//! ```
//!
//! Source: `src/include/storage/pg_shmem.h`, `src/backend/storage/ipc/dsm.c` and `dsm_impl.c` of PostgreSQL 13 to 18.

use std::path::{Path, PathBuf};

const MAGIC: u32 = 0x9a50_3d32;
const HEADER_BYTES: usize = 16;
/// The smallest item known: two numbers.
const ITEM_BYTES_MIN: usize = 8;
const NAME_PREFIX: &str = "PostgreSQL.";

/// How much of a System V segment says which server it belongs to.
pub(crate) const SERVER_BYTES: usize = 56;
const SERVER_MAGIC: u32 = 679_834_894;

/// Which server a System V segment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerMemory {
    /// The process that created it.
    pub creator: u32,
    /// The number of its control segment.
    pub control: u32,
    /// The device of its data directory.
    pub device: u64,
    /// The inode number of its data directory.
    pub inode: u64,
}

/// What the beginning of a System V segment says, if a PostgreSQL server wrote it.
pub(crate) fn server(beginning: &[u8; SERVER_BYTES]) -> Option<ServerMemory> {
    let word = |at: usize| {
        let bytes = beginning.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let long = |at: usize| {
        let bytes = beginning.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    (word(0)? == SERVER_MAGIC).then_some(())?;
    Some(ServerMemory {
        creator: word(4)?,
        control: word(24)?,
        device: long(40)?,
        inode: long(48)?,
    })
}

/// What a server writes at the beginning of its System V segment before it has a control segment.
#[cfg(test)]
pub(crate) fn beginning(creator: u32, device: u64, inode: u64) -> [u8; SERVER_BYTES] {
    let mut bytes = [0; SERVER_BYTES];
    bytes[..4].copy_from_slice(&SERVER_MAGIC.to_ne_bytes());
    bytes[4..8].copy_from_slice(&creator.to_ne_bytes());
    bytes[40..48].copy_from_slice(&device.to_ne_bytes());
    bytes[48..].copy_from_slice(&inode.to_ne_bytes());
    bytes
}

/// The name of the POSIX segment of this number.
pub(crate) fn file_name(number: u32) -> String {
    format!("{NAME_PREFIX}{number}")
}

/// The paths of the segments listed in the file at `path`; none if it is not a control segment.
pub(crate) fn listed(path: &Path, contents: &[u8]) -> Vec<PathBuf> {
    let is_named_so =
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME_PREFIX));
    if !is_named_so {
        return Vec::new();
    }
    numbers(contents)
        .unwrap_or_default()
        .into_iter()
        .map(|number| path.with_file_name(file_name(number)))
        .collect()
}

fn numbers(contents: &[u8]) -> Option<Vec<u32>> {
    let word = |at: usize| {
        let bytes = contents.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    if word(0)? != MAGIC {
        return None;
    }
    let (used, room) = (word(4)? as usize, word(8)? as usize);
    let item_bytes = contents.len().checked_sub(HEADER_BYTES)?.checked_div(room)?;
    if used > room || item_bytes < ITEM_BYTES_MIN {
        return None;
    }
    let items = (0..used).map(|index| HEADER_BYTES + index * item_bytes);
    let in_use = items.filter(|at| word(at + 4).is_some_and(|users| users > 0));
    Some(in_use.filter_map(word).collect())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{HEADER_BYTES, MAGIC, listed};

    /// A control segment with room for 8 items, as a server of a version writes it.
    fn control(item_bytes: usize, items: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [MAGIC, items.len() as u32, 8, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        for (number, users) in items {
            let begin = bytes.len();
            bytes.extend(number.to_ne_bytes());
            bytes.extend(users.to_ne_bytes());
            bytes.resize(begin + item_bytes, 0xff);
        }
        bytes.resize(HEADER_BYTES + 8 * item_bytes, 0);
        bytes
    }

    #[test]
    fn reads_the_segments_in_use_of_all_versions() {
        let path = Path::new("/dev/shm/PostgreSQL.7");
        for item_bytes in [24, 40] {
            let bytes = control(item_bytes, &[(620_983_122, 4), (99, 0), (4_000_000_000, 1)]);
            let expected = ["PostgreSQL.620983122", "PostgreSQL.4000000000"]
                .map(|name| Path::new("/dev/shm").join(name));
            assert_eq!(listed(path, &bytes), expected);
        }
    }

    #[test]
    fn what_is_no_control_segment_lists_nothing() {
        let path = Path::new("/dev/shm/PostgreSQL.7");
        let good = control(40, &[(2, 1)]);
        assert_eq!(listed(Path::new("/dev/shm/other.7"), &good), Vec::<PathBuf>::new());
        for length in [0, 3, 12, 15, 16, 40] {
            assert_eq!(listed(path, &good[..length]), Vec::<PathBuf>::new(), "{length} bytes");
        }
        let mut wrong = good.clone();
        wrong[0] ^= 1;
        assert_eq!(listed(path, &wrong), Vec::<PathBuf>::new());
        let mut full = good;
        full[4..8].copy_from_slice(&9u32.to_ne_bytes());
        assert_eq!(
            listed(path, &full),
            Vec::<PathBuf>::new(),
            "more in use than there is room for"
        );
        assert_eq!(listed(path, &[0; 1 << 20]), Vec::<PathBuf>::new(), "a segment of data");
    }
}
