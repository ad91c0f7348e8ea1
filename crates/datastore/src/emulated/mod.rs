//! The `emulated` datastore: modelled devices over backing files, each volume a real block device.
//!
//! ```text
//! <scratch>/datastore/            0711
//!   server.json, c.sock, server.log
//!   export/<volume>               FUSE: the raw bytes of a block device, served by the server process
//!   volumes/<volume>              mount points of the loop devices over those files
//!   backing/<volume>              sparse files with the data, unless they are in memory or elsewhere
//! ```
//!
//! Registered for teardown before it exists, from the bottom up: directories, FUSE mount, server process,
//! loop devices, mounts. So a killed run is undone from the top down.

mod backing;
pub(crate) mod block_counters;
mod checks;
mod emulation;
mod io_times;
mod layout;
mod mounted;
pub(crate) mod path_calibration;
pub(crate) mod path_follower;
mod series;
pub(crate) mod server_process;

use std::path::{Path, PathBuf};
use std::time::Duration;

use underlay_core::series::SeriesSpec;
use underlay_core::{Dilation, Evidence, Histogram, Nanos};
use underlay_host::{Resource, Teardown, Ticket};
use underlay_model::{DeviceProfile, Operation};

use crate::cluster_config::{GroupConfig, PolicyConfig};
use crate::control::{
    Answer, Command, Condition, EncodedHistogram, SeriesEntry, ServiceSlowdown, Stat, TimingMode,
};
use crate::datastore::{BackendLatency, Datastore, VolumeLatency};
use crate::error::DatastoreError;
use crate::fault::{ClusterChange, ClusterFault, DatastoreNotice};
use crate::path::is_read_only;
use crate::profile_config::ProfileConfig;
use crate::spec::{Context, MountedVolume, Timing, VolumeRequest};
use crate::timing_report::TimingReport;
use block_counters::BlockCounters;
use io_times::IoTimes;
use layout::Layout;
use mounted::{MountedFile, VolumeSite};
use path_calibration::{Calibration, calibrate};
use path_follower::PathFollower;
use series::DeviceSeries;
use server_process::{ServerProcess, unexpected};

pub(crate) use backing::check_space;
pub use checks::check_host;
pub(crate) use checks::{check_devices, check_floor};
pub(crate) use emulation::{Emulation, Storage};
pub(crate) use mounted::{MOUNT_OPTIONS, SECTOR_BYTES};

/// How long the server may take to end after its mount is gone.
const END_LIMIT: Duration = Duration::from_secs(5);

/// An open `emulated` datastore.
pub(crate) struct EmulatedDatastore {
    teardown: Teardown,
    server: ServerProcess,
    sites: Vec<VolumeSite>,
    mounted: Vec<MountedFile>,
    volumes: Vec<MountedVolume>,
    devices: Vec<DeviceSeries>,
    has_link: bool,
    /// What is counted of the cluster; nothing without one.
    cluster_series: Vec<SeriesEntry>,
    /// In the order of registration.
    directories: Vec<Ticket>,
    export: Ticket,
    /// None when nothing is delayed.
    calibration: Option<Calibration>,
    /// Runs while volumes that delay are mounted.
    follower: Option<PathFollower>,
    /// Reads and writes at the block layer up to the last report.
    block: BlockCounters,
    /// What I/O took and should have taken.
    io_times: IoTimes,
    dilation: Dilation,
}

/// Starts the server and brings up the volumes.
pub(crate) fn open(
    emulation: &Emulation<'_>,
    requests: &[VolumeRequest],
    context: &Context<'_>,
) -> Result<EmulatedDatastore, DatastoreError> {
    let storage = emulation.storage;
    let placed = match storage {
        Storage::Devices(devices, link) => {
            checks::check_devices(devices)?;
            checks::check_link(link)?;
            checks::place_volumes(devices, requests)?
        }
        Storage::Cluster(cluster) => {
            checks::check_cluster(cluster, requests)?;
            Vec::new()
        }
    };
    checks::check_host()?;
    let needed = storage.needed(requests);
    let backing = backing::choose(emulation.backing_directory, context.scratch, needed)?;
    let layout = Layout::create(&backing, requests, context)?;
    let config = layout.server_config(emulation, requests, &placed, context.dilation);
    config.write(&layout.config)?;
    let mount = Resource::Mount { target: layout.export.clone() };
    let export = context.teardown.register(mount)?;
    let mut server =
        ServerProcess::start(context, &layout.config, &layout.socket, layout.log.clone())?;
    // Formatting at the speed of a disk would take minutes and measure nothing.
    server.done(&Command::SetTiming(TimingMode::Off))?;
    let sites = layout.sites(requests, context.dilation);
    let mounted = sites
        .iter()
        .map(|site| site.create(context.teardown, context.owner))
        .collect::<Result<Vec<_>, _>>()?;
    let calibration =
        start_timing(&mut server, storage, mounted[0].block_device(), context.dilation)?;
    let cluster_series = match server.ask(&Command::ClusterSeries)? {
        Answer::Series(series) => series,
        other => return Err(unexpected(&Command::ClusterSeries, &other)),
    };
    let mut datastore = EmulatedDatastore {
        teardown: context.teardown.clone(),
        server,
        sites,
        mounted,
        volumes: requests.iter().zip(&layout.targets).map(described).collect(),
        devices: match storage {
            Storage::Devices(devices, _) => devices.iter().map(device_series).collect(),
            Storage::Cluster(_) => Vec::new(),
        },
        has_link: matches!(storage, Storage::Devices(_, Some(_))),
        cluster_series,
        directories: layout.tickets,
        export,
        calibration,
        follower: None,
        block: BlockCounters::default(),
        io_times: IoTimes::default(),
        dilation: context.dilation,
    };
    datastore.note_block_devices();
    datastore.follow_path()?;
    datastore.take_block_counters();
    Ok(datastore)
}

fn device_series((name, profile): &(String, DeviceProfile)) -> DeviceSeries {
    DeviceSeries { name: name.clone(), is_mirrored: profile.copies > 1 }
}

fn described((request, target): (&VolumeRequest, &PathBuf)) -> MountedVolume {
    MountedVolume {
        name: request.name.clone(),
        path: target.clone(),
        block_device: None,
        owns_block_device: true,
        capacity: request.capacity,
    }
}

/// Calibrates where something is to be delayed, and puts the models in force.
fn start_timing(
    server: &mut ServerProcess,
    storage: Storage<'_>,
    block_device: &str,
    dilation: Dilation,
) -> Result<Option<Calibration>, DatastoreError> {
    let mut calibration = None;
    if !storage.is_instant() {
        // The path through a cluster is longer than any host's own.
        let devices = match storage {
            Storage::Devices(devices, _) => devices,
            Storage::Cluster(_) => &[],
        };
        let block_device = Path::new("/dev").join(block_device);
        let found = calibrate(server, &block_device, dilation, checks::fastest_read(devices))?;
        checks::check_floor(devices, found.floor)?;
        calibration = Some(found);
    }
    // What calibration did is not the volumes' history.
    server.ask(&Command::Latency)?;
    server.ask(&Command::Timing)?;
    server.done(&Command::SetTiming(TimingMode::Modelled))?;
    Ok(calibration)
}

impl EmulatedDatastore {
    fn note_block_devices(&mut self) {
        for (volume, mounted) in self.volumes.iter_mut().zip(&self.mounted) {
            volume.block_device = Some(mounted.block_device().to_string());
        }
    }

    /// What the block layer counted since the last call, all volumes together.
    fn take_block_counters(&mut self) -> BlockCounters {
        let names = self.volumes.iter().filter_map(|volume| volume.block_device.as_deref());
        let total: BlockCounters =
            names.map(|device| BlockCounters::read(device, self.dilation)).sum();
        let since = total.since(self.block);
        self.block = total;
        since
    }

    fn stat(&mut self) -> Result<Stat, DatastoreError> {
        match self.server.ask(&Command::Stat)? {
            Answer::Stat(stat) => Ok(stat),
            other => Err(unexpected(&Command::Stat, &other)),
        }
    }

    /// Where something is delayed, the compensation has to follow the load.
    fn follow_path(&mut self) -> Result<(), DatastoreError> {
        let Some(Calibration { compensation, .. }) = self.calibration else { return Ok(()) };
        let devices = self.volumes.iter().filter_map(|volume| volume.block_device.clone());
        let control = self.server.connect()?;
        let devices = (devices.collect(), self.dilation);
        self.follower = Some(PathFollower::start(control, devices, compensation)?);
        Ok(())
    }

    fn unmount_volumes(&mut self) -> Result<(), DatastoreError> {
        if let (Some(follower), Some(calibration)) = (self.follower.take(), &mut self.calibration) {
            calibration.compensation = follower.stop();
        }
        while let Some(mounted) = self.mounted.pop() {
            mounted.close()?;
        }
        Ok(())
    }

    /// Mounts the volumes again, letting their file systems recover.
    fn mount_volumes(&mut self) -> Result<(), DatastoreError> {
        for site in &self.sites {
            self.mounted.push(site.reopen(&self.teardown)?);
        }
        self.note_block_devices();
        self.follow_path()?;
        self.take_block_counters();
        Ok(())
    }
}

impl Datastore for EmulatedDatastore {
    fn volumes(&self) -> &[MountedVolume] {
        &self.volumes
    }

    fn evidence(&self) -> Evidence {
        Evidence::Emulated
    }

    fn series(&self) -> Vec<SeriesSpec> {
        let volumes: Vec<&str> = self.volumes.iter().map(|volume| volume.name.as_str()).collect();
        let mut series = series::declare(&volumes, &self.devices, self.has_link);
        series.extend(self.cluster_series.iter().map(SeriesEntry::to_spec));
        series
    }

    fn counters(&mut self) -> Result<Vec<f64>, DatastoreError> {
        let stat = self.stat()?;
        let device = |volume: &MountedVolume| {
            let device = volume.block_device.as_deref()?;
            Some(BlockCounters::read(device, self.dilation))
        };
        let block = self.volumes.iter().map(|volume| device(volume).unwrap_or_default().0);
        self.io_times.observe(&stat.volumes, &block.collect::<Vec<_>>());
        let mut values = series::values(&stat, &self.io_times);
        values.extend(stat.cluster.iter().map(|value| value.unwrap_or(f64::NAN)));
        Ok(values)
    }

    fn set_timing(&mut self, timing: Timing) -> Result<(), DatastoreError> {
        let mode = match timing {
            Timing::Modelled => TimingMode::Modelled,
            Timing::Off => TimingMode::Off,
        };
        self.server.done(&Command::SetTiming(mode))?;
        // What was done without models must not be compared with them.
        self.take_block_counters();
        Ok(())
    }

    fn destage_all(&mut self) -> Result<(), DatastoreError> {
        if !self.devices.is_empty() {
            return Ok(());
        }
        self.server.done(&Command::DestageAll)
    }

    fn set_slowdown(&mut self, slowdown: ServiceSlowdown) -> Result<(), DatastoreError> {
        self.server.done(&Command::SetSlowdown(slowdown))
    }

    fn timing(&mut self) -> Result<Option<TimingReport>, DatastoreError> {
        let entry = match self.server.ask(&Command::Timing)? {
            Answer::Timing(entry) => entry,
            other => return Err(unexpected(&Command::Timing, &other)),
        };
        let block = self.take_block_counters().0.total();
        let floor = self.calibration.map_or(Nanos::ZERO, |calibration| calibration.floor);
        entry.judge(floor, block.ns.checked_div(block.ios).map(Nanos)).map(Some)
    }

    fn latency(&mut self) -> Result<Vec<VolumeLatency>, DatastoreError> {
        let entries = match self.server.ask(&Command::Latency)? {
            Answer::Latency(entries) => entries,
            other => return Err(unexpected(&Command::Latency, &other)),
        };
        entries
            .iter()
            .map(|entry| {
                Ok(VolumeLatency {
                    volume: self.volumes[entry.volume].name.clone(),
                    operation: Operation::ALL[entry.operation],
                    latency: decode(&entry.histogram)?,
                })
            })
            .collect()
    }

    fn backend_latency(&mut self) -> Result<Vec<BackendLatency>, DatastoreError> {
        if self.cluster_series.is_empty() {
            return Ok(Vec::new());
        }
        let entries = match self.server.ask(&Command::ClusterLatency)? {
            Answer::ClusterLatency(entries) => entries,
            other => return Err(unexpected(&Command::ClusterLatency, &other)),
        };
        let decoded = entries.into_iter().map(|entry| {
            Ok(BackendLatency { latency: decode(&entry.histogram)?, name: entry.name })
        });
        decoded.collect()
    }

    fn power_cut(&mut self) -> Result<(), DatastoreError> {
        match self.server.ask(&Command::PowerCut)? {
            Answer::PowerCut { .. } => Ok(()),
            other => Err(unexpected(&Command::PowerCut, &other)),
        }
    }

    fn power_on(&mut self) -> Result<(), DatastoreError> {
        // Before the power is back, or caches of the dead file systems would be written to the volumes.
        self.unmount_volumes()?;
        self.server.done(&Command::PowerOn)?;
        self.mount_volumes()
    }

    fn remount(&mut self) -> Result<(), DatastoreError> {
        self.unmount_volumes()?;
        self.mount_volumes()
    }

    fn inject(&mut self, fault: &ClusterFault) -> Result<(), DatastoreError> {
        match condition_of(fault).filter(|_| !self.devices.is_empty()) {
            Some((device, condition)) => {
                let device = device.to_string();
                self.server.done(&Command::SetCondition { device, condition })
            }
            None => self.server.done(&Command::Inject(fault.clone())),
        }
    }

    fn change(&mut self, change: &ClusterChange) -> Result<(), DatastoreError> {
        self.server.done(&match change {
            ClusterChange::Policy { volume, policy } => Command::ChangePolicy {
                volume: volume.clone(),
                policy: PolicyConfig::from(*policy),
            },
            ClusterChange::DiskGroup { host, group } => Command::AddGroup {
                host: host.clone(),
                group: Box::new(GroupConfig::from_spec(group)),
            },
            ClusterChange::Device { group, profile } => Command::AddDevice {
                group: group.clone(),
                profile: Box::new(ProfileConfig::from_profile(profile)),
            },
        })
    }

    fn notices(&mut self) -> Result<Vec<DatastoreNotice>, DatastoreError> {
        match self.server.ask(&Command::Notices)? {
            Answer::Notices(notices) => Ok(notices),
            other => Err(unexpected(&Command::Notices, &other)),
        }
    }

    fn processes(&self) -> Vec<(String, u32)> {
        vec![("datastore".to_string(), self.server.pid())]
    }

    fn health(&mut self) -> Result<(), DatastoreError> {
        self.server.check_alive()?;
        self.server.done(&Command::Ping)?;
        for volume in &self.volumes {
            let path = volume.path.clone();
            if !underlay_host::mount::is_mount_point(&path)? {
                return Err(DatastoreError::LostMount { volume: volume.name.clone(), path });
            }
            if is_read_only(&path)? {
                return Err(DatastoreError::ReadOnly { volume: volume.name.clone(), path });
            }
        }
        Ok(())
    }

    fn close(mut self: Box<Self>) -> Result<(), DatastoreError> {
        self.unmount_volumes()?;
        self.teardown.release(self.export)?;
        self.server.finish(END_LIMIT)?;
        for directory in self.directories.into_iter().rev() {
            self.teardown.release(directory)?;
        }
        Ok(())
    }
}

/// A fault or a repair of a single device, as a server without a cluster knows it.
fn condition_of(fault: &ClusterFault) -> Option<(&str, Condition)> {
    Some(match fault {
        ClusterFault::DeviceSlow { device, factor } => {
            (device, Condition::Slow { factor: *factor })
        }
        ClusterFault::DeviceStuck { device } => (device, Condition::Stuck),
        ClusterFault::DeviceErroring { device, probability } => {
            (device, Condition::Erroring { probability: *probability })
        }
        ClusterFault::DeviceLost { device } => (device, Condition::Lost),
        ClusterFault::DeviceReturned { device } => (device, Condition::Healthy),
        _ => return None,
    })
}

fn decode(histogram: &EncodedHistogram) -> Result<Histogram, DatastoreError> {
    histogram.decode().map_err(|source| DatastoreError::BadAnswer {
        command: "latency".to_string(),
        answer: source.to_string(),
    })
}
