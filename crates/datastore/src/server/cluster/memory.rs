//! The memory of a cluster on disk: what it must not forget when its server stops or is killed.
//!
//! The file always is a whole one: it is written beside the old one and takes its name. It says whether the server that
//! wrote it ended in order; one that was killed did not say so, and everything that may have been under way is then settled
//! and copied again. It is not synchronised with the host's disk: it is as durable as the data, see `persistent`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use underlay_model::cluster::{ClusterState, Restart};

use crate::error::DatastoreError;

/// Where a cluster remembers.
#[derive(Debug)]
pub(crate) struct Memory {
    path: PathBuf,
    /// Whether the present state could not be stored.
    pub(crate) is_failing: bool,
    /// How often that happened.
    pub(crate) failures: u64,
}

/// What was remembered.
#[derive(Debug)]
pub(crate) struct Recalled {
    pub(crate) state: ClusterState,
    /// How the server that remembered it ended.
    pub(crate) restart: Restart,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MemoryFile {
    ended_in_order: bool,
    state: ClusterState,
}

impl Memory {
    pub(crate) fn at(path: &Path) -> Memory {
        Memory { path: path.to_path_buf(), is_failing: false, failures: 0 }
    }

    /// What was remembered; none for a new cluster.
    pub(crate) fn recall(&self) -> Result<Option<Recalled>, DatastoreError> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(DatastoreError::file("read", &self.path)(error)),
        };
        let file: MemoryFile = serde_json::from_slice(&text).map_err(|error| {
            DatastoreError::BadMemory { path: self.path.clone(), reason: error.to_string() }
        })?;
        let restart = if file.ended_in_order { Restart::Clean } else { Restart::Unclean };
        Ok(Some(Recalled { state: file.state, restart }))
    }

    /// Remembers a state while the server goes on.
    ///
    /// # Errors
    /// When it cannot be stored: the server must not promise anything then.
    pub(crate) fn keep(&mut self, state: ClusterState) -> Result<(), DatastoreError> {
        let outcome = self.write(state, false);
        self.is_failing = outcome.is_err();
        self.failures += u64::from(self.is_failing);
        outcome
    }

    /// Remembers the last state of a server that ends, with nothing under way.
    pub(crate) fn conclude(&mut self, state: ClusterState) -> Result<(), DatastoreError> {
        self.write(state, true)
    }

    fn write(&self, state: ClusterState, ended_in_order: bool) -> Result<(), DatastoreError> {
        let text = serde_json::to_vec(&MemoryFile { ended_in_order, state }).expect("plain data");
        let new = self.path.with_extension("new");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &self.path))
            .map_err(DatastoreError::file("write", &self.path))
    }
}
