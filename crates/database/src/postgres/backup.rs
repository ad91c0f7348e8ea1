//! Backups by `pg_basebackup`, their restore, and how fast they were.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

use underlay_host::{ProgramSpec, run_program_with};

use crate::managed::{
    BackupFormat, BackupReport, ServerError, TreeCopy, claim, clear, copy_trees, count,
    in_new_directory, sync_file_systems,
};
use crate::postgres::cluster;
use crate::postgres::cluster::SUPERUSER;
use crate::postgres::server::{Server, ServerSpec};
use crate::target::Address;

impl Server {
    /// Takes a backup of the running server into a new directory below the backup directory. The
    /// server needs `wal_level` replica (the default) and two free WAL senders.
    pub fn backup(&self, format: BackupFormat) -> Result<BackupReport, ServerError> {
        if self.pid().is_none() {
            return Err(ServerError::NotRunning { action: "take a backup" });
        }
        let begin = Instant::now();
        let program = self.spec().install.program("pg_basebackup");
        let path = in_new_directory(self.spec(), |path| {
            run_program_with(&ProgramSpec {
                program: &program,
                args: basebackup_arguments(self, path, format),
                env: Vec::new(),
                run_as: self.spec().run_as.as_ref(),
                working_dir: Path::new("/"),
            })?;
            sync_file_systems([path].into_iter())
        })?;
        let duration = begin.elapsed();
        let (_, bytes) = count(&path)?;
        Ok(BackupReport { path, format, bytes, duration })
    }

    /// Replaces the stopped cluster by a backup of it. The next start recovers to the backup's end.
    pub fn restore(&mut self, backup: &BackupReport) -> Result<BackupReport, ServerError> {
        self.require_stopped("restore a backup")?;
        let spec = self.spec();
        let begin = Instant::now();
        clear(&spec.data, &spec.wal)?;
        match backup.format {
            BackupFormat::Plain => copy_plain(spec, &backup.path)?,
            BackupFormat::Archive => extract(spec, &backup.path)?,
        }
        cluster::link_wal(spec)?;
        claim(&spec.data, &spec.name, spec.run_as.as_ref())?;
        sync_file_systems([spec.data.as_path(), spec.wal.as_path()].into_iter())?;
        for dir in [&spec.data, &spec.wal] {
            underlay_host::page_cache::drop_cached(dir)?;
        }
        let bytes = count(&spec.data)?.1 + count(&spec.wal)?.1;
        Ok(BackupReport { bytes, duration: begin.elapsed(), ..backup.clone() })
    }
}

fn basebackup_arguments(server: &Server, path: &Path, format: BackupFormat) -> Vec<OsString> {
    let target = server.target();
    let Address::UnixSocket(socket) = target.address else {
        unreachable!("a server's own target is its Unix socket");
    };
    let mut args: Vec<OsString> = vec!["--pgdata".into(), path.into()];
    args.extend(["--host".into(), socket.into()]);
    args.extend(["--port".into(), target.port.to_string().into()]);
    args.extend(["--username".into(), SUPERUSER.into(), "--no-password".into()]);
    args.extend(["--checkpoint=fast", "--wal-method=stream", "--no-sync"].map(Into::into));
    args.push(match format {
        BackupFormat::Plain => "--format=plain".into(),
        BackupFormat::Archive => "--format=tar".into(),
    });
    args
}

/// In a plain backup the WAL is a directory of its own inside.
fn copy_plain(spec: &ServerSpec, backup: &Path) -> Result<(), ServerError> {
    let data = |relative: &Path| cluster::is_copied(relative) && relative != Path::new("pg_wal");
    let wal = backup.join("pg_wal");
    let owner = spec.run_as.as_ref();
    copy_trees(&[
        TreeCopy { from: backup, to: &spec.data, owner, wanted: &data },
        TreeCopy { from: &wal, to: &spec.wal, owner, wanted: &|_: &Path| true },
    ])
    .map(|_| ())
}

fn extract(spec: &ServerSpec, backup: &Path) -> Result<(), ServerError> {
    for (archive, to) in [("base.tar", &spec.data), ("pg_wal.tar", &spec.wal)] {
        let archive = backup.join(archive);
        let args: Vec<OsString> =
            vec!["-x".into(), "-f".into(), archive.into(), "-C".into(), to.into()];
        run_program_with(&ProgramSpec {
            program: Path::new("tar"),
            args,
            env: Vec::new(),
            run_as: spec.run_as.as_ref(),
            working_dir: Path::new("/"),
        })?;
    }
    // The archive has the directory that the link to the WAL replaces.
    let inside = spec.data.join("pg_wal");
    if inside.is_dir() {
        fs::remove_dir_all(&inside).map_err(ServerError::file("remove", &inside))?;
    }
    Ok(())
}
