//! Backups by `mariadb-backup`, their restore, and how fast they were.
//!
//! The program copies the data files while the server writes them, and the redo log of that time beside
//! them; *preparing* applies the log. A restore prepares its own copy, so that the backup stays what it was
//! and can be restored again. PostgreSQL does that work at its next start instead.
//!
//! MySQL has no such program of its own: its backups are refused by name.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use underlay_host::{HostError, find_program, run_program};

use crate::managed::{
    BackupFormat, BackupOptions, BackupReport, RestoredCopy, ServerError, Tools, TreeCopy, Watch,
    claim, clear, copy_trees, count, in_new_directory, make_private, sync_file_systems, uncache,
};
use crate::mariadb::initial::{SUPERUSER, data_dir, temporary_dir};
use crate::mariadb::install::{Flavour, Install};
use crate::mariadb::server::Server;
use crate::mariadb::spec::ServerSpec;
use crate::target::Address;

/// The archive of [`BackupFormat::Archive`] in its directory.
const ARCHIVE: &str = "base.mbstream";
/// What one I/O operation of `--throttle` reads: 64 pages.
const READ_BYTES: u64 = 1 << 20;
/// The redo log, as a backup and a server name it.
const LOG: &str = "ib_logfile0";
/// What the program tells itself, useless to a server.
const NOTES: [&str; 3] = ["backup-my.cnf", "xtrabackup_", "mariadb_backup_"];
/// Folders beside the server's program that may have the program.
const FOLDERS: [&str; 2] = [".", "../bin"];

/// The programs of one installation.
#[derive(Debug)]
struct Programs {
    /// `mariadb-backup`.
    backup: PathBuf,
    /// `mbstream`, which unpacks archives.
    unpack: PathBuf,
}

impl Server {
    /// Takes a backup of the running server into a new directory below the backup directory.
    pub fn backup(&self, format: BackupFormat) -> Result<BackupReport, ServerError> {
        if self.pid().is_none() {
            return Err(ServerError::NotRunning { action: "take a backup" });
        }
        self.backup_tools().take(format.into(), &Watch::NONE)
    }

    /// Replaces the stopped database by a backup of it, prepared: the next start finds what was committed
    /// when the backup ended.
    pub fn restore(&mut self, backup: &BackupReport) -> Result<BackupReport, ServerError> {
        self.require_stopped("restore a backup")?;
        let programs = Programs::of(&self.spec().install)?;
        let begin = Instant::now();
        clear(&self.spec().data, &self.spec().wal)?;
        self.backup_tools().fill(backup, (&programs, begin), &Watch::NONE)
    }
}

impl Tools<Install> {
    /// Takes a backup of the running server into a new directory below the backup directory.
    pub fn take(
        &self,
        options: BackupOptions,
        watch: &Watch<'_>,
    ) -> Result<BackupReport, ServerError> {
        let programs = Programs::of(&self.spec.install)?;
        let begin = Instant::now();
        let path = in_new_directory(&self.spec, |path| {
            let mut args = self.backup_arguments();
            if let Some(bytes_per_second) = options.bytes_per_second {
                args.push(format!("--throttle={}", (bytes_per_second / READ_BYTES).max(1)).into());
            }
            match options.format {
                BackupFormat::Plain => {
                    args.push(option("--target-dir=", path));
                    self.run(&programs.backup, args, (watch, &[path]))?;
                }
                BackupFormat::Archive => {
                    // What it needs while it works goes where other temporary files go.
                    args.push("--stream=mbstream".into());
                    args.push(option("--target-dir=", &temporary_dir(&self.spec.data)));
                    let to = (path.join(ARCHIVE), "exec \"$@\" > \"$0\"");
                    self.redirected(&programs.backup, args, to, (watch, &[path]))?;
                }
            }
            sync_file_systems([path].into_iter())
        })?;
        let duration = begin.elapsed();
        let (_, bytes) = count(&path)?;
        Ok(BackupReport { path, format: options.format, bytes, began: begin, duration })
    }

    /// Restores a backup, prepared, beside the database that it is of, which may be running.
    pub fn restore_copy(
        &self,
        backup: &BackupReport,
        watch: &Watch<'_>,
    ) -> Result<RestoredCopy, ServerError> {
        let programs = Programs::of(&self.spec.install)?;
        let (data, wal) = self.room_for_copy()?;
        let spec = ServerSpec { data: data.clone(), wal: wal.clone(), ..self.spec.clone() };
        let tools = Tools { spec, ..self.clone() };
        let report = tools.fill(backup, (&programs, Instant::now()), watch)?;
        Ok(RestoredCopy { data, wal, report })
    }

    /// Restores into the empty directories of the spec; counts the time since `begin`.
    fn fill(
        &self,
        backup: &BackupReport,
        (programs, begin): (&Programs, Instant),
        watch: &Watch<'_>,
    ) -> Result<BackupReport, ServerError> {
        let spec = &self.spec;
        let owner = spec.run_as.as_ref();
        // Claimed first, so that a restore that was cut short can be repeated.
        claim(&spec.data, &spec.name, owner)?;
        let data = data_dir(&spec.data);
        make_private(&data, owner)?;
        make_private(&temporary_dir(&spec.data), owner)?;
        let written: (&Watch<'_>, &[&Path]) = (watch, &[&spec.data, &spec.wal]);
        match backup.format {
            BackupFormat::Plain => {
                let everything = |_: &Path| true;
                copy_trees(&[TreeCopy {
                    from: &backup.path,
                    to: &data,
                    owner,
                    wanted: &everything,
                }])?;
            }
            BackupFormat::Archive => {
                let args = vec!["-x".into(), "-C".into(), data.clone().into()];
                let from = (backup.path.join(ARCHIVE), "exec \"$@\" < \"$0\"");
                self.redirected(&programs.unpack, args, from, written)?;
            }
        }
        let args = vec!["--no-defaults".into(), "--prepare".into(), option("--target-dir=", &data)];
        self.run(&programs.backup, args, written)?;
        move_log(spec, &data)?;
        remove_notes(&data)?;
        sync_file_systems([spec.data.as_path(), spec.wal.as_path()].into_iter())?;
        let duration = begin.elapsed();
        for dir in [&spec.data, &spec.wal] {
            uncache(dir)?;
        }
        let bytes = count(&spec.data)?.1 + count(&spec.wal)?.1;
        Ok(BackupReport { bytes, began: begin, duration, ..backup.clone() })
    }

    fn backup_arguments(&self) -> Vec<OsString> {
        let Address::UnixSocket(socket) = &self.target.address else {
            unreachable!("a server's own target is its Unix socket");
        };
        let mut args: Vec<OsString> = vec!["--no-defaults".into(), "--backup".into()];
        args.push(option("--socket=", socket));
        args.push(format!("--user={SUPERUSER}").into());
        args
    }

    /// Runs a program with one of its streams in a file, which is `$0` of the script.
    fn redirected(
        &self,
        program: &Path,
        args: Vec<OsString>,
        (file, script): (PathBuf, &str),
        watched: (&Watch<'_>, &[&Path]),
    ) -> Result<(), ServerError> {
        let mut all: Vec<OsString> = vec!["-c".into(), script.into(), file.into(), program.into()];
        all.extend(args);
        self.run(Path::new("/bin/sh"), all, watched)
    }
}

/// Why no backup of this installation's servers can be taken, and what to install; `None` when one can.
pub(crate) fn backup_problem(install: &Install) -> Option<String> {
    Programs::of(install).err().map(|error| error.to_string())
}

impl Programs {
    /// The programs that fit a server: beside its own, or on `PATH`.
    fn of(install: &Install) -> Result<Programs, ServerError> {
        if install.flavour == Flavour::Mysql {
            return Err(ServerError::NoBackups {
                server: install.title(),
                reason: "mariadb-backup reads MariaDB's files only, and MySQL has no program like it",
            });
        }
        Ok(Programs {
            backup: matching(install, program(install, "mariadb-backup")?)?,
            unpack: program(install, "mbstream")?,
        })
    }
}

fn program(install: &Install, name: &str) -> Result<PathBuf, ServerError> {
    let mut beside = FOLDERS.iter().map(|folder| install.bin_dir().join(folder).join(name));
    beside.find(|path| path.is_file()).or_else(|| find_program(name)).ok_or_else(|| {
        HostError::ProgramNotFound {
            program: name.to_string(),
            remedy: "install the package mariadb-backup".to_string(),
        }
        .into()
    })
}

/// The program knows the files of its own series only.
fn matching(install: &Install, program: PathBuf) -> Result<PathBuf, ServerError> {
    // The version goes to standard error.
    let text =
        run_program("/bin/sh", &["-c", "exec \"$0\" --version 2>&1", &lossy(&program)], None)?;
    match version(&text) {
        Some(found) if found.starts_with(&format!("{}.{}.", install.major, install.minor)) => {
            Ok(program)
        }
        Some(found) => Err(ServerError::BackupVersion {
            program,
            version: found.to_string(),
            server: install.title(),
        }),
        None => Err(ServerError::Unparsable { program: "mariadb-backup --version", text }),
    }
}

/// `mariadb-backup based on MariaDB server 10.11.19-MariaDB debian-linux-gnu (x86_64)`.
fn version(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("MariaDB server ")?;
    rest.split(|c: char| !c.is_ascii_digit() && c != '.').next().filter(|word| !word.is_empty())
}

fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

/// A prepared log says where the database begins, and belongs on the log's volume.
fn move_log(spec: &ServerSpec, data: &Path) -> Result<(), ServerError> {
    let from = data.join(LOG);
    // Series before 10.8 leave none, and make one at the start.
    if !from.is_file() {
        return Ok(());
    }
    let to = spec.wal.join(LOG);
    let mut source = fs::File::open(&from).map_err(ServerError::file("open", &from))?;
    // A new file: never through a link that the server's user put there.
    let mut target = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o660)
        .open(&to)
        .map_err(ServerError::file("create", &to))?;
    std::io::copy(&mut source, &mut target).map_err(ServerError::file("copy", &from))?;
    if let Some(owner) = &spec.run_as {
        owner.own_file(&target, &to)?;
    }
    fs::remove_file(&from).map_err(ServerError::file("remove", &from))
}

fn remove_notes(data: &Path) -> Result<(), ServerError> {
    for entry in fs::read_dir(data).map_err(ServerError::file("list", data))? {
        let entry = entry.map_err(ServerError::file("list", data))?;
        let is_note =
            NOTES.iter().any(|note| entry.file_name().to_string_lossy().starts_with(note));
        if is_note && entry.path().is_file() {
            fs::remove_file(entry.path()).map_err(ServerError::file("remove", &entry.path()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::{Programs, version};
    use crate::managed::ServerError;
    use crate::mariadb::install::{Flavour, Install};

    fn install(flavour: Flavour, dir: &Path) -> Install {
        let (major, minor) = if flavour == Flavour::Mysql { (8, 4) } else { (10, 11) };
        let version = format!("{major}.{minor}.19");
        Install { flavour, major, minor, version, program: dir.join("sbin/mariadbd") }
    }

    #[test]
    fn reads_the_version() {
        let text =
            "mariadb-backup based on MariaDB server 10.11.19-MariaDB debian-linux-gnu (x86_64)";
        assert_eq!(version(text), Some("10.11.19"));
        assert_eq!(version("xtrabackup version 8.0.35"), None);
    }

    #[test]
    fn refuses_what_does_not_fit_the_server() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::create_dir(dir.path().join("sbin")).unwrap();
        let write = |says: &str| {
            for name in ["mariadb-backup", "mbstream"] {
                let path = dir.path().join("bin").join(name);
                fs::write(&path, format!("#!/bin/sh\necho '{says}' >&2\n")).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        };
        write("mariadb-backup based on MariaDB server 10.6.12-MariaDB Linux (x86_64)");
        let error = Programs::of(&install(Flavour::Mariadb, dir.path())).unwrap_err();
        assert!(matches!(error, ServerError::BackupVersion { .. }));
        let text = error.to_string();
        assert!(text.contains("10.6.12") && text.contains("MariaDB 10.11"), "{text}");
        write("mariadb-backup based on MariaDB server 10.11.4-MariaDB Linux (x86_64)");
        let found = Programs::of(&install(Flavour::Mariadb, dir.path())).unwrap();
        assert!(found.backup.starts_with(dir.path()) && found.unpack.starts_with(dir.path()));
        let error = Programs::of(&install(Flavour::Mysql, dir.path())).unwrap_err().to_string();
        assert!(error.starts_with("backups of MySQL 8.4 are not possible here"), "{error}");
    }
}
