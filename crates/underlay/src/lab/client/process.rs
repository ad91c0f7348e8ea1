//! A load generator in a process of its own, within the limits of the server: how the lab starts, directs and
//! ends one. What that process does is in `child`.
//!
//! A thread cannot be limited in memory apart from its process, nor, under control groups of version 2, in CPU time
//! apart from it; so the users of a local client have a process.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use underlay_database::Target;
use underlay_driver::{DriveSpec, DriverProcess};
use underlay_host::{Cgroup, Process, ProcessExit, ProcessSpec, Teardown};
use underlay_study::WorkloadPlan;
use underlay_workload::transactional::{RunAccounting, Shape};

use super::handshake::{Start, Started, monotonic_ns, read_line, write_line};
use super::workload_line::WorkloadLine;
use crate::stop::{Stop, chain};

/// How long it may take until its sessions can be opened.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Between two looks whether it has come.
const PAUSE: Duration = Duration::from_millis(5);
/// How long it may take to end once it was stopped.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Where and as what a load generator's process is started.
#[derive(Clone, Copy)]
pub struct ClientProcess<'a> {
    /// It is on this stack before it exists.
    pub teardown: &'a Teardown,
    /// A folder of the run.
    pub scratch: &'a Path,
    /// This program.
    pub program: &'a Path,
    /// What limits it, together with the server.
    pub cgroup: Option<&'a Cgroup>,
    /// What its users do.
    pub workload: &'a WorkloadPlan,
}

/// A load generator in a process that the lab started.
pub struct LocalDriver<B> {
    /// Directs it.
    pub driver: DriverProcess<B>,
    process: Process,
    cgroup: Option<Cgroup>,
}

impl ClientProcess<'_> {
    /// Starts the load generator, with no user active. Instants are counted from `origin`.
    pub fn start<B: RunAccounting>(
        &self,
        shape: &'static Shape,
        (spec, target): (&DriveSpec, &Target),
        origin: Instant,
        first_new_customer: Option<u32>,
    ) -> Result<LocalDriver<B>, Stop> {
        let Some(workload) = WorkloadLine::of(&self.workload.kind) else {
            return Err(Stop::bad_input("a job cannot run within the limits of the server"));
        };
        let start = Start {
            workload,
            seed: self.workload.seed.0,
            first_new_customer,
            drive: spec.into(),
            target: target.to_string(),
            origin_ns: monotonic_ns().saturating_sub(nanos(origin.elapsed())),
        };
        let failed = |error: io::Error| {
            Stop::run_failed(format!("could not reach the load generator's process: {error}"))
        };
        let socket = self.scratch.join("client.sock");
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        let process = self.spawn(&socket)?;
        let mut stream = accept(&listener, &process).map_err(failed)?;
        write_line(&mut stream, &start).map_err(failed)?;
        stream.set_read_timeout(Some(START_LIMIT)).map_err(failed)?;
        match read_line(&mut stream).map_err(failed)? {
            Started::Ready => {}
            Started::Refused { reason } => return Err(Stop::run_failed(reason)),
        }
        let grace = spec.dilation.wall_duration(spec.stop_grace);
        let driver = DriverProcess::attach(stream, shape, grace).map_err(failed)?;
        Ok(LocalDriver { driver, process, cgroup: self.cgroup.cloned() })
    }

    fn spawn(&self, socket: &Path) -> Result<Process, Stop> {
        let spec = ProcessSpec {
            name: "client",
            program: self.program,
            args: vec!["client".into(), "--socket".into(), socket.into()],
            env: Vec::new(),
            run_as: None,
            cgroup: self.cgroup,
            working_dir: Path::new("/"),
            output: self.scratch.join("client.log"),
        };
        Process::spawn(self.teardown, &spec).map_err(|error| {
            Stop::host(format!("could not start the load generator's process: {}", chain(&error)))
        })
    }
}

impl<B: RunAccounting> LocalDriver<B> {
    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Why its process is lost, if it is.
    pub fn lost(&self) -> Option<String> {
        let lost = self.driver.lost()?;
        let kills = self.cgroup.as_ref().and_then(Cgroup::oom_kills).unwrap_or(0);
        let why = match kills {
            0 => "",
            _ => "; the kernel killed a process because engine.memory-limit was reached",
        };
        Some(format!("{lost}{why}"))
    }

    /// Ends it, and takes its process off the teardown stack.
    pub fn stop(self) -> Result<underlay_driver::DriveSummary<B>, Stop> {
        let lost = self.lost();
        let summary = self
            .driver
            .stop()
            .map_err(|error| Stop::run_failed(lost.unwrap_or_else(|| error.to_string())))?;
        let ended = self.process.wait_for(END_LIMIT).and_then(|ended| self.process.collect(ended));
        match ended {
            Ok(ProcessExit::Code(0)) => Ok(summary),
            // It has handed over everything: how it ended is of interest to a developer alone.
            Ok(exit) => {
                tracing::warn!(?exit, "the load generator's process did not end by itself");
                Ok(summary)
            }
            Err(error) => Err(Stop::run_failed(chain(&error))),
        }
    }
}

/// The connection of a process that was started to connect.
fn accept(listener: &UnixListener, process: &Process) -> io::Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + START_LIMIT;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if process.try_wait().map_err(io::Error::other)?.is_some() {
            return Err(io::Error::other("it ended at once"));
        }
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(PAUSE);
    }
}

fn nanos(duration: Duration) -> u64 {
    underlay_core::Nanos::from(duration).0
}
