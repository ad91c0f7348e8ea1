//! What commands do to devices and the volumes on them.

use std::io;

use tracing::info;
use underlay_core::{Bytes, Nanos};
use underlay_export::Client;
use underlay_model::{CopyState, DeviceCondition, ServiceFactor, StoreDevice, device_names};

use super::Devices;
use super::undo_log::PowerCut;
use crate::config::VolumeConfig;
use crate::control::{
    Answer, ClusterParts, Command, Condition, CopyStat, DeviceStat, LinkStat, Stat, TimingMode,
};
use crate::server::commands::{Managed, Unfinished, finished, outcome};

impl Managed for Devices<Client> {
    fn check_room(&self, volume: &VolumeConfig) -> Result<(), String> {
        let Some(device) = self.engine.devices().get(volume.device) else {
            return Err(format!("there is no device {}", volume.device));
        };
        let free_bytes = self.engine.free_bytes(volume.device);
        if volume.capacity_bytes > free_bytes {
            return Err(format!(
                "the volume needs {}, but only {} of device `{}` are free",
                Bytes(volume.capacity_bytes),
                Bytes(free_bytes),
                device.name,
            ));
        }
        Ok(())
    }

    fn place(&mut self, now: Nanos, volume: &VolumeConfig) -> Result<usize, String> {
        self.add_volume(now, volume).map_err(|error| error.to_string())
    }

    fn set_mode(&mut self, mode: TimingMode) {
        self.engine.set_mode(mode);
    }

    fn set_slowdown(
        &mut self,
        now: Nanos,
        factors: Vec<[ServiceFactor; 4]>,
        network: ServiceFactor,
    ) -> Result<(), String> {
        if network != ServiceFactor::ONE {
            return Err(
                "there is no cluster, so there is no network that could be slower".to_string()
            );
        }
        self.engine.set_factors(now, factors);
        Ok(())
    }

    fn power_off(&mut self, _now: Nanos) -> Result<Vec<Client>, String> {
        Ok(self.engine.power_off())
    }

    fn lose_volatile(&mut self) -> io::Result<PowerCut> {
        Devices::lose_volatile(self)
    }

    fn power_on(&mut self, now: Nanos) {
        self.engine.power_on(now);
    }

    fn volatile_bytes(&self, volume: usize) -> u64 {
        Devices::volatile_bytes(self, volume)
    }

    fn stat(&mut self, now: Nanos) -> Stat {
        let buffers = self.engine.buffers(now);
        let engine = &self.engine;
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
            devices: devices.collect(),
            link: engine.link_use().map(|used| LinkStat {
                read_busy_ns: used.read_busy.0,
                write_busy_ns: used.write_busy.0,
            }),
            errors: self.errors,
            ..Stat::default()
        }
    }

    fn obey(&mut self, now: Nanos, command: &Command) -> Unfinished {
        let no_cluster =
            |verb: &str| outcome(Err(format!("there is no cluster, so nothing of it can {verb}")));
        match command {
            Command::SetCondition { device, condition } => {
                outcome(set_condition(self, now, device, *condition))
            }
            Command::Inject(_) => no_cluster("break"),
            Command::Notices => finished(Answer::Notices(Vec::new())),
            Command::ClusterSeries => finished(Answer::Series(Vec::new())),
            Command::ClusterLatency => finished(Answer::ClusterLatency(Vec::new())),
            Command::ClusterParts => finished(Answer::ClusterParts(ClusterParts::default())),
            _ => no_cluster("change"),
        }
    }
}

fn copy_stat(copy: &CopyState) -> CopyStat {
    CopyStat { condition: copy.condition.into(), missed_bytes: copy.missed.0 }
}

fn set_condition(
    back_end: &mut Devices<Client>,
    now: Nanos,
    device: &str,
    condition: Condition,
) -> Result<(), String> {
    let condition = DeviceCondition::from(condition);
    if let Some(problem) = condition.problem() {
        return Err(problem.to_string());
    }
    let devices = back_end.engine.devices();
    let Some((number, copy)) = find_device(devices, device) else {
        let known: Vec<String> =
            devices.iter().flat_map(|device| device_names(&device.name, &device.profile)).collect();
        return Err(format!("there is no device `{device}`; there are {}", known.join(", ")));
    };
    back_end.engine.set_condition(now, number, copy, condition);
    info!(device, ?condition, "condition set");
    Ok(())
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
