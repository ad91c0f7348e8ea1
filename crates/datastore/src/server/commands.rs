//! Commands of the control connections: how they reach the serving thread, and what they do there.
//!
//! The serving thread does as little as possible: it copies numbers; encoding them is left to the connection's own
//! thread, by way of a closure.
//!
//! Commands that are the same for every back end are here; those of devices or of a cluster are in [`Managed`].

use std::io;
use std::sync::mpsc::channel;

use rustix::time::{ClockId, clock_gettime};
use tracing::info;
use underlay_core::{Nanos, Operation};
use underlay_export::statistics::take;
use underlay_export::{BackEnd, Client, Server, TaskSender, Volume};
use underlay_model::{ServiceFactor, ServiceFactors};

use super::devices::undo_log::PowerCut;
use crate::config::VolumeConfig;
use crate::control::{
    Answer, Command, EncodedHistogram, LatencyEntry, OperationStat, ServiceSlowdown, Stat,
    TimingEntry, TimingMode, VolumeStat,
};

/// An answer that its receiver finishes.
pub(crate) type Unfinished = Box<dyn FnOnce() -> Answer + Send>;

/// What can be done with a back end besides serving its volumes.
pub(crate) trait Managed: BackEnd<Client> + Sized + 'static {
    /// Why there is no room for one more volume; known before anything is made.
    fn check_room(&self, volume: &VolumeConfig) -> Result<(), String>;

    /// Adds a volume and returns its number, the next one. Requests in flight to others are not disturbed. An error says
    /// why it cannot be placed.
    fn place(&mut self, now: Nanos, volume: &VolumeConfig) -> Result<usize, String>;

    /// Switches the models on or off.
    fn set_mode(&mut self, mode: TimingMode);

    /// Services of each volume's operations, and messages of a network, take longer by these factors from now
    /// on.
    fn set_slowdown(
        &mut self,
        now: Nanos,
        factors: Vec<[ServiceFactor; 4]>,
        network: ServiceFactor,
    ) -> Result<(), String>;

    /// Stops accepting requests and returns the clients that wait for an answer; or does nothing and
    /// says why.
    fn power_off(&mut self, now: Nanos) -> Result<Vec<Client>, String>;

    /// After that: what was volatile is kept, lost or torn.
    fn lose_volatile(&mut self) -> io::Result<PowerCut>;

    /// Serves again.
    fn power_on(&mut self, now: Nanos);

    /// Bytes of a volume that a power cut could take away now.
    fn volatile_bytes(&self, volume: usize) -> u64;

    /// What it knows of itself: devices or the cluster, and how often this host's own storage failed.
    fn stat(&mut self, now: Nanos) -> Stat;

    /// Obeys a command that is about devices or about a cluster.
    fn obey(&mut self, now: Nanos, command: &Command) -> Unfinished;
}

/// A connection's end; clones share it.
pub(crate) struct CommandSender<B>(TaskSender<Server<B>>);

impl<B> Clone for CommandSender<B> {
    fn clone(&self) -> CommandSender<B> {
        CommandSender(self.0.clone())
    }
}

impl<B: Managed> CommandSender<B> {
    pub(crate) fn new(tasks: TaskSender<Server<B>>) -> CommandSender<B> {
        CommandSender(tasks)
    }

    /// Has a command obeyed and returns its answer.
    pub(crate) fn ask(&self, command: Command) -> Answer {
        let (answer, unfinished) = channel();
        let task = move |server: &mut Server<B>| {
            // A connection that is gone wants no answer.
            let _ = answer.send(obey(server, &command));
        };
        if let Err(error) = self.0.send(task) {
            return refused(error.to_string());
        }
        unfinished.recv().map_or_else(|_| refused("the server is shutting down"), |finish| finish())
    }
}

/// An answer that is finished.
pub(crate) fn finished(answer: Answer) -> Unfinished {
    Box::new(move || answer)
}

pub(crate) fn refused(reason: impl Into<String>) -> Answer {
    Answer::Refused { reason: reason.into() }
}

/// Done, or why not.
pub(crate) fn outcome(outcome: Result<(), String>) -> Unfinished {
    finished(outcome.map_or_else(refused, |()| Answer::Done))
}

fn obey<B: Managed>(server: &mut Server<B>, command: &Command) -> Unfinished {
    let now = server.now();
    match command {
        Command::Ping => finished(Answer::Done),
        Command::Stat => finished(Answer::Stat(stat(server))),
        Command::Latency => latency(server),
        Command::Timing => timing(server),
        Command::SetTiming(mode) => {
            server.back_end.set_mode(*mode);
            server.follow_timing();
            finished(Answer::Done)
        }
        Command::Compensate(compensation) => {
            server.compensate(*compensation);
            finished(Answer::Done)
        }
        Command::Probe { latency_ns } => {
            server.set_probe(Some(Nanos(*latency_ns)));
            finished(Answer::Done)
        }
        Command::EndProbe => {
            server.set_probe(None);
            finished(Answer::Done)
        }
        Command::SetSlowdown(slowdown) => outcome(set_slowdown(server, *slowdown)),
        Command::PowerCut => finished(power_cut(server)),
        Command::PowerOn => {
            server.back_end.power_on(now);
            info!("power on");
            finished(Answer::Done)
        }
        Command::AddVolume(volume) => finished(add_volume(server, volume)),
        Command::RemoveVolume { name } => finished(remove_volume(server, name)),
        Command::SetCondition { .. }
        | Command::Inject(_)
        | Command::ChangePolicy { .. }
        | Command::AddGroup { .. }
        | Command::AddDevice { .. }
        | Command::DestageAll
        | Command::Notices
        | Command::ClusterSeries
        | Command::ClusterLatency
        | Command::ClusterParts => server.back_end.obey(now, command),
        Command::End => {
            server.end();
            finished(Answer::Done)
        }
    }
}

fn stat<B: Managed>(server: &mut Server<B>) -> Stat {
    let now = server.now();
    let of_back_end = server.back_end.stat(now);
    let statistics = &server.statistics;
    let volumes = server.present().map(|(number, volume)| VolumeStat {
        name: volume.name.clone(),
        number,
        operations: statistics.volumes[number].operations.each_ref().map(OperationStat::of),
        errors: statistics.volumes[number].errors,
        in_flight: server.back_end.in_flight(number),
        volatile_bytes: server.back_end.volatile_bytes(number),
        nbd_clients: server.nbd_clients_of(number),
    });
    Stat {
        volumes: volumes.collect(),
        delayed: statistics.delayed.total,
        host_limited: statistics.host_limited.total,
        lateness_ns: statistics.lateness_ns,
        expected: statistics.expected_by_direction,
        realtime: server.is_prioritised(),
        nbd_address: server.nbd_address(),
        cpu_ns: cpu_ns(),
        ..of_back_end
    }
}

/// CPU time of the whole process.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn add_volume<B: Managed>(server: &mut Server<B>, volume: &VolumeConfig) -> Answer {
    if server.present().any(|(_, present)| present.name == volume.name) {
        return refused(format!("volume `{}` already exists", volume.name));
    }
    if let Err(reason) = server.back_end.check_room(volume) {
        return refused(reason);
    }
    match place(server, volume) {
        Ok(number) => {
            info!(name = volume.name, number, "volume added");
            Answer::Added { number }
        }
        Err(reason) => refused(reason),
    }
}

/// Has a volume served, and returns its number.
pub(crate) fn place<B: Managed>(
    server: &mut Server<B>,
    volume: &VolumeConfig,
) -> Result<usize, String> {
    let now = server.now();
    let number = server.back_end.place(now, volume)?;
    let (name, capacity_bytes) = (volume.name.clone(), volume.capacity_bytes);
    server.add_volume(number, Volume { name, capacity_bytes });
    Ok(number)
}

fn remove_volume<B: Managed>(server: &mut Server<B>, name: &str) -> Answer {
    let Some((number, _)) = server.present().find(|(_, volume)| volume.name == name) else {
        return refused(format!("there is no volume `{name}`"));
    };
    match server.remove_volume(number) {
        Some(_) => {
            info!(name, "volume removed");
            Answer::Done
        }
        None => refused(format!("requests to volume `{name}` are in flight")),
    }
}

fn set_slowdown<B: Managed>(
    server: &mut Server<B>,
    slowdown: ServiceSlowdown,
) -> Result<(), String> {
    let factor = |name: &str, value: f64| {
        ServiceFactor::new(value).ok_or_else(|| {
            let (low, high) = (ServiceFactor::RANGE.start(), ServiceFactor::RANGE.end());
            format!("the factor of `{name}` is {value}, but must lie between {low} and {high}")
        })
    };
    let log = factor("log", slowdown.log)?;
    let (read, data_write) =
        (factor("read", slowdown.read)?, factor("data-write", slowdown.data_write)?);
    let factors = ServiceFactors { log, read, data_write };
    let network = factor("network", slowdown.network)?;
    let names: Vec<&str> = server.present().map(|(_, volume)| &*volume.name).collect();
    // By number; the place of a removed volume stays empty.
    let factors = server.volumes().iter().map(|volume| {
        volume.as_ref().map_or([ServiceFactor::ONE; 4], |it| factors.of_volume(&it.name, &names))
    });
    let (now, factors) = (server.now(), factors.collect());
    server.back_end.set_slowdown(now, factors, network)?;
    info!(?slowdown, "slowdown set");
    Ok(())
}

fn latency<B: Managed>(server: &mut Server<B>) -> Unfinished {
    let taken = server.statistics.take_latency();
    Box::new(move || {
        let entry = |(volume, operation, histogram)| LatencyEntry {
            volume,
            operation,
            histogram: EncodedHistogram::encode(&histogram),
        };
        Answer::Latency(taken.into_iter().map(entry).collect())
    })
}

fn timing<B: Managed>(server: &mut Server<B>) -> Unfinished {
    let compensation = server.path().compensation_of(Operation::Read);
    let statistics = &mut server.statistics;
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
            compensation_ns: compensation.0,
        })
    })
}

fn power_cut<B: Managed>(server: &mut Server<B>) -> Answer {
    if !server.back_end.is_powered() {
        return refused("the power is already off");
    }
    let now = server.now();
    match server.back_end.power_off(now) {
        Ok(clients) => server.fail(clients),
        Err(reason) => return refused(reason),
    }
    match server.back_end.lose_volatile() {
        Ok(outcome) => {
            info!(?outcome, "power cut");
            let (kept, lost, torn) = (outcome.kept, outcome.lost, outcome.torn);
            Answer::PowerCut { kept, lost, torn }
        }
        Err(error) => refused(format!("the backing files failed: {error}")),
    }
}
