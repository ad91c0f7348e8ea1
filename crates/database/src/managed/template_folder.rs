//! The folder form of a template, the same for all engines.
//!
//! ```text
//! <dir>/                  0700
//!   data/                 the data directory, without log and without configuration
//!   wal/                  what the next start reads of the log
//!   manifest.json         written last: a directory without it is a torn template
//! ```

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use underlay_core::Bytes;

use crate::Engine;
use crate::managed::{
    CopyReport, ServerError, ServerSpec, TreeCopy, copy_trees, count, empty_directory,
};
use crate::target::Secret;

/// The version of the directory's form.
const FORMAT: u32 = 1;
const MANIFEST: &str = "manifest.json";
const UNFINISHED_MANIFEST: &str = "manifest.json.new";
const DATA: &str = "data";
const WAL: &str = "wal";

/// What a template holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateManifest {
    /// The engine that made it.
    pub engine: Engine,
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

/// How a template is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Space of the log to write ready for use, as a server leaves it that has been running; without
    /// it the file system would allocate and the server would fill that space within the run.
    /// PostgreSQL rounds it down to whole segments; InnoDB's log has a size of its own, and is made
    /// ready as a whole when this is not zero.
    pub log_ready: Bytes,
}

/// A template's directory.
#[derive(Clone, Debug)]
pub(crate) struct TemplateFolder {
    dir: PathBuf,
    manifest: TemplateManifest,
    password: Secret,
}

/// The manifest as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ManifestFile {
    format: u32,
    /// Templates of the first version say nothing.
    #[serde(default = "first_engine")]
    engine: String,
    major: u32,
    version: String,
    files: u64,
    bytes: u64,
    labels: BTreeMap<String, String>,
    /// Of the role that owns the cluster. It protects a throwaway database on the loopback
    /// interface, and is kept where the files are that it protects.
    password: String,
}

fn first_engine() -> String {
    Engine::Postgresql.as_str().to_string()
}

impl TemplateFolder {
    /// An empty folder, in place of a torn one. It is a template when it is [`complete`](Self::complete).
    pub fn create(dir: &Path, password: Secret) -> Result<TemplateFolder, ServerError> {
        make_template_dir(dir)?;
        let manifest = TemplateManifest {
            engine: Engine::Postgresql,
            major: 0,
            version: String::new(),
            files: 0,
            bytes: Bytes::ZERO,
            labels: BTreeMap::new(),
        };
        Ok(TemplateFolder { dir: dir.to_path_buf(), manifest, password })
    }

    /// Says what it holds, durably: from now on it is a template.
    pub fn complete(&mut self, manifest: TemplateManifest) -> Result<(), ServerError> {
        self.manifest = manifest;
        self.write_manifest()
    }

    /// The complete template of an engine in `dir`: its manifest is there and names as many files and
    /// bytes as there are.
    pub fn open(dir: &Path, engine: Engine) -> Result<TemplateFolder, ServerError> {
        let bad = |reason: String| ServerError::BadTemplate { dir: dir.to_path_buf(), reason };
        let text = fs::read_to_string(dir.join(MANIFEST)).map_err(|error| {
            bad(format!("its manifest cannot be read, so its creation was interrupted ({error})"))
        })?;
        let file: ManifestFile = serde_json::from_str(&text)
            .map_err(|error| bad(format!("its manifest cannot be parsed: {error}")))?;
        if file.format != FORMAT {
            return Err(bad(format!("its format is {}, not {FORMAT}", file.format)));
        }
        if file.engine != engine.as_str() {
            return Err(bad(format!("it is of {}, not {}", file.engine, engine.as_str())));
        }
        let folder = TemplateFolder {
            dir: dir.to_path_buf(),
            manifest: TemplateManifest {
                engine,
                major: file.major,
                version: file.version,
                files: file.files,
                bytes: Bytes(file.bytes),
                labels: file.labels,
            },
            password: Secret::new(file.password),
        };
        folder.verify(&folder.data(), &folder.log())?;
        Ok(folder)
    }

    /// What it holds.
    pub fn manifest(&self) -> &TemplateManifest {
        &self.manifest
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where its data directory is.
    pub fn data(&self) -> PathBuf {
        self.dir.join(DATA)
    }

    /// Where its log is.
    pub fn log(&self) -> PathBuf {
        self.dir.join(WAL)
    }

    /// The superuser's password.
    pub fn password(&self) -> &Secret {
        &self.password
    }

    /// Copies it into a server's empty directories.
    pub fn copy_out<I>(&self, spec: &ServerSpec<I>) -> Result<CopyReport, ServerError> {
        let owner = spec.run_as.as_ref();
        let (data, wal) = (self.data(), self.log());
        let everything = |_: &Path| true;
        let report = copy_trees(&[
            TreeCopy { from: &data, to: &spec.data, owner, wanted: &everything },
            TreeCopy { from: &wal, to: &spec.wal, owner, wanted: &everything },
        ])?;
        // A template that changed since it was captured would make this run differ from the others.
        if (report.files, report.bytes) != (self.manifest.files, self.manifest.bytes) {
            return Err(self.differs(report.files, report.bytes));
        }
        Ok(report)
    }

    fn verify(&self, data: &Path, wal: &Path) -> Result<(), ServerError> {
        let (data, wal) = (count(data)?, count(wal)?);
        let (files, bytes) = (data.0 + wal.0, data.1 + wal.1);
        if (files, bytes) == (self.manifest.files, self.manifest.bytes) {
            Ok(())
        } else {
            Err(self.differs(files, bytes))
        }
    }

    fn differs(&self, files: u64, bytes: Bytes) -> ServerError {
        ServerError::BadTemplate {
            dir: self.dir.clone(),
            reason: format!(
                "it has {files} files with {} bytes, its manifest says {} with {}",
                bytes.0, self.manifest.files, self.manifest.bytes.0
            ),
        }
    }

    /// Durable before it has its name.
    fn write_manifest(&self) -> Result<(), ServerError> {
        let manifest = &self.manifest;
        let file = ManifestFile {
            format: FORMAT,
            engine: manifest.engine.as_str().to_string(),
            major: manifest.major,
            version: manifest.version.clone(),
            files: manifest.files,
            bytes: manifest.bytes.0,
            labels: manifest.labels.clone(),
            password: self.password.reveal().to_string(),
        };
        let (new, path) = (self.dir.join(UNFINISHED_MANIFEST), self.dir.join(MANIFEST));
        let text = serde_json::to_string_pretty(&file)
            .map_err(|error| ServerError::file("describe", &path)(error))?;
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
            .map_err(ServerError::file("write", &new))?;
        // The manifest makes it a template, so it gets its name only when all of it is durable.
        fs::rename(&new, &path).map_err(ServerError::file("rename", &new))?;
        File::open(&self.dir)
            .and_then(|dir| dir.sync_all())
            .map_err(ServerError::file("sync", &self.dir))
    }
}

/// An empty directory for a template, in place of a torn one.
fn make_template_dir(dir: &Path) -> Result<(), ServerError> {
    if !dir.exists() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(ServerError::file("create directory", dir))?;
    }
    for entry in fs::read_dir(dir).map_err(ServerError::file("list", dir))? {
        let name = entry.map_err(ServerError::file("list", dir))?.file_name();
        // Anything else was not left by an interrupted capture, and is not ours to delete.
        if ![DATA, WAL, UNFINISHED_MANIFEST].iter().any(|known| name == *known) {
            return Err(ServerError::NotEmpty(dir.to_path_buf()));
        }
    }
    empty_directory(dir)?;
    for name in [DATA, WAL] {
        let path = dir.join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(ServerError::file("create directory", &path))?;
    }
    Ok(())
}
