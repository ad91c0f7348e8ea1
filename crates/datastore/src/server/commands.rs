//! Commands on their way from the control connections to the serving thread, and what they do there.
//!
//! The serving thread does as little as possible: it copies numbers; encoding them is left to the connection's own
//! thread, by way of a closure.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use tracing::info;

use super::service::Service;
use super::statistics::take;
use crate::control::{
    Answer, Command, DeviceStat, EncodedHistogram, LatencyEntry, Stat, TimingEntry, VolumeStat,
};
use crate::path_cost::PathCost;

/// An answer that its receiver finishes.
type Unfinished = Box<dyn FnOnce() -> Answer + Send>;

struct Asked {
    command: Command,
    answer: Sender<Unfinished>,
}

/// The serving thread's end. Becomes readable when a command is waiting.
pub(crate) struct Commands {
    bell: OwnedFd,
    asked: Receiver<Asked>,
}

/// A connection's end; clones share it.
#[derive(Clone)]
pub(crate) struct CommandSender {
    bell: std::sync::Arc<OwnedFd>,
    asked: Sender<Asked>,
}

/// Both ends.
pub(crate) fn commands() -> io::Result<(CommandSender, Commands)> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let (sender, receiver) = channel();
    let ring = std::sync::Arc::new(bell.try_clone()?);
    Ok((CommandSender { bell: ring, asked: sender }, Commands { bell, asked: receiver }))
}

impl CommandSender {
    /// Has a command obeyed and returns its answer.
    pub(crate) fn ask(&self, command: Command) -> Answer {
        let (answer, unfinished) = channel();
        let ended = || Answer::Refused { reason: "the server is ending".to_string() };
        if self.asked.send(Asked { command, answer }).is_err() {
            return ended();
        }
        // The counter of the bell overflows after 2^64 commands.
        if let Err(error) = rustix::io::write(&*self.bell, &1u64.to_ne_bytes()) {
            return Answer::Refused { reason: error.to_string() };
        }
        unfinished.recv().map_or_else(|_| ended(), |finish| finish())
    }
}

impl Commands {
    /// Lets the bell be rung again. A command is waiting whenever it has been.
    pub(crate) fn quiet_bell(&self) -> io::Result<()> {
        match rustix::io::read(&self.bell, &mut [0u8; 8]) {
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Obeys what is waiting. Costs nearly nothing when nothing is.
    pub(crate) fn obey_waiting(&self, service: &mut Service) {
        for Asked { command, answer } in self.asked.try_iter() {
            // A connection that is gone wants no answer.
            let _ = answer.send(obey(service, &command));
        }
    }
}

impl AsFd for Commands {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

fn obey(service: &mut Service, command: &Command) -> Unfinished {
    let finished = |answer: Answer| -> Unfinished { Box::new(move || answer) };
    match command {
        Command::Ping => finished(Answer::Done),
        Command::Stat => finished(Answer::Stat(stat(service))),
        Command::Latency => latency(service),
        Command::Timing => timing(service),
        Command::SetTiming(mode) => {
            service.engine.set_mode(*mode);
            finished(Answer::Done)
        }
        Command::Compensate(line) => {
            service.engine.path = PathCost::calibrated(*line);
            finished(Answer::Done)
        }
        Command::PowerCut => finished(power_cut(service)),
        Command::PowerOn => {
            service.engine.power_on();
            info!("power on");
            finished(Answer::Done)
        }
    }
}

fn stat(service: &mut Service) -> Stat {
    let (now, engine) = (service.clock.now(), &mut service.engine);
    let volumes = service.volumes.iter().enumerate().map(|(volume, exported)| VolumeStat {
        operations: engine.statistics.volumes[volume].operations,
        in_flight: engine.in_flight(volume),
        volatile_bytes: exported.data.volatile_bytes(),
    });
    let volumes = volumes.collect();
    let device =
        |(buffer_fill_bytes, drained_bytes)| DeviceStat { buffer_fill_bytes, drained_bytes };
    Stat {
        volumes,
        devices: engine.buffers(now).into_iter().map(device).collect(),
        delayed: engine.statistics.delayed.total,
        host_limited: engine.statistics.host_limited.total,
        lateness_ns: engine.statistics.lateness_ns,
        errors: engine.statistics.errors,
        realtime: service.is_realtime,
    }
}

fn latency(service: &mut Service) -> Unfinished {
    let taken = service.engine.statistics.take_latency();
    Box::new(move || {
        let entry = |(volume, operation, histogram)| LatencyEntry {
            volume,
            operation,
            histogram: EncodedHistogram::encode(&histogram),
        };
        Answer::Latency(taken.into_iter().map(entry).collect())
    })
}

fn timing(service: &mut Service) -> Unfinished {
    let engine = &mut service.engine;
    let (wake, compensation) = (engine.path.wake(), engine.path.compensation());
    let statistics = &mut engine.statistics;
    let (lateness, modelled) = (take(&mut statistics.lateness), take(&mut statistics.modelled));
    let (delayed, host_limited) = (statistics.delayed.take(), statistics.host_limited.take());
    let (modelled_ios, modelled_ns) =
        (statistics.modelled_ios.take(), statistics.modelled_ns.take());
    Box::new(move || {
        Answer::Timing(TimingEntry {
            lateness: EncodedHistogram::encode(&lateness),
            modelled: EncodedHistogram::encode(&modelled),
            delayed,
            host_limited,
            modelled_ios,
            modelled_ns,
            wake_ns: wake.0,
            compensation_ns: compensation.0,
        })
    })
}

fn power_cut(service: &mut Service) -> Answer {
    if !service.engine.is_powered() {
        return Answer::Refused { reason: "the power is off already".to_string() };
    }
    match service.power_cut() {
        Ok(outcome) => {
            info!(?outcome, "power cut");
            let (kept, lost, torn) = (outcome.kept, outcome.lost, outcome.torn);
            Answer::PowerCut { kept, lost, torn }
        }
        Err(error) => Answer::Refused { reason: format!("the backing files failed: {error}") },
    }
}
