//! Commands on their way from the control connections to the serving thread, and what they do there.
//!
//! The serving thread does as little as possible: it copies numbers; encoding them is left to the connection's own
//! thread, by way of a closure.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};
use tracing::info;
use underlay_core::{Bytes, Histogram, Nanos};
use underlay_model::cluster::Policy;
use underlay_model::{
    CopyState, DeviceCondition, Operation, ServiceFactor, ServiceFactors, StoreDevice, device_names,
};

use super::cluster::changes;
use super::cluster::faults;
use super::cluster::plane::ClusterPlane;
use super::reply::Reply;
use super::service::Service;
use super::statistics::take;
use super::volume::VolumeData;
use crate::config::VolumeConfig;
use crate::control::{
    Answer, ClusterLatencyEntry, Command, Condition, CopyStat, DeviceStat, EncodedHistogram,
    LatencyEntry, LinkStat, Pace, SeriesEntry, Stat, TimingEntry, VolumeStat,
};
use crate::fault::ClusterFault;

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
            service.set_mode(*mode);
            finished(Answer::Done)
        }
        Command::Compensate(compensation) => {
            service.engine.path.compensate(*compensation);
            finished(Answer::Done)
        }
        Command::Probe { latency_ns } => {
            service.engine.set_probe(Some(Nanos(*latency_ns)));
            finished(Answer::Done)
        }
        Command::EndProbe => {
            service.engine.set_probe(None);
            finished(Answer::Done)
        }
        Command::SetPace(pace) => finished(set_pace(service, *pace)),
        Command::PowerCut => finished(power_cut(service)),
        Command::PowerOn => {
            service.engine.power_on(service.clock.now());
            info!("power on");
            finished(Answer::Done)
        }
        Command::AddVolume(volume) => finished(add_volume(service, volume)),
        Command::RemoveVolume { name } => finished(remove_volume(service, name)),
        Command::SetCondition { device, condition } => {
            finished(set_condition(service, device, *condition))
        }
        Command::Inject(fault) => finished(inject(service, fault)),
        Command::ChangePolicy { volume, policy } => {
            let now = service.clock.now();
            let policy = Policy::from(*policy);
            finished(of_cluster(service, "change", |plane| {
                changes::set_policy(plane, now, volume.as_deref(), policy)
            }))
        }
        Command::AddGroup { host, group } => {
            let now = service.clock.now();
            finished(of_cluster(service, "change", |plane| {
                changes::add_group(plane, now, host, &group.to_spec())
            }))
        }
        Command::AddDevice { group, profile } => {
            let now = service.clock.now();
            let profile = profile.to_profile();
            finished(of_cluster(service, "change", |plane| {
                changes::add_device(plane, now, group, &profile)
            }))
        }
        Command::Notices => finished(notices(service)),
        Command::ClusterSeries => {
            let plane = service.engine.cluster.as_mut();
            let series = plane.map_or_else(Vec::new, ClusterPlane::series);
            Box::new(move || Answer::Series(series.iter().map(SeriesEntry::of).collect()))
        }
        Command::ClusterLatency => cluster_latency(service),
        Command::ClusterParts => {
            let parts = service.engine.cluster.as_ref().map(ClusterPlane::parts);
            finished(Answer::ClusterParts(parts.unwrap_or_default()))
        }
        Command::End => {
            service.is_ending = true;
            finished(Answer::Done)
        }
    }
}

fn refused(reason: impl Into<String>) -> Answer {
    Answer::Refused { reason: reason.into() }
}

fn stat(service: &mut Service) -> Stat {
    let now = service.clock.now();
    let volumes = service.present().map(|(number, exported)| VolumeStat {
        name: exported.name.clone(),
        number,
        operations: service.engine.statistics.volumes[number].operations,
        errors: service.engine.statistics.volumes[number].errors,
        in_flight: service.engine.in_flight(number),
        volatile_bytes: exported.data.as_ref().map_or(0, VolumeData::volatile_bytes),
        nbd_clients: service.nbd.clients_of(number),
    });
    let volumes = volumes.collect();
    let buffers = service.engine.buffers(now);
    let mut plane = service.engine.cluster.as_mut();
    let storage_errors = plane.as_mut().map_or(0, |plane| plane.storage_errors());
    let cluster =
        plane.map_or_else(Vec::new, |plane| plane.performance(now).iter().map(value).collect());
    let engine = &service.engine;
    let devices = engine.devices().iter().zip(buffers).enumerate();
    let devices =
        devices.map(|(number, (device, (buffer_fill_bytes, drained_bytes)))| DeviceStat {
            name: device.name.clone(),
            condition: engine.condition(number).into(),
            free_bytes: engine.free_bytes(number),
            buffer_fill_bytes,
            drained_bytes,
            copies: engine.copies(number).iter().map(copy_stat).collect(),
        });
    Stat {
        volumes,
        // The one device below a cluster is none.
        devices: if engine.cluster.is_some() { Vec::new() } else { devices.collect() },
        link: engine.link_use().map(|used| LinkStat {
            read_busy_ns: used.read_busy.0,
            write_busy_ns: used.write_busy.0,
        }),
        delayed: engine.statistics.delayed.total,
        host_limited: engine.statistics.host_limited.total,
        lateness_ns: engine.statistics.lateness_ns,
        expected: engine.statistics.expected_by_direction,
        errors: engine.statistics.errors + storage_errors,
        realtime: service.precedence.is_granted(),
        nbd_address: service.nbd.address(),
        cpu_ns: cpu_ns(),
        cluster,
    }
}

fn copy_stat(copy: &CopyState) -> CopyStat {
    CopyStat { condition: copy.condition.into(), missed_bytes: copy.missed.0 }
}

/// JSON knows no NaN.
fn value(value: &f64) -> Option<f64> {
    (!value.is_nan()).then_some(*value)
}

/// CPU time of the whole process.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn add_volume(service: &mut Service, volume: &VolumeConfig) -> Answer {
    if service.present().any(|(_, present)| present.name == volume.name) {
        return refused(format!("there is a volume `{}` already", volume.name));
    }
    if service.engine.cluster.is_none() {
        let Some(device) = service.engine.devices().get(volume.device) else {
            return refused(format!("there is no device {}", volume.device));
        };
        let free_bytes = service.engine.free_bytes(volume.device);
        if volume.capacity_bytes > free_bytes {
            return refused(format!(
                "the volume needs {}, but only {} of device `{}` are free",
                Bytes(volume.capacity_bytes),
                Bytes(free_bytes),
                device.name,
            ));
        }
    }
    match service.add_volume(volume) {
        Ok(number) => {
            info!(name = volume.name, number, "volume added");
            Answer::Added { number }
        }
        Err(reason) => refused(reason),
    }
}

fn inject(service: &mut Service, fault: &ClusterFault) -> Answer {
    let now = service.clock.now();
    of_cluster(service, "break", |plane| faults::inject(plane, now, fault))
}

/// Does something to the cluster, if there is one.
fn of_cluster(
    service: &mut Service,
    verb: &str,
    act: impl FnOnce(&mut ClusterPlane<Reply>) -> Result<(), String>,
) -> Answer {
    let Some(plane) = &mut service.engine.cluster else {
        return refused(format!("there is no cluster, so nothing of it can {verb}"));
    };
    match act(plane) {
        Ok(()) => Answer::Done,
        Err(reason) => refused(reason),
    }
}

fn notices(service: &mut Service) -> Answer {
    let now = service.clock.now();
    let plane = service.engine.cluster.as_mut();
    Answer::Notices(plane.map_or_else(Vec::new, |plane| plane.journal.take(now)))
}

fn remove_volume(service: &mut Service, name: &str) -> Answer {
    let Some((number, _)) = service.present().find(|(_, volume)| volume.name == name) else {
        return refused(format!("there is no volume `{name}`"));
    };
    match service.remove_volume(number) {
        Some(_) => {
            info!(name, "volume removed");
            Answer::Done
        }
        None => refused(format!("requests to volume `{name}` are in flight")),
    }
}

fn set_condition(service: &mut Service, device: &str, condition: Condition) -> Answer {
    let condition = DeviceCondition::from(condition);
    if let Some(problem) = condition.problem() {
        return refused(problem);
    }
    let devices = service.engine.devices();
    let Some((number, copy)) = find_device(devices, device) else {
        let known: Vec<String> =
            devices.iter().flat_map(|device| device_names(&device.name, &device.profile)).collect();
        return refused(format!("there is no device `{device}`; there are {}", known.join(", ")));
    };
    service.engine.set_condition(service.clock.now(), number, copy, condition);
    info!(device, ?condition, "condition set");
    Answer::Done
}

/// A device, or a copy of a mirrored one, by its name.
fn find_device(devices: &[StoreDevice], name: &str) -> Option<(usize, Option<usize>)> {
    devices.iter().enumerate().find_map(|(number, device)| {
        let names = device_names(&device.name, &device.profile);
        // The device itself comes first.
        let position = names.iter().position(|known| known == name)?;
        Some((number, position.checked_sub(1)))
    })
}

fn set_pace(service: &mut Service, pace: Pace) -> Answer {
    let factor = |name: &str, value: f64| {
        ServiceFactor::new(value).ok_or_else(|| {
            let (low, high) = (ServiceFactor::RANGE.start(), ServiceFactor::RANGE.end());
            format!("the factor of `{name}` is {value}, but must lie between {low} and {high}")
        })
    };
    let factors = || {
        let log = factor("log", pace.log)?;
        let (read, data_write) =
            (factor("read", pace.read)?, factor("data-write", pace.data_write)?);
        Ok((ServiceFactors { log, read, data_write }, factor("network", pace.network)?))
    };
    let (factors, network) = match factors() {
        Ok(factors) => factors,
        Err(problem) => return Answer::Refused { reason: problem },
    };
    let now = service.clock.now();
    match &mut service.engine.cluster {
        Some(plane) => plane.set_network_factor(now, network),
        None if network != ServiceFactor::ONE => {
            return refused("there is no cluster, so there is no network that could be slower");
        }
        None => {}
    }
    let names: Vec<&str> = service.present().map(|(_, volume)| &*volume.name).collect();
    // By number; the place of a removed volume stays empty.
    let factors = service.volumes.iter().map(|volume| {
        volume.as_ref().map_or([ServiceFactor::ONE; 4], |it| factors.of_volume(&it.name, &names))
    });
    let factors = factors.collect();
    service.engine.set_factors(now, factors);
    info!(?pace, "pace set");
    Answer::Done
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

fn cluster_latency(service: &mut Service) -> Unfinished {
    let plane = service.engine.cluster.as_mut();
    let taken = plane.map_or_else(Vec::new, |plane| plane.cluster.take_latencies());
    Box::new(move || {
        let entry =
            |(of, operation, histogram): (String, Operation, Histogram)| ClusterLatencyEntry {
                name: format!("{of}.{}", operation.as_str()),
                histogram: EncodedHistogram::encode(&histogram),
            };
        Answer::ClusterLatency(taken.into_iter().map(entry).collect())
    })
}

fn timing(service: &mut Service) -> Unfinished {
    let engine = &mut service.engine;
    let compensation = engine.path.compensation();
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
            compensation_ns: compensation.0,
        })
    })
}

fn power_cut(service: &mut Service) -> Answer {
    if !service.engine.is_powered() {
        return Answer::Refused { reason: "the power is off already".to_string() };
    }
    if let Some(Err(refusal)) =
        service.engine.cluster.as_mut().map(ClusterPlane::make_sure_of_memory)
    {
        return Answer::Refused { reason: refusal.to_string() };
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
