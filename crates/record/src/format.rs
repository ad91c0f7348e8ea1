//! The file: its identification, its format version, and how it is opened.
//!
//! A record is an SQLite database with `application_id` "UNDL" and `user_version` = format. A format
//! changes when a reader of the former one would misunderstand the file. Every program reads all
//! formats up to its own and refuses later ones.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::OpenError;

/// The format that this program writes, and the latest that it reads.
pub const FORMAT: i64 = 1;
// SQLite's default `user_version` of 0 must never pass for a format.
const _: () = assert!(FORMAT >= 1);

/// "UNDL".
const APPLICATION_ID: i64 = 0x554E_444C;

const SCHEMA: &str = include_str!("schema.sql");

/// Pages of the WAL after which SQLite copies it back: 4 MiB, small enough that the copy does not stall
/// a tick for long.
const CHECKPOINT_PAGES: u32 = 1024;

/// What follows the name of a record until it has its tables.
const UNNAMED: &str = ".creating";

/// How long to wait for a reader that holds the file for a moment.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates the file with its tables, its WAL and what `fill` writes first.
///
/// It gets its name when all of this is in it, so that a kill at any moment leaves a record or none. What a killed
/// creation left under the name before is removed; the caller holds the lock of the record.
pub(crate) fn create(
    path: &Path,
    fill: impl FnOnce(&Connection) -> Result<(), rusqlite::Error>,
) -> Result<Connection, OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_path_buf(), source };
    let directory = |source| OpenError::Directory { path: path.to_path_buf(), source };
    let unnamed = beside(path, UNNAMED);
    for left in [&unnamed, &beside(&unnamed, "-journal")] {
        match std::fs::remove_file(left) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(directory(error)),
            _ => {}
        }
    }
    let connection = Connection::open(&unnamed).map_err(sqlite)?;
    create_tables(&connection, fill).map_err(sqlite)?;
    connection.close().map_err(|(_, source)| sqlite(source))?;
    std::fs::rename(&unnamed, path).map_err(directory)?;
    open_to_write(path)
}

/// Creates a database that no other process sees and that is removed with its connection. It takes space in SQLite's
/// folder for temporary files.
pub(crate) fn create_temporary(
    fill: impl FnOnce(&Connection) -> Result<(), rusqlite::Error>,
) -> Result<Connection, rusqlite::Error> {
    // SQLite's name of a private database on disk.
    let connection = Connection::open("")?;
    create_tables(&connection, fill)?;
    prepare_for_writing(&connection)?;
    Ok(connection)
}

fn create_tables(
    connection: &Connection,
    fill: impl FnOnce(&Connection) -> Result<(), rusqlite::Error>,
) -> Result<(), rusqlite::Error> {
    // Page size and auto-vacuum can only be chosen before the first table.
    connection.execute_batch(
        "PRAGMA page_size = 4096;
         PRAGMA auto_vacuum = INCREMENTAL;",
    )?;
    let tables = format!(
        "BEGIN IMMEDIATE;
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {FORMAT};
         {SCHEMA}"
    );
    connection.execute_batch(&tables)?;
    fill(connection)?;
    connection.execute_batch("COMMIT")?;
    assert!(connection.is_autocommit(), "changing the journal mode needs no open transaction");
    Ok(())
}

/// A file beside another one, named after it.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Opens an existing file for writing.
pub(crate) fn open_to_write(path: &Path) -> Result<Connection, OpenError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    prepare_for_writing(&connection)
        .map_err(|source| OpenError::Sqlite { path: path.to_path_buf(), source })?;
    Ok(connection)
}

/// Opens an existing file for reading only, also while it is being written and from a read-only
/// directory.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn prepare_for_writing(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.busy_timeout(BUSY_TIMEOUT)
}

fn open(path: &Path, access: OpenFlags) -> Result<Connection, OpenError> {
    if !path.is_file() {
        return Err(OpenError::NotFound { path: path.to_path_buf() });
    }
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)
        .map_err(|source| OpenError::Sqlite { path: path.to_path_buf(), source })?;
    connection
        .busy_timeout(BUSY_TIMEOUT)
        .map_err(|source| OpenError::Sqlite { path: path.to_path_buf(), source })?;
    require_format(&connection, path)?;
    Ok(connection)
}

fn require_format(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let mark = |name| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0));
    let application: i64 = mark("application_id").map_err(|source| unreadable(path, source))?;
    if application != APPLICATION_ID {
        return Err(OpenError::NotARecord { path: path.to_path_buf() });
    }
    let found: i64 = mark("user_version").map_err(|source| unreadable(path, source))?;
    match found {
        1..=FORMAT => Ok(()),
        _ if found > FORMAT => {
            Err(OpenError::NewerFormat { path: path.to_path_buf(), found, supported: FORMAT })
        }
        _ => Err(OpenError::NotARecord { path: path.to_path_buf() }),
    }
}

fn unreadable(path: &Path, source: rusqlite::Error) -> OpenError {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => {
            OpenError::NotARecord { path: path.to_path_buf() }
        }
        _ => OpenError::Sqlite { path: path.to_path_buf(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::{UNNAMED, beside, create};

    #[test]
    fn a_file_has_its_name_when_it_is_a_record() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("record");
        // What a killed creation left.
        for ending in ["", "-journal"] {
            std::fs::write(beside(&beside(&path, UNNAMED), ending), "torn").expect("written");
        }
        let unnamed = |_: &rusqlite::Connection| {
            assert!(!path.exists(), "a name without a record");
            Ok(())
        };
        let connection = create(&path, unnamed).expect("created");
        let names = std::fs::read_dir(folder.path()).expect("a folder").map(|entry| {
            entry.expect("an entry").file_name().into_string().expect("a name of ours")
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        assert_eq!(names[0], "record");
        assert!(names.iter().all(|name| !name.contains(UNNAMED)), "{names:?}");
        drop(connection);
    }
}
