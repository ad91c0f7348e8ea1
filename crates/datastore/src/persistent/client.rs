//! A connection to a supervisor.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use underlay_model::DeviceCondition;

use super::protocol::{
    BackendLatencyStatus, Latency, NewVolume, Question, Reply, Status, TimingStatus, VolumeStatus,
};
use crate::error::DatastoreError;
use crate::fault::{ClusterFault, DatastoreNotice};

/// Formatting a large volume on a slow device takes its time.
const ANSWER_LIMIT: Duration = Duration::from_secs(600);

/// The supervisor of a running datastore, as its users reach it. Each question has a connection of its own, so that
/// no client keeps the supervisor from others.
#[derive(Clone, Debug)]
pub struct Connection {
    socket: PathBuf,
}

impl Connection {
    /// `None` if no supervisor listens.
    pub(super) fn open(socket: PathBuf) -> Result<Option<Connection>, DatastoreError> {
        match UnixStream::connect(&socket) {
            Ok(_) => Ok(Some(Connection { socket })),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(DatastoreError::file("connect to", &socket)(error)),
        }
    }

    /// What the datastore does.
    pub fn status(&self) -> Result<Status, DatastoreError> {
        match self.ask(&Question::Status)? {
            Reply::Status(status) => Ok(*status),
            other => Err(unexpected(&Question::Status, &other)),
        }
    }

    /// Latencies since the last such call of anybody.
    pub fn latencies(&self) -> Result<Vec<Latency>, DatastoreError> {
        match self.ask(&Question::Latencies)? {
            Reply::Latencies(latencies) => Ok(latencies),
            other => Err(unexpected(&Question::Latencies, &other)),
        }
    }

    /// Latencies inside a cluster since the last such call of anybody; none without one.
    pub fn backend_latencies(&self) -> Result<Vec<BackendLatencyStatus>, DatastoreError> {
        match self.ask(&Question::BackendLatencies)? {
            Reply::BackendLatencies(latencies) => Ok(latencies),
            other => Err(unexpected(&Question::BackendLatencies, &other)),
        }
    }

    /// How well modelled times were kept since the last such call of anybody.
    pub fn timing(&self) -> Result<TimingStatus, DatastoreError> {
        match self.ask(&Question::Timing)? {
            Reply::Timing(timing) => Ok(timing),
            other => Err(unexpected(&Question::Timing, &other)),
        }
    }

    /// How well modelled times were kept since the start.
    pub fn timing_since_start(&self) -> Result<TimingStatus, DatastoreError> {
        match self.ask(&Question::TimingSinceStart)? {
            Reply::Timing(timing) => Ok(timing),
            other => Err(unexpected(&Question::TimingSinceStart, &other)),
        }
    }

    /// Creates a volume; it is ready for use on return.
    pub fn create(&self, volume: NewVolume) -> Result<VolumeStatus, DatastoreError> {
        let question = Question::Create(volume);
        match self.ask(&question)? {
            Reply::Created(status) => Ok(*status),
            other => Err(unexpected(&question, &other)),
        }
    }

    /// Removes a volume with its data. Refused while it is in use.
    pub fn remove(&self, name: &str) -> Result<(), DatastoreError> {
        self.done(&Question::Remove { name: name.to_string() })
    }

    /// Changes how a device works.
    pub fn set_condition(
        &self,
        device: &str,
        condition: DeviceCondition,
    ) -> Result<(), DatastoreError> {
        let (device, condition) = (device.to_string(), condition.into());
        self.done(&Question::SetCondition { device, condition })
    }

    /// Breaks something of a cluster, or mends it.
    pub fn inject(&self, fault: ClusterFault) -> Result<(), DatastoreError> {
        self.done(&Question::Inject(fault))
    }

    /// What happened in a cluster since the last such call of anybody.
    pub fn notices(&self) -> Result<Vec<DatastoreNotice>, DatastoreError> {
        match self.ask(&Question::Notices)? {
            Reply::Notices(notices) => Ok(notices),
            other => Err(unexpected(&Question::Notices, &other)),
        }
    }

    /// Cuts the power of all devices: what is volatile is lost or torn, and all I/O fails.
    pub fn power_cut(&self) -> Result<(), DatastoreError> {
        self.done(&Question::PowerCut)
    }

    /// Restores power and mounts the volumes again.
    pub fn power_on(&self) -> Result<(), DatastoreError> {
        self.done(&Question::PowerOn)
    }

    /// Ends the datastore; its data stays. Refused while volumes are in use, unless forced.
    pub fn stop(self, forced: Forced) -> Result<(), DatastoreError> {
        self.done(&Question::Stop { forced: forced == Forced::Yes })
    }

    /// Ends the datastore; refused when it has a volume.
    pub(super) fn stop_if_empty(self) -> Result<(), DatastoreError> {
        self.done(&Question::StopIfEmpty)
    }

    fn done(&self, question: &Question) -> Result<(), DatastoreError> {
        match self.ask(question)? {
            Reply::Done => Ok(()),
            other => Err(unexpected(question, &other)),
        }
    }

    fn directory(&self) -> PathBuf {
        self.socket.ancestors().nth(2).unwrap_or(&self.socket).to_path_buf()
    }

    fn ask(&self, question: &Question) -> Result<Reply, DatastoreError> {
        let line = serde_json::to_string(question).expect("plain data");
        let exchange = || -> io::Result<String> {
            let mut stream = UnixStream::connect(&self.socket)?;
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            stream.write_all(line.as_bytes())?;
            stream.write_all(b"\n")?;
            let mut answer = String::new();
            BufReader::new(&stream).read_line(&mut answer)?;
            if answer.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(answer)
        };
        let answer = exchange().map_err(|error| match has_hung_up(&error) {
            true => DatastoreError::SupervisorLeft(self.directory()),
            false => DatastoreError::system("talk to the datastore's supervisor")(error),
        })?;
        match serde_json::from_str(&answer) {
            Ok(Reply::Refused { reason }) => Err(DatastoreError::SupervisorRefused(reason)),
            Ok(Reply::Failed { reason }) => Err(DatastoreError::SupervisorFailed(reason)),
            Ok(reply) => Ok(reply),
            Err(_) => Err(DatastoreError::BadAnswer { command: line, answer }),
        }
    }
}

/// Whether the other end was gone before it answered.
fn has_hung_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionRefused | ConnectionReset | NotFound | UnexpectedEof
    )
}

/// Whether a datastore is stopped although its volumes are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// Its users see I/O errors.
    Yes,
    /// It is refused.
    No,
}

fn unexpected(question: &Question, reply: &Reply) -> DatastoreError {
    DatastoreError::BadAnswer {
        command: serde_json::to_string(question).expect("plain data"),
        answer: serde_json::to_string(reply).expect("plain data"),
    }
}
