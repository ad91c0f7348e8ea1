//! Physical backups of a running server: their forms, their place, how fast they were, and how their programs are run. Which
//! program takes one, and how it becomes a database again, is each engine's own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use underlay_core::Bytes;
use underlay_host::{HostError, Process, ProcessExit, ProcessSpec, Teardown};

use crate::managed::{ServerError, ServerSpec, clear, count, make_private, read_since};
use crate::target::Target;

/// Between two looks at a program whether it has ended or is to be stopped.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two counts of what a program has written.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// How much of what a failed program said is kept, lines.
const ERROR_LINES: usize = 12;

/// The form of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupFormat {
    /// A tree of files.
    Plain,
    /// One archive, large sequential writes: `base.tar` and `pg_wal.tar` of PostgreSQL,
    /// `base.mbstream` of MariaDB.
    Archive,
}

/// How a backup is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupOptions {
    /// Its form.
    pub format: BackupFormat,
    /// The most that it copies, bytes per second, as far as its program can hold to that: pg_basebackup takes 32 KiB to
    /// 1 GiB, mariadb-backup whole MiB.
    pub bytes_per_second: Option<u64>,
}

impl From<BackupFormat> for BackupOptions {
    fn from(format: BackupFormat) -> BackupOptions {
        BackupOptions { format, bytes_per_second: None }
    }
}

/// A finished backup or its restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Where the backup is.
    pub path: PathBuf,
    /// Its form.
    pub format: BackupFormat,
    /// What was written.
    pub bytes: Bytes,
    /// When it began.
    pub began: Instant,
    /// How long it took, until it was durable.
    pub duration: Duration,
}

impl BackupReport {
    /// Throughput in bytes per second; what took less than a nanosecond counts as having taken one.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes.0 as f64 / self.duration.as_secs_f64().max(1e-9)
    }
}

/// A backup that was restored into directories of its own, beside the database that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredCopy {
    /// The data directory, on the data volume.
    pub data: PathBuf,
    /// The directory of the log, on its volume.
    pub wal: PathBuf,
    /// What was written, and how long that took.
    pub report: BackupReport,
}

/// What the caller of a backup or restore does while it runs: stops it, follows its progress.
pub struct Watch<'a> {
    /// Whether to end it early.
    pub stop: &'a dyn Fn() -> bool,
    /// Called about once per second with the bytes written so far, and once more when a program has
    /// ended.
    pub written: &'a dyn Fn(Bytes),
}

impl Watch<'_> {
    /// Never stopped, and its progress is not reported.
    pub(crate) const NONE: Watch<'static> = Watch { stop: &|| false, written: &|_| {} };
}

/// What the programs of backups and restores need of a server: a copy, for a thread of its own.
#[derive(Clone, Debug)]
pub(crate) struct Tools<I> {
    pub teardown: Teardown,
    pub spec: ServerSpec<I>,
    /// How a backup connects.
    pub target: Target,
}

impl<I> Tools<I> {
    /// Runs a program to its end: as the server's user, in its control group, on its teardown stack. `written` is
    /// where it writes to.
    pub fn run(
        &self,
        program: &Path,
        args: Vec<OsString>,
        (watch, written): (&Watch<'_>, &[&Path]),
    ) -> Result<(), ServerError> {
        let named = program.file_name().unwrap_or(program.as_os_str());
        let name = named.to_string_lossy().into_owned();
        let output = self.spec.runtime_dir.join("backup.log");
        let said_before = output.metadata().map_or(0, |metadata| metadata.len());
        let process = Process::spawn(
            &self.teardown,
            &ProcessSpec {
                name: &name,
                program,
                args,
                env: vec![("LC_ALL".into(), "C".into())],
                run_as: self.spec.run_as.as_ref(),
                cgroup: self.spec.cgroup.as_ref(),
                working_dir: Path::new("/"),
                output: output.clone(),
            },
        )?;
        let mut next_count = Instant::now() + COUNT_EVERY;
        let exit = loop {
            if (watch.stop)() {
                process.kill_tree()?;
                process.collect(None)?;
                return Err(ServerError::Stopped { program: name });
            }
            if let Some(exit) = process.wait_for(LOOK_EVERY)? {
                break exit;
            }
            if Instant::now() >= next_count {
                (watch.written)(sum(written));
                next_count = Instant::now() + COUNT_EVERY;
            }
        };
        process.collect(Some(exit))?;
        (watch.written)(sum(written));
        let status = match exit {
            ProcessExit::Code(0) => return Ok(()),
            ProcessExit::Code(code) => format!("exit code {code}"),
            ProcessExit::Signal(signal) => format!("killed by signal {signal}"),
            ProcessExit::Unknown => "ended".to_string(),
        };
        let stderr = last_lines(&read_since(&output, said_before));
        Err(HostError::ProgramFailed { program: name, status, stderr }.into())
    }

    /// Empty directories for a copy beside the database, where an earlier copy may be.
    pub fn room_for_copy(&self) -> Result<(PathBuf, PathBuf), ServerError> {
        let beside = |dir: &Path| {
            let mut name = dir.file_name().unwrap_or_default().to_os_string();
            name.push("-restored");
            dir.with_file_name(name)
        };
        let (data, wal) = (beside(&self.spec.data), beside(&self.spec.wal));
        for dir in [&data, &wal] {
            make_private(dir, self.spec.run_as.as_ref())?;
        }
        clear(&data, &wal)?;
        Ok((data, wal))
    }
}

/// What is there now; what a program moves or removes meanwhile is counted the next time.
fn sum(dirs: &[&Path]) -> Bytes {
    let counted = dirs.iter().filter_map(|dir| Some(count(dir).ok()?.1));
    counted.fold(Bytes::ZERO, |sum, bytes| sum + bytes)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(ERROR_LINES)..].join("\n")
}

/// Carries out `take` on a new directory `base-1`, `base-2`, ... below the backup directory. What a
/// failed one leaves is removed: it would look like a backup.
pub(crate) fn in_new_directory<I>(
    spec: &ServerSpec<I>,
    take: impl FnOnce(&Path) -> Result<(), ServerError>,
) -> Result<PathBuf, ServerError> {
    make_private(&spec.backup, spec.run_as.as_ref())?;
    let path = (1u32..)
        .map(|number| spec.backup.join(format!("base-{number}")))
        .find(|path| !path.exists())
        .expect("a directory has fewer than 2^32 entries");
    make_private(&path, spec.run_as.as_ref())?;
    match take(&path) {
        Ok(()) => Ok(path),
        Err(error) => {
            // The first failure is the one to tell.
            let _ = fs::remove_dir_all(&path);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use underlay_core::Bytes;

    use super::{BackupFormat, BackupReport};

    #[test]
    fn throughput_is_bytes_over_time() {
        let report = BackupReport {
            path: "/backup/base-1".into(),
            format: BackupFormat::Plain,
            bytes: Bytes::from_mib(3),
            began: Instant::now(),
            duration: Duration::from_millis(1_500),
        };
        assert_eq!(report.bytes_per_second(), f64::from(2 << 20));
        let instant = BackupReport { duration: Duration::ZERO, ..report };
        assert!(instant.bytes_per_second().is_finite());
    }
}
