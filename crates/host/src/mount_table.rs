//! The mount table of this process, read from `/proc/self/mountinfo`.
//!
//! It never touches a mounted path, so it cannot hang on a file system whose server is dead.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::error::HostError;

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountEntry {
    /// The directory of the mounted file system that is seen at `target`.
    pub root: PathBuf,
    /// Where it is mounted.
    pub target: PathBuf,
    /// `ext4`, `cgroup2`, `fuse.x`, ...
    pub file_system: String,
    /// Options of the file system, comma separated.
    pub super_options: String,
}

/// The whole table, oldest mount first.
pub(crate) fn mounts() -> Result<Vec<MountEntry>, HostError> {
    let path = Path::new(MOUNTINFO);
    let bytes = fs::read(path).map_err(HostError::file("read", path))?;
    Ok(parse(&bytes))
}

/// The mount points at or below `path`, deepest last.
pub fn mounted_below(path: &Path) -> Result<Vec<PathBuf>, HostError> {
    Ok(mounts()?
        .into_iter()
        .map(|entry| entry.target)
        .filter(|target| target.starts_with(path))
        .collect())
}

fn parse(bytes: &[u8]) -> Vec<MountEntry> {
    bytes.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// proc(5): `id parent major:minor root target options [tags..] - type source super-options`.
fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let separator = fields.iter().skip(6).position(|field| *field == b"-")? + 6;
    let text =
        |index: usize| fields.get(index).map(|field| String::from_utf8_lossy(field).into_owned());
    Some(MountEntry {
        root: unescape(fields.get(3)?),
        target: unescape(fields.get(4)?),
        file_system: text(separator + 1)?,
        super_options: text(separator + 3)?,
    })
}

/// Blanks, tabs, newlines and backslashes are written as a backslash and three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{MountEntry, mounts, parse};

    #[test]
    fn reads_tags_and_escapes() {
        let text = b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            50 31 7:0 /sub /mnt/a\\040b\\134c rw,nosuid shared:1 master:2 - ext4 /dev/loop0 rw,x=1\n\
            broken line\n";
        assert_eq!(
            parse(text),
            [
                MountEntry {
                    root: PathBuf::from("/"),
                    target: PathBuf::from("/sys/fs/cgroup"),
                    file_system: "tmpfs".to_string(),
                    super_options: "rw,mode=755".to_string(),
                },
                MountEntry {
                    root: PathBuf::from("/sub"),
                    target: PathBuf::from("/mnt/a b\\c"),
                    file_system: "ext4".to_string(),
                    super_options: "rw,x=1".to_string(),
                },
            ]
        );
    }

    #[test]
    fn this_host_has_proc() {
        assert!(mounts().unwrap().iter().any(|entry| entry.target.as_os_str() == "/proc"));
    }
}
