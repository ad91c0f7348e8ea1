//! The directory of a persistent datastore: created, opened, locked, removed.

use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::client::{Connection, Forced};
use super::description::Description;
use super::orphan;
use crate::emulated::check_devices;
use crate::error::DatastoreError;

/// How long a keeper may take to bring everything up: attaching, calibrating, mounting, journal recovery.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long whoever has the lock for a moment, to look or to clear up, may make a new keeper wait.
const LOCK_LIMIT: Duration = Duration::from_secs(1);
/// How long a keeper that was told to stop may take to be gone.
const END_LIMIT: Duration = Duration::from_secs(60);
/// The path of a socket has 107 bytes at most.
const SOCKET_PATH_MAX: usize = 107;
/// The longest path below the directory that is a socket's.
const LONGEST_SOCKET: &str = "/run/datastore/c.sock";
/// The bytes of volumes are for nobody else on this host.
const PRIVATE_FOLDER: u32 = 0o700;
/// How much of the log an error carries.
const LAST_WORDS_BYTES: usize = 2000;

/// A directory that holds a datastore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    directory: PathBuf,
}

/// Who looks after a datastore.
#[derive(Clone, Debug)]
pub enum Presence {
    /// Its keeper: it runs.
    Kept(Connection),
    /// Nobody, although its server lives and volumes are served: the keeper was killed.
    Orphaned,
    /// Nobody; it is stopped, or about to start or end.
    Stopped,
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
        if let Some(address) = description.nbd_address {
            // The server will listen there; what is taken is better known before there is a datastore.
            TcpListener::bind(address)
                .map_err(|source| DatastoreError::Listen { address, source })?;
        }
        let existed = directory.exists();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(directory)
            .map_err(DatastoreError::file("create directory", directory))?;
        let made = Home::fill(directory, description);
        if made.is_err() && !existed {
            // The error says why there is nothing; an empty directory more would say nothing.
            let _stays_if_it_is_not_empty = fs::remove_dir(directory);
        }
        made
    }

    /// Makes a datastore in a directory that exists.
    fn fill(directory: &Path, description: &Description) -> Result<Home, DatastoreError> {
        let directory =
            directory.canonicalize().map_err(DatastoreError::file("resolve", directory))?;
        let most = SOCKET_PATH_MAX - LONGEST_SOCKET.len();
        if directory.as_os_str().len() > most {
            return Err(DatastoreError::PathTooLong { path: directory, most });
        }
        let home = Home { directory };
        // Two that make one at the same time do so one after the other.
        let held = File::open(&home.directory)
            .map_err(DatastoreError::file("open directory", &home.directory))?;
        flock(&held, FlockOperation::LockExclusive)
            .map_err(DatastoreError::file("lock", &home.directory))?;
        if home.description_file().exists() {
            return Err(DatastoreError::MadeMeanwhile(home.directory));
        }
        let mut entries =
            fs::read_dir(&home.directory).map_err(DatastoreError::file("list", &home.directory))?;
        if entries.next().is_some() {
            return Err(DatastoreError::NotEmpty(home.directory));
        }
        for inside in [home.volumes(), home.components()] {
            fs::DirBuilder::new()
                .mode(PRIVATE_FOLDER)
                .create(&inside)
                .map_err(DatastoreError::file("create directory", &inside))?;
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

    /// Who looks after it.
    pub fn presence(&self) -> Result<Presence, DatastoreError> {
        Ok(match self.connect()? {
            Some(connection) => Presence::Kept(connection),
            None if orphan::is_served(self) && self.try_lock()?.is_some() => Presence::Orphaned,
            None => Presence::Stopped,
        })
    }

    /// The keeper; an error that says what to do if there is none.
    pub fn running(&self) -> Result<Connection, DatastoreError> {
        match self.presence()? {
            Presence::Kept(connection) => Ok(connection),
            Presence::Orphaned => Err(DatastoreError::KeeperGone(self.directory.clone())),
            Presence::Stopped => Err(DatastoreError::NotRunning(self.directory.clone())),
        }
    }

    /// Starts the keeper, unless it runs, and waits until all volumes are there. `program` understands
    /// `datastore-keeper --directory DIR` by calling [`super::keep`]. What a killed keeper left is taken down first;
    /// refused while that is in use.
    pub fn start(&self, program: &Path) -> Result<Connection, DatastoreError> {
        if let Some(connection) = self.answering()? {
            return Ok(connection);
        }
        if let Some(_lock) = self.try_lock()? {
            orphan::take_down(self, Forced::No)?;
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

    /// Ends the datastore, and waits until nothing of it is on the host; its data stays. What a killed keeper left is
    /// taken down as the keeper would. Refused while volumes are in use, unless forced.
    pub fn stop(&self, forced: Forced) -> Result<(), DatastoreError> {
        if let Some(connection) = self.connect()? {
            match connection.stop(forced) {
                // It was dying when it was asked. Whether it is gone, the lock says.
                Err(DatastoreError::System { source, .. }) if hung_up(&source) => {}
                outcome => outcome?,
            }
        }
        let waited = self.wait_for_lock(END_LIMIT)?;
        let _lock = waited.ok_or_else(|| DatastoreError::KeeperSilent {
            action: "stop",
            seconds: END_LIMIT.as_secs(),
            log: self.log(),
        })?;
        orphan::take_down(self, forced)
    }

    /// Removes the datastore with all its data. Refused while it runs or its volumes are served, and where the
    /// directory holds anything that is not the datastore's.
    pub fn remove(self) -> Result<(), DatastoreError> {
        self.clear()?;
        fs::remove_dir(&self.directory)
            .map_err(DatastoreError::file("remove directory", &self.directory))
    }

    /// The same, but for the directory itself.
    pub fn clear(&self) -> Result<(), DatastoreError> {
        let lock =
            self.try_lock()?.ok_or_else(|| DatastoreError::Running(self.directory.clone()))?;
        // The data comes last: as long as anything is served from it, it must stay.
        orphan::take_down(self, Forced::No)?;
        for known in [self.volumes(), self.components()] {
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
        Ok(())
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

    /// The same, waiting for whoever has it.
    pub(super) fn wait_for_lock(&self, limit: Duration) -> Result<Option<File>, DatastoreError> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(Some(lock));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The lock for a new keeper's life.
    pub(super) fn lock_for_keeping(&self) -> Result<File, DatastoreError> {
        let lock = self.wait_for_lock(LOCK_LIMIT)?;
        lock.ok_or_else(|| DatastoreError::Running(self.directory.clone()))
    }

    /// Nobody else on this host can read the bytes of volumes afterwards: a datastore may have been made before that was
    /// so from the beginning.
    pub(super) fn make_private(&self) -> Result<(), DatastoreError> {
        make_private(&self.volumes())?;
        make_private(&self.components())
    }

    /// All data is on the host's disk afterwards.
    pub(super) fn synchronise(&self) -> Result<(), DatastoreError> {
        synchronise(&self.volumes())?;
        synchronise(&self.components())
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

    /// Where the server is told what to do.
    pub(super) fn control_socket(&self) -> PathBuf {
        self.run().join("datastore/c.sock")
    }

    /// Where a volume is mounted, unless another place was chosen.
    pub(super) fn mount_point(&self, volume: &str) -> PathBuf {
        self.run().join("mnt").join(volume)
    }

    /// A name of a volume's block device that stays the same.
    pub(super) fn device_link(&self, volume: &str) -> PathBuf {
        self.run().join("dev").join(volume)
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

/// Refuses to mount a volume where it would hide the datastore that holds it, or what the datastore needs while it runs.
/// Neither path needs to exist.
pub fn check_mount(directory: &Path, mount: &Path) -> Result<(), DatastoreError> {
    let (directory, target) = (resolved(directory), resolved(mount));
    if target.starts_with(&directory) || directory.starts_with(&target) {
        return Err(DatastoreError::MountOverDatastore { directory, target });
    }
    Ok(())
}

/// Absolute, and free of symbolic links as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let existing = path.ancestors().find_map(|ancestor| {
        Some(ancestor.canonicalize().ok()?.join(path.strip_prefix(ancestor).ok()?))
    });
    // Joining nothing would end the path in a slash, which starts_with does not mind.
    existing.unwrap_or(path)
}

/// Whether the other end was gone before it answered.
fn hung_up(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{
        BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof,
    };
    matches!(
        error.kind(),
        BrokenPipe | ConnectionRefused | ConnectionReset | NotFound | UnexpectedEof
    )
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

/// Takes away what group and others may do with a folder, or a file, and all that is in it.
fn make_private(path: &Path) -> Result<(), DatastoreError> {
    let failed = || DatastoreError::file("set the permissions of", path);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        // A datastore that was made before there were components.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed()(error)),
    };
    let mode = metadata.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700)).map_err(failed())?;
    }
    if !metadata.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(DatastoreError::file("list", path))? {
        let entry = entry.map_err(DatastoreError::file("list", path))?;
        // What somebody linked to from here is not the datastore's.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            make_private(&entry.path())?;
        }
    }
    Ok(())
}

/// Everything in a directory is on the host's disk afterwards.
fn synchronise(directory: &Path) -> Result<(), DatastoreError> {
    let failed = DatastoreError::file("synchronise", directory);
    let all = || -> std::io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    };
    let entries = match all() {
        Ok(entries) => entries,
        // A datastore that was made before there were components.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for path in entries {
        if path.is_dir() {
            synchronise(&path)?;
        } else {
            File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(DatastoreError::file("synchronise", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use underlay_core::RootSeed;
    use underlay_model::builtin;

    use super::{Home, check_mount, make_private};
    use crate::error::DatastoreError;
    use crate::persistent::{Description, DeviceDescription};
    use crate::spec::Durability;

    fn description() -> Description {
        let profile = builtin::find("null").expect("built in");
        Description {
            seed: RootSeed(1),
            durability: Durability::Profile,
            devices: vec![DeviceDescription { name: "null".to_string(), profile }],
            cluster: None,
            nbd_address: None,
            volumes: Vec::new(),
        }
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_mount_must_not_hide_its_datastore() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let store = folder.join("a/store");
        let refused = |mount: &Path| {
            matches!(check_mount(&store, mount), Err(DatastoreError::MountOverDatastore { .. }))
        };
        for made in [false, true] {
            if made {
                fs::create_dir_all(store.join("run")).unwrap();
                std::os::unix::fs::symlink(&store, folder.join("link")).unwrap();
                assert!(refused(&folder.join("link")));
            }
            assert!(refused(&store) && refused(&folder.join("a")) && refused(Path::new("/")));
            assert!(refused(&store.join("run")) && refused(&store.join("../store/volumes")));
            assert!(!refused(&folder.join("a/store-2")) && !refused(&folder.join("b")));
        }
    }

    #[test]
    fn the_bytes_of_volumes_are_private_from_now_on_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::create(&folder.path().join("store"), &description()).unwrap();
        assert_eq!((mode(&home.volumes()), mode(&home.components())), (0o700, 0o700));
        let (device, bytes) = (home.components().join("g0-d1"), home.components().join("g0-d1/c1"));
        fs::create_dir(&device).unwrap();
        fs::write(&bytes, "secret").unwrap();
        let foreign = folder.path().join("foreign");
        fs::write(&foreign, "not ours").unwrap();
        std::os::unix::fs::symlink(&foreign, home.volumes().join("link")).unwrap();
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        open(&home.components(), 0o755).unwrap();
        open(&device, 0o755).unwrap();
        open(&bytes, 0o644).unwrap();
        open(&foreign, 0o644).unwrap();
        home.make_private().unwrap();
        assert_eq!((mode(&home.components()), mode(&device), mode(&bytes)), (0o700, 0o700, 0o600));
        assert_eq!(mode(&foreign), 0o644);
        make_private(&folder.path().join("nowhere")).unwrap();
    }

    #[test]
    fn of_several_at_once_one_makes_the_datastore() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..10 {
            let store = folder.path().join(format!("store-{round}"));
            let made: Vec<_> = std::thread::scope(|scope| {
                let makers: Vec<_> =
                    (0..4).map(|_| scope.spawn(|| Home::create(&store, &description()))).collect();
                makers.into_iter().map(|maker| maker.join().unwrap()).collect()
            });
            assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1, "{made:?}");
            let mut others = made.iter().filter_map(|made| made.as_ref().err());
            assert!(others.all(|it| matches!(it, DatastoreError::MadeMeanwhile(_))), "{made:?}");
        }
    }

    #[test]
    fn what_cannot_be_made_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let nbd_address = Some(taken.local_addr().unwrap());
        let wish = Description { nbd_address, ..description() };
        let store = folder.path().join("store");
        let error = Home::create(&store, &wish).unwrap_err();
        assert!(matches!(error, DatastoreError::Listen { .. }), "{error}");
        assert!(!store.exists());
        let long = folder.path().join("x".repeat(100));
        let error = Home::create(&long, &description()).unwrap_err();
        assert!(matches!(error, DatastoreError::PathTooLong { .. }), "{error}");
        assert!(!long.exists());
        let home = Home::create(&store, &description()).unwrap();
        home.clear().unwrap();
        assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
        Home::create(&store, &description()).unwrap().remove().unwrap();
        assert!(!store.exists());
    }
}
