//! What a supervisor tells about its datastore.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use underlay_core::{Dilation, Nanos};
use underlay_model::cluster::{ClusterSpec, HostSpec};
use underlay_model::{DeviceProfile, DiskGroupSpec, Operation};

use super::description::VolumeDescription;
use super::protocol::{
    BackendLatencyStatus, ComponentStatus, DeviceStatus, Latency, OperationStatus, Status,
    TimingStatus, VolumeStatus,
};
use super::supervisor::{Problem, Supervisor};
use super::volumes::{Attached, NotFree, once_free, stored_bytes};
use crate::control::{
    Answer, ClusterParts, Command, ComponentEntry, Condition, CopyStat, DeviceStat, Stat,
    TimingEntry, VolumeStat,
};
use crate::emulated::block_counters::BlockCounters;
use crate::emulated::server_process::unexpected;
use crate::error::DatastoreError;
use crate::fault::DatastoreNotice;
use underlay_export::path_cost::Counted;

/// Where fewer answers than this share were held back, how well that was done is no verdict on all of them.
const HELD_BACK_SHARE_MIN: f64 = 0.5;

/// Fewer requests say too little: the block layer counts whole milliseconds.
const BLOCK_REQUESTS_MIN: u64 = 100;

impl Supervisor {
    pub(super) fn stat(&mut self) -> Result<Stat, DatastoreError> {
        match self.server.ask(&Command::Stat)? {
            Answer::Stat(stat) => Ok(stat),
            other => Err(unexpected(&Command::Stat, &other)),
        }
    }

    pub(super) fn status(&mut self) -> Result<Status, Problem> {
        // Names first: what is added in between has no value yet.
        let names = self.cluster_names()?;
        let stat = self.stat()?;
        let parts = self.cluster_parts()?;
        self.listen()?;
        let devices = stat.devices.iter().zip(&self.description.devices);
        let devices = devices.map(|(device, described)| DeviceStatus {
            name: device.name.clone(),
            profile: described.profile.name.clone(),
            condition: device_condition_word(device).to_string(),
            capacity_bytes: described.profile.capacity.0,
            free_bytes: device.free_bytes,
            buffer_fill_bytes: device.buffer_fill_bytes,
            drained_bytes: device.drained_bytes,
        });
        let devices: Vec<DeviceStatus> = devices.collect();
        let values = names.into_iter().zip(&stat.cluster);
        let cluster: BTreeMap<String, f64> =
            values.filter_map(|(name, value)| Some((name, (*value)?))).collect();
        let devices = match &self.description.cluster {
            None => devices,
            Some(spec) => cluster_devices(spec, &cluster, &parts),
        };
        let components: Vec<ComponentStatus> =
            parts.components.iter().map(component_status).collect();
        let volumes = self.description.volumes.iter();
        let volumes = volumes.map(|volume| self.volume_status(volume, &stat, &components));
        let volumes: Vec<VolumeStatus> = volumes.collect();
        Ok(Status {
            directory: self.data_directory.directory().to_path_buf(),
            supervisor_pid: std::process::id(),
            server_pid: self.server.pid(),
            powered: self.is_powered,
            no_block_devices: self.no_block_devices.clone(),
            nbd_socket: self.nbd_socket.clone(),
            nbd_address: stat.nbd_address,
            devices,
            components,
            cluster,
            notices: self.recent_notices.recent(),
            volumes,
            delayed: stat.delayed,
            host_limited: stat.host_limited,
            lateness_ns: stat.lateness_ns,
            errors: stat.errors,
            cpu_ns: stat.cpu_ns,
            memory_bytes: resident_bytes(self.server.pid()),
        })
    }

    /// Names of what is counted of a cluster; none without one.
    fn cluster_names(&mut self) -> Result<Vec<String>, Problem> {
        match self.server.ask(&Command::ClusterSeries)? {
            Answer::Series(series) => Ok(series.into_iter().map(|entry| entry.name).collect()),
            other => Err(unexpected(&Command::ClusterSeries, &other).into()),
        }
    }

    /// Devices and components of a cluster; none without one.
    fn cluster_parts(&mut self) -> Result<ClusterParts, Problem> {
        match self.server.ask(&Command::ClusterParts)? {
            Answer::ClusterParts(parts) => Ok(parts),
            other => Err(unexpected(&Command::ClusterParts, &other).into()),
        }
    }

    /// Takes over what happened in the server.
    fn listen(&mut self) -> Result<(), Problem> {
        match self.server.ask(&Command::Notices)? {
            Answer::Notices(notices) => self.recent_notices.add(notices),
            other => return Err(unexpected(&Command::Notices, &other).into()),
        }
        Ok(())
    }

    pub(super) fn notices(&mut self) -> Result<Vec<DatastoreNotice>, Problem> {
        self.listen()?;
        Ok(self.recent_notices.take_news())
    }

    /// Refuses while NBD clients are connected with a volume, or with any.
    pub(super) fn check_nbd_clients(&mut self, name: Option<&str>) -> Result<(), Problem> {
        let is_meant = |volume: &&VolumeStat| name.is_none_or(|name| volume.name == name);
        once_free(|| {
            let stat = self.stat().map_err(|error| NotFree::Failed(error.to_string()))?;
            let used = stat.volumes.iter().filter(is_meant).find(|volume| volume.nbd_clients > 0);
            used.map_or(Ok(()), |used| {
                let VolumeStat { name, nbd_clients, .. } = used;
                let text = format!(
                    "volume `{name}` is in use over NBD, by {nbd_clients} connections; close them first"
                );
                Err(NotFree::InUse(text))
            })
        })
        .map_err(Problem::Refused)
    }

    pub(super) fn backend_latencies(&mut self) -> Result<Vec<BackendLatencyStatus>, Problem> {
        let entries = match self.server.ask(&Command::ClusterLatency)? {
            Answer::ClusterLatency(entries) => entries,
            other => return Err(unexpected(&Command::ClusterLatency, &other).into()),
        };
        let latencies = entries.into_iter().filter_map(|entry| {
            let histogram = entry.histogram.decode().ok()?;
            Some(BackendLatencyStatus {
                name: entry.name,
                ios: histogram.count(),
                p50_ns: histogram.quantile(0.5)?,
                p99_ns: histogram.quantile(0.99)?,
                max_ns: histogram.max()?,
            })
        });
        Ok(latencies.collect())
    }

    fn volume_status(
        &self,
        volume: &VolumeDescription,
        stat: &Stat,
        components: &[ComponentStatus],
    ) -> VolumeStatus {
        let attached = self.attached.iter().find(|(name, _)| *name == volume.name);
        let attached = attached.map(|(_, attached)| attached);
        let counted = stat.volumes.iter().find(|counted| counted.name == volume.name);
        let operations = counted.into_iter().flat_map(|counted| {
            Operation::ALL.into_iter().zip(counted.operations).map(|(operation, counted)| {
                OperationStatus {
                    operation: operation.as_str().to_string(),
                    ios: counted.ios,
                    bytes: counted.bytes,
                    latency_ns: counted.latency_ns,
                    queue_ns: counted.queue_ns,
                }
            })
        });
        let tcp = stat.nbd_address.map(|address| format!("nbd://{address}/{}", volume.name));
        VolumeStatus {
            name: volume.name.clone(),
            capacity_bytes: volume.capacity_bytes,
            stored_bytes: match &self.description.cluster {
                None => stored_bytes(&self.backing(&volume.name)),
                // All its copies.
                Some(_) => {
                    let own = components.iter().filter(|component| component.volume == volume.name);
                    own.map(|component| component.stored_bytes).sum()
                }
            },
            device: volume.device.clone(),
            policy: volume.policy.map(|policy| policy.to_string()),
            file_system: volume.file_system.map(|system| system.as_str().to_string()),
            block_device: attached.map(|attached| attached.block_device().to_path_buf()),
            link: attached.map(|attached| attached.link().to_path_buf()),
            mount: attached.and_then(Attached::mount_point).map(Path::to_path_buf),
            nbd_uri: nbd_uri(&volume.name, &self.nbd_socket),
            nbd_tcp_uri: tcp,
            errors: counted.map_or(0, |counted| counted.errors),
            in_flight: counted.map_or(0, |counted| counted.in_flight),
            nbd_clients: counted.map_or(0, |counted| counted.nbd_clients),
            volatile_bytes: match &self.description.cluster {
                None => Some(counted.map_or(0, |counted| counted.volatile_bytes)),
                Some(_) => None,
            },
            operations: operations.collect(),
            warnings: self
                .unmounted
                .iter()
                .filter(|(name, _)| *name == volume.name)
                .map(not_mounted)
                .collect(),
        }
    }

    /// The verdict that studies give on their runs, over what happened since the last such question.
    pub(super) fn timing(&mut self) -> Result<TimingStatus, Problem> {
        let told = self.times_kept()?;
        let recent = self.lateness.take_recent().unwrap_or(told);
        let block = self.block_layer();
        let modelled = Counted { ios: recent.modelled_ios, ns: recent.modelled_ns };
        let means = means(block, modelled).unzip();
        let judged = self.judged(&recent)?;
        Ok(TimingStatus { block_mean_ns: means.0, modelled_mean_ns: means.1, ..judged })
    }

    /// What the kernel's block layer counted since the last call, of devices that were there then.
    fn block_layer(&mut self) -> Counted {
        let mut counted = Counted::default();
        let mut seen = BTreeMap::new();
        for (name, attached) in &self.attached {
            let now = BlockCounters::read(attached.device_name(), Dilation::NONE).0.total();
            if let Some(before) = self.block_layer_seen.get(name) {
                counted = counted.plus(now.since(*before));
            }
            seen.insert(name.clone(), now);
        }
        self.block_layer_seen = seen;
        counted
    }

    /// The same, over all that happened since the start.
    pub(super) fn timing_since_start(&mut self) -> Result<TimingStatus, Problem> {
        let told = self.times_kept()?;
        self.judged(self.lateness.all().unwrap_or(&told))
    }

    /// Takes over how the server kept its times lately.
    fn times_kept(&mut self) -> Result<TimingEntry, Problem> {
        let entry = match self.server.ask(&Command::Timing)? {
            Answer::Timing(entry) => entry,
            other => return Err(unexpected(&Command::Timing, &other).into()),
        };
        self.lateness.add(&entry)?;
        Ok(entry)
    }

    fn judged(&self, entry: &TimingEntry) -> Result<TimingStatus, Problem> {
        let floor = self.calibration.map_or(Nanos::ZERO, |calibration| calibration.floor);
        Ok(verdict(entry, floor)?)
    }

    pub(super) fn latencies(&mut self) -> Result<Vec<Latency>, Problem> {
        let stat = self.stat()?;
        let entries = match self.server.ask(&Command::Latency)? {
            Answer::Latency(entries) => entries,
            other => return Err(unexpected(&Command::Latency, &other).into()),
        };
        let latencies = entries.iter().filter_map(|entry| {
            let volume = stat.volumes.iter().find(|volume| volume.number == entry.volume)?;
            let histogram = entry.histogram.decode().ok()?;
            Some(Latency {
                volume: volume.name.clone(),
                operation: Operation::ALL[entry.operation].as_str().to_string(),
                ios: histogram.count(),
                p50_ns: histogram.quantile(0.5)?,
                p99_ns: histogram.quantile(0.99)?,
                max_ns: histogram.max()?,
            })
        });
        Ok(latencies.collect())
    }
}

/// A volume behind a unix socket, as the NBD project writes it. Clients take the socket's path percent-encoded (RFC 3986); a
/// volume's name needs no encoding.
fn nbd_uri(volume: &str, socket: &Path) -> String {
    let mut uri = format!("nbd+unix:///{volume}?socket=");
    for &byte in socket.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn not_mounted((name, reason): &(String, String)) -> String {
    format!(
        "volume `{name}` is not mounted: {reason}; repair the fault that makes it unreadable (`volume fault`), then \
         `underlay volume fault DIR power-on` mounts it"
    )
}

/// Mean latencies by the block layer and by the model, if both counted the same requests.
fn means(block: Counted, modelled: Counted) -> Option<(u64, u64)> {
    let differ = block.ios.abs_diff(modelled.ios) * 20 > block.ios;
    if differ || block.ios.min(modelled.ios) < BLOCK_REQUESTS_MIN {
        return None;
    }
    Some((block.ns / block.ios, modelled.ns / modelled.ios))
}

/// Whether times were kept, as far as the server saw.
fn verdict(entry: &TimingEntry, floor: Nanos) -> Result<TimingStatus, DatastoreError> {
    // What the block layer saw is the follower's to read.
    let report = entry.judge(floor, None)?;
    let kept = 1.0 - report.host_limited_share;
    // What is known of the few says nothing about the others.
    let too_few = entry.delayed > 0 && kept < HELD_BACK_SHARE_MIN;
    let reason = report.reason.or_else(|| {
        let percent = 100.0 * kept;
        too_few
            .then(|| format!("only {percent:.1} % of the replies were delayed to a modelled time"))
    });
    Ok(TimingStatus {
        valid: reason.is_none(),
        delayed: entry.delayed,
        lateness_p99_ns: report.lateness.quantile(0.99),
        modelled_p50_ns: report.modelled.quantile(0.5),
        host_limited_share: report.host_limited_share,
        reason,
        block_mean_ns: None,
        modelled_mean_ns: None,
    })
}

/// The devices of a cluster, of each disk group the cache device first.
fn cluster_devices(
    spec: &ClusterSpec,
    counters: &BTreeMap<String, f64>,
    parts: &ClusterParts,
) -> Vec<DeviceStatus> {
    let mut devices = Vec::new();
    for host in &spec.hosts {
        let reachable = counters.get(&format!("cluster.host.{}.reachable", host.name));
        let is_away = reachable == Some(&0.0);
        for group in &host.groups {
            let name = |place: &str| format!("{}/{place}", name_of(host, group));
            let fill = counters.get(&format!("cluster.group.{}.buffer.fill", name_of(host, group)));
            let buffer_fill_bytes = fill.copied().unwrap_or(0.0) as u64;
            devices.push(DeviceStatus {
                condition: part_word(parts, &name("cache"), is_away),
                free_bytes: group.write_buffer.usable.0.saturating_sub(buffer_fill_bytes),
                buffer_fill_bytes,
                ..device_status(name("cache"), &group.cache)
            });
            for (index, profile) in group.capacity.iter().enumerate() {
                let name = name(&format!("disk{index}"));
                let used = counters.get(&format!("cluster.device.{name}.used"));
                let used = used.copied().unwrap_or(0.0) as u64;
                devices.push(DeviceStatus {
                    condition: part_word(parts, &name, is_away),
                    free_bytes: profile.capacity.0.saturating_sub(used),
                    ..device_status(name, profile)
                });
            }
        }
    }
    devices
}

fn device_status(name: String, profile: &DeviceProfile) -> DeviceStatus {
    DeviceStatus {
        name,
        profile: profile.name.clone(),
        condition: String::new(),
        capacity_bytes: profile.capacity.0,
        free_bytes: 0,
        buffer_fill_bytes: 0,
        drained_bytes: 0,
    }
}

fn name_of(host: &HostSpec, group: &DiskGroupSpec) -> String {
    format!("{}/{}", host.name, group.name)
}

/// How a device works; one that the cluster has given up has failed, whatever its fault was. Nobody can use one whose
/// host is away, however healthy it is.
fn part_word(parts: &ClusterParts, name: &str, is_away: bool) -> String {
    let part = parts.devices.iter().find(|part| part.name == name);
    let word = part.map_or("healthy", |part| match part.has_failed {
        true => "failed",
        false => condition_word(part.condition),
    });
    let word = if is_away && word == "healthy" { "unreachable" } else { word };
    word.to_string()
}

fn component_status(entry: &ComponentEntry) -> ComponentStatus {
    ComponentStatus {
        name: format!("c{}", entry.component),
        volume: entry.volume.clone(),
        device: entry.device.clone(),
        state: entry.state.clone(),
        role: entry.role.clone(),
        length_bytes: entry.length_bytes,
        stale_bytes: entry.stale_bytes,
        stored_bytes: stored_bytes(&entry.file),
    }
}

/// A mirrored device that serves without one of its copies is degraded.
fn device_condition_word(device: &DeviceStat) -> &'static str {
    let is_whole = |copy: &CopyStat| copy.condition != Condition::Lost && copy.missed_bytes == 0;
    match device.condition {
        Condition::Lost => condition_word(Condition::Lost),
        _ if !device.copies.iter().all(is_whole) => "degraded",
        condition => condition_word(condition),
    }
}

const fn condition_word(condition: Condition) -> &'static str {
    match condition {
        Condition::Healthy => "healthy",
        Condition::Slow { .. } => "slow",
        Condition::Stuck => "stuck",
        Condition::Erroring { .. } => "erroring",
        Condition::Lost => "lost",
    }
}

fn resident_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::{means, nbd_uri, verdict};
    use crate::control::{EncodedHistogram, TimingEntry};
    use std::path::Path;
    use underlay_core::{Histogram, Nanos};
    use underlay_export::path_cost::Counted;

    #[test]
    fn a_few_answers_on_time_are_no_verdict_on_all() {
        let of = |delayed: u64, host_limited: u64| {
            let constant = |value: u64| {
                let mut histogram = Histogram::new();
                histogram.record_n(value, delayed);
                EncodedHistogram::encode(&histogram)
            };
            let entry = TimingEntry {
                lateness: constant(0),
                modelled: constant(100_000),
                delayed,
                host_limited,
                modelled_ios: delayed,
                modelled_ns: delayed * 100_000,
                compensation_ns: 60_000,
            };
            verdict(&entry, Nanos::ZERO).unwrap()
        };
        assert!(of(900, 100).valid && of(900, 100).reason.is_none());
        let few = of(13, 23_987);
        assert!(!few.valid);
        assert_eq!(
            few.reason.as_deref(),
            Some("only 0.1 % of the replies were delayed to a modelled time")
        );
        // Devices without times make no promise.
        assert!(of(0, 1000).valid);
    }

    #[test]
    fn means_are_of_the_same_requests_or_of_none() {
        let of = |ios: u64, each: u64| Counted { ios, ns: ios * each };
        assert_eq!(means(of(1000, 300), of(980, 250)), Some((300, 250)));
        assert_eq!(means(of(1000, 300), of(500, 250)), None, "half of them came over NBD");
        assert_eq!(means(of(99, 300), of(99, 250)), None);
        assert_eq!(means(of(0, 0), of(0, 0)), None);
    }

    #[test]
    fn uris_are_percent_encoded() {
        let uri = |socket: &str| nbd_uri("data-1", Path::new(socket));
        assert_eq!(uri("/srv/a_b-c.d~/s"), "nbd+unix:///data-1?socket=/srv/a_b-c.d~/s");
        assert_eq!(
            uri("/srv/a b/\u{e9}&?#%/s"),
            "nbd+unix:///data-1?socket=/srv/a%20b/%C3%A9%26%3F%23%25/s"
        );
    }
}
