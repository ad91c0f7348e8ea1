//! How a supervisor makes volumes and removes them.

use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use underlay_core::Bytes;
use underlay_host::{FileSystem, free_space, minimum_size};
use underlay_model::cluster::{Checksum, Method, Policy};

use super::capacity::{Promised, never_held, overcommitted};
use super::data_directory::check_mount;
use super::description::VolumeDescription;
use super::protocol::{NewVolume, VolumeStatus};
use super::server_config::volume_config;
use super::supervisor::{Problem, Supervisor, refused};
use super::volumes::Contents;
use crate::control::{Command, TimingMode};
use crate::error::DatastoreError;
use crate::spec::{full_size, with_checksums};

/// A volume whose clients were just sent away may have requests in flight for a moment.
const REMOVE_ATTEMPTS: u32 = 100;

impl Supervisor {
    pub(super) fn create(&mut self, new: &NewVolume) -> Result<VolumeStatus, Problem> {
        let volume = self.checked(new)?;
        let backing = self.backing(&volume.name);
        // Not in the description, so left by a creation that was cut short.
        match fs::remove_file(&backing) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(DatastoreError::file("remove", &backing)(error).into());
            }
            _ => {}
        }
        let command =
            Command::AddVolume(volume_config(&self.data_directory, &self.description, &volume));
        self.server.ask(&command)?;
        if let Err(error) = self.bring_up(&volume) {
            self.forget(&volume.name)?;
            return Err(error.into());
        }
        self.description.volumes.push(volume);
        self.description.write(&self.data_directory.description_file())?;
        let status = self.status()?;
        let warnings = self.overcommitments(&status.volumes);
        let created = status.volumes.into_iter().next_back().ok_or_else(|| {
            Problem::Refused("the volume vanished while it was being created".to_string())
        })?;
        Ok(VolumeStatus { warnings, ..created })
    }

    /// What a volume takes on this host when it is full.
    fn full_on_host(&self, capacity: Bytes, policy: Option<&Policy>) -> Bytes {
        policy.map_or(capacity, |policy| with_checksums(full_size(policy, capacity)))
    }

    /// What a cluster's volumes are promised.
    fn promised(&self) -> Vec<Promised> {
        let volumes = self.description.volumes.iter();
        let promised = |volume: &VolumeDescription| Promised {
            capacity: Bytes(volume.capacity_bytes),
            policy: volume.policy.unwrap_or(Policy::DEFAULT),
        };
        volumes.map(promised).collect()
    }

    /// Volumes that cannot all be full at once.
    fn overcommitments(&self, volumes: &[VolumeStatus]) -> Vec<String> {
        let cluster = self.description.cluster.as_ref();
        let on_devices = cluster.and_then(|cluster| overcommitted(cluster, &self.promised()));
        // Where it cannot be found out, nothing is said.
        let free = free_space(&self.data_directory.volumes()).ok();
        let growth = self.description.volumes.iter().zip(volumes).map(|(volume, now)| {
            let full = self.full_on_host(Bytes(volume.capacity_bytes), volume.policy.as_ref());
            full.0.saturating_sub(now.stored_bytes)
        });
        let growth = Bytes(growth.fold(0, u64::saturating_add));
        let on_host = free.filter(|free| growth > *free).map(|free| {
            format!(
                "the volumes of this datastore may grow by {growth}, but only {free} are free in {}: once that is \
                 used, writes will fail with I/O errors",
                self.data_directory.directory().display()
            )
        });
        on_devices.into_iter().chain(on_host).collect()
    }

    /// Everything that can be known to be wrong before anything is touched.
    fn checked(&self, new: &NewVolume) -> Result<VolumeDescription, Problem> {
        let name = new.name.clone();
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
            return refused(DatastoreError::BadVolumeName(name).to_string());
        }
        if self.description.volume(&name).is_some() {
            return refused(format!("volume `{name}` already exists"));
        }
        if new.capacity_bytes == 0 || !new.capacity_bytes.is_multiple_of(4096) {
            return refused("the size of a volume must be a multiple of 4 KiB");
        }
        if !self.is_powered {
            return refused(
                "the power is off; restore it with `underlay volume fault DIR power-on`",
            );
        }
        let known: Vec<&str> = self.description.devices.iter().map(|it| &*it.name).collect();
        let policy = self.checked_policy(new)?;
        let device = match &new.device {
            None => known.first().map_or_else(String::new, ToString::to_string),
            Some(device) if known.contains(&&**device) => device.clone(),
            Some(device) => {
                let known = known.join(", ");
                return refused(format!("there is no device `{device}`; there are {known}"));
            }
        };
        let file_system = match &new.file_system {
            None => None,
            Some(word) => match FileSystem::from_word(word) {
                Some(system) => Some(system),
                None => {
                    return refused(format!(
                        "`{word}` is not a supported file system; use ext4 or xfs"
                    ));
                }
            },
        };
        if let (Some(_), Some(reason)) = (file_system, &self.no_block_devices) {
            return refused(format!("a volume cannot be formatted here: {reason}"));
        }
        if let Some(system) = file_system.filter(|it| new.capacity_bytes < minimum_size(*it).0) {
            let (size, least) = (Bytes(new.capacity_bytes), minimum_size(system));
            return refused(format!(
                "{system} does not fit on a volume of {size}; make it {least} or larger"
            ));
        }
        if let Some(target) = &new.mount
            && let Err(error) = check_mount(self.data_directory.directory(), target)
        {
            return refused(error.to_string());
        }
        if new.mount.is_some() && file_system.is_none() {
            return refused("only a volume with a file system can be mounted; name one");
        }
        if let Some(target) = new.mount.as_deref().filter(|target| !target.is_dir()) {
            return refused(format!("`{}` is not a directory; create it first", target.display()));
        }
        let capacity = Bytes(new.capacity_bytes);
        if let (Some(cluster), Some(policy)) = (&self.description.cluster, policy)
            && let Some(reason) =
                never_held(cluster, &Promised { capacity, policy }, &self.promised())
        {
            return refused(reason);
        }
        let directory = self.data_directory.volumes();
        let (free, needed) =
            (free_space(&directory)?, self.full_on_host(capacity, policy.as_ref()));
        if needed > free {
            return refused(format!(
                "the volume takes up to {needed} in `{}`, all its copies included, but only {free} are free there; make it \
                 smaller or free space",
                self.data_directory.directory().display()
            ));
        }
        let (capacity_bytes, mount) = (new.capacity_bytes, new.mount.clone());
        Ok(VolumeDescription { name, capacity_bytes, device, policy, file_system, mount })
    }

    /// A policy where there is a cluster, and none where there is not.
    fn checked_policy(&self, new: &NewVolume) -> Result<Option<Policy>, Problem> {
        if self.description.cluster.is_none() {
            return match new.policy {
                None => Ok(None),
                Some(_) => refused(
                    "a policy needs a cluster; this datastore's volumes are on single devices",
                ),
            };
        }
        if new.device.is_some() {
            return refused("a cluster chooses the devices of a volume itself");
        }
        let policy = new.policy.map_or(Policy::DEFAULT, |asked| Policy {
            failures_to_tolerate: asked.failures_to_tolerate,
            method: if asked.erasure_coding { Method::ErasureCoding } else { Method::Mirror },
            stripe_width: asked.stripe_width,
            iops_limit: asked.iops_limit,
            checksum: if asked.checksum { Checksum::On } else { Checksum::Off },
            space_reservation_percent: asked.space_reservation_percent,
        });
        match policy.problems().first() {
            None => Ok(Some(policy)),
            Some(problem) => refused(problem.to_string()),
        }
    }

    fn bring_up(&mut self, volume: &VolumeDescription) -> Result<(), DatastoreError> {
        if self.no_block_devices.is_some() {
            return Ok(());
        }
        let attached = self.places.attach(&self.teardown, volume)?;
        self.attached.push((volume.name.clone(), attached));
        self.calibrate()?;
        let Some((_, attached)) = self.attached.last_mut() else { return Ok(()) };
        // With neighbours, formatting takes the time that the device takes: they must not be let off theirs.
        let alone = self.description.volumes.is_empty();
        if alone {
            self.server.done(&Command::SetTiming(TimingMode::Off))?;
        }
        let outcome = self.places.mount(&self.teardown, volume, attached, Contents::New);
        if alone {
            self.server.done(&Command::SetTiming(TimingMode::Modelled))?;
        }
        outcome?;
        self.follow_path()
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), Problem> {
        let Some(index) = self.description.volumes.iter().position(|it| it.name == name) else {
            let known: Vec<&str> = self.description.volumes.iter().map(|it| &*it.name).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            return refused(format!("there is no volume `{name}`; there are: {known}"));
        };
        self.check_nbd_clients(Some(name))?;
        self.release(name)?;
        // From here on it is gone, whatever happens: a file without description is removed later.
        self.description.volumes.remove(index);
        self.description.write(&self.data_directory.description_file())?;
        self.forget(name)?;
        Ok(())
    }

    /// Makes sure that no program of this host uses the volume any more.
    pub(super) fn release(&mut self, name: &str) -> Result<(), Problem> {
        match self.attached.iter_mut().find(|(attached, _)| attached == name) {
            Some((_, attached)) => attached.release(name).map_err(Problem::Refused),
            None => Ok(()),
        }
    }

    /// Takes a volume away with its data.
    pub(super) fn forget(&mut self, name: &str) -> Result<(), DatastoreError> {
        if let Some(index) = self.attached.iter().position(|(attached, _)| attached == name) {
            self.stop_following();
            self.attached.remove(index).1.detach()?;
            self.follow_path()?;
        }
        let command = Command::RemoveVolume { name: name.to_string() };
        let mut attempts = 0;
        while let Err(error) = self.server.done(&command) {
            attempts += 1;
            if attempts == REMOVE_ATTEMPTS {
                return Err(error);
            }
            thread::sleep(Duration::from_millis(20));
        }
        if self.description.cluster.is_some() {
            return Ok(());
        }
        let backing = self.backing(name);
        fs::remove_file(&backing).map_err(DatastoreError::file("remove", &backing))
    }
}
