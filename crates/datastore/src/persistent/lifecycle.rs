//! The lifecycle of a persistent datastore: starting, finding, stopping and removing it, by commands that may run at the
//! same time.
//!
//! A command that finds another one starting or stopping the datastore waits for the outcome and then continues. A start
//! waits until a datastore that is starting runs; a stop ends it as soon as it runs. A command that needs a running
//! datastore neither fails because it came a moment too early, nor hangs on a supervisor that is about to end.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::client::{Connection, Forced};
use super::data_directory::DataDirectory;
use super::lock::{Busy, Lock, holder};
use super::orphan;
use crate::error::DatastoreError;

/// How long a supervisor may take to bring everything up: attaching, calibrating, mounting, journal recovery.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long a command that only reads may keep others from the lock.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// How long a supervisor may take to end after it was asked to stop.
const END_LIMIT: Duration = Duration::from_secs(60);
/// How often is looked again.
const PERIOD: Duration = Duration::from_millis(20);
/// How much of the log an error carries.
const LAST_WORDS_BYTES: usize = 2000;

/// Who looks after a datastore.
#[derive(Clone, Debug)]
pub enum Presence {
    /// Its supervisor: it runs.
    Kept(Connection),
    /// A command starts it or takes it down.
    Busy(Busy),
    /// No supervisor, although its server runs and volumes are served: the supervisor was killed.
    Orphaned,
    /// No supervisor: it is stopped.
    Stopped,
}

impl DataDirectory {
    /// The supervisor, if the datastore runs.
    pub fn connect(&self) -> Result<Option<Connection>, DatastoreError> {
        Connection::open(self.socket())
    }

    /// Who looks after it now.
    pub fn presence(&self) -> Result<Presence, DatastoreError> {
        if let Some(connection) = self.connect()? {
            return Ok(Presence::Kept(connection));
        }
        Ok(match holder(&self.lock_file()) {
            // It may have come up since it was looked for.
            Some(busy) => self.connect()?.map_or(Presence::Busy(busy), Presence::Kept),
            None if orphan::is_served(self) => Presence::Orphaned,
            None => Presence::Stopped,
        })
    }

    /// The supervisor, which is waited for while it comes up; an error that says what to do if there is none.
    pub fn running(&self) -> Result<Connection, DatastoreError> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            match self.presence()? {
                Presence::Kept(connection) => return Ok(connection),
                Presence::Orphaned => {
                    return Err(DatastoreError::SupervisorGone(self.directory().to_path_buf()));
                }
                Presence::Stopped => {
                    return Err(DatastoreError::NotRunning(self.directory().to_path_buf()));
                }
                Presence::Busy(busy) if Instant::now() >= deadline => {
                    let action = if busy == Busy::Stopping { "stop" } else { "start" };
                    return Err(self.silent(action, START_LIMIT));
                }
                Presence::Busy(_) => thread::sleep(PERIOD),
            }
        }
    }

    /// Starts the supervisor, unless it runs, and waits until all volumes are there. `program` understands
    /// `datastore-supervisor --directory DIR` by calling [`super::keep`]. What a killed supervisor left is taken down first;
    /// refused while that is in use. Once `is_given_up` says so, a supervisor that this call has started is ended again.
    pub fn start(
        &self,
        program: &Path,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Connection, DatastoreError> {
        let deadline = Instant::now() + START_LIMIT;
        let mut lock = loop {
            if let Some(connection) = self.answering()? {
                return Ok(connection);
            }
            if let Some(lock) = self.try_lock()? {
                break lock;
            }
            if is_given_up() {
                return Err(DatastoreError::GivenUp);
            }
            if Instant::now() >= deadline {
                return Err(self.silent("start", START_LIMIT));
            }
            thread::sleep(PERIOD);
        };
        lock.say(Busy::Starting);
        orphan::take_down(self, Forced::No)?;
        if is_given_up() {
            return Err(DatastoreError::GivenUp);
        }
        let log_path = self.log();
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o640)
            .open(&log_path)
            .map_err(DatastoreError::file("open", &log_path))?;
        let begin = log.metadata().map_err(DatastoreError::file("inspect", &log_path))?.len();
        let mut supervisor = self.spawn_supervisor(program, lock, log)?;
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Some(connection) = self.answering()? {
                return Ok(connection);
            }
            let ended =
                supervisor.try_wait().map_err(DatastoreError::system("wait for the supervisor"))?;
            if ended.is_some() {
                return Err(DatastoreError::SupervisorEnded {
                    directory: self.directory().to_path_buf(),
                    last_words: last_words(&log_path, begin),
                });
            }
            if is_given_up() {
                return Err(self.end_supervisor(supervisor));
            }
            if Instant::now() >= deadline {
                return Err(self.silent("start", START_LIMIT));
            }
            thread::sleep(PERIOD);
        }
    }

    fn spawn_supervisor(
        &self,
        program: &Path,
        lock: Lock,
        log: File,
    ) -> Result<Child, DatastoreError> {
        let log_path = self.log();
        let errors = log.try_clone().map_err(DatastoreError::file("open", &log_path))?;
        let mut command = Command::new(program);
        command
            .args(["datastore-supervisor", "--directory"])
            .arg(self.directory())
            .current_dir("/")
            .stdin(lock.into_stdin())
            .stdout(log)
            .stderr(errors);
        // In a session of its own from its first moment: Ctrl-C is meant for the command that waits for it, which then
        // stops it cleanly. SAFETY: setsid is a system call alone; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
        command.spawn().map_err(DatastoreError::file("start", program))
    }

    /// Ends a supervisor that is not wanted any more, and waits until nothing of it is on the host. Returns what came of it.
    fn end_supervisor(&self, mut supervisor: Child) -> DatastoreError {
        let told = i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw);
        // Not waited for yet, so its number is its own.
        if let Some(Err(error)) = told.map(|pid| kill_process(pid, Signal::TERM)) {
            return DatastoreError::system("end the supervisor")(error);
        }
        let deadline = Instant::now() + END_LIMIT;
        loop {
            match supervisor.try_wait() {
                Ok(Some(_)) => return DatastoreError::GivenUp,
                Ok(None) if Instant::now() >= deadline => return self.silent("stop", END_LIMIT),
                Ok(None) => thread::sleep(PERIOD),
                Err(error) => return DatastoreError::system("wait for the supervisor")(error),
            }
        }
    }

    /// The supervisor, if it answers. One that is dying may still be connected to.
    fn answering(&self) -> Result<Option<Connection>, DatastoreError> {
        let Some(connection) = self.connect()? else { return Ok(None) };
        match connection.status() {
            Ok(_) => Ok(Some(connection)),
            Err(DatastoreError::SupervisorLeft(_)) => Ok(None),
            Err(DatastoreError::System(error)) if error.path.is_none() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends the datastore, and waits until nothing of it is on the host; its data stays. One that is coming up is ended as
    /// soon as it is there. What a killed supervisor left is taken down as the supervisor would. Refused while volumes are in use,
    /// unless forced.
    pub fn stop(&self, forced: Forced) -> Result<(), DatastoreError> {
        self.halt(|connection| connection.stop(forced), forced).map(drop)
    }

    /// The same; the lock is held afterwards.
    fn halt(
        &self,
        ask: impl Fn(Connection) -> Result<(), DatastoreError>,
        forced: Forced,
    ) -> Result<Lock, DatastoreError> {
        let mut deadline = Instant::now() + START_LIMIT;
        let mut action = "start";
        let mut lock = loop {
            // Asked again each time: a supervisor that was starting does not listen yet, and another may have been
            // started meanwhile.
            match self.connect()?.map(&ask) {
                // It was dying when it was asked. Whether it is gone, the lock says.
                None | Some(Err(DatastoreError::SupervisorLeft(_))) => {}
                Some(outcome) => {
                    outcome?;
                    (deadline, action) = (Instant::now() + END_LIMIT, "stop");
                }
            }
            if let Some(lock) = self.try_lock()? {
                break lock;
            }
            if Instant::now() >= deadline {
                let limit = if action == "stop" { END_LIMIT } else { START_LIMIT };
                return Err(self.silent(action, limit));
            }
            thread::sleep(PERIOD);
        };
        lock.say(Busy::Stopping);
        orphan::take_down(self, forced)?;
        Ok(lock)
    }

    /// Stops the datastore and removes it with all its data. Refused while volumes are in use, and where the directory holds
    /// anything that is not the datastore's.
    pub fn remove(self) -> Result<(), DatastoreError> {
        let lock = self.halt(|connection| connection.stop(Forced::No), Forced::No)?;
        self.clear_held(lock)?;
        fs::remove_dir(self.directory())
            .map_err(DatastoreError::file("remove directory", self.directory()))
    }

    /// Removes a datastore that was created for a volume whose creation failed; returns whether that was done. One in
    /// which another command has put a volume meanwhile stays as it is. `directory_stays`: it was there before.
    pub fn withdraw(self, directory_stays: bool) -> Result<bool, DatastoreError> {
        if !self.description_file().exists() {
            // Another command has removed it.
            return Ok(true);
        }
        let lock = match self.halt(Connection::stop_if_empty, Forced::Yes) {
            Ok(lock) => lock,
            Err(DatastoreError::SupervisorRefused(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        if !self.description()?.volumes.is_empty() {
            return Ok(false);
        }
        self.clear_held(lock)?;
        if !directory_stays {
            fs::remove_dir(self.directory())
                .map_err(DatastoreError::file("remove directory", self.directory()))?;
        }
        Ok(true)
    }

    /// Removes all that is the datastore's; nothing runs, and nothing is served from it.
    fn clear_held(&self, lock: Lock) -> Result<(), DatastoreError> {
        let new = |path: PathBuf| path.with_extension("new");
        let files = [
            self.description_file(),
            new(self.description_file()),
            self.memory(),
            new(self.memory()),
            self.log(),
        ];
        for known in [self.volumes(), self.components()] {
            gone(fs::remove_dir_all(&known), &known)?;
        }
        for known in files {
            gone(fs::remove_file(&known), &known)?;
        }
        let lock_file = self.lock_file();
        gone(fs::remove_file(&lock_file), &lock_file)?;
        drop(lock);
        Ok(())
    }

    /// The lock that the supervisor holds as long as it lives; `None` when another process has it.
    fn try_lock(&self) -> Result<Option<Lock>, DatastoreError> {
        if !self.description_file().exists() {
            // Removed since it was found.
            return Err(DatastoreError::NotADatastore(self.directory().to_path_buf()));
        }
        Lock::try_take(&self.lock_file())
    }

    /// The lock for a new supervisor's life: handed over by who started it, or taken by one that was started by hand.
    pub(super) fn lock_for_keeping(&self) -> Result<Lock, DatastoreError> {
        if let Some(lock) = Lock::handed_over(&self.lock_file())? {
            return Ok(lock);
        }
        let deadline = Instant::now() + LOOK_LIMIT;
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                return Err(DatastoreError::Running(self.directory().to_path_buf()));
            }
            thread::sleep(PERIOD);
        }
    }

    fn silent(&self, action: &'static str, limit: Duration) -> DatastoreError {
        DatastoreError::SupervisorSilent { action, seconds: limit.as_secs(), log: self.log() }
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
    let text = String::from_utf8_lossy(text.get(begin..).unwrap_or_default());
    // What went well is no reason.
    let words: Vec<&str> = text.trim().lines().filter(|line| !line.contains(" INFO ")).collect();
    let words = words.join("\n");
    if words.is_empty() { "none".to_string() } else { words }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};
    use std::thread;
    use std::time::{Duration, Instant};

    use underlay_core::RootSeed;
    use underlay_model::builtin;

    use super::{DataDirectory, Forced, Presence};
    use crate::error::DatastoreError;
    use crate::persistent::lock::{Busy, Lock, holder};
    use crate::persistent::protocol::{Question, Reply};
    use crate::persistent::{Description, DeviceDescription, VolumeDescription};
    use underlay_core::Durability;

    fn made(folder: &Path) -> DataDirectory {
        let profile = builtin::find("null").expect("built in");
        let description = Description {
            seed: RootSeed(1),
            durability: Durability::Profile,
            devices: vec![DeviceDescription { name: "null".to_string(), profile }],
            link: None,
            cluster: None,
            nbd_address: None,
            volumes: Vec::new(),
        };
        DataDirectory::create(&folder.join("store"), &description).expect("made")
    }

    /// Stands in for a supervisor, or whatever else is to be started.
    fn program(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("program");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
        path
    }

    /// What a supervisor does once everything runs: answers until it is asked to stop, then takes
    /// everything down.
    fn keep_until_stopped(data_directory: &DataDirectory, lock: Lock) {
        fs::create_dir_all(data_directory.run()).unwrap();
        let listener = UnixListener::bind(data_directory.socket()).unwrap();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            if matches!(serde_json::from_str(&line), Ok(Question::Stop { .. })) {
                writeln!(stream, "{}", serde_json::to_string(&Reply::Done).unwrap()).unwrap();
                break;
            }
        }
        fs::remove_dir_all(data_directory.run()).unwrap();
        drop((listener, lock));
    }

    /// A start that was interrupted continues: it must accept a stop, however early that comes.
    #[test]
    fn a_datastore_that_is_coming_up_is_stopped_once_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let data_directory = made(folder.path());
        let mut lock = Lock::try_take(&data_directory.lock_file()).unwrap().unwrap();
        lock.say(Busy::Starting);
        assert!(matches!(data_directory.presence().unwrap(), Presence::Busy(Busy::Starting)));
        let begin = Instant::now();
        thread::scope(|scope| {
            let stop = scope.spawn(|| data_directory.stop(Forced::No));
            let wait = scope.spawn(|| data_directory.running().map(drop));
            // Both have looked for the supervisor by then, or look later and find it at once.
            thread::sleep(Duration::from_millis(100));
            keep_until_stopped(&data_directory, lock);
            stop.join().unwrap().unwrap();
            // It came up, or was stopped before it was seen.
            let waited = wait.join().unwrap();
            assert!(matches!(waited, Ok(()) | Err(DatastoreError::NotRunning(_))), "{waited:?}");
        });
        assert!(begin.elapsed() < super::END_LIMIT);
        assert!(matches!(data_directory.presence().unwrap(), Presence::Stopped));
    }

    #[test]
    fn nobody_gets_between_a_start_and_its_supervisor() {
        let folder = tempfile::tempdir().unwrap();
        let data_directory = made(folder.path());
        let script = "flock -n \"$3/lock\" true && echo free || echo held\ncat \"$3/lock\"\nexit 1";
        let error = data_directory.start(&program(folder.path(), script), &|| false).unwrap_err();
        let DatastoreError::SupervisorEnded { last_words, .. } = &error else { panic!("{error}") };
        assert_eq!(last_words, "held\nstarting");
        assert_eq!(holder(&data_directory.lock_file()), None);
        // Not one of a group that a terminal's Ctrl-C is meant for.
        let own = "read -r line < /proc/$$/stat; set -- $line; test $1 = $6 && echo leads; exit 1";
        let error = data_directory.start(&program(folder.path(), own), &|| false).unwrap_err();
        assert!(error.to_string().ends_with(": leads"), "{error}");
    }

    #[test]
    fn a_start_that_is_given_up_leaves_no_supervisor() {
        let folder = tempfile::tempdir().unwrap();
        let data_directory = made(folder.path());
        let sleeper = program(folder.path(), "touch \"$3/begun\"; exec sleep 60");
        let begun = data_directory.directory().join("begun");
        let given_up = data_directory.start(&sleeper, &|| begun.exists());
        assert!(matches!(given_up, Err(DatastoreError::GivenUp)), "{given_up:?}");
        assert_eq!(holder(&data_directory.lock_file()), None);
        // While another one starts or stops it, nothing is to be ended.
        let held = Lock::try_take(&data_directory.lock_file()).unwrap();
        let given_up = data_directory.start(&sleeper, &|| true);
        assert!(matches!(given_up, Err(DatastoreError::GivenUp)), "{given_up:?}");
        drop(held);
    }

    #[test]
    fn what_another_command_has_put_in_is_not_withdrawn() {
        let folder = tempfile::tempdir().unwrap();
        let data_directory = made(folder.path());
        let mut description = data_directory.description().unwrap();
        description.volumes.push(VolumeDescription {
            name: "theirs".to_string(),
            capacity_bytes: 1 << 20,
            device: "null".to_string(),
            policy: None,
            file_system: None,
            mount: None,
        });
        description.write(&data_directory.description_file()).unwrap();
        assert!(!data_directory.clone().withdraw(false).unwrap());
        assert_eq!(data_directory.description().unwrap().volumes.len(), 1);
        description.volumes.clear();
        description.write(&data_directory.description_file()).unwrap();
        assert!(data_directory.clone().withdraw(false).unwrap());
        assert!(!data_directory.directory().exists());
        // Another command removed it: nothing of it is left either.
        assert!(data_directory.clone().withdraw(false).unwrap());
        for gone in [
            data_directory.stop(Forced::No),
            data_directory.start(Path::new("/bin/true"), &|| false).map(drop),
        ] {
            assert!(matches!(gone, Err(DatastoreError::NotADatastore(_))), "{gone:?}");
        }
    }
}
