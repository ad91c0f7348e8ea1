//! The directory of a persistent datastore: created, opened, locked, removed.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::client::Connection;
use super::description::Description;
use crate::emulated::check_devices;
use crate::error::DatastoreError;

/// How long a keeper may take to bring everything up: attaching, calibrating, mounting, journal recovery.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a keeper that was told to stop may take to be gone.
const END_LIMIT: Duration = Duration::from_secs(60);
/// The path of a socket has 107 bytes at most.
const SOCKET_PATH_MAX: usize = 107;
/// The longest path below the directory that is a socket's.
const LONGEST_SOCKET: &str = "/run/datastore/c.sock";
/// How much of the log an error carries.
const LAST_WORDS_BYTES: usize = 2000;

/// A directory that holds a datastore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    directory: PathBuf,
}

impl Home {
    /// Makes a datastore in a directory that does not exist yet or is empty. It does not run yet.
    pub fn create(directory: &Path, description: &Description) -> Result<Home, DatastoreError> {
        let devices: Vec<_> = description
            .devices
            .iter()
            .map(|device| (device.name.clone(), device.profile.clone()))
            .collect();
        match &description.cluster {
            None => check_devices(&devices)?,
            Some(cluster) => {
                let problems = cluster.problems();
                if !problems.is_empty() {
                    return Err(DatastoreError::BadCluster(problems));
                }
            }
        }
        if let Some(address) = description.nbd_address.filter(|it| !it.ip().is_loopback()) {
            return Err(DatastoreError::NotLoopback(address));
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(directory)
            .map_err(DatastoreError::file("create directory", directory))?;
        let directory =
            directory.canonicalize().map_err(DatastoreError::file("resolve", directory))?;
        let most = SOCKET_PATH_MAX - LONGEST_SOCKET.len();
        if directory.as_os_str().len() > most {
            return Err(DatastoreError::PathTooLong { path: directory, most });
        }
        let home = Home { directory };
        let mut entries =
            fs::read_dir(&home.directory).map_err(DatastoreError::file("list", &home.directory))?;
        if entries.next().is_some() {
            return Err(DatastoreError::NotEmpty(home.directory));
        }
        for inside in [home.volumes(), home.components()] {
            fs::create_dir(&inside).map_err(DatastoreError::file("create directory", &inside))?;
        }
        description.write(&home.description_file())?;
        Ok(home)
    }

    /// Opens a directory that holds a datastore.
    pub fn open(directory: &Path) -> Result<Home, DatastoreError> {
        let not_one = || DatastoreError::NotADatastore(directory.to_path_buf());
        let found = directory.canonicalize().map_err(|_| not_one())?;
        let home = Home { directory: found };
        if home.description_file().is_file() { Ok(home) } else { Err(not_one()) }
    }

    /// The directory, absolute.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What it is made of, as of now.
    pub fn description(&self) -> Result<Description, DatastoreError> {
        Description::read(&self.description_file())
    }

    /// The keeper, if the datastore runs.
    pub fn connect(&self) -> Result<Option<Connection>, DatastoreError> {
        Connection::open(self.socket())
    }

    /// The keeper; an error that says how to start it if the datastore does not run.
    pub fn running(&self) -> Result<Connection, DatastoreError> {
        self.connect()?.ok_or_else(|| DatastoreError::NotRunning(self.directory.clone()))
    }

    /// Starts the keeper, unless it runs, and waits until all volumes are there. `program` understands
    /// `datastore-keeper --directory DIR` by calling [`super::keep`].
    pub fn start(&self, program: &Path) -> Result<Connection, DatastoreError> {
        if let Some(connection) = self.answering()? {
            return Ok(connection);
        }
        let log_path = self.log();
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o640)
            .open(&log_path)
            .map_err(DatastoreError::file("open", &log_path))?;
        let begin = log.metadata().map_err(DatastoreError::file("inspect", &log_path))?.len();
        let errors = log.try_clone().map_err(DatastoreError::file("open", &log_path))?;
        let mut keeper = Command::new(program)
            .args(["datastore-keeper", "--directory"])
            .arg(&self.directory)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(DatastoreError::file("start", program))?;
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Some(connection) = self.answering()? {
                return Ok(connection);
            }
            let ended = keeper.try_wait().map_err(DatastoreError::system("wait for the keeper"))?;
            if ended.is_some() {
                return Err(DatastoreError::KeeperEnded {
                    directory: self.directory.clone(),
                    last_words: last_words(&log_path, begin),
                });
            }
            if Instant::now() >= deadline {
                return Err(DatastoreError::KeeperSilent {
                    action: "start",
                    seconds: START_LIMIT.as_secs(),
                    log: log_path,
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The keeper, if it answers. One that is dying may still be connected to.
    fn answering(&self) -> Result<Option<Connection>, DatastoreError> {
        let Some(connection) = self.connect()? else { return Ok(None) };
        match connection.status() {
            Ok(_) => Ok(Some(connection)),
            Err(DatastoreError::System { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until a keeper that was told to stop has gone.
    pub fn wait_stopped(&self) -> Result<(), DatastoreError> {
        let deadline = Instant::now() + END_LIMIT;
        while self.try_lock()?.is_none() {
            if Instant::now() >= deadline {
                let (seconds, log) = (END_LIMIT.as_secs(), self.log());
                return Err(DatastoreError::KeeperSilent { action: "stop", seconds, log });
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Removes the datastore with all its data. Refused while it runs, and where the directory holds anything that
    /// is not the datastore's.
    pub fn remove(self) -> Result<(), DatastoreError> {
        let lock =
            self.try_lock()?.ok_or_else(|| DatastoreError::Running(self.directory.clone()))?;
        for known in [self.volumes(), self.components(), self.run()] {
            gone(fs::remove_dir_all(&known), &known)?;
        }
        let new = |path: PathBuf| path.with_extension("new");
        let files = [
            self.description_file(),
            new(self.description_file()),
            self.memory(),
            new(self.memory()),
            self.log(),
        ];
        for known in files {
            gone(fs::remove_file(&known), &known)?;
        }
        let lock_file = self.lock_file();
        gone(fs::remove_file(&lock_file), &lock_file)?;
        drop(lock);
        fs::remove_dir(&self.directory)
            .map_err(DatastoreError::file("remove directory", &self.directory))
    }

    /// The lock that the keeper holds as long as it lives; `None` when another process has it.
    pub(super) fn try_lock(&self) -> Result<Option<File>, DatastoreError> {
        let path = self.lock_file();
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(DatastoreError::file("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(DatastoreError::file("lock", &path)(error)),
        }
    }

    pub(super) fn description_file(&self) -> PathBuf {
        self.directory.join("datastore.json")
    }

    pub(super) fn volumes(&self) -> PathBuf {
        self.directory.join("volumes")
    }

    pub(super) fn components(&self) -> PathBuf {
        self.directory.join("components")
    }

    /// What a cluster must not forget.
    pub(super) fn memory(&self) -> PathBuf {
        self.directory.join("cluster.json")
    }

    pub(super) fn run(&self) -> PathBuf {
        self.directory.join("run")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.run().join("k.sock")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("keeper.log")
    }

    fn lock_file(&self) -> PathBuf {
        self.directory.join("lock")
    }
}

fn gone(outcome: std::io::Result<()>, path: &Path) -> Result<(), DatastoreError> {
    match outcome {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.map_err(DatastoreError::file("remove", path)),
    }
}

/// The end of what was written to the log since `begin`.
fn last_words(log: &Path, begin: u64) -> String {
    let text = fs::read(log).unwrap_or_default();
    let begin =
        usize::try_from(begin).unwrap_or(0).max(text.len().saturating_sub(LAST_WORDS_BYTES));
    let words = String::from_utf8_lossy(text.get(begin..).unwrap_or_default()).trim().to_string();
    if words.is_empty() { "none".to_string() } else { words }
}
