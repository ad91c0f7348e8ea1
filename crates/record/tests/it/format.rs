//! Which files are records, and which of them this program reads.

use rusqlite::Connection;
use tempfile::tempdir;
use underlay_record::{FORMAT, OpenError, Record, Recorder};

use crate::sample::manifest;

#[test]
fn a_newer_format_is_refused_with_its_number() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("record");
    drop(Recorder::create(&path, &manifest()).unwrap());
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", FORMAT + 1).unwrap();
    drop(connection);
    let refused = Record::open_read_only(&path).unwrap_err();
    assert!(matches!(refused, OpenError::NewerFormat { .. }));
    let message = refused.to_string();
    assert!(message.contains(&format!("format {}", FORMAT + 1)), "{message}");
    assert!(message.contains("use the version of Underlay that wrote it"), "{message}");
    assert!(matches!(Recorder::resume(&path), Err(OpenError::NewerFormat { .. })));
}

#[test]
fn other_files_are_refused() {
    let dir = tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "not a database, but longer than the header of one: ".repeat(9)).unwrap();
    assert!(matches!(Record::open_read_only(&text), Err(OpenError::NotARecord { .. })));
    let other = dir.path().join("other.sqlite");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(matches!(Record::open_read_only(&other), Err(OpenError::NotARecord { .. })));
    let empty = dir.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(Record::open_read_only(&empty), Err(OpenError::NotARecord { .. })));
    let nothing = dir.path().join("nothing");
    assert!(matches!(Record::open_read_only(&nothing), Err(OpenError::NotFound { .. })));
    assert!(!nothing.exists());
}
