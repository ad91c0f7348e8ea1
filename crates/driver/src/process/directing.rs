//! The side that controls a load generator in another process.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::marker::PhantomData;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use underlay_core::Nanos;
use underlay_workload::transactional::{Mix, RunAccounting, Shape};

use super::lost::LostDriver;
use super::wire::{Answer, Command, mix_line};
use crate::error::DriveError;
use crate::spec::Slowdown;
use crate::summary::DriveSummary;
use crate::tick::DriveTick;

/// How long an answer is waited for. A tick takes at most 2 s; what is beyond is a process that is stopped by a limit.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A load generator that serves ([`super::serve`]) in another process. Dropping it ends the load.
///
/// Once the process is lost, ticks are empty and nothing else has an effect; [`DriverProcess::lost`] says why.
#[derive(Debug)]
pub struct DriverProcess<B> {
    shape: &'static Shape,
    stop_limit: Duration,
    end: Mutex<End>,
    accounting: PhantomData<fn() -> B>,
}

#[derive(Debug)]
struct End {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
    lost: Option<LostDriver>,
    /// End of the last tick.
    reached: Nanos,
}

impl<B: RunAccounting> DriverProcess<B> {
    /// Directs the load generator at the other end. Stopping it may take `stop_grace` of the host's time.
    ///
    /// # Errors
    /// If the socket cannot be set up.
    pub fn attach(
        stream: UnixStream,
        shape: &'static Shape,
        stop_grace: Duration,
    ) -> io::Result<DriverProcess<B>> {
        stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let answers = BufReader::new(stream.try_clone()?);
        Ok(DriverProcess {
            shape,
            stop_limit: stop_grace + ANSWER_LIMIT,
            end: Mutex::new(End { stream, answers, lost: None, reached: Nanos::ZERO }),
            accounting: PhantomData,
        })
    }

    /// Names and headline of the workload.
    pub fn shape(&self) -> &'static Shape {
        self.shape
    }

    /// Why the process is lost, if it is.
    pub fn lost(&self) -> Option<LostDriver> {
        self.end().lost.clone()
    }

    /// As [`Driver::set_users`](crate::Driver::set_users).
    pub fn set_users(&self, users: u32) {
        // A lost process is reported by the next look at it.
        let _ = self.end().ask(&Command::SetUsers(users));
    }

    /// As [`Driver::set_rate`](crate::Driver::set_rate).
    pub fn set_rate(&self, rate_per_second: f64, ramp: Nanos) -> Result<(), DriveError> {
        self.order(&Command::SetRate { rate_per_second, ramp_ns: ramp.0 })
    }

    /// As [`Driver::set_slowdown`](crate::Driver::set_slowdown).
    pub fn set_slowdown(&self, slowdown: Slowdown) {
        let Slowdown { cpu, connections } = slowdown;
        let _ = self.end().ask(&Command::SetSlowdown { cpu, connections });
    }

    /// As [`Driver::set_mix`](crate::Driver::set_mix).
    pub fn set_mix(&self, mix: &Mix) -> Result<(), DriveError> {
        self.order(&Command::SetMix(mix_line(mix)))
    }

    /// Everything since the last tick.
    pub fn tick(&self) -> DriveTick {
        let mut end = self.end();
        let reached = end.reached;
        let tick = match end.ask(&Command::Tick) {
            Ok(Answer::Tick(line)) => line.tick(self.shape),
            _ => None,
        };
        match tick {
            Some(tick) => {
                end.reached = tick.end;
                tick
            }
            None => {
                end.lose("it did not answer with a tick".to_string());
                DriveTick::empty(self.shape, reached, reached)
            }
        }
    }

    /// As [`Driver::stop`](crate::Driver::stop).
    ///
    /// # Errors
    /// If the process is lost: what it had booked is lost with it.
    pub fn stop(self) -> Result<DriveSummary<B>, LostDriver> {
        let mut end = self.end();
        // A socket's timeout can be changed.
        let _ = end.stream.set_read_timeout(Some(self.stop_limit));
        let summary = match end.ask(&Command::Stop)? {
            Answer::Summary(line) => line.summary(self.shape),
            _ => None,
        };
        summary.ok_or_else(|| end.lose("it did not answer with its results".to_string()))
    }

    fn order(&self, command: &Command) -> Result<(), DriveError> {
        match self.end().ask(command) {
            Ok(Answer::Refused(reason)) => Err(DriveError::Refused(reason)),
            Ok(_) => Ok(()),
            Err(lost) => Err(DriveError::Lost(lost)),
        }
    }

    fn end(&self) -> MutexGuard<'_, End> {
        // It is consistent between any two statements that could panic.
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl End {
    fn ask(&mut self, command: &Command) -> Result<Answer, LostDriver> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        self.exchange(command).map_err(|error| {
            self.lose(match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                    "it has ended".to_string()
                }
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    "it does not answer".to_string()
                }
                _ => error.to_string(),
            })
        })
    }

    fn exchange(&mut self, command: &Command) -> io::Result<Answer> {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        self.stream.write_all(&line)?;
        let mut answer = String::new();
        if self.answers.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    }

    /// The first reason counts.
    fn lose(&mut self, why: String) -> LostDriver {
        self.lost.get_or_insert(LostDriver(why)).clone()
    }
}
