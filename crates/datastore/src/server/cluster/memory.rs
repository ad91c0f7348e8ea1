//! The state of a cluster on disk, which survives a stop or a kill of its server.
//!
//! The file is always complete: it is written under another name and then renamed. It says whether the server that wrote it
//! shut down cleanly. After a kill it does not, and everything that may have been in progress is then made equal by
//! copying. It is not synchronised with the host's disk: it is as durable as the data, see `persistent`. So it also records
//! the boot of the host: after a reboot, the last writes of a killed server may be lost.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use underlay_model::cluster::{ClusterState, Restart};

use super::stores::Stores;
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
    /// Names the run of this host's kernel; none in files of earlier versions.
    #[serde(default)]
    boot: Option<String>,
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
        let restart = match (file.ended_in_order, file.boot) {
            (true, _) => Restart::Clean,
            (false, Some(boot)) if Some(&boot) == boot_id().as_ref() => Restart::Unclean,
            (false, _) => Restart::AfterHostCrash,
        };
        Ok(Some(Recalled { state: file.state, restart }))
    }

    /// Remembers a state while the server goes on.
    ///
    /// # Errors
    /// When it cannot be stored: the server must not promise anything then.
    pub(crate) fn keep(
        &mut self,
        state: ClusterState,
        stores: &mut impl Stores,
    ) -> Result<(), DatastoreError> {
        let outcome = self.write(state, false, stores);
        self.is_failing = outcome.is_err();
        self.failures += u64::from(self.is_failing);
        outcome
    }

    /// Remembers the last state of a server that ends, with nothing under way.
    pub(crate) fn conclude(
        &mut self,
        state: ClusterState,
        stores: &mut impl Stores,
    ) -> Result<(), DatastoreError> {
        self.write(state, true, stores)
    }

    fn write(
        &self,
        state: ClusterState,
        ended_in_order: bool,
        stores: &mut impl Stores,
    ) -> Result<(), DatastoreError> {
        let file = MemoryFile { ended_in_order, boot: boot_id(), state };
        let text = serde_json::to_vec(&file).expect("plain data");
        let written = stores.replace_file(&self.path, &text);
        written.map_err(DatastoreError::file("write", &self.path))
    }
}

/// Names the run of this host's kernel: what a killed server wrote is there as long as that is the same.
fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_string())
}
