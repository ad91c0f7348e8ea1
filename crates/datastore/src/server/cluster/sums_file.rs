//! The checksums of a component: four bytes per block of 4 KiB, in a sparse file.
//!
//! Each block that is read or written needs its checksum, and a system call for four bytes costs half as much as one for
//! the block (0.4 and 0.5 us against 0.9, measured). So if the file is in memory (tmpfs, where emulated volumes usually
//! are) it is mapped, and a checksum is a word in it. A stored word is in the file immediately, visible to all readers, and
//! survives a kill of this process like a word stored by a system call.
//!
//! An error that a call would return is, in a mapping, a signal that ends the process. On tmpfs there is one such case: a
//! page that is touched for the first time, by a read too, takes memory and may find none. So a page of checksums (of 4 MiB
//! of data) is only reached through the mapping once it is known to be there; the first write to it is a call, which may
//! fail like any other. A page that does not exist reads as zeros without being accessed, and takes no memory. On other
//! file systems an existing page may still fail (a broken disk; a full one that never overwrites in place), so there only
//! calls are used.
//!
//! Only one thread uses it, and no other program writes the file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstatfs, seek};
use rustix::io::Errno;

use super::mapping::Mapping;

/// Bytes of a checksum.
pub(super) const SUM_BYTES: u64 = 4;
/// Checksums that are read or written by one call, without asking for memory: those of a request of 1 MiB.
pub(super) const SUMS_AT_ONCE: usize = 256;
/// What is known to be there or not: a page, or a part of one where pages are larger, which holds as well.
const PAGE_BYTES: u64 = 4096;
const SUMS_PER_PAGE: usize = (PAGE_BYTES / SUM_BYTES) as usize;
/// What `statfs` calls tmpfs.
const TMPFS: u64 = 0x0102_1994;

/// The checksums of one component.
pub(super) struct SumsFile {
    file: File,
    mapped: Option<Mapped>,
}

/// A file in memory, mapped.
struct Mapped {
    mapping: Mapping,
    pages: Vec<Page>,
}

/// What is known of a page of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Unknown,
    /// It is not there: zeros.
    Hole,
    /// It is there, and touching it asks for nothing.
    There,
}

impl std::fmt::Debug for SumsFile {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_mapped = self.mapped.is_some();
        to.debug_struct("SumsFile").field("is_mapped", &is_mapped).finish_non_exhaustive()
    }
}

impl SumsFile {
    /// A file that this process alone writes, of its final length.
    pub(super) fn of(file: File) -> SumsFile {
        // Not mapped, it works as well; that there are too many mappings is nothing to stop for.
        let mapped = Mapped::of(&file).ok().flatten();
        SumsFile { file, mapped }
    }

    /// A file that is only looked at.
    pub(super) fn to_look_at(file: File) -> SumsFile {
        SumsFile { file, mapped: None }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The checksums from number `first` on.
    pub(super) fn read(&mut self, first: u64, sums: &mut [u32]) -> io::Result<()> {
        let SumsFile { file, mapped } = self;
        let Some(mapped) = mapped else { return read_by_call(file, first, sums) };
        for (page, part) in parts(first, sums.len()) {
            let (first, sums) = (first + part.start as u64, &mut sums[part]);
            if mapped.is_there(file, page)? {
                mapped.read(first, sums);
            } else {
                sums.fill(0);
            }
        }
        Ok(())
    }

    /// Stores the checksums from number `first` on.
    pub(super) fn write(&mut self, first: u64, sums: &[u32]) -> io::Result<()> {
        let SumsFile { file, mapped } = self;
        let Some(mapped) = mapped else { return write_by_call(file, first, sums) };
        for (page, part) in parts(first, sums.len()) {
            let (first, sums) = (first + part.start as u64, &sums[part]);
            if mapped.is_there(file, page)? {
                mapped.write(first, sums);
            } else {
                write_by_call(file, first, sums)?;
                mapped.pages[page] = Page::There;
            }
        }
        Ok(())
    }

    /// Makes so many checksums 0.
    pub(super) fn discard(&mut self, first: u64, count: u64) -> io::Result<()> {
        if let Some(mapped) = &mut self.mapped {
            // Before, because a call that fails may have given back some of them.
            for (page, _) in parts(first, count as usize) {
                mapped.pages[page] = Page::Unknown;
            }
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&self.file, flags, first * SUM_BYTES, count * SUM_BYTES)?)
    }
}

impl Mapped {
    /// None where the file is not memory, or empty.
    fn of(file: &File) -> io::Result<Option<Mapped>> {
        let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if length == 0 || fstatfs(file)?.f_type as u64 != TMPFS {
            return Ok(None);
        }
        let pages = vec![Page::Unknown; length.div_ceil(PAGE_BYTES as usize)];
        Ok(Some(Mapped { mapping: Mapping::shared_writable(file, length)?, pages }))
    }

    /// Whether a page is there: asked once, and again after a discard.
    fn is_there(&mut self, file: &File, page: usize) -> io::Result<bool> {
        if self.pages[page] == Page::Unknown {
            let start = page as u64 * PAGE_BYTES;
            self.pages[page] = match seek(file, SeekFrom::Data(start)) {
                Ok(at) if at == start => Page::There,
                // There is nothing up to there, or up to the end.
                Ok(_) | Err(Errno::NXIO) => Page::Hole,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.pages[page] == Page::There)
    }

    /// Checksums within a page that is there.
    fn read(&self, first: u64, sums: &mut [u32]) {
        for (word, sum) in self.words(first, sums.len()).zip(sums) {
            // SAFETY: the word is one of the mapping's, aligned, and its page is there.
            *sum = u32::from_le(unsafe { word.read() });
        }
    }

    fn write(&mut self, first: u64, sums: &[u32]) {
        for (word, sum) in self.words(first, sums.len()).zip(sums) {
            // SAFETY: as above; the mapping may be written, and there is no reference into it.
            unsafe { word.write(sum.to_le()) };
        }
    }

    /// Where checksums lie. The mapping begins with a page, so that each of them is aligned.
    fn words(&self, first: u64, count: usize) -> impl Iterator<Item = *mut u32> + use<> {
        let start = first as usize * SUM_BYTES as usize;
        // Touching a page that is a hole would take space that a full disk may not have, and end the process.
        debug_assert!(
            first as usize % SUMS_PER_PAGE + count <= SUMS_PER_PAGE,
            "within a page that is there"
        );
        let words = self.mapping.at(start..start + count * SUM_BYTES as usize).cast::<u32>();
        (0..count).map(move |index| words.wrapping_add(index))
    }
}

/// The parts of a range of checksums by page: number of the page, and which of the range's.
fn parts(first: u64, count: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let first = first as usize;
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == count {
            return None;
        }
        let at = first + done;
        let part = done..count.min(done + SUMS_PER_PAGE - at % SUMS_PER_PAGE);
        done = part.end;
        debug_assert!(!part.is_empty() && at % SUMS_PER_PAGE + part.len() <= SUMS_PER_PAGE);
        Some((at / SUMS_PER_PAGE, part))
    })
}

fn read_by_call(file: &File, first: u64, sums: &mut [u32]) -> io::Result<()> {
    let mut encoded = [0; SUMS_AT_ONCE * SUM_BYTES as usize];
    let mut at = first;
    for part in sums.chunks_mut(SUMS_AT_ONCE) {
        file.read_exact_at(&mut encoded[..part.len() * SUM_BYTES as usize], at * SUM_BYTES)?;
        let (words, _) = encoded.as_chunks::<4>();
        for (sum, word) in part.iter_mut().zip(words) {
            *sum = u32::from_le_bytes(*word);
        }
        at += part.len() as u64;
    }
    Ok(())
}

fn write_by_call(file: &File, first: u64, sums: &[u32]) -> io::Result<()> {
    let mut encoded = [0; SUMS_AT_ONCE * SUM_BYTES as usize];
    let mut at = first;
    for part in sums.chunks(SUMS_AT_ONCE) {
        let (words, _) = encoded.as_chunks_mut::<4>();
        for (sum, word) in part.iter().zip(words) {
            *word = sum.to_le_bytes();
        }
        file.write_all_at(&encoded[..part.len() * SUM_BYTES as usize], at * SUM_BYTES)?;
        at += part.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::Path;

    use super::{Page, SUM_BYTES, SUMS_PER_PAGE, SumsFile};
    use crate::server::cluster::test_directory::{SmallDisk, in_memory};

    const PAGES: usize = 4;

    /// Checksums of four pages, of which nothing is there yet; and the file once more, as others see it.
    fn in_a_mapping(directory: &Path) -> (SumsFile, File) {
        let path = directory.join("sums");
        let mut how = File::options();
        let file = how.read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len((PAGES * SUMS_PER_PAGE) as u64 * SUM_BYTES).unwrap();
        (SumsFile::of(file), File::open(&path).unwrap())
    }

    fn pages(sums: &SumsFile) -> &[Page] {
        &sums.mapped.as_ref().expect("it is mapped").pages
    }

    fn seen(file: &File, number: usize) -> u32 {
        let mut word = [0; 4];
        file.read_exact_at(&mut word, number as u64 * SUM_BYTES).unwrap();
        u32::from_le_bytes(word)
    }

    fn taken(file: &File) -> u64 {
        file.metadata().unwrap().blocks() * 512
    }

    #[test]
    fn what_is_not_there_is_read_without_taking_memory() {
        let Some(directory) = in_memory() else { return };
        let (mut sums, file) = in_a_mapping(directory.path());
        let mut read = vec![1; PAGES * SUMS_PER_PAGE];
        sums.read(0, &mut read).unwrap();
        assert!(read.iter().all(|sum| *sum == 0));
        assert_eq!((pages(&sums), taken(&file)), (&[Page::Hole; PAGES][..], 0));
    }

    #[test]
    fn others_see_at_once_what_is_stored_by_a_call_and_through_the_mapping() {
        let Some(directory) = in_memory() else { return };
        let (mut sums, file) = in_a_mapping(directory.path());
        let last = SUMS_PER_PAGE - 1;
        sums.write(last as u64, &[5, 6]).unwrap();
        assert_eq!(pages(&sums)[..3], [Page::There, Page::There, Page::Unknown]);
        assert_eq!([seen(&file, last), seen(&file, last + 1)], [5, 6]);
        sums.write(last as u64, &[7, 8]).unwrap();
        assert_eq!([seen(&file, last), seen(&file, last + 1)], [7, 8]);
        let mut read = [0; 4];
        sums.read(last as u64 - 1, &mut read).unwrap();
        assert_eq!(read, [0, 7, 8, 0]);
        assert_eq!(taken(&file), 2 * 4096);
    }

    #[test]
    fn what_was_discarded_is_not_touched_through_the_mapping() {
        let Some(directory) = in_memory() else { return };
        let (mut sums, file) = in_a_mapping(directory.path());
        sums.write(0, &vec![9; 3 * SUMS_PER_PAGE]).unwrap();
        sums.discard(1, 2 * SUMS_PER_PAGE as u64).unwrap();
        assert_eq!(pages(&sums)[..3], [Page::Unknown; 3]);
        let mut read = vec![1; 3 * SUMS_PER_PAGE];
        sums.read(0, &mut read).unwrap();
        let kept = |number: usize| number == 0 || number > 2 * SUMS_PER_PAGE;
        assert!(
            read.iter().enumerate().all(|(number, sum)| *sum == if kept(number) { 9 } else { 0 })
        );
        assert_eq!(pages(&sums)[..3], [Page::There, Page::Hole, Page::There]);
        assert_eq!(
            taken(&file),
            2 * 4096,
            "the page between is given back, also after it was read"
        );
    }

    /// A page that finds no room is an error; touched through the mapping, it would end the process.
    #[test]
    fn a_full_file_system_is_an_error() {
        let Some(disk) = SmallDisk::mount("8k") else { return };
        let (mut sums, file) = in_a_mapping(disk.path());
        let page = |number: usize| (number * SUMS_PER_PAGE) as u64;
        sums.write(0, &[1]).unwrap();
        sums.write(page(1), &[2]).unwrap();
        let full = sums.write(page(2), &[3]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        let mut read = vec![9; PAGES * SUMS_PER_PAGE];
        sums.read(0, &mut read).unwrap();
        assert_eq!([0, 1, 2, 3].map(|number| read[page(number) as usize]), [1, 2, 0, 0]);
        // What is there can be stored in, and what is given back is room for others.
        sums.write(1, &[4]).unwrap();
        sums.discard(page(1), SUMS_PER_PAGE as u64).unwrap();
        sums.write(page(2), &[5]).unwrap();
        assert!(sums.write(page(1), &[6]).is_err());
        assert_eq!([0, 1, 1024, 2048].map(|number| seen(&file, number)), [1, 4, 0, 5]);
    }

    #[test]
    fn on_a_disk_everything_is_a_call() {
        let directory = tempfile::tempdir().unwrap();
        let (mut sums, file) = in_a_mapping(directory.path());
        if sums.mapped.is_some() {
            println!("skip: the temporary directory is memory");
            return;
        }
        sums.write(3, &[4, 5]).unwrap();
        sums.discard(4, 1).unwrap();
        assert_eq!([seen(&file, 3), seen(&file, 4)], [4, 0]);
    }
}
