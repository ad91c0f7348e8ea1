//! The process that holds a running datastore: starts its server, attaches and mounts its volumes, answers questions.
//!
//! One thread. It looks after the server between questions: when the server has died, everything that was attached
//! is taken away, and the keeper ends; the data stays, and the next start serves it again.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::{info, warn};
use underlay_core::Bytes;
use underlay_host::{FileSystem, Resource, StateDir, Teardown, Ticket, clean};
use underlay_model::Operation;

use super::description::{Description, VolumeDescription};
use super::home::Home;
use super::protocol::{
    DeviceStatus, Latency, NewVolume, OperationStatus, Question, Reply, Status, VolumeStatus,
};
use super::volumes::{Attached, Contents, Places, stored_bytes};
use crate::config::{DeviceConfig, NbdConfig, ProfileConfig, ServerConfig, VolumeConfig};
use crate::control::{Answer, Command, Condition, Stat, TimingMode};
use crate::emulated::path_calibration::calibrate;
use crate::emulated::server_process::{ServerProcess, unexpected};
use crate::emulated::{check_floor, check_host, check_space};
use crate::error::DatastoreError;
use crate::spec::Context;

/// How often the keeper looks whether it should end, and whether the server lives.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Nobody keeps the keeper waiting for the rest of a question.
const QUESTION_LIMIT: Duration = Duration::from_secs(5);
/// Longest question.
const QUESTION_BYTES_MAX: u64 = 64 << 10;
/// How long the server may take to end after it was told to.
const END_LIMIT: Duration = Duration::from_secs(10);
/// A volume whose clients were just sent away may have requests in flight for a moment.
const REMOVE_ATTEMPTS: u32 = 100;

struct Keeper {
    home: Home,
    description: Description,
    teardown: Teardown,
    server: ServerProcess,
    places: Places,
    /// Why there are no block devices, if so.
    no_block_devices: Option<String>,
    export: Option<Ticket>,
    attached: Vec<(String, Attached)>,
    is_calibrated: bool,
    is_powered: bool,
    nbd_socket: PathBuf,
}

/// What a question may end in.
enum Problem {
    Refused(String),
    Failed(DatastoreError),
}

impl<E: Into<DatastoreError>> From<E> for Problem {
    fn from(error: E) -> Problem {
        Problem::Failed(error.into())
    }
}

fn refused<T>(reason: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Refused(reason.into()))
}

/// Holds the datastore in `directory` until it is told to stop, or `should_end` says so. `program` understands
/// `datastore-server --config FILE` by calling [`crate::serve`].
pub fn keep(
    directory: &Path,
    program: &Path,
    should_end: &dyn Fn() -> bool,
) -> Result<(), DatastoreError> {
    // No terminal's hang-up is meant for this process. Fails only for the leader of a process group, which then
    // was started by hand.
    let _ = rustix::process::setsid();
    let home = Home::open(directory)?;
    let lock =
        home.try_lock()?.ok_or_else(|| DatastoreError::Running(home.directory().to_path_buf()))?;
    let state = StateDir::open()?;
    // What a keeper that was killed left in the same place.
    for line in clean(&state)?.failed {
        warn!("left over from before: {line}");
    }
    let teardown = Teardown::create(&state, "datastore")?;
    let outcome =
        Keeper::start(&home, program, teardown.clone()).and_then(|keeper| keeper.serve(should_end));
    let leftovers = teardown.unwind();
    for leftover in &leftovers {
        warn!("{} was left behind: {}", leftover.resource, leftover.reason);
    }
    drop(lock);
    outcome
}

impl Keeper {
    fn start(home: &Home, program: &Path, teardown: Teardown) -> Result<Keeper, DatastoreError> {
        let description = home.description()?;
        let run = home.run();
        teardown.create_directory(&run)?;
        fs::set_permissions(&run, fs::Permissions::from_mode(0o711))
            .map_err(DatastoreError::file("set the permissions of", &run))?;
        let base = run.join("datastore");
        fs::create_dir(&base).map_err(DatastoreError::file("create directory", &base))?;
        let exported = base.join("export");
        let places = Places::create(home, exported.clone())?;
        let no_block_devices = check_host().err().map(|error| error.to_string());
        let mut export = None;
        if no_block_devices.is_none() {
            fs::create_dir(&exported)
                .map_err(DatastoreError::file("create directory", &exported))?;
            export = Some(teardown.register(Resource::Mount { target: exported.clone() })?);
        }
        let nbd_socket = run.join("nbd.sock");
        let config = ServerConfig {
            mount_point: export.is_some().then_some(exported),
            nbd: NbdConfig { socket: Some(nbd_socket.clone()), address: description.nbd_address },
            control_socket: base.join("c.sock"),
            seed: description.seed.0,
            durability: description.durability.into(),
            devices: description
                .devices
                .iter()
                .map(|device| DeviceConfig {
                    name: device.name.clone(),
                    profile: ProfileConfig::from_profile(&device.profile),
                })
                .collect(),
            volumes: description
                .volumes
                .iter()
                .map(|volume| volume_config(home, &description, volume))
                .collect(),
        };
        let (config_path, log) = (base.join("server.json"), base.join("server.log"));
        config.write(&config_path)?;
        let context =
            Context { teardown: &teardown, scratch: &run, server_program: program, owner: None };
        let server = ServerProcess::start(&context, &config_path, &config.control_socket, log)?;
        let mut keeper = Keeper {
            home: home.clone(),
            description,
            teardown,
            server,
            places,
            no_block_devices,
            export,
            attached: Vec::new(),
            is_calibrated: false,
            is_powered: true,
            nbd_socket,
        };
        keeper.attach_all()?;
        Ok(keeper)
    }

    fn attach_all(&mut self) -> Result<(), DatastoreError> {
        if self.no_block_devices.is_some() {
            return Ok(());
        }
        for volume in self.description.volumes.clone() {
            let attached = self.places.attach(&self.teardown, &volume)?;
            self.attached.push((volume.name.clone(), attached));
        }
        self.calibrate()?;
        for volume in &self.description.volumes {
            let found = self.attached.iter_mut().find(|(name, _)| *name == volume.name);
            if let Some((_, attached)) = found {
                self.places.mount(&self.teardown, volume, attached, Contents::Kept)?;
            }
        }
        Ok(())
    }

    /// Measures the path once, through the first block device there is, before anybody uses it.
    fn calibrate(&mut self) -> Result<(), DatastoreError> {
        let all_instant = self.description.devices.iter().all(|device| device.profile.is_instant());
        let Some((_, first)) = self.attached.first() else { return Ok(()) };
        if self.is_calibrated || all_instant {
            return Ok(());
        }
        let found = calibrate(&mut self.server, first.block_device())?;
        self.server.ask(&Command::Latency)?;
        self.server.ask(&Command::Timing)?;
        self.server.done(&Command::SetTiming(TimingMode::Modelled))?;
        self.is_calibrated = true;
        let devices: Vec<_> = self
            .description
            .devices
            .iter()
            .map(|device| (device.name.clone(), device.profile.clone()))
            .collect();
        // Nobody measures here, so a device too fast for the host is used as fast as the host can.
        if let Err(error) = check_floor(&devices, found.floor) {
            warn!("{error}");
        }
        Ok(())
    }

    fn serve(mut self, should_end: &dyn Fn() -> bool) -> Result<(), DatastoreError> {
        let socket = self.home.socket();
        let listener =
            UnixListener::bind(&socket).map_err(DatastoreError::file("listen on", &socket))?;
        listener.set_nonblocking(true).map_err(DatastoreError::system("listen without waiting"))?;
        info!("the datastore in {} runs", self.home.directory().display());
        loop {
            if should_end() {
                break;
            }
            self.server.check_alive()?;
            match poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(DatastoreError::system("wait for questions")(error)),
            }
            let Ok((stream, _)) = listener.accept() else { continue };
            if self.converse(&stream) == Ended::Yes {
                break;
            }
        }
        // Nobody may find a keeper that is about to be gone.
        fs::remove_file(&socket).map_err(DatastoreError::file("remove", &socket))?;
        self.end()
    }

    /// Answers the one question of a connection. A client that asks none, or does not listen, is none.
    fn converse(&mut self, stream: &UnixStream) -> Ended {
        let read = || -> io::Result<String> {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(QUESTION_LIMIT))?;
            stream.set_write_timeout(Some(QUESTION_LIMIT))?;
            let mut line = String::new();
            BufReader::new(stream).take(QUESTION_BYTES_MAX).read_line(&mut line)?;
            Ok(line)
        };
        let Some(line) = read().ok().filter(|line| !line.is_empty()) else { return Ended::No };
        let (reply, ended) = match serde_json::from_str::<Question>(&line) {
            Ok(question) => self.answer(&question),
            Err(error) => (Reply::Refused { reason: error.to_string() }, Ended::No),
        };
        let text = serde_json::to_string(&reply).expect("plain data") + "\n";
        let mut writer = stream;
        if let Err(error) = writer.write_all(text.as_bytes()) {
            warn!("nobody took the answer to {line:?}: {error}");
        }
        ended
    }

    fn answer(&mut self, question: &Question) -> (Reply, Ended) {
        let mut ended = Ended::No;
        let outcome = match question {
            Question::Status => self.status().map(|status| Reply::Status(Box::new(status))),
            Question::Latencies => self.latencies().map(Reply::Latencies),
            Question::Create(volume) => {
                self.create(volume).map(|status| Reply::Created(Box::new(status)))
            }
            Question::Remove { name } => self.remove(name).map(|()| Reply::Done),
            Question::SetCondition { device, condition } => {
                self.set_condition(device, *condition).map(|()| Reply::Done)
            }
            Question::PowerCut => self.power_cut().map(|()| Reply::Done),
            Question::PowerOn => self.power_on().map(|()| Reply::Done),
            Question::Stop { forced } => self.may_stop(*forced).map(|()| {
                ended = Ended::Yes;
                Reply::Done
            }),
        };
        let reply = outcome.unwrap_or_else(|problem| match problem {
            Problem::Refused(reason) => Reply::Refused { reason },
            Problem::Failed(DatastoreError::Refused { reason, .. }) => Reply::Refused { reason },
            Problem::Failed(error) => {
                warn!("{question:?} failed: {error}");
                Reply::Failed { reason: error.to_string() }
            }
        });
        (reply, ended)
    }

    fn create(&mut self, new: &NewVolume) -> Result<VolumeStatus, Problem> {
        let volume = self.checked(new)?;
        let backing = self.backing(&volume.name);
        // Not in the description, so left by a creation that was cut short.
        match fs::remove_file(&backing) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(DatastoreError::file("remove", &backing)(error).into());
            }
            _ => {}
        }
        let command = Command::AddVolume(volume_config(&self.home, &self.description, &volume));
        self.server.ask(&command)?;
        if let Err(error) = self.bring_up(&volume) {
            self.forget(&volume.name)?;
            return Err(error.into());
        }
        self.description.volumes.push(volume);
        self.description.write(&self.home.description_file())?;
        let status = self.status()?;
        status.volumes.into_iter().next_back().ok_or_else(|| {
            Problem::Refused("the volume vanished while it was being created".to_string())
        })
    }

    /// Everything that can be known to be wrong before anything is touched.
    fn checked(&self, new: &NewVolume) -> Result<VolumeDescription, Problem> {
        let name = new.name.clone();
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
            return refused(DatastoreError::BadVolumeName(name).to_string());
        }
        if self.description.volume(&name).is_some() {
            return refused(format!("there is a volume `{name}` already"));
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
        let device = match &new.device {
            None => known[0].to_string(),
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
                None => return refused(format!("`{word}` is no file system; use ext4 or xfs")),
            },
        };
        if let (Some(_), Some(reason)) = (file_system, &self.no_block_devices) {
            return refused(format!("a volume cannot be formatted here: {reason}"));
        }
        if new.mount.is_some() && file_system.is_none() {
            return refused("only a volume with a file system can be mounted; name one");
        }
        if let Some(target) = new.mount.as_deref().filter(|target| !target.is_dir()) {
            return refused(format!("`{}` is no directory; create it first", target.display()));
        }
        if let Err(error) = check_space(&self.home.volumes(), Bytes(new.capacity_bytes)) {
            return refused(error.to_string());
        }
        let (capacity_bytes, mount) = (new.capacity_bytes, new.mount.clone());
        Ok(VolumeDescription { name, capacity_bytes, device, file_system, mount })
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
        outcome
    }

    fn remove(&mut self, name: &str) -> Result<(), Problem> {
        let Some(index) = self.description.volumes.iter().position(|it| it.name == name) else {
            let known: Vec<&str> = self.description.volumes.iter().map(|it| &*it.name).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            return refused(format!("there is no volume `{name}`; there are: {known}"));
        };
        self.release(name)?;
        // From here on it is gone, whatever happens: a file without description is removed later.
        self.description.volumes.remove(index);
        self.description.write(&self.home.description_file())?;
        self.forget(name)?;
        Ok(())
    }

    /// Makes sure that nobody on this host uses the volume any more.
    fn release(&mut self, name: &str) -> Result<(), Problem> {
        match self.attached.iter_mut().find(|(attached, _)| attached == name) {
            Some((_, attached)) => attached.release(name).map_err(Problem::Refused),
            None => Ok(()),
        }
    }

    /// Takes a volume away with its data.
    fn forget(&mut self, name: &str) -> Result<(), DatastoreError> {
        if let Some(index) = self.attached.iter().position(|(attached, _)| attached == name) {
            self.attached.remove(index).1.detach()?;
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
        let backing = self.backing(name);
        fs::remove_file(&backing).map_err(DatastoreError::file("remove", &backing))
    }

    fn set_condition(&mut self, device: &str, condition: Condition) -> Result<(), Problem> {
        let device = device.to_string();
        Ok(self.server.done(&Command::SetCondition { device, condition })?)
    }

    fn power_cut(&mut self) -> Result<(), Problem> {
        match self.server.ask(&Command::PowerCut)? {
            Answer::PowerCut { .. } => self.is_powered = false,
            other => return Err(unexpected(&Command::PowerCut, &other).into()),
        }
        Ok(())
    }

    fn power_on(&mut self) -> Result<(), Problem> {
        if self.is_powered {
            return refused("the power is on");
        }
        // Before the power is back, or caches of the dead file systems would be written to the volumes.
        while let Some((_, attached)) = self.attached.pop() {
            attached.detach()?;
        }
        self.server.done(&Command::PowerOn)?;
        self.is_powered = true;
        Ok(self.attach_all()?)
    }

    fn may_stop(&mut self, forced: bool) -> Result<(), Problem> {
        if forced {
            return Ok(());
        }
        let names: Vec<String> = self.attached.iter().map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Err(problem) = self.release(&name) {
                // Those before it were unmounted already.
                self.mount_released()?;
                return Err(problem);
            }
        }
        Ok(())
    }

    fn mount_released(&mut self) -> Result<(), DatastoreError> {
        for (name, attached) in &mut self.attached {
            if attached.mount_point().is_none()
                && let Some(volume) = self.description.volume(name)
            {
                self.places.mount(&self.teardown, volume, attached, Contents::Kept)?;
            }
        }
        Ok(())
    }

    /// Takes everything down, politely; the data is synchronised with the host's disk.
    fn end(mut self) -> Result<(), DatastoreError> {
        while let Some((_, attached)) = self.attached.pop() {
            attached.detach()?;
        }
        self.server.done(&Command::End)?;
        if let Some(export) = self.export.take() {
            self.teardown.release(export)?;
        }
        let (server, home) = (self.server, self.home);
        server.finish(END_LIMIT)?;
        for volume in &self.description.volumes {
            let path = home.volumes().join(&volume.name);
            File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(DatastoreError::file("synchronise", &path))?;
        }
        info!("the datastore in {} has stopped", home.directory().display());
        Ok(())
    }

    fn backing(&self, name: &str) -> PathBuf {
        self.home.volumes().join(name)
    }

    fn stat(&mut self) -> Result<Stat, DatastoreError> {
        match self.server.ask(&Command::Stat)? {
            Answer::Stat(stat) => Ok(stat),
            other => Err(unexpected(&Command::Stat, &other)),
        }
    }

    fn status(&mut self) -> Result<Status, Problem> {
        let stat = self.stat()?;
        let devices = stat.devices.iter().zip(&self.description.devices);
        let devices = devices.map(|(device, described)| DeviceStatus {
            name: device.name.clone(),
            profile: described.profile.name.clone(),
            condition: condition_word(device.condition).to_string(),
            capacity_bytes: described.profile.capacity.0,
            free_bytes: device.free_bytes,
            buffer_fill_bytes: device.buffer_fill_bytes,
            drained_bytes: device.drained_bytes,
        });
        let devices = devices.collect();
        let volumes =
            self.description.volumes.iter().map(|volume| self.volume_status(volume, &stat));
        Ok(Status {
            directory: self.home.directory().to_path_buf(),
            keeper_pid: std::process::id(),
            server_pid: self.server.pid(),
            powered: self.is_powered,
            no_block_devices: self.no_block_devices.clone(),
            nbd_socket: self.nbd_socket.clone(),
            nbd_address: stat.nbd_address,
            devices,
            volumes: volumes.collect(),
            delayed: stat.delayed,
            host_limited: stat.host_limited,
            lateness_ns: stat.lateness_ns,
            errors: stat.errors,
            cpu_ns: stat.cpu_ns,
            memory_bytes: resident_bytes(self.server.pid()),
        })
    }

    fn volume_status(&self, volume: &VolumeDescription, stat: &Stat) -> VolumeStatus {
        let attached = self.attached.iter().find(|(name, _)| *name == volume.name);
        let attached = attached.map(|(_, attached)| attached);
        let counted = stat.volumes.iter().find(|counted| counted.name == volume.name);
        let operations = counted.into_iter().flat_map(|counted| {
            Operation::ALL.into_iter().zip(counted.operations).map(|(operation, counted)| {
                OperationStatus {
                    operation: operation.as_str().to_string(),
                    ios: counted.ios,
                    bytes: counted.bytes,
                    latency_ns: counted.latency_ns,
                    queue_ns: counted.queue_ns,
                }
            })
        });
        let tcp = stat.nbd_address.map(|address| format!("nbd://{address}/{}", volume.name));
        VolumeStatus {
            name: volume.name.clone(),
            capacity_bytes: volume.capacity_bytes,
            stored_bytes: stored_bytes(&self.backing(&volume.name)),
            device: volume.device.clone(),
            file_system: volume.file_system.map(|system| system.as_str().to_string()),
            block_device: attached.map(|attached| attached.block_device().to_path_buf()),
            link: attached.map(|attached| attached.link().to_path_buf()),
            mount: attached.and_then(Attached::mount_point).map(Path::to_path_buf),
            nbd_uri: format!("nbd+unix:///{}?socket={}", volume.name, self.nbd_socket.display()),
            nbd_tcp_uri: tcp,
            in_flight: counted.map_or(0, |counted| counted.in_flight),
            volatile_bytes: counted.map_or(0, |counted| counted.volatile_bytes),
            operations: operations.collect(),
        }
    }

    fn latencies(&mut self) -> Result<Vec<Latency>, Problem> {
        let stat = self.stat()?;
        let entries = match self.server.ask(&Command::Latency)? {
            Answer::Latency(entries) => entries,
            other => return Err(unexpected(&Command::Latency, &other).into()),
        };
        let latencies = entries.iter().filter_map(|entry| {
            let volume = stat.volumes.iter().find(|volume| volume.number == entry.volume)?;
            let histogram = entry.histogram.decode().ok()?;
            Some(Latency {
                volume: volume.name.clone(),
                operation: Operation::ALL[entry.operation].as_str().to_string(),
                ios: histogram.count(),
                p50_ns: histogram.quantile(0.5)?,
                p99_ns: histogram.quantile(0.99)?,
                max_ns: histogram.max()?,
            })
        });
        Ok(latencies.collect())
    }
}

/// Whether the keeper was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Yes,
    No,
}

fn volume_config(
    home: &Home,
    description: &Description,
    volume: &VolumeDescription,
) -> VolumeConfig {
    let device = description.devices.iter().position(|device| device.name == volume.device);
    VolumeConfig {
        name: volume.name.clone(),
        capacity_bytes: volume.capacity_bytes,
        device: device.unwrap_or(usize::MAX),
        backing_file: home.volumes().join(&volume.name),
    }
}

const fn condition_word(condition: Condition) -> &'static str {
    match condition {
        Condition::Healthy => "healthy",
        Condition::Slow { .. } => "slow",
        Condition::Stuck => "stuck",
        Condition::Erroring { .. } => "erroring",
        Condition::Lost => "lost",
    }
}

fn resident_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
