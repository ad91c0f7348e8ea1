//! The server process as seen by its owner: starts it, sends commands, detects its death.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use underlay_host::{Process, ProcessExit, ProcessSpec};

use crate::control::{Answer, Command};
use crate::error::DatastoreError;
use crate::spec::Context;

/// How long the server may take to mount and listen.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long it may take to answer a command.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How much of the log an error carries.
const LAST_WORDS_BYTES: usize = 2000;

/// A running server and the connection to it.
pub(crate) struct ServerProcess {
    process: Process,
    connection: ControlConnection,
    control_socket: PathBuf,
    log: PathBuf,
}

/// One connection to a server.
pub(crate) struct ControlConnection(BufReader<UnixStream>);

impl ServerProcess {
    /// Starts the server with a configuration file and waits until it serves.
    pub(crate) fn start(
        context: &Context<'_>,
        config: &Path,
        control_socket: &Path,
        log: PathBuf,
    ) -> Result<ServerProcess, DatastoreError> {
        let process = Process::spawn(
            context.teardown,
            &ProcessSpec {
                name: "datastore",
                program: context.server_program,
                args: vec!["datastore-server".into(), "--config".into(), config.into()],
                env: Vec::new(),
                run_as: None,
                cgroup: None,
                working_dir: Path::new("/"),
                output: log.clone(),
            },
        )?;
        let deadline = Instant::now() + START_LIMIT;
        let stream = loop {
            if let Some(exit) = process.try_wait()? {
                return Err(died(exit, &log));
            }
            match UnixStream::connect(control_socket) {
                Ok(stream) => break stream,
                Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
                Err(_) => return Err(silent("start", START_LIMIT, &log)),
            }
        };
        let connection = ControlConnection::over(stream)
            .map_err(DatastoreError::system("limit the wait for answers"))?;
        let control_socket = control_socket.to_path_buf();
        let mut server = ServerProcess { process, connection, control_socket, log };
        server.done(&Command::Ping)?;
        Ok(server)
    }

    /// Another connection, for a thread of its own.
    pub(crate) fn connect(&self) -> Result<ControlConnection, DatastoreError> {
        UnixStream::connect(&self.control_socket)
            .and_then(ControlConnection::over)
            .map_err(DatastoreError::system("connect to the datastore server"))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Sends a command and returns the answer. A refusal is an error.
    pub(crate) fn ask(&mut self, command: &Command) -> Result<Answer, DatastoreError> {
        let line = serde_json::to_string(command).expect("commands are plain data");
        let text = match self.connection.exchange(&line) {
            Ok(text) if !text.is_empty() => text,
            failed => return Err(self.explain(failed.err())),
        };
        understand(line, text)
    }

    /// Sends a command whose only good answer is that it was done.
    pub(crate) fn done(&mut self, command: &Command) -> Result<(), DatastoreError> {
        match self.ask(command)? {
            Answer::Done => Ok(()),
            other => Err(unexpected(command, &other)),
        }
    }

    /// Fails if the process has ended.
    pub(crate) fn check_alive(&self) -> Result<(), DatastoreError> {
        match self.process.try_wait()? {
            Some(exit) => Err(died(exit, &self.log)),
            None => Ok(()),
        }
    }

    /// Waits for the end that unmounting brings, and forces it if it does not come.
    pub(crate) fn finish(self, grace: Duration) -> Result<(), DatastoreError> {
        match self.process.wait_for(grace)? {
            Some(exit) => self.process.collect(Some(exit))?,
            None => self.process.terminate(grace)?,
        };
        Ok(())
    }

    /// Why there is no answer. A process that is dying needs a moment to be dead.
    fn explain(&self, error: Option<io::Error>) -> DatastoreError {
        match self.process.wait_for(Duration::from_millis(500)) {
            Ok(Some(exit)) => died(exit, &self.log),
            Ok(None)
                if error
                    .as_ref()
                    .is_some_and(|error| error.kind() != io::ErrorKind::WouldBlock) =>
            {
                DatastoreError::system("talk to the datastore server")(error.expect("checked"))
            }
            Ok(None) => silent("answer", ANSWER_LIMIT, &self.log),
            Err(error) => error.into(),
        }
    }
}

impl ControlConnection {
    fn over(stream: UnixStream) -> io::Result<ControlConnection> {
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(ControlConnection(BufReader::new(stream)))
    }

    /// Sends a command and returns the answer. A refusal is an error.
    pub(crate) fn ask(&mut self, command: &Command) -> Result<Answer, DatastoreError> {
        let line = serde_json::to_string(command).expect("commands are plain data");
        let text =
            self.exchange(&line).map_err(DatastoreError::system("talk to the datastore server"))?;
        understand(line, text)
    }

    /// Sends a command whose only good answer is that it was done.
    pub(crate) fn done(&mut self, command: &Command) -> Result<(), DatastoreError> {
        match self.ask(command)? {
            Answer::Done => Ok(()),
            other => Err(unexpected(command, &other)),
        }
    }

    /// The answer as text; empty when the server has ended.
    fn exchange(&mut self, line: &str) -> io::Result<String> {
        let mut stream = self.0.get_ref();
        stream.write_all(line.as_bytes())?;
        stream.write_all(b"\n")?;
        let mut answer = String::new();
        self.0.read_line(&mut answer)?;
        Ok(answer)
    }
}

fn understand(command: String, text: String) -> Result<Answer, DatastoreError> {
    match serde_json::from_str(&text) {
        Ok(Answer::Refused { reason }) => Err(DatastoreError::Refused { command, reason }),
        Ok(answer) => Ok(answer),
        Err(_) => Err(DatastoreError::BadAnswer { command, answer: text }),
    }
}

pub(crate) fn unexpected(command: &Command, answer: &Answer) -> DatastoreError {
    let text = |value: serde_json::Result<String>| value.expect("plain data");
    DatastoreError::BadAnswer {
        command: text(serde_json::to_string(command)),
        answer: text(serde_json::to_string(answer)),
    }
}

fn died(exit: ProcessExit, log: &Path) -> DatastoreError {
    let exit = match exit {
        ProcessExit::Code(code) => format!("exit code {code}"),
        ProcessExit::Signal(signal) => format!("killed by signal {signal}"),
        ProcessExit::Unknown => "exit status unknown".to_string(),
    };
    DatastoreError::ServerDied { exit, last_words: last_words(log) }
}

fn silent(action: &'static str, limit: Duration, log: &Path) -> DatastoreError {
    DatastoreError::ServerSilent { action, seconds: limit.as_secs(), last_words: last_words(log) }
}

fn last_words(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let tail = &text[text.len().saturating_sub(LAST_WORDS_BYTES)..];
    let tail = String::from_utf8_lossy(tail).trim().to_string();
    if tail.is_empty() { "none".to_string() } else { tail }
}
