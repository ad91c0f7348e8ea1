//! The process that holds a running datastore: starts its server, attaches and mounts its volumes, answers questions.
//!
//! One thread. Between requests it checks the server: if the server has died, all block devices and mounts are
//! removed, and the supervisor ends. The data stays, and the next start serves it again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing::{info, warn};
use underlay_core::Dilation;
use underlay_host::{Resource, StateDir, Teardown, Ticket, clean, loop_devices};

use super::data_directory::DataDirectory;
use super::description::Description;
use super::lateness::Lateness;
use super::lock::{Busy, Lock};
use super::protocol::{Question, Reply};
use super::recent_notices::RecentNotices;
use super::server_config::{nbd_socket, server_config};
use super::volumes::{Attached, Contents, Places};
use crate::control::{Answer, Command, Condition};
use crate::emulated::check_host;
use crate::emulated::path_calibration::Calibration;
use crate::emulated::path_follower::PathFollower;
use crate::emulated::server_process::{ServerProcess, unexpected};
use crate::error::DatastoreError;
use crate::fault::ClusterFault;
use crate::spec::Context;
use underlay_export::path_cost::Counted;

/// How often the supervisor looks whether it should end, and whether the server lives.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// A client must not keep the supervisor waiting for the rest of a request.
const QUESTION_LIMIT: Duration = Duration::from_secs(5);
/// Longest question.
const QUESTION_BYTES_MAX: u64 = 64 << 10;
/// How long the server may take to stop after it was asked to.
const END_LIMIT: Duration = Duration::from_secs(10);

pub(super) struct Supervisor {
    pub(super) data_directory: DataDirectory,
    pub(super) description: Description,
    pub(super) teardown: Teardown,
    pub(super) server: ServerProcess,
    pub(super) places: Places,
    /// Why there are no block devices, if so.
    pub(super) no_block_devices: Option<String>,
    pub(super) export: Option<Ticket>,
    pub(super) attached: Vec<(String, Attached)>,
    /// None as long as nothing was to be delayed.
    pub(super) calibration: Option<Calibration>,
    pub(super) follower: Option<PathFollower>,
    pub(super) is_powered: bool,
    pub(super) nbd_socket: PathBuf,
    pub(super) recent_notices: RecentNotices,
    pub(super) lateness: Lateness,
    /// What the block layer had counted of each volume's device when times were asked for last.
    pub(super) block_layer_seen: BTreeMap<String, Counted>,
    /// Volumes that could not be mounted at the start, and why.
    pub(super) unmounted: Vec<(String, String)>,
}

/// What a question may end in.
pub(super) enum Problem {
    Refused(String),
    Failed(DatastoreError),
}

impl<E: Into<DatastoreError>> From<E> for Problem {
    fn from(error: E) -> Problem {
        Problem::Failed(error.into())
    }
}

pub(super) fn refused<T>(reason: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Refused(reason.into()))
}

/// Runs the datastore in `directory` until it is asked to stop, or `should_end` says so. `program` understands
/// `datastore-server --config FILE` by calling [`crate::serve`].
pub fn keep(
    directory: &Path,
    program: &Path,
    should_end: &dyn Fn() -> bool,
) -> Result<(), DatastoreError> {
    // No terminal's hang-up is meant for this process. Fails only for the leader of a process group, which then
    // was started by hand.
    let _ = rustix::process::setsid();
    let data_directory = DataDirectory::open(directory)?;
    let mut lock = data_directory.lock_for_keeping()?;
    lock.say(Busy::Starting);
    let state = StateDir::open()?;
    // What a supervisor that was killed left in the same place.
    for line in clean(&state)?.failed {
        warn!("left over from before: {line}");
    }
    let teardown = Teardown::create(&state, "datastore")?;
    let outcome = Supervisor::start(&data_directory, program, teardown.clone(), should_end)
        .and_then(|supervisor| supervisor.serve(&mut lock, should_end));
    lock.say(Busy::Stopping);
    let leftovers = teardown.unwind();
    for leftover in &leftovers {
        warn!("{} was left behind: {}", leftover.resource, leftover.reason);
    }
    drop(lock);
    match outcome {
        Err(DatastoreError::GivenUp) => {
            info!(
                "the datastore in {} is not wanted any more",
                data_directory.directory().display()
            );
            Ok(())
        }
        outcome => outcome,
    }
}

impl Supervisor {
    fn start(
        data_directory: &DataDirectory,
        program: &Path,
        teardown: Teardown,
        should_end: &dyn Fn() -> bool,
    ) -> Result<Supervisor, DatastoreError> {
        let description = data_directory.description()?;
        data_directory.make_private()?;
        data_directory.remove_unfinished(&description);
        let run = data_directory.run();
        teardown.create_directory(&run)?;
        fs::set_permissions(&run, fs::Permissions::from_mode(0o711))
            .map_err(DatastoreError::file("set the permissions of", &run))?;
        let base = run.join("datastore");
        fs::create_dir(&base).map_err(DatastoreError::file("create directory", &base))?;
        let exported = base.join("export");
        let places = Places::create(data_directory, exported.clone())?;
        let no_block_devices = check_host().err().map(|error| without_block_devices(&error));
        let mut export = None;
        if no_block_devices.is_none() {
            fs::create_dir(&exported)
                .map_err(DatastoreError::file("create directory", &exported))?;
            export = Some(teardown.register(Resource::Mount { target: exported.clone() })?);
        }
        let config =
            server_config(data_directory, &description, export.is_some().then_some(exported), &run);
        let nbd_socket = nbd_socket(&run);
        let (config_path, log) = (base.join("server.json"), base.join("server.log"));
        config.write(&config_path)?;
        let context = Context {
            teardown: &teardown,
            scratch: &run,
            server_program: program,
            owner: None,
            dilation: Dilation::NONE,
        };
        let server = ServerProcess::start(&context, &config_path, &config.control_socket, log)?;
        let mut supervisor = Supervisor {
            data_directory: data_directory.clone(),
            description,
            teardown,
            server,
            places,
            no_block_devices,
            export,
            attached: Vec::new(),
            calibration: None,
            follower: None,
            is_powered: true,
            nbd_socket,
            recent_notices: RecentNotices::default(),
            lateness: Lateness::default(),
            block_layer_seen: BTreeMap::new(),
            unmounted: Vec::new(),
        };
        match supervisor.attach_all(Unreadable::StaysUnmounted, should_end) {
            Ok(()) => Ok(supervisor),
            Err(error) => {
                // In order: a cluster whose server is killed copies at the next start what its members may not have in common.
                if let Err(problem) = supervisor.end() {
                    warn!("cleanup after a failed start was incomplete: {problem}");
                }
                Err(error)
            }
        }
    }

    fn is_attached(&self, name: &str) -> bool {
        self.attached.iter().any(|(attached, _)| attached == name)
    }

    /// Whether every volume has its block device and is mounted where it should be.
    fn all_attached(&self) -> bool {
        self.no_block_devices.is_some()
            || self.description.volumes.iter().all(|volume| {
                self.attached.iter().any(|(name, attached)| {
                    *name == volume.name
                        && (volume.file_system.is_none() || attached.mount_point().is_some())
                })
            })
    }

    /// Attaches and mounts what is not yet, as long as it is wanted.
    fn attach_all(
        &mut self,
        unreadable: Unreadable,
        should_end: &dyn Fn() -> bool,
    ) -> Result<(), DatastoreError> {
        let go_on = || if should_end() { Err(DatastoreError::GivenUp) } else { Ok(()) };
        if self.no_block_devices.is_some() {
            return Ok(());
        }
        self.stop_following();
        for volume in self.description.volumes.clone() {
            if self.is_attached(&volume.name) {
                continue;
            }
            go_on()?;
            let attached = self.places.attach(&self.teardown, &volume)?;
            self.attached.push((volume.name.clone(), attached));
        }
        go_on()?;
        self.calibrate()?;
        self.unmounted.clear();
        for volume in &self.description.volumes {
            let found = self.attached.iter_mut().find(|(name, _)| *name == volume.name);
            let Some((_, attached)) = found.filter(|(_, it)| it.mount_point().is_none()) else {
                continue;
            };
            go_on()?;
            match self.places.mount(&self.teardown, volume, attached, Contents::Kept) {
                Ok(()) => {}
                // Only a datastore that runs can be mended.
                Err(error) if unreadable == Unreadable::StaysUnmounted => {
                    warn!("volume `{}` stays unmounted: {error}", volume.name);
                    self.unmounted.push((volume.name.clone(), error.to_string()));
                }
                Err(error) => return Err(error),
            }
        }
        self.follow_path()
    }

    fn serve(
        mut self,
        lock: &mut Lock,
        should_end: &dyn Fn() -> bool,
    ) -> Result<(), DatastoreError> {
        let socket = self.data_directory.socket();
        let listener =
            UnixListener::bind(&socket).map_err(DatastoreError::file("listen on", &socket))?;
        listener.set_nonblocking(true).map_err(DatastoreError::system("listen without waiting"))?;
        info!("the datastore in {} runs", self.data_directory.directory().display());
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
        // No command may find a supervisor that is about to end, or wait for its answer.
        lock.say(Busy::Stopping);
        fs::remove_file(&socket).map_err(DatastoreError::file("remove", &socket))?;
        drop(listener);
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
            warn!("the answer to {line:?} could not be sent: {error}");
        }
        ended
    }

    fn answer(&mut self, question: &Question) -> (Reply, Ended) {
        let mut ended = Ended::No;
        let outcome = match question {
            Question::Status => self.status().map(|status| Reply::Status(Box::new(status))),
            Question::Latencies => self.latencies().map(Reply::Latencies),
            Question::BackendLatencies => self.backend_latencies().map(Reply::BackendLatencies),
            Question::Timing => self.timing().map(Reply::Timing),
            Question::TimingSinceStart => self.timing_since_start().map(Reply::Timing),
            Question::Create(volume) => {
                self.create(volume).map(|status| Reply::Created(Box::new(status)))
            }
            Question::Remove { name } => self.remove(name).map(|()| Reply::Done),
            Question::SetCondition { device, condition } => {
                self.set_condition(device, *condition).map(|()| Reply::Done)
            }
            Question::Inject(fault) => self.inject(fault).map(|()| Reply::Done),
            Question::Notices => self.notices().map(Reply::Notices),
            Question::PowerCut => self.power_cut().map(|()| Reply::Done),
            Question::PowerOn => self.power_on().map(|()| Reply::Done),
            Question::Stop { forced } => self.may_stop(*forced).map(|()| {
                ended = Ended::Yes;
                Reply::Done
            }),
            Question::StopIfEmpty => match self.description.volumes.len() {
                0 => {
                    ended = Ended::Yes;
                    Ok(Reply::Done)
                }
                volumes => refused(format!("the datastore has {volumes} volumes")),
            },
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

    fn set_condition(&mut self, device: &str, condition: Condition) -> Result<(), Problem> {
        let device = device.to_string();
        if self.description.cluster.is_none() {
            let text = format!("device {device} is {}", condition_in_words(condition));
            self.server.done(&Command::SetCondition { device, condition })?;
            self.recent_notices.note("fault", text);
            return Ok(());
        }
        self.inject(&match condition {
            Condition::Healthy => ClusterFault::DeviceReturned { device },
            Condition::Slow { factor } => ClusterFault::DeviceSlow { device, factor },
            Condition::Stuck => ClusterFault::DeviceStuck { device },
            Condition::Erroring { probability } => {
                ClusterFault::DeviceErroring { device, probability }
            }
            Condition::Lost => ClusterFault::DeviceLost { device },
        })
    }

    fn inject(&mut self, fault: &ClusterFault) -> Result<(), Problem> {
        Ok(self.server.done(&Command::Inject(fault.clone()))?)
    }

    fn power_cut(&mut self) -> Result<(), Problem> {
        match self.server.ask(&Command::PowerCut)? {
            Answer::PowerCut { kept, lost, torn } => {
                self.is_powered = false;
                // A cluster's server tells by itself what it lost.
                if self.description.cluster.is_none() {
                    self.recent_notices.note("fault", power_cut_in_words(kept, lost, torn));
                }
            }
            other => return Err(unexpected(&Command::PowerCut, &other).into()),
        }
        Ok(())
    }

    fn power_on(&mut self) -> Result<(), Problem> {
        if self.is_powered && self.all_attached() {
            return refused("the power is on");
        }
        if !self.is_powered {
            // What uses a dead file system would keep its block device from coming back.
            for (name, attached) in &self.attached {
                attached.check_free(name).map_err(Problem::Refused)?;
            }
            self.stop_following();
            // Before the power is back, or caches of the dead file systems would be written to the volumes.
            while let Some((_, attached)) = self.attached.pop() {
                attached.detach()?;
            }
            self.check_detached()?;
            self.server.done(&Command::PowerOn)?;
            self.is_powered = true;
            if self.description.cluster.is_none() {
                self.recent_notices.note("fault", "the power is back".to_string());
            }
        }
        Ok(self.attach_all(Unreadable::IsAnError, &|| false)?)
    }

    /// A program that has a block device open, though not exclusively, keeps it until it closes it, and may still write
    /// to it.
    fn check_detached(&self) -> Result<(), Problem> {
        for volume in &self.description.volumes {
            if let Some(device) = loop_devices(&self.places.exported.join(&volume.name))?.first() {
                return refused(format!(
                    "a program still has the block device {} of volume `{}` open; stop it, then repeat `power-on`",
                    device.display(),
                    volume.name
                ));
            }
        }
        Ok(())
    }

    fn may_stop(&mut self, forced: bool) -> Result<(), Problem> {
        if forced {
            return Ok(());
        }
        self.check_nbd_clients(None)?;
        // Before the first is unmounted: without power it could not be mounted again.
        for (name, attached) in &self.attached {
            attached.check_free(name).map_err(Problem::Refused)?;
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
        self.stop_following();
        while let Some((_, attached)) = self.attached.pop() {
            attached.detach()?;
        }
        self.server.done(&Command::End)?;
        if let Some(export) = self.export.take() {
            self.teardown.release(export)?;
        }
        let (server, data_directory) = (self.server, self.data_directory);
        server.finish(END_LIMIT)?;
        data_directory.synchronise()?;
        info!("the datastore in {} has stopped", data_directory.directory().display());
        Ok(())
    }

    pub(super) fn backing(&self, name: &str) -> PathBuf {
        self.data_directory.volumes().join(name)
    }
}

/// Why there are no block devices, and what there is instead.
fn without_block_devices(error: &DatastoreError) -> String {
    match error {
        DatastoreError::EmulationUnavailable { missing, remedy } => format!(
            "{missing}; {remedy}, or use volumes over NBD, which needs neither (without `--format`; `--nbd 127.0.0.1:PORT` \
             at the first `create` is for clients that only speak TCP)"
        ),
        other => other.to_string(),
    }
}

fn condition_in_words(condition: Condition) -> String {
    match condition {
        Condition::Healthy => "healthy".to_string(),
        Condition::Slow { factor } => format!("{factor} times as slow"),
        Condition::Stuck => "stuck".to_string(),
        Condition::Erroring { probability } => {
            format!("failing {} % of its requests", 100.0 * probability)
        }
        Condition::Lost => "lost".to_string(),
    }
}

/// What a power cut did to single devices, whose volatile writes meet their fate one by one.
fn power_cut_in_words(kept: u64, lost: u64, torn: u64) -> String {
    if kept + lost + torn == 0 {
        return "the power was cut: nothing was volatile, so nothing was lost".to_string();
    }
    format!(
        "the power was cut: of the blocks of 4 KiB that were not flushed {kept} were kept, {lost} lost, {torn} torn"
    )
}

/// What a file system is that cannot be mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unreadable {
    IsAnError,
    StaysUnmounted,
}

/// Whether the supervisor was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::{power_cut_in_words, without_block_devices};
    use crate::error::DatastoreError;

    #[test]
    fn a_power_cut_tells_what_it_took() {
        assert!(power_cut_in_words(0, 0, 0).ends_with("nothing was lost"));
        assert!(power_cut_in_words(3, 2, 1).ends_with("3 were kept, 2 lost, 1 torn"));
    }

    #[test]
    fn without_block_devices_nbd_is_the_way() {
        let missing = "block devices can only be attached and mounted by root".to_string();
        let error = DatastoreError::EmulationUnavailable { missing, remedy: "run with sudo" };
        let text = without_block_devices(&error);
        assert!(text.contains("by root; run with sudo, or use volumes over NBD"), "{text}");
        assert!(text.contains("--nbd 127.0.0.1:PORT") && !text.contains("path"), "{text}");
    }
}
