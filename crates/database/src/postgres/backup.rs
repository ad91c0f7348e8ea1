//! Backups by `pg_basebackup`, their restore, and how fast they were.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Instant;

use underlay_host::{HostError, find_program};

use crate::managed::{
    BackupFormat, BackupOptions, BackupReport, RestoredCopy, ServerError, Tools, TreeCopy, Watch,
    claim, clear, copy_trees, count, in_new_directory, sync_file_systems, uncache,
};
use crate::postgres::cluster;
use crate::postgres::cluster::SUPERUSER;
use crate::postgres::install::Install;
use crate::postgres::server::Server;
use crate::postgres::spec::ServerSpec;
use crate::target::Address;

/// What `--max-rate` takes, KiB per second.
const MAX_RATE_KIB: (u64, u64) = (32, 1 << 20);

impl Server {
    /// Takes a backup of the running server into a new directory below the backup directory. The
    /// server needs `wal_level` replica (the default) and two free WAL senders.
    pub fn backup(&self, format: BackupFormat) -> Result<BackupReport, ServerError> {
        if self.pid().is_none() {
            return Err(ServerError::NotRunning { action: "take a backup" });
        }
        self.backup_tools().take(format.into(), &Watch::NONE)
    }

    /// Replaces the stopped cluster by a backup of it. The next start recovers to the backup's end.
    pub fn restore(&mut self, backup: &BackupReport) -> Result<BackupReport, ServerError> {
        self.require_stopped("restore a backup")?;
        let begin = Instant::now();
        clear(&self.spec().data, &self.spec().wal)?;
        self.backup_tools().fill(backup, begin, &Watch::NONE)
    }
}

impl Tools<Install> {
    /// Takes a backup of the running server into a new directory below the backup directory.
    pub fn take(
        &self,
        options: BackupOptions,
        watch: &Watch<'_>,
    ) -> Result<BackupReport, ServerError> {
        let begin = Instant::now();
        let program = self.spec.install.program("pg_basebackup");
        let path = in_new_directory(&self.spec, |path| {
            self.run(&program, self.basebackup_arguments(path, options), (watch, &[path]))?;
            sync_file_systems([path].into_iter())
        })?;
        let duration = begin.elapsed();
        let (_, bytes) = count(&path)?;
        Ok(BackupReport { path, format: options.format, bytes, began: begin, duration })
    }

    /// Restores a backup beside the cluster that it is of, which may be running.
    pub fn restore_copy(
        &self,
        backup: &BackupReport,
        watch: &Watch<'_>,
    ) -> Result<RestoredCopy, ServerError> {
        let (data, wal) = self.room_for_copy()?;
        let spec = ServerSpec { data: data.clone(), wal: wal.clone(), ..self.spec.clone() };
        let report = Tools { spec, ..self.clone() }.fill(backup, Instant::now(), watch)?;
        Ok(RestoredCopy { data, wal, report })
    }

    /// Restores into the empty directories of the spec; counts the time since `begin`.
    fn fill(
        &self,
        backup: &BackupReport,
        begin: Instant,
        watch: &Watch<'_>,
    ) -> Result<BackupReport, ServerError> {
        let spec = &self.spec;
        // Claimed first, so that a restore that was cut short can be repeated.
        claim(&spec.data, &spec.name, spec.run_as.as_ref())?;
        match backup.format {
            BackupFormat::Plain => copy_plain(spec, &backup.path)?,
            BackupFormat::Archive => self.extract(&backup.path, watch)?,
        }
        cluster::link_wal(spec)?;
        sync_file_systems([spec.data.as_path(), spec.wal.as_path()].into_iter())?;
        let duration = begin.elapsed();
        for dir in [&spec.data, &spec.wal] {
            uncache(dir)?;
        }
        let bytes = count(&spec.data)?.1 + count(&spec.wal)?.1;
        Ok(BackupReport { bytes, began: begin, duration, ..backup.clone() })
    }

    fn basebackup_arguments(&self, path: &Path, options: BackupOptions) -> Vec<OsString> {
        let Address::UnixSocket(socket) = &self.target.address else {
            unreachable!("a server's own target is its Unix socket");
        };
        let mut args: Vec<OsString> = vec!["--pgdata".into(), path.into()];
        args.extend(["--host".into(), socket.into()]);
        args.extend(["--port".into(), self.target.port.to_string().into()]);
        args.extend(["--username".into(), SUPERUSER.into(), "--no-password".into()]);
        args.extend(["--checkpoint=fast", "--wal-method=stream", "--no-sync"].map(Into::into));
        if let Some(bytes_per_second) = options.bytes_per_second {
            let kib = (bytes_per_second >> 10).clamp(MAX_RATE_KIB.0, MAX_RATE_KIB.1);
            args.push(format!("--max-rate={kib}").into());
        }
        args.push(match options.format {
            BackupFormat::Plain => "--format=plain".into(),
            BackupFormat::Archive => "--format=tar".into(),
        });
        args
    }

    fn extract(&self, backup: &Path, watch: &Watch<'_>) -> Result<(), ServerError> {
        let tar = find_program("tar").ok_or_else(|| HostError::ProgramNotFound {
            program: "tar".to_string(),
            remedy: "install the package tar".to_string(),
        })?;
        let spec = &self.spec;
        for (archive, to) in [("base.tar", &spec.data), ("pg_wal.tar", &spec.wal)] {
            let archive = backup.join(archive);
            let args: Vec<OsString> =
                vec!["-x".into(), "-f".into(), archive.into(), "-C".into(), to.into()];
            self.run(&tar, args, (watch, &[&spec.data, &spec.wal]))?;
        }
        // The archive has the directory that the link to the WAL replaces.
        let inside = spec.data.join("pg_wal");
        if inside.is_dir() {
            fs::remove_dir_all(&inside).map_err(ServerError::file("remove", &inside))?;
        }
        Ok(())
    }
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
