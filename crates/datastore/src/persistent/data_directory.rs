//! The directory of a persistent datastore: creating it, opening it, and the paths in it. Starting, stopping and removing a
//! datastore is in `lifecycle`.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::description::Description;
use crate::emulated::check_devices;
use crate::error::DatastoreError;

/// The path of a socket has 107 bytes at most.
const SOCKET_PATH_MAX: usize = 107;
/// The longest path below the directory that is a socket's.
const LONGEST_SOCKET: &str = "/run/datastore/c.sock";
/// No other user of this host may read the bytes of volumes.
const PRIVATE_FOLDER: u32 = 0o700;

/// A directory that holds a datastore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDirectory {
    directory: PathBuf,
}

impl DataDirectory {
    /// Makes a datastore in a directory that does not exist yet or is empty. It does not run yet.
    pub fn create(
        directory: &Path,
        description: &Description,
    ) -> Result<DataDirectory, DatastoreError> {
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
        let made = DataDirectory::fill(directory, description);
        if made.is_err() && !existed {
            // The error says why there is nothing; an empty directory more would say nothing.
            let _stays_if_it_is_not_empty = fs::remove_dir(directory);
        }
        made
    }

    /// Makes a datastore in a directory that exists.
    fn fill(directory: &Path, description: &Description) -> Result<DataDirectory, DatastoreError> {
        let directory =
            directory.canonicalize().map_err(DatastoreError::file("resolve", directory))?;
        let most = SOCKET_PATH_MAX - LONGEST_SOCKET.len();
        if directory.as_os_str().len() > most {
            return Err(DatastoreError::PathTooLong { path: directory, most });
        }
        let data_directory = DataDirectory { directory };
        // Two that make one at the same time do so one after the other.
        let held = File::open(&data_directory.directory)
            .map_err(DatastoreError::file("open directory", &data_directory.directory))?;
        flock(&held, FlockOperation::LockExclusive)
            .map_err(DatastoreError::file("lock", &data_directory.directory))?;
        if data_directory.description_file().exists() {
            return Err(DatastoreError::MadeMeanwhile(data_directory.directory));
        }
        let mut entries = fs::read_dir(&data_directory.directory)
            .map_err(DatastoreError::file("list", &data_directory.directory))?;
        if entries.next().is_some() {
            return Err(DatastoreError::NotEmpty(data_directory.directory));
        }
        for inside in [data_directory.volumes(), data_directory.components()] {
            fs::DirBuilder::new()
                .mode(PRIVATE_FOLDER)
                .create(&inside)
                .map_err(DatastoreError::file("create directory", &inside))?;
        }
        description.write(&data_directory.description_file())?;
        Ok(data_directory)
    }

    /// Opens a directory that holds a datastore.
    pub fn open(directory: &Path) -> Result<DataDirectory, DatastoreError> {
        let not_one = || DatastoreError::NotADatastore(directory.to_path_buf());
        let found = directory.canonicalize().map_err(|_| not_one())?;
        let data_directory = DataDirectory { directory: found };
        if data_directory.description_file().is_file() {
            Ok(data_directory)
        } else {
            Err(not_one())
        }
    }

    /// The directory, absolute.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What it is made of, as of now.
    pub fn description(&self) -> Result<Description, DatastoreError> {
        Description::read(&self.description_file())
    }

    /// Afterwards no other user of this host can read the bytes of volumes: a datastore may have been made before that
    /// was so from the beginning.
    pub(super) fn make_private(&self) -> Result<(), DatastoreError> {
        make_private(&self.volumes())?;
        make_private(&self.components())
    }

    /// Removes bytes of volumes that are not among these: of a creation or a removal that was cut short. A cluster removes its own.
    pub(super) fn remove_unfinished(&self, description: &Description) {
        for entry in fs::read_dir(self.volumes()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_known = description.volumes.iter().any(|volume| *volume.name == *name);
            if is_known || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path();
            match fs::remove_file(&path) {
                Ok(()) => tracing::warn!("removed {}, which no volume has", path.display()),
                Err(error) => tracing::warn!("{} stays: {error}", path.display()),
            }
        }
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

    /// The configuration file of the server.
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

    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("supervisor.log")
    }

    pub(super) fn lock_file(&self) -> PathBuf {
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
        // The target of a link that a user put here does not belong to the datastore.
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

    use super::{DataDirectory, check_mount, make_private};
    use crate::error::DatastoreError;
    use crate::persistent::{Description, DeviceDescription, VolumeDescription};
    use underlay_core::Durability;

    fn description() -> Description {
        let profile = builtin::find("null").expect("built in");
        Description {
            seed: RootSeed(1),
            durability: Durability::Profile,
            devices: vec![DeviceDescription { name: "null".to_string(), profile }],
            link: None,
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
        let data_directory =
            DataDirectory::create(&folder.path().join("store"), &description()).unwrap();
        assert_eq!(
            (mode(&data_directory.volumes()), mode(&data_directory.components())),
            (0o700, 0o700)
        );
        let (device, bytes) = (
            data_directory.components().join("g0-d1"),
            data_directory.components().join("g0-d1/c1"),
        );
        fs::create_dir(&device).unwrap();
        fs::write(&bytes, "secret").unwrap();
        let foreign = folder.path().join("foreign");
        fs::write(&foreign, "not ours").unwrap();
        std::os::unix::fs::symlink(&foreign, data_directory.volumes().join("link")).unwrap();
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        open(&data_directory.components(), 0o755).unwrap();
        open(&device, 0o755).unwrap();
        open(&bytes, 0o644).unwrap();
        open(&foreign, 0o644).unwrap();
        data_directory.make_private().unwrap();
        assert_eq!(
            (mode(&data_directory.components()), mode(&device), mode(&bytes)),
            (0o700, 0o700, 0o600)
        );
        assert_eq!(mode(&foreign), 0o644);
        make_private(&folder.path().join("nowhere")).unwrap();
    }

    #[test]
    fn what_a_creation_that_was_cut_short_left_goes_and_all_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let data_directory =
            DataDirectory::create(&folder.path().join("store"), &description()).unwrap();
        let volume = VolumeDescription {
            name: "kept".to_string(),
            capacity_bytes: 4096,
            device: "null".to_string(),
            policy: None,
            file_system: None,
            mount: None,
        };
        for name in ["kept", "cut-short"] {
            fs::write(data_directory.volumes().join(name), "bytes").unwrap();
        }
        fs::create_dir(data_directory.volumes().join("folder")).unwrap();
        data_directory.remove_unfinished(&Description { volumes: vec![volume], ..description() });
        let mut left: Vec<_> = fs::read_dir(data_directory.volumes())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["folder", "kept"]);
    }

    #[test]
    fn of_several_at_once_one_makes_the_datastore() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..10 {
            let store = folder.path().join(format!("store-{round}"));
            let made: Vec<_> = std::thread::scope(|scope| {
                let makers: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| DataDirectory::create(&store, &description())))
                    .collect();
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
        let error = DataDirectory::create(&store, &wish).unwrap_err();
        assert!(matches!(error, DatastoreError::Listen { .. }), "{error}");
        assert!(!store.exists());
        let long = folder.path().join("x".repeat(100));
        let error = DataDirectory::create(&long, &description()).unwrap_err();
        assert!(matches!(error, DatastoreError::PathTooLong { .. }), "{error}");
        assert!(!long.exists());
        let data_directory = DataDirectory::create(&store, &description()).unwrap();
        assert!(data_directory.withdraw(true).unwrap());
        assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
        DataDirectory::create(&store, &description()).unwrap().remove().unwrap();
        assert!(!store.exists());
    }
}
