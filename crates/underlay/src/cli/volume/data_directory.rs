//! The datastore in a directory, as the commands open it, and how they end when it refuses. What a datastore is belongs to
//! `underlay_datastore`.

use std::path::{Path, PathBuf};

use underlay_datastore::DatastoreError;
use underlay_datastore::persistent::{Connection, DataDirectory};

use crate::stop::{Stop, chain};

/// The datastore in a directory.
pub(super) fn data_directory(directory: &Path) -> Result<DataDirectory, Stop> {
    DataDirectory::open(directory).map_err(|error| stop(&error))
}

/// The datastore in a directory, which must run.
pub(super) fn running(directory: &Path) -> Result<Connection, Stop> {
    data_directory(directory)?.running().map_err(|error| stop(&error))
}

/// This program: it also is the supervisor and the server.
pub(super) fn program() -> Result<PathBuf, Stop> {
    std::env::current_exe()
        .map_err(|error| Stop::host(format!("could not find this program's own file: {error}")))
}

/// A datastore's error with its exit code: 2 = invalid request, nothing was changed, 3 = this host lacks something, 4 = the
/// datastore failed.
pub(super) fn stop(error: &DatastoreError) -> Stop {
    let text = chain(error);
    match error {
        DatastoreError::GivenUp => Stop::interrupted("interrupted; the datastore was not started"),
        DatastoreError::Host(_)
        | DatastoreError::EmulationUnavailable { .. }
        | DatastoreError::NoSpace { .. }
        | DatastoreError::Listen { .. }
        | DatastoreError::System(_) => Stop::host(text),
        DatastoreError::SupervisorEnded { .. }
        | DatastoreError::SupervisorLeft(_)
        | DatastoreError::SupervisorSilent { .. }
        | DatastoreError::SupervisorFailed(_)
        | DatastoreError::ServerDied { .. }
        | DatastoreError::ServerSilent { .. }
        | DatastoreError::NotTakenDown { .. }
        | DatastoreError::BadAnswer { .. } => Stop::run_failed(text),
        _ => Stop::bad_input(text),
    }
}
