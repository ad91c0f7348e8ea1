//! Bringing databases back whose storage had given up under them.

use std::sync::PoisonError;

use underlay_database::managed::Server;

use crate::lab::samplers::SharedDatastore;
use crate::stop::chain;

/// A database server of a run.
pub struct Serving<'s> {
    /// What the record calls its processes.
    pub process: String,
    /// The server.
    pub server: &'s mut Server,
}

/// Ends what is left of the servers, mounts the volumes again so that file systems that had stopped after errors recover,
/// and starts the servers, which recover from their logs. An error says in words what did not come back.
pub fn restore(servers: &mut [Serving<'_>], datastore: &SharedDatastore) -> Result<(), String> {
    for serving in servers.iter_mut() {
        serving.server.kill().map_err(|error| chain(&error))?;
    }
    datastore
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remount()
        .map_err(|error| chain(&error))?;
    for serving in servers {
        serving.server.start().map_err(|error| chain(&error))?;
    }
    Ok(())
}
