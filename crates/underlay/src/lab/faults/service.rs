//! Bringing a database back whose storage had given up under it.

use std::sync::PoisonError;

use underlay_database::managed::Server;

use crate::lab::samplers::SharedDatastore;
use crate::stop::chain;

/// Ends what is left of the server, mounts the volumes anew so that file systems that had given up recover, and starts the
/// server, which recovers from its log. An error says in words what did not come back.
pub fn restore(server: &mut Server, datastore: &SharedDatastore) -> Result<(), String> {
    server.kill().map_err(|error| chain(&error))?;
    datastore
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .remount()
        .map_err(|error| chain(&error))?;
    server.start().map(|_| ()).map_err(|error| chain(&error))
}
