//! Templates: a loaded, cleanly stopped cluster kept as files, from which each run starts.
//!
//! Only the segment that the next start reads is kept of the WAL. Segments that the server had
//! recycled for later use carry nothing; [`RestoreOptions::log_ready`] makes as many as wanted, so
//! that a template does not have to carry gigabytes of them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use underlay_core::Bytes;
use underlay_host::{Teardown, User};

use crate::Engine;
use crate::managed::{
    CopyReport, RestoreOptions, ServerError, TemplateFolder, TemplateManifest, TreeCopy, claim,
    clear, copy_trees, start_writeback, sync_file_systems, uncache,
};
use crate::postgres::cluster;
use crate::postgres::control_data::ControlData;
use crate::postgres::server::Server;
use crate::postgres::spec::ServerSpec;

/// A complete template in a directory.
#[derive(Clone, Debug)]
pub struct Template {
    folder: TemplateFolder,
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
        let mut folder = TemplateFolder::create(dir, server.password().clone())?;
        let report = copy_into(spec, &control, &folder)?;
        folder.complete(TemplateManifest {
            engine: Engine::Postgresql,
            major: spec.install.major,
            version: spec.install.version.clone(),
            files: report.files,
            bytes: report.bytes,
            labels,
        })?;
        Ok((Template { folder }, report))
    }

    /// The complete template in `dir`: its manifest is there and names as many files and bytes as
    /// there are.
    pub fn open(dir: &Path) -> Result<Template, ServerError> {
        Ok(Template { folder: TemplateFolder::open(dir, Engine::Postgresql)? })
    }

    /// What it holds.
    pub fn manifest(&self) -> &TemplateManifest {
        self.folder.manifest()
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        self.folder.dir()
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
        if spec.install.major != self.manifest().major {
            return Err(ServerError::TemplateVersion {
                dir: self.dir().to_path_buf(),
                template: format!("{} {}", Engine::Postgresql, self.manifest().major),
                server: spec.install.title(),
            });
        }
        cluster::make_directories(&spec)?;
        refuse_running(&spec)?;
        clear(&spec.data, &spec.wal)?;
        // Claimed first, so that a restore that was cut short can be repeated.
        claim(&spec.data, &spec.name, spec.run_as.as_ref())?;
        let mut report = self.folder.copy_out(&spec)?;
        cluster::link_wal(&spec)?;
        report.bytes += make_wal_ready(&spec, options.log_ready)?;
        report.duration = begin.elapsed();
        let server = Server::prepared(teardown, spec, self.folder.password().clone())?;
        Ok((server, report))
    }
}

fn clean_control_data(spec: &ServerSpec) -> Result<ControlData, ServerError> {
    let control = ControlData::read(&spec.install, &spec.data)?;
    if control.is_clean() {
        return Ok(control);
    }
    Err(ServerError::NotCleanlyStopped { data: spec.data.clone(), state: control.state })
}

fn copy_into(
    spec: &ServerSpec,
    control: &ControlData,
    folder: &TemplateFolder,
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
        TreeCopy { from: &spec.data, to: &folder.data(), owner: None, wanted: &cluster::is_copied },
        TreeCopy { from: &spec.wal, to: &folder.log(), owner: None, wanted: &wal_wanted },
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
    owner.map_or(Ok(()), |user| user.own_file(&file, path)).map_err(ServerError::from)
}
