//! Reading small files that a user names: studies, passwords, certificates.
//!
//! What is named may be anything: a device that never ends, a data file of many gigabytes. It is read up to a limit and then
//! refused, instead of filling the memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Studies, profiles and certificates are far smaller.
pub const SMALL_FILE_BYTES_MAX: u64 = 4 << 20;

/// The whole file.
///
/// # Errors
/// It cannot be read, or is larger than [`SMALL_FILE_BYTES_MAX`].
pub fn read_small_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SMALL_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SMALL_FILE_BYTES_MAX {
        let limit_mib = SMALL_FILE_BYTES_MAX >> 20;
        return Err(io::Error::other(format!("it is larger than {limit_mib} MiB")));
    }
    Ok(bytes)
}

/// The whole file, which must be text.
///
/// # Errors
/// Those of [`read_small_file`], and bytes that are no UTF-8.
pub fn read_small_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_small_file(path)?).map_err(|_| io::Error::other("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::{SMALL_FILE_BYTES_MAX, read_small_file, read_small_text};
    use std::path::Path;

    #[test]
    fn what_never_ends_is_refused() {
        let error = read_small_file(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 4 MiB");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![b'a'; SMALL_FILE_BYTES_MAX as usize]).unwrap();
        assert_eq!(read_small_text(file.path()).unwrap().len() as u64, SMALL_FILE_BYTES_MAX);
        std::fs::write(file.path(), [0xff, 0xfe]).unwrap();
        assert_eq!(read_small_text(file.path()).unwrap_err().to_string(), "it is not UTF-8");
    }
}
