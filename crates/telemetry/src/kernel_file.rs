//! A file of `/proc` or `/sys` that is kept open and read again at every tick.
//!
//! Keeping the descriptor saves the path walk (two thirds of the cost of a small file) and reading
//! at offset 0 makes the kernel produce a fresh text. The buffer is reused and only ever grows.

use crate::source::SampleError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// First size of the buffer; most files fit.
const BUFFER_BYTES: usize = 4096;
/// No text of the kernel that is read here is larger; a larger one is refused, not swallowed.
const LIMIT_BYTES: usize = 16 << 20;

/// An open file and the buffer for its text.
#[derive(Debug)]
pub(crate) struct KernelFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl KernelFile {
    /// Opens and reads once, because some files open but refuse to be read.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<KernelFile, SampleError> {
        let path = path.into();
        let file = File::open(&path).map_err(|source| read_error(&path, source))?;
        let mut opened = KernelFile { path, file, buffer: Vec::new() };
        opened.fill().map_err(|source| read_error(&opened.path, source))?;
        Ok(opened)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The present text. A file that vanished and came back (a recreated control group) is opened
    /// again.
    pub(crate) fn text(&mut self) -> Result<&str, SampleError> {
        let length = match self.fill() {
            Ok(length) => length,
            Err(_) => {
                self.file =
                    File::open(&self.path).map_err(|source| read_error(&self.path, source))?;
                self.fill().map_err(|source| read_error(&self.path, source))?
            }
        };
        std::str::from_utf8(&self.buffer[..length])
            .map_err(|error| parse_error(&self.path, error.to_string()))
    }

    fn fill(&mut self) -> io::Result<usize> {
        read_whole(&self.file, &mut self.buffer)
    }
}

/// Reads a file from its start into `buffer`, which grows as needed and keeps its size; returns the
/// number of bytes read.
pub(crate) fn read_whole(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            if length >= LIMIT_BYTES {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            buffer.resize((length * 2).max(BUFFER_BYTES), 0);
        }
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(0) => return Ok(length),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads a file whose text the kernel makes in one piece, as those of a single process: what one call
/// returns is all of it, and the second call that would say so is spared.
pub(crate) fn read_piece(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    if buffer.len() < BUFFER_BYTES {
        buffer.resize(BUFFER_BYTES, 0);
    }
    match file.read_at(buffer, 0) {
        Ok(length) if length < buffer.len() => Ok(length),
        Ok(_) => read_whole(file, buffer),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => read_whole(file, buffer),
        Err(error) => Err(error),
    }
}

/// A read that failed.
pub(crate) fn read_error(path: &Path, source: io::Error) -> SampleError {
    SampleError::Read { path: path.display().to_string(), source }
}

/// A text that is not understood.
pub(crate) fn parse_error(path: &Path, detail: impl Into<String>) -> SampleError {
    SampleError::Parse { path: path.display().to_string(), detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use super::{KernelFile, LIMIT_BYTES};
    use std::fs;

    #[test]
    fn reads_again_each_time_and_survives_replacement() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        fs::write(&path, "one").expect("written");
        let mut file = KernelFile::open(&path).expect("opened");
        assert_eq!(file.text().expect("read"), "one");
        fs::write(&path, "two and more").expect("written");
        assert_eq!(file.text().expect("read"), "two and more");
    }

    #[test]
    fn grows_for_long_texts_and_refuses_absurd_ones() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        fs::write(&path, "x".repeat(100_000)).expect("written");
        let mut file = KernelFile::open(&path).expect("opened");
        assert_eq!(file.text().expect("read").len(), 100_000);
        fs::write(&path, "x".repeat(LIMIT_BYTES + 1)).expect("written");
        assert!(file.text().is_err());
    }

    #[test]
    fn text_that_is_not_text_is_an_error_with_the_path() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("binary");
        fs::write(&path, [0xff, 0xfe]).expect("written");
        let error = KernelFile::open(&path).expect("opened").text().expect_err("not text");
        assert!(error.to_string().contains("binary"));
        assert!(KernelFile::open(folder.path().join("missing")).is_err());
    }
}
