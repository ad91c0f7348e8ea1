//! What can go wrong with a datastore, each with what, where, and a remedy.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use underlay_core::{Bytes, Nanos, SystemError};
use underlay_export::ExportError;
use underlay_host::HostError;
use underlay_model::ProfileProblem;
use underlay_model::cluster::ClusterProblem;

/// Why a datastore could not be opened, used or closed.
#[derive(Debug, thiserror::Error)]
pub enum DatastoreError {
    /// A mount, loop device, process or file system.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A system call.
    #[error(transparent)]
    System(#[from] SystemError),
    /// A socket address that others could reach.
    #[error(
        "NBD clients cannot be accepted on {0}, which is not a loopback address: there is no authentication; use 127.0.0.1 or [::1] and a tunnel"
    )]
    NotLoopback(SocketAddr),
    /// A socket address that cannot be used.
    #[error("could not listen on {address}: {source}; choose another port, or 0 for any free one")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A datastore without volumes is of no use.
    #[error("no volumes were asked for; name at least one")]
    NoVolumes,
    /// A volume name that cannot be a file name.
    #[error("`{0}` is not a volume name; use lower case letters, digits and `-`")]
    BadVolumeName(String),
    /// Two volumes of the same name.
    #[error("volume `{0}` is asked for twice; give each its own name")]
    DuplicateVolume(String),
    /// An emulated datastore without devices.
    #[error("the emulated datastore has no devices; name at least one")]
    NoDevices,
    /// Two devices of the same name.
    #[error("device `{0}` is defined twice; give each its own name")]
    DuplicateDevice(String),
    /// A cluster that cannot be.
    #[error("the cluster cannot be used: {}", join(.0))]
    BadCluster(Vec<ClusterProblem>),
    /// What a cluster remembers does not fit it, or its data.
    #[error("the cluster's state in `{}` cannot be used: {reason}", path.display())]
    BadMemory {
        /// Where.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A volume that the cluster cannot hold.
    #[error("volume `{volume}` cannot be placed on the cluster: {reason}")]
    CannotPlace {
        /// The volume.
        volume: String,
        /// What is missing.
        reason: String,
    },
    /// A volume on a device that the design does not have.
    #[error("volume `{volume}` wants device `{device}`; the design has {}", known.join(", "))]
    UnknownDevice {
        /// The volume.
        volume: String,
        /// The device it names.
        device: String,
        /// The devices there are.
        known: Vec<String>,
    },
    /// A profile with impossible numbers.
    #[error("the profile of device `{device}` cannot be used: {}", join(problems))]
    BadProfile {
        /// The device.
        device: String,
        /// Every violated rule.
        problems: Vec<ProfileProblem>,
    },
    /// Other data has no place on the cluster.
    #[error("the capacity devices cannot be filled to {percent} %: {reason}")]
    CannotFill {
        /// The share asked for.
        percent: u8,
        /// Why.
        reason: String,
    },
    /// A link with impossible numbers.
    #[error("the link between host and devices cannot be used: {0}")]
    BadLink(&'static str),
    /// The volumes of a device are larger than it.
    #[error(
        "the volumes on device `{device}` need {needed} together, but it holds {capacity}; make them smaller or move one to another device"
    )]
    DeviceTooSmall {
        /// The device.
        device: String,
        /// Sum of its volumes.
        needed: Bytes,
        /// What it holds.
        capacity: Bytes,
    },
    /// The volumes would not fit if they were filled.
    #[error(
        "the volumes need up to {needed} in `{}`, but only {free} are free there; make them smaller, free space, or name another backing directory",
        path.display()
    )]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// Worst case of all volumes together.
        needed: Bytes,
        /// What is free.
        free: Bytes,
    },
    /// This host cannot emulate.
    #[error(
        "volumes cannot be emulated on this host: {missing}; {remedy}, or use a `path` datastore"
    )]
    EmulationUnavailable {
        /// What is missing.
        missing: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The host is slower than the device.
    #[error(
        "device `{device}` completes a read in {typical}, faster than this host can pass one on ({floor}); simulate \
         it in virtual time, or choose a slower device"
    )]
    FasterThanHost {
        /// The device.
        device: String,
        /// Its typical read.
        typical: Nanos,
        /// The host's own cost of a read through the export path.
        floor: Nanos,
    },
    /// The server process ended.
    #[error("the datastore server ended ({exit}); its last output: {last_words}")]
    ServerDied {
        /// Its exit status in words.
        exit: String,
        /// The end of its log.
        last_words: String,
    },
    /// The server process does not answer.
    #[error(
        "the datastore server did not {action} within {seconds} s; its last output: {last_words}"
    )]
    ServerSilent {
        /// What it should have done.
        action: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// The end of its log.
        last_words: String,
    },
    /// The server answered something else than expected.
    #[error("the datastore server answered `{answer}` to `{command}`")]
    BadAnswer {
        /// The command sent.
        command: String,
        /// What came back.
        answer: String,
    },
    /// The server refused a command.
    #[error("the datastore server refused `{command}`: {reason}")]
    Refused {
        /// The command sent.
        command: String,
        /// Its reason.
        reason: String,
    },
    /// A volume is no longer mounted.
    #[error("volume `{volume}` is no longer mounted on `{}`; something unmounted it", path.display())]
    LostMount {
        /// The volume.
        volume: String,
        /// Where it was.
        path: PathBuf,
    },
    /// A volume whose file system gave up.
    #[error(
        "volume `{volume}` on `{}` has become read-only; its file system met an error (see the kernel log)",
        path.display()
    )]
    ReadOnly {
        /// The volume.
        volume: String,
        /// Where it is.
        path: PathBuf,
    },
    /// Power cuts and timing exist only where devices are emulated.
    #[error("a `path` datastore cannot {0}; use an emulated one")]
    NotEmulated(&'static str),
    /// A directory that holds no datastore.
    #[error("there is no datastore in `{}`; `underlay volume create` creates one", .0.display())]
    NotADatastore(PathBuf),
    /// Another command was faster.
    #[error(
        "another command has just created a datastore in `{}`; repeat this command without the options for a new \
         datastore (`--device`, `--design`, `--durability`, `--seed`, `--nbd`)",
        .0.display()
    )]
    MadeMeanwhile(PathBuf),
    /// A directory that holds something else.
    #[error("`{}` is not empty and holds no datastore; name a directory that is empty or does not exist", .0.display())]
    NotEmpty(PathBuf),
    /// A mount point that would hide the datastore.
    #[error(
        "a volume of the datastore in `{}` cannot be mounted on `{}`, which would hide the datastore or what it needs; name a directory elsewhere, or leave out `--mount`",
        directory.display(),
        target.display()
    )]
    MountOverDatastore {
        /// Where the datastore lives.
        directory: PathBuf,
        /// Where the volume was to be mounted.
        target: PathBuf,
    },
    /// Sockets below it could not be reached.
    #[error("the path `{}` is too long for the sockets below it; use one of at most {most} bytes", path.display())]
    PathTooLong {
        /// The directory.
        path: PathBuf,
        /// The longest possible, in bytes.
        most: usize,
    },
    /// A description that cannot be understood.
    #[error("`{}` does not describe a datastore: {reason}", path.display())]
    BadDescription {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A datastore that must run and does not.
    #[error("the datastore in `{}` is not running; start it with `underlay volume start {}`", .0.display(), .0.display())]
    NotRunning(PathBuf),
    /// A datastore whose supervisor was killed.
    #[error(
        "the supervisor of the datastore in `{}` is gone, but its volumes are still served; take them down with `underlay volume stop {}`, then start it again",
        .0.display(),
        .0.display()
    )]
    SupervisorGone(PathBuf),
    /// What a killed supervisor left cannot be found again.
    #[error(
        "the supervisor of the datastore in `{}` is gone, but its volumes are still served, and `{}` does not say what belongs to it; set UNDERLAY_STATE_DIR as it was when the datastore was started",
        directory.display(),
        state.display()
    )]
    NoOrphan {
        /// Where the datastore lives.
        directory: PathBuf,
        /// Where teardown stacks were looked for.
        state: PathBuf,
    },
    /// What a killed supervisor left cannot be taken down.
    #[error(
        "resources that the supervisor of the datastore in `{}` left behind could not be removed: {}; see what uses \
         them (`fuser -vm PATH`, `losetup -a`) and try again",
        directory.display(),
        join(failed)
    )]
    NotTakenDown {
        /// Where the datastore lives.
        directory: PathBuf,
        /// What is still there, and why.
        failed: Vec<String>,
    },
    /// A datastore that must not run and does.
    #[error("the datastore in `{}` is running; stop it with `underlay volume stop {}`", .0.display(), .0.display())]
    Running(PathBuf),
    /// The supervisor ended while it was starting.
    #[error("the datastore in `{}` could not be started: {last_words}", directory.display())]
    SupervisorEnded {
        /// Where the datastore lives.
        directory: PathBuf,
        /// What it said last.
        last_words: String,
    },
    /// The supervisor does not get anywhere.
    #[error("the datastore did not {action} within {seconds} s; see `{}`", log.display())]
    SupervisorSilent {
        /// What it should have done.
        action: &'static str,
        /// How long it was waited for.
        seconds: u64,
        /// Its log.
        log: PathBuf,
    },
    /// The supervisor ended instead of answering.
    #[error(
        "the supervisor of the datastore in `{}` ended before it answered: another command has stopped or removed the \
         datastore, or the supervisor was killed; `underlay volume list {}` shows its state",
        .0.display(),
        .0.display()
    )]
    SupervisorLeft(PathBuf),
    /// The command that started it was interrupted.
    #[error("the start of the datastore was cancelled")]
    GivenUp,
    /// The supervisor would not do it; nothing was changed.
    #[error("{0}")]
    SupervisorRefused(String),
    /// The supervisor tried, and it went wrong.
    #[error("{0}")]
    SupervisorFailed(String),
    /// The configuration of the server process.
    #[error("`{}` is not a server configuration: {source}", path.display())]
    BadConfig {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
}

impl From<ExportError> for DatastoreError {
    fn from(error: ExportError) -> DatastoreError {
        match error {
            ExportError::System(error) => DatastoreError::System(error),
            ExportError::NotLoopback(address) => DatastoreError::NotLoopback(address),
            ExportError::Listen { address, source } => DatastoreError::Listen { address, source },
        }
    }
}

impl DatastoreError {
    /// A closure for `map_err` on a file operation.
    pub(crate) fn file<'a, E: Into<io::Error>>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(E) -> DatastoreError + 'a {
        move |source| SystemError::of_file(action, path, source).into()
    }

    /// A closure for `map_err` on a system call without a path.
    pub(crate) fn system<E: Into<io::Error>>(
        action: &'static str,
    ) -> impl FnOnce(E) -> DatastoreError {
        move |source| SystemError::of_call(action, source).into()
    }
}

fn join<T: ToString>(problems: &[T]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
