//! The data plane of one volume: a sparse backing file, and what a power cut could take away from it.
//!
//! Bytes move at once, whatever the model says about time. The backing file is used through the page cache and
//! never synchronised: it survives the death of the server, not of the host, because an emulated
//! device is only as durable as the run it belongs to.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rand_pcg::Pcg64;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

use super::undo_log::{BLOCK_BYTES, Generation, PowerCut, UndoLog};
use crate::error::DatastoreError;
use crate::server::sparse::next_data;
use underlay_export::{Extent, Zeroing};

/// One volume's bytes.
#[derive(Debug)]
pub(crate) struct VolumeData {
    file: File,
    capacity_bytes: u64,
    /// Present when acknowledged writes can be lost.
    undo: Option<UndoLog>,
}

impl VolumeData {
    /// Opens or creates the backing file. `volatile_bytes` = how much a power cut can take away.
    pub(crate) fn open(
        backing_file: &Path,
        capacity_bytes: u64,
        volatile_bytes: u64,
    ) -> Result<VolumeData, DatastoreError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(backing_file)
            .map_err(DatastoreError::file("open", backing_file))?;
        file.set_len(capacity_bytes).map_err(DatastoreError::file("extend", backing_file))?;
        Ok(VolumeData {
            file,
            capacity_bytes,
            undo: (volatile_bytes > 0).then(|| UndoLog::new(volatile_bytes)),
        })
    }

    pub(crate) fn read(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.check_range(offset_bytes, buffer.len() as u64);
        self.file.read_exact_at(buffer, offset_bytes)
    }

    /// Where a range holds data, as exact as the file system's knowledge of holes.
    pub(crate) fn extents(&self, offset_bytes: u64, length_bytes: u32) -> io::Result<Vec<Extent>> {
        let end = offset_bytes + u64::from(length_bytes);
        let mut extents = Vec::new();
        let mut at = offset_bytes;
        while at < end {
            let data = next_data(&self.file, at)?.unwrap_or(end).min(end);
            let holds_data = data == at;
            let until =
                if holds_data { seek(&self.file, SeekFrom::Hole(at))?.min(end) } else { data };
            extents.push(Extent { length_bytes: (until - at) as u32, holds_data });
            debug_assert!(until > at, "every extent holds something");
            at = until;
        }
        Ok(extents)
    }

    /// Front ends refuse what lies outside, so that the file keeps its length.
    fn check_range(&self, offset_bytes: u64, length_bytes: u64) {
        debug_assert!(
            offset_bytes.checked_add(length_bytes).is_some_and(|end| end <= self.capacity_bytes),
            "{length_bytes} bytes at {offset_bytes} of a volume of {}",
            self.capacity_bytes
        );
    }

    pub(crate) fn write(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        self.check_range(offset_bytes, data.len() as u64);
        if let Some(undo) = &mut self.undo {
            let (file, capacity_bytes) = (&self.file, self.capacity_bytes);
            undo.before_write(offset_bytes, data.len() as u64, |block, old| {
                read_block(file, capacity_bytes, block, old)
            })?;
        }
        self.file.write_all_at(data, offset_bytes)
    }

    /// Frees a range, or keeps its space; it reads as zeros afterwards, durably.
    pub(crate) fn discard(
        &mut self,
        offset_bytes: u64,
        length_bytes: u64,
        zeroing: Zeroing,
    ) -> io::Result<()> {
        if length_bytes == 0 {
            return Ok(());
        }
        self.check_range(offset_bytes, length_bytes);
        match zeroing {
            Zeroing::FreesSpace => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                fallocate(&self.file, flags, offset_bytes, length_bytes)?;
            }
            Zeroing::KeepsSpace => self.write_zeros(offset_bytes, length_bytes)?,
        }
        if let Some(undo) = &mut self.undo {
            undo.forget(offset_bytes, length_bytes);
        }
        Ok(())
    }

    /// Not every file system can zero a range and keep its space, so zeros are written where it cannot.
    fn write_zeros(&self, offset_bytes: u64, length_bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, flags, offset_bytes, length_bytes) {
            Err(Errno::OPNOTSUPP) => {}
            outcome => return Ok(outcome?),
        }
        let zeros = [0; 64 << 10];
        let end = offset_bytes + length_bytes;
        let mut at = offset_bytes;
        while at < end {
            let length = (end - at).min(zeros.len() as u64);
            self.file.write_all_at(&zeros[..length as usize], at)?;
            at += length;
        }
        Ok(())
    }

    /// What was written to the range is durable from now on.
    pub(crate) fn persist(&mut self, offset_bytes: u64, length_bytes: u64) {
        if let Some(undo) = &mut self.undo {
            undo.forget(offset_bytes, length_bytes);
        }
    }

    /// A flush arrives. Returns what to declare durable when it completes.
    pub(crate) fn flush_arrives(&mut self) -> Option<Generation> {
        self.undo.as_mut().map(UndoLog::seal)
    }

    /// A flush is about to be answered.
    pub(crate) fn flush_completes(&mut self, generation: Generation) {
        if let Some(undo) = &mut self.undo {
            undo.durable(generation);
        }
    }

    /// Bytes that a power cut could take away now.
    pub(crate) fn volatile_bytes(&self) -> u64 {
        self.undo.as_ref().map_or(0, UndoLog::volatile_bytes)
    }

    /// Decides what a power cut leaves.
    pub(crate) fn power_cut(&mut self, random: &mut Pcg64) -> io::Result<PowerCut> {
        let Some(undo) = &mut self.undo else { return Ok(PowerCut::default()) };
        let (file, capacity_bytes) = (&self.file, self.capacity_bytes);
        undo.power_cut(
            random,
            |block, contents| read_block(file, capacity_bytes, block, contents),
            |block, contents| {
                let (offset, length) = block_range(capacity_bytes, block);
                file.write_all_at(&contents[..length], offset)
            },
        )
    }
}

fn read_block(
    file: &File,
    capacity_bytes: u64,
    block: u64,
    contents: &mut [u8; BLOCK_BYTES],
) -> io::Result<()> {
    let (offset, length) = block_range(capacity_bytes, block);
    file.read_exact_at(&mut contents[..length], offset)
}

/// The last block of a volume may be short.
fn block_range(capacity_bytes: u64, block: u64) -> (u64, usize) {
    let offset = block * BLOCK_BYTES as u64;
    debug_assert!(offset < capacity_bytes, "a block beyond the end of the volume");
    let length = (capacity_bytes - offset).min(BLOCK_BYTES as u64);
    (offset, length as usize)
}

#[cfg(test)]
mod tests {
    use super::{VolumeData, Zeroing};
    use underlay_core::RootSeed;

    fn volume(volatile_bytes: u64) -> (tempfile::TempDir, VolumeData) {
        let directory = tempfile::tempdir().unwrap();
        let volume =
            VolumeData::open(&directory.path().join("volume"), 10_000, volatile_bytes).unwrap();
        (directory, volume)
    }

    fn contents(volume: &VolumeData) -> Vec<u8> {
        let mut contents = vec![0; 10_000];
        volume.read(0, &mut contents).unwrap();
        contents
    }

    #[test]
    fn flushed_data_survives_even_in_a_short_last_block() {
        for seed in 0..20 {
            let (_directory, mut volume) = volume(1 << 20);
            volume.write(8_000, &[1; 2_000]).unwrap();
            let generation = volume.flush_arrives().unwrap();
            volume.flush_completes(generation);
            volume.write(0, &[2; 4_096]).unwrap();
            assert_eq!(volume.volatile_bytes(), 4_096);
            volume.power_cut(&mut RootSeed(seed).stream("power", 0)).unwrap();
            let contents = contents(&volume);
            assert_eq!(contents[8_000..], [1; 2_000]);
            assert!(contents[..4_096].iter().all(|byte| *byte == 0 || *byte == 2));
            assert_eq!(contents[4_096..8_000], [0; 3_904]);
        }
    }

    #[test]
    fn what_was_forced_survives() {
        for seed in 0..20 {
            let (_directory, mut volume) = volume(1 << 20);
            volume.write(0, &[1; 8_192]).unwrap();
            volume.persist(0, 4_096);
            assert_eq!(volume.volatile_bytes(), 4_096);
            volume.power_cut(&mut RootSeed(seed).stream("power", 0)).unwrap();
            assert_eq!(contents(&volume)[..4_096], [1; 4_096]);
        }
    }

    #[test]
    fn nothing_is_lost_when_nothing_is_volatile() {
        let (_directory, mut volume) = volume(0);
        volume.write(0, &[7; 10_000]).unwrap();
        let outcome = volume.power_cut(&mut RootSeed(1).stream("power", 0)).unwrap();
        assert_eq!(outcome, Default::default());
        assert_eq!(contents(&volume), [7; 10_000]);
    }

    /// Extents cover the range once, and holes are where nothing was written.
    #[test]
    fn holes_are_told_from_data() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("volume");
        let mut volume = VolumeData::open(&path, 1 << 20, 0).unwrap();
        volume.write(256 << 10, &[7; 128 << 10]).unwrap();
        let found: Vec<(u32, bool)> = volume
            .extents(4096, (1 << 20) - 4096)
            .unwrap()
            .iter()
            .map(|extent| (extent.length_bytes, extent.holds_data))
            .collect();
        assert_eq!(found, [(252 << 10, false), (128 << 10, true), (640 << 10, false)]);
        assert_eq!(volume.extents(300 << 10, 8192).unwrap().len(), 1);
        assert!(volume.extents(0, 0).unwrap().is_empty());
    }

    #[test]
    fn discarded_ranges_read_as_zeros() {
        let (_directory, mut volume) = volume(1 << 20);
        volume.write(0, &[7; 10_000]).unwrap();
        volume.discard(4_096, 4_096, Zeroing::FreesSpace).unwrap();
        assert_eq!(contents(&volume)[4_096..8_192], [0; 4_096]);
        volume.discard(1_000, 1_000, Zeroing::KeepsSpace).unwrap();
        assert_eq!(contents(&volume)[1_000..2_000], [0; 1_000]);
        assert_eq!(contents(&volume)[999], 7);
    }
}
