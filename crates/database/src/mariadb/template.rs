//! Templates of MariaDB: a loaded, cleanly stopped database kept as files, from which each run starts.
//!
//! The folder's form is that of all engines: `data/` holds the server's folder without temporary files,
//! `wal/` the redo log. After a clean shutdown the redo log has no content, but the server does not
//! start without the file. Its size is that of the last start; [`Template::capture`] therefore expects
//! that the last start had a small one, and a start with another size recreates it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use underlay_core::Bytes;
use underlay_host::Teardown;

use crate::Engine;
use crate::managed::{
    CopyReport, RestoreOptions, ServerError, StopMode, TemplateFolder, TemplateManifest, TreeCopy,
    claim, clear, copy_trees, sync_file_systems, uncache,
};
use crate::mariadb::initial::{check_spec, data_dir, is_copied, make_directories};
use crate::mariadb::server::Server;
use crate::mariadb::spec::ServerSpec;

/// Read and written at once when a redo log is made ready.
const BLOCK_BYTES: usize = 1 << 20;

/// A complete template in a directory.
#[derive(Clone, Debug)]
pub struct Template {
    folder: TemplateFolder,
}

impl Template {
    /// Copies a cleanly stopped database into `dir`. A torn template there is replaced; a complete one,
    /// or anything else, is not.
    pub fn capture(
        server: &mut Server,
        dir: &Path,
        labels: BTreeMap<String, String>,
    ) -> Result<(Template, CopyReport), ServerError> {
        server.require_stopped("capture a template")?;
        let spec = server.spec();
        if !server.is_clean() {
            let state = "its log does not end with a complete shutdown".to_string();
            return Err(ServerError::NotCleanlyStopped { data: spec.data.clone(), state });
        }
        let mut folder = TemplateFolder::create(dir, server.password().clone())?;
        let report = copy_trees(&[
            TreeCopy { from: &spec.data, to: &folder.data(), owner: None, wanted: &is_copied },
            TreeCopy { from: &spec.wal, to: &folder.log(), owner: None, wanted: &|_: &Path| true },
        ])?;
        folder.complete(TemplateManifest {
            engine: Engine::Mariadb,
            major: spec.install.major,
            version: format!("{} {}", spec.install.flavour, spec.install.version),
            files: report.files,
            bytes: report.bytes,
            labels,
        })?;
        Ok((Template { folder }, report))
    }

    /// The complete template in `dir`: its manifest is there and names as many files and bytes as
    /// there are.
    pub fn open(dir: &Path) -> Result<Template, ServerError> {
        Ok(Template { folder: TemplateFolder::open(dir, Engine::Mariadb)? })
    }

    /// What it holds.
    pub fn manifest(&self) -> &TemplateManifest {
        self.folder.manifest()
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        self.folder.dir()
    }

    /// Copies it into the spec's directories, replacing a database that Underlay made there before,
    /// and drops the copy from the page cache, so that the server's first reads reach the storage.
    ///
    /// With [`RestoreOptions::log_ready`] the server is started and stopped once, which makes the redo
    /// log in the size of the settings, and every block of it is then written.
    pub fn restore(
        &self,
        teardown: &Teardown,
        spec: ServerSpec,
        options: &RestoreOptions,
    ) -> Result<(Server, CopyReport), ServerError> {
        let begin = Instant::now();
        check_spec(&spec)?;
        let server = spec.install.title();
        if !self.manifest().version.starts_with(&format!("{server}.")) {
            return Err(ServerError::TemplateVersion {
                dir: self.dir().to_path_buf(),
                template: self.manifest().version.clone(),
                server,
            });
        }
        make_directories(&spec)?;
        refuse_running(&spec)?;
        clear(&spec.data, &spec.wal)?;
        // Claimed first, so that a restore that was cut short can be repeated.
        claim(&spec.data, &spec.name, spec.run_as.as_ref())?;
        let mut report = self.folder.copy_out(&spec)?;
        let mut server = Server::prepared(teardown, spec, self.folder.password().clone())?;
        if options.log_ready > Bytes::ZERO {
            server.start()?;
            server.stop(StopMode::Fast)?;
            report.bytes += make_log_ready(server.spec())?;
        }
        report.duration = begin.elapsed();
        Ok((server, report))
    }
}

/// The server works in its data directory, and holds its files until it is gone.
fn refuse_running(spec: &ServerSpec) -> Result<(), ServerError> {
    let data = data_dir(&spec.data);
    let Ok(processes) = fs::read_dir("/proc") else { return Ok(()) };
    let is_used = processes
        .flatten()
        .any(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == data));
    match is_used {
        true => Err(ServerError::StillRunning { action: "restore a template" }),
        false => Ok(()),
    }
}

/// Writes each block of the redo log over itself. The server only allocates what it has not used yet,
/// and a file system turns an allocated block into a written one within the commit that uses it first:
/// a server that has been running has none of that left.
fn make_log_ready(spec: &ServerSpec) -> Result<Bytes, ServerError> {
    let mut written = Bytes::ZERO;
    for entry in fs::read_dir(&spec.wal).map_err(ServerError::file("list", &spec.wal))? {
        let path = entry.map_err(ServerError::file("list", &spec.wal))?.path();
        if path.is_file() {
            written += rewrite(&path)?;
        }
    }
    sync_file_systems([spec.wal.as_path()].into_iter())?;
    uncache(&spec.wal)?;
    uncache(&spec.data)?;
    Ok(written)
}

fn rewrite(path: &Path) -> Result<Bytes, ServerError> {
    let file: File = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(ServerError::file("open", path))?;
    let length = file.metadata().map_err(ServerError::file("inspect", path))?.len();
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = 0;
    while at < length {
        let wanted = BLOCK_BYTES.min(usize::try_from(length - at).unwrap_or(BLOCK_BYTES));
        let part = &mut block[..wanted];
        file.read_exact_at(part, at).map_err(ServerError::file("read", path))?;
        file.write_all_at(part, at).map_err(ServerError::file("write", path))?;
        at += wanted as u64;
    }
    Ok(Bytes(length))
}
