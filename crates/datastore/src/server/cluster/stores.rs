//! The files that a cluster's data plane and its stored state need.
//!
//! The server keeps everything that outlives it through here, so that tests can inject failures. What is not here: the
//! files themselves ([`super::file_store`], [`super::write_intent_log`]), and the notes of lost blocks
//! ([`super::lost_range_log`]), each of which is one write.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use crate::data_plane::{IntentLog, StoreError, StoreMaker};
use underlay_model::cluster::{ComponentId, DeviceId};

use super::file_store::{FileStore, FileStores};
use super::write_intent_log::WriteIntentLog;
use crate::error::DatastoreError;

/// Where a cluster's server keeps what outlives it.
pub(crate) trait Stores: StoreMaker {
    /// Opens a component that exists.
    ///
    /// # Errors
    /// When its files cannot be opened.
    fn open(
        &self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> Result<Self::Store, StoreError>;

    /// The files of components, to look at what there is.
    fn files(&self) -> &FileStores;

    /// Where it is noted below `directory` what a command is about to store, in units of so many bytes.
    ///
    /// # Errors
    /// When the file cannot be made.
    fn intent_log(
        &self,
        directory: &Path,
        unit_bytes: u64,
    ) -> Result<Box<dyn IntentLog>, DatastoreError>;

    /// Replaces a file as a whole: after a kill it holds what it held, or `content`.
    ///
    /// # Errors
    /// When it cannot be written; it holds what it held.
    fn replace_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()>;
}

impl Stores for FileStores {
    fn open(
        &self,
        component: ComponentId,
        device: DeviceId,
        length: u64,
    ) -> Result<FileStore, StoreError> {
        let mut how = OpenOptions::new();
        how.read(true).write(true);
        self.store(component, device, length, &how)
    }

    fn files(&self) -> &FileStores {
        self
    }

    fn intent_log(
        &self,
        directory: &Path,
        unit_bytes: u64,
    ) -> Result<Box<dyn IntentLog>, DatastoreError> {
        Ok(Box::new(WriteIntentLog::create(directory, unit_bytes)?))
    }

    fn replace_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        let new = path.with_extension("new");
        // The old one would be replaced by itself.
        assert_ne!(new, path, "the new file has another name until it is complete");
        fs::write(&new, content)?;
        fs::rename(&new, path)
    }
}
