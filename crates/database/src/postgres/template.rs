//! Templates: a loaded, cleanly stopped cluster kept as files, from which each run starts.
//!
//! ```text
//! <dir>/                  0700
//!   data/                 the data directory, without pg_wal and without configuration
//!   wal/                  the segments that the next start reads
//!   manifest.json         written last: a directory without it is a torn template
//! ```
//!
//! Only the segment that the next start reads is kept of the WAL. Segments that the server had
//! recycled for later use carry nothing; [`RestoreOptions::wal_ready`] makes as many as wanted, so
//! that a template does not have to carry gigabytes of them.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use underlay_core::Bytes;
use underlay_host::{Teardown, User};

use crate::postgres::cluster;
use crate::postgres::control_data::ControlData;
use crate::postgres::error::ServerError;
use crate::postgres::server::{Server, ServerSpec};
use crate::postgres::tree_copy::{
    CopyReport, TreeCopy, copy_trees, count, empty_directory, start_writeback, sync_file_systems,
    uncache,
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
    password: Secret,
}

/// How a template is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreOptions {
    /// WAL segments to write ready for use, as recycling leaves them on a server that has been
    /// running; without them each new segment of the run is first filled with zeros by the server.
    /// Rounded down to whole segments.
    pub wal_ready: Bytes,
}

/// The manifest as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ManifestFile {
    format: u32,
    major: u32,
    version: String,
    files: u64,
    bytes: u64,
    labels: BTreeMap<String, String>,
    /// Of the role that owns the cluster. It protects a throwaway database on the loopback
    /// interface, and is kept where the files are that it protects.
    password: String,
}

impl Template {
    /// Copies a cleanly stopped cluster into `dir`. A torn template there is replaced; a complete one,
    /// or anything else, is not.
    pub fn capture(
        server: &mut Server,
        dir: &Path,
        labels: BTreeMap<String, String>,
    ) -> Result<(Template, CopyReport), ServerError> {
        server.require_stopped("capture a template")?;
        let spec = server.spec();
        let control = clean_control_data(spec)?;
        cluster::refuse_tablespaces(&spec.data)?;
        make_template_dir(dir)?;
        let report = copy_into(spec, &control, dir)?;
        let manifest = TemplateManifest {
            major: spec.install.major,
            version: spec.install.version.clone(),
            files: report.files,
            bytes: report.bytes,
            labels,
        };
        let template =
            Template { dir: dir.to_path_buf(), manifest, password: server.password().clone() };
        template.write_manifest()?;
        Ok((template, report))
    }

    /// The complete template in `dir`: its manifest is there and names as many files and bytes as
    /// there are.
    pub fn open(dir: &Path) -> Result<Template, ServerError> {
        let bad = |reason: String| ServerError::BadTemplate { dir: dir.to_path_buf(), reason };
        let text = fs::read_to_string(dir.join(MANIFEST)).map_err(|error| {
            bad(format!("its manifest cannot be read, so its making was cut short ({error})"))
        })?;
        let file: ManifestFile = serde_json::from_str(&text)
            .map_err(|error| bad(format!("its manifest cannot be understood: {error}")))?;
        if file.format != FORMAT {
            return Err(bad(format!("its format is {}, not {FORMAT}", file.format)));
        }
        let template = Template {
            dir: dir.to_path_buf(),
            manifest: TemplateManifest {
                major: file.major,
                version: file.version,
                files: file.files,
                bytes: Bytes(file.bytes),
                labels: file.labels,
            },
            password: Secret::new(file.password),
        };
        template.verify(&dir.join(DATA), &dir.join(WAL))?;
        Ok(template)
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
        options: &RestoreOptions,
    ) -> Result<(Server, CopyReport), ServerError> {
        let begin = Instant::now();
        cluster::check_spec(&spec)?;
        if spec.install.major != self.manifest.major {
            return Err(ServerError::TemplateVersion {
                dir: self.dir.clone(),
                template: self.manifest.major,
                server: spec.install.major,
            });
        }
        cluster::make_directories(&spec)?;
        refuse_running(&spec)?;
        cluster::clear(&spec)?;
        // Claimed first, so that a restore that was cut short can be repeated.
        cluster::claim(&spec)?;
        let mut report = self.copy_out(&spec)?;
        cluster::link_wal(&spec)?;
        report.bytes += make_wal_ready(&spec, options.wal_ready)?;
        report.duration = begin.elapsed();
        let server = Server::prepared(teardown, spec, self.password.clone())?;
        Ok((server, report))
    }

    fn copy_out(&self, spec: &ServerSpec) -> Result<CopyReport, ServerError> {
        let owner = spec.run_as.as_ref();
        let (data, wal) = (self.dir.join(DATA), self.dir.join(WAL));
        let everything = |_: &Path| true;
        let report = copy_trees(&[
            TreeCopy { from: &data, to: &spec.data, owner, wanted: &everything },
            TreeCopy { from: &wal, to: &spec.wal, owner, wanted: &everything },
        ])?;
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
        fs::rename(&new, &path).map_err(ServerError::file("rename", &new))?;
        File::open(&self.dir)
            .and_then(|dir| dir.sync_all())
            .map_err(ServerError::file("sync", &self.dir))
    }
}

fn clean_control_data(spec: &ServerSpec) -> Result<ControlData, ServerError> {
    let control = ControlData::read(&spec.install, &spec.data)?;
    if control.is_clean() {
        return Ok(control);
    }
    Err(ServerError::NotCleanlyStopped { data: spec.data.clone(), state: control.state })
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

fn copy_into(
    spec: &ServerSpec,
    control: &ControlData,
    dir: &Path,
) -> Result<CopyReport, ServerError> {
    // The checkpoint of the shutdown may reach into the following segment.
    let mut segments = control.following_segments(1);
    segments.push(control.redo_segment.clone());
    let wal_wanted = |relative: &Path| {
        let name = relative.to_string_lossy();
        segments.iter().any(|segment| *segment == name)
            || name.ends_with(".history")
            || is_wal_directory(&name)
    };
    copy_trees(&[
        TreeCopy {
            from: &spec.data,
            to: &dir.join(DATA),
            owner: None,
            wanted: &cluster::is_copied,
        },
        TreeCopy { from: &spec.wal, to: &dir.join(WAL), owner: None, wanted: &wal_wanted },
    ])
}

/// Directories that the server expects in `pg_wal`; what is inside them can be made again.
fn is_wal_directory(name: &str) -> bool {
    ["archive_status", "summaries"].contains(&name)
}

/// The lock file of a server that was killed names a process that is gone.
fn refuse_running(spec: &ServerSpec) -> Result<(), ServerError> {
    let text = fs::read_to_string(spec.data.join("postmaster.pid")).unwrap_or_default();
    let pid = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok());
    let data_dir = |pid: u32| fs::read_link(format!("/proc/{pid}/cwd")).ok();
    match pid {
        // The postmaster works in its data directory.
        Some(pid) if data_dir(pid).is_some_and(|dir| dir == spec.data) => {
            Err(ServerError::StillRunning { action: "restore a template" })
        }
        _ => Ok(()),
    }
}

/// Writes segments full of zeros after the one that the next start reads. The server uses a segment
/// that exists as it is, and zeros end the log for a recovery, as in a segment that it made itself.
fn make_wal_ready(spec: &ServerSpec, wanted: Bytes) -> Result<Bytes, ServerError> {
    if wanted == Bytes::ZERO {
        return Ok(Bytes::ZERO);
    }
    let control = ControlData::read(&spec.install, &spec.data)?;
    let zeros = vec![0u8; 1 << 20];
    let mut written = Bytes::ZERO;
    for name in control.following_segments(wanted.0 / control.segment_bytes) {
        let path = spec.wal.join(name);
        if !path.exists() {
            write_segment(&path, &zeros, control.segment_bytes, spec.run_as.as_ref())?;
            written += Bytes(control.segment_bytes);
        }
    }
    sync_file_systems([spec.wal.as_path()].into_iter())?;
    uncache(&spec.wal)?;
    Ok(written)
}

fn write_segment(
    path: &Path,
    zeros: &[u8],
    length_bytes: u64,
    owner: Option<&User>,
) -> Result<(), ServerError> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(ServerError::file("create", path))?;
    // Segments are a power of two of at least 1 MiB.
    for _ in 0..length_bytes / zeros.len() as u64 {
        file.write_all(zeros).map_err(ServerError::file("write", path))?;
    }
    start_writeback(&file, 0, path)?;
    owner.map_or(Ok(()), |user| user.own(path)).map_err(ServerError::from)
}
