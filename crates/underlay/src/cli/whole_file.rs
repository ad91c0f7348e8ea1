//! Writing a file as a whole or not at all: a full disk leaves no empty report in place of an earlier one.

use crate::stop::Stop;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Lets `fill` write the file. It appears under its name when it is complete.
///
/// What is no plain file (a pipe, a device) is written to directly.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Stop> {
    let failed = |error| Stop::host(format!("could not write {}: {error}", path.display()));
    // What a link points to is replaced, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file()) {
        return File::create(&target).and_then(|file| filled(file, fill)).map_err(failed);
    }
    let unfinished = temporary_path(&target);
    let file = match File::create(&unfinished) {
        // The file may be written to, the folder may not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && target.is_file() => {
            return File::create(&target).and_then(|file| filled(file, fill)).map_err(failed);
        }
        opened => opened.map_err(failed)?,
    };
    let written = filled(file, fill).and_then(|()| fs::rename(&unfinished, &target));
    written.map_err(|error| {
        // It may not have come to exist.
        let _ = fs::remove_file(&unfinished);
        failed(error)
    })
}

fn filled(file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::new(file);
    fill(&mut writer)?;
    // Dropping it would ignore that the last bytes do not fit.
    writer.flush()
}

fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::write;
    use std::fs;
    use std::io;
    use std::path::Path;

    #[test]
    fn what_fails_leaves_the_earlier_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write(&path, |file| file.write_all(b"one")).unwrap();
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let error = write(&path, |file| file.write_all(b"tw").and(Err(full()))).unwrap_err();
        assert_eq!(error.code(), crate::exit_code::HOST);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        write(Path::new("/dev/null"), |file| file.write_all(b"x")).unwrap();
        assert!(write(Path::new("/dev/full"), |file| file.write_all(b"x")).is_err());
    }
}
