//! What a block device holds already, by the marks that file systems, partition tables and volume managers leave.
//!
//! To refuse destroying something, not to identify it: a few bytes at fixed places, from the published on-disk
//! formats. An empty answer means that none of these signatures was found, not that there is no data.

use crate::error::BlockIoError;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A signature: its meaning, its offset, and its bytes.
struct MarkAt {
    what: &'static str,
    offset: u64,
    bytes: &'static [u8],
}

const fn mark(what: &'static str, offset: u64, bytes: &'static [u8]) -> MarkAt {
    MarkAt { what, offset, bytes }
}

const MARKS: [MarkAt; 26] = [
    mark("a GPT partition table", 512, b"EFI PART"),
    mark("a GPT partition table", 4096, b"EFI PART"),
    mark("a partition table or boot sector", 510, &[0x55, 0xAA]),
    mark("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xEF]),
    mark("an XFS file system", 0, b"XFSB"),
    mark("a Btrfs file system", 65_600, b"_BHRfS_M"),
    mark("an F2FS file system", 1024, &[0x10, 0x20, 0xF5, 0xF2]),
    mark("an NTFS file system", 3, b"NTFS    "),
    mark("an exFAT file system", 3, b"EXFAT   "),
    mark("an ISO 9660 file system", 32_769, b"CD001"),
    mark("a SquashFS file system", 0, b"hsqs"),
    mark("an EROFS file system", 1024, &[0xE2, 0xE1, 0xF5, 0xE0]),
    mark("a bcachefs or bcache device", 4120, &[0xC6, 0x85, 0x73, 0xF6]),
    mark("a LUKS container", 0, b"LUKS\xBA\xBE"),
    mark("an LVM physical volume", 0, b"LABELONE"),
    mark("an LVM physical volume", 512, b"LABELONE"),
    mark("an LVM physical volume", 1024, b"LABELONE"),
    mark("an LVM physical volume", 1536, b"LABELONE"),
    mark("a Linux RAID member", 0, &[0xFC, 0x4E, 0x2B, 0xA9]),
    mark("a Linux RAID member", 4096, &[0xFC, 0x4E, 0x2B, 0xA9]),
    mark("swap space", 4086, b"SWAPSPACE2"),
    mark("swap space", 65_526, b"SWAPSPACE2"),
    mark("a Ceph BlueStore device", 0, b"bluestore block device"),
    mark("a VMFS volume", 1_048_576, &[0x0D, 0xD0, 0x01, 0xC0]),
    mark("a ReiserFS file system", 65_588, b"ReIsEr"),
    mark("a JFS file system", 32_768, b"JFS1"),
];

/// Uberblocks of ZFS: one per KiB in the second half of its first label.
const ZFS_UBERBLOCKS: std::ops::Range<u64> = 128..256;
const ZFS_MAGIC: [u8; 8] = 0x00BA_B10C_u64.to_le_bytes();

/// What the device or file holds, in words, each once.
///
/// # Errors
/// When it cannot be opened or read.
pub fn signatures(path: &Path) -> Result<Vec<&'static str>, BlockIoError> {
    let failed =
        |action| move |source| BlockIoError::Target { action, path: path.to_path_buf(), source };
    let file = File::open(path).map_err(failed("open"))?;
    let mut found = Vec::new();
    // A short read is the end of the device: there is no signature.
    let at = |offset: u64, bytes: &[u8]| -> std::io::Result<bool> {
        let mut read = vec![0; bytes.len()];
        match file.read_exact_at(&mut read, offset) {
            Ok(()) => Ok(read == bytes),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    };
    for mark in &MARKS {
        if at(mark.offset, mark.bytes).map_err(failed("read"))? && !found.contains(&mark.what) {
            found.push(mark.what);
        }
    }
    for kib in ZFS_UBERBLOCKS {
        if at(kib * 1024, &ZFS_MAGIC).map_err(failed("read"))? {
            found.push("a ZFS pool member");
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{MARKS, signatures};
    use std::fs;
    use std::os::unix::fs::FileExt;

    #[test]
    fn each_mark_is_found_and_nothing_in_zeros() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device");
        fs::write(&path, vec![0; 2 << 20]).unwrap();
        assert_eq!(signatures(&path).unwrap(), Vec::<&str>::new());
        for mark in &MARKS {
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.write_all_at(mark.bytes, mark.offset).unwrap();
            assert!(signatures(&path).unwrap().contains(&mark.what), "{}", mark.what);
            file.write_all_at(&vec![0; mark.bytes.len()], mark.offset).unwrap();
        }
        fs::write(&path, [0; 100]).unwrap();
        assert!(signatures(&path).unwrap().is_empty(), "shorter than any mark");
    }

    #[test]
    fn a_real_file_system_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device");
        fs::write(&path, vec![0; 16 << 20]).unwrap();
        let made = std::process::Command::new("mkfs.ext4").arg("-q").arg(&path).status();
        if !made.is_ok_and(|status| status.success()) {
            underlay_host::skip!("no mkfs.ext4 here");
        }
        assert_eq!(signatures(&path).unwrap(), ["an ext2, ext3 or ext4 file system"]);
    }
}
