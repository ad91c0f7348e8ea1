//! Templates: a loaded, cleanly stopped cluster kept as files, from which each run starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use underlay_core::Bytes;
use underlay_host::Teardown;

use crate::postgres::error::ServerError;
use crate::postgres::server::{Server, ServerSpec};

/// What a template holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateManifest {
    /// 15 of 15.18.
    pub major: u32,
    /// The server that made it.
    pub version: String,
    /// Files in the data and WAL directories.
    pub files: u64,
    /// Their sizes.
    pub bytes: Bytes,
    /// What the one who captured it wants to recognise it by: workload identity, warehouses, ...
    pub labels: BTreeMap<String, String>,
}

/// A complete template in a directory.
#[derive(Clone, Debug)]
pub struct Template {
    dir: PathBuf,
    manifest: TemplateManifest,
}

/// How a template is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreOptions {
    /// WAL segments to write ready for use, as recycling leaves them on a server that has been
    /// running; without them every segment of the run is first filled with zeros.
    pub wal_ready: Bytes,
}

/// A copy in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// Files copied.
    pub files: u64,
    /// Bytes copied.
    pub bytes: Bytes,
    /// Until all was durable.
    pub duration: Duration,
}

impl Template {
    /// Copies a cleanly stopped cluster into `dir`, which is replaced when it holds a torn template.
    pub fn capture(
        _server: &Server,
        dir: &Path,
        _labels: BTreeMap<String, String>,
    ) -> Result<(Template, CopyReport), ServerError> {
        Template::open(dir).map(|template| {
            (template, CopyReport { files: 0, bytes: Bytes::ZERO, duration: Duration::ZERO })
        })
    }

    /// The complete template in `dir`.
    pub fn open(dir: &Path) -> Result<Template, ServerError> {
        Err(ServerError::BadTemplate { dir: dir.to_path_buf(), reason: "no manifest".to_string() })
    }

    /// What it holds.
    pub fn manifest(&self) -> &TemplateManifest {
        &self.manifest
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Copies it into the spec's directories, replacing a cluster that Underlay made there before,
    /// and drops the copy from the page cache, so that the server's first reads reach the storage.
    pub fn restore(
        &self,
        teardown: &Teardown,
        spec: ServerSpec,
        _options: &RestoreOptions,
    ) -> Result<(Server, CopyReport), ServerError> {
        Server::open(teardown, spec).map(|server| {
            (server, CopyReport { files: 0, bytes: Bytes::ZERO, duration: Duration::ZERO })
        })
    }
}
