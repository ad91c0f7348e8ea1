//! The commands of the server process: one JSON line each over a unix socket, one JSON line back.
//!
//! Both ends are built from this file and come from the same program, so the protocol has no version.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use underlay_core::Histogram;
use underlay_core::histogram::DecodeError;
use underlay_core::series::{SeriesKind, SeriesSpec};
use underlay_export::path_cost::{ByDirection, PathCompensation};
use underlay_export::statistics::{ModelledCounters, OperationCounters};
use underlay_model::DeviceCondition;

use crate::cluster_config::{GroupConfig, PolicyConfig};
use crate::config::VolumeConfig;
use crate::fault::{ClusterFault, DatastoreNotice};
use crate::profile_config::ProfileConfig;

/// What the server can be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Command {
    /// Are you there?
    Ping,
    /// Cumulative counters.
    Stat,
    /// Latencies per volume and operation since the last such command.
    Latency,
    /// Lateness and modelled latencies since the last such command.
    Timing,
    /// Switch the models on or off.
    SetTiming(TimingMode),
    /// What the write buffers of a cluster hold is on its capacity devices, in no time.
    DestageAll,
    /// Answer before deadlines by what the path costs.
    Compensate(PathCompensation),
    /// Answer reads of the first 4 KiB of any volume after this time, uncounted, whatever the model says.
    Probe { latency_ns: u64 },
    /// No longer.
    EndProbe,
    /// Lets services take longer than the models say, by these factors, for a while.
    SetSlowdown(ServiceSlowdown),
    /// Fail all I/O and take away what is volatile.
    PowerCut,
    /// Serve again.
    PowerOn,
    /// Serve one volume more. Answered with its number.
    AddVolume(VolumeConfig),
    /// Serve a volume no longer; its backing file stays. Refused while requests are in flight.
    RemoveVolume { name: String },
    /// Change how a device works.
    SetCondition { device: String, condition: Condition },
    /// Break something of the cluster, or mend it.
    Inject(ClusterFault),
    /// Give a volume of the cluster, or all of them, another policy.
    ChangePolicy { volume: Option<String>, policy: PolicyConfig },
    /// Add a disk group to a host of the cluster.
    AddGroup { host: String, group: Box<GroupConfig> },
    /// Add a capacity device to a disk group of the cluster, `HOST/GROUP`.
    AddDevice { group: String, profile: Box<ProfileConfig> },
    /// What happened since the last such command.
    Notices,
    /// What the performance service counts of the cluster; the values come with [`Command::Stat`]. Series of volumes that
    /// are added later stand at the end.
    ClusterSeries,
    /// Latencies of disk groups and their devices since the last such command.
    ClusterLatency,
    /// How the devices of the cluster work, and where the components of its volumes lie.
    ClusterParts,
    /// Stop serving, even if nothing was unmounted.
    End,
}

/// How many times as long as the models say services take, by what they are for. 1 is as they say; 0.1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServiceSlowdown {
    /// Writes and flushes of the log's volume.
    pub log: f64,
    /// Reads.
    pub read: f64,
    /// Writes and flushes of other volumes.
    pub data_write: f64,
    /// Messages between the hosts of a cluster.
    pub network: f64,
}

impl ServiceSlowdown {
    /// As the models say.
    pub const NONE: ServiceSlowdown =
        ServiceSlowdown { log: 1.0, read: 1.0, data_write: 1.0, network: 1.0 };
}

/// How well a device works.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Condition {
    Healthy,
    Slow { factor: f64 },
    Stuck,
    Erroring { probability: f64 },
    Lost,
}

impl From<Condition> for DeviceCondition {
    fn from(condition: Condition) -> DeviceCondition {
        match condition {
            Condition::Healthy => DeviceCondition::Healthy,
            Condition::Slow { factor } => DeviceCondition::Slow { factor },
            Condition::Stuck => DeviceCondition::Stuck,
            Condition::Erroring { probability } => DeviceCondition::Erroring { probability },
            Condition::Lost => DeviceCondition::Lost,
        }
    }
}

impl From<DeviceCondition> for Condition {
    fn from(condition: DeviceCondition) -> Condition {
        match condition {
            DeviceCondition::Healthy => Condition::Healthy,
            DeviceCondition::Slow { factor } => Condition::Slow { factor },
            DeviceCondition::Stuck => Condition::Stuck,
            DeviceCondition::Erroring { probability } => Condition::Erroring { probability },
            DeviceCondition::Lost => Condition::Lost,
        }
    }
}

/// What decides when a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TimingMode {
    /// The model.
    Modelled,
    /// Nothing: at once.
    Off,
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    Done,
    Stat(Stat),
    Latency(Vec<LatencyEntry>),
    Timing(TimingEntry),
    PowerCut { kept: u64, lost: u64, torn: u64 },
    Added { number: usize },
    Notices(Vec<DatastoreNotice>),
    Series(Vec<SeriesEntry>),
    ClusterLatency(Vec<ClusterLatencyEntry>),
    ClusterParts(ClusterParts),
    Refused { reason: String },
}

/// Cumulative counters and present gauges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Stat {
    pub(crate) volumes: Vec<VolumeStat>,
    pub(crate) devices: Vec<DeviceStat>,
    /// What the link between the host and its devices has carried; none without one.
    pub(crate) link: Option<LinkStat>,
    /// Requests held back until a deadline.
    pub(crate) delayed: u64,
    /// Requests for which the host was slower than the device.
    pub(crate) host_limited: u64,
    /// Sum of the lateness of delayed requests.
    pub(crate) lateness_ns: u64,
    /// Requests that failed in the data plane.
    pub(crate) errors: u64,
    /// The serving thread has real-time priority.
    pub(crate) realtime: bool,
    /// Where NBD clients are accepted over TCP.
    pub(crate) nbd_address: Option<SocketAddr>,
    /// CPU time of the server so far: what emulating costs this host.
    pub(crate) cpu_ns: u64,
    /// Reads answered by a model, and writes, with the sums of what their clients should have seen.
    pub(crate) expected: ByDirection,
    /// In the order of [`Command::ClusterSeries`]; there is none of what is gone.
    pub(crate) cluster: Vec<Option<f64>>,
}

/// A declared series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SeriesEntry {
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) is_counter: bool,
}

impl SeriesEntry {
    pub(crate) fn of(spec: &SeriesSpec) -> SeriesEntry {
        SeriesEntry {
            name: spec.name.clone(),
            unit: spec.unit.clone(),
            is_counter: spec.kind == SeriesKind::Counter,
        }
    }

    pub(crate) fn to_spec(&self) -> SeriesSpec {
        match self.is_counter {
            true => SeriesSpec::counter(self.name.clone(), self.unit.clone()),
            false => SeriesSpec::gauge(self.name.clone(), self.unit.clone()),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct VolumeStat {
    pub(crate) name: String,
    /// Never given to another volume.
    pub(crate) number: usize,
    /// In the order of `Operation::ALL`.
    pub(crate) operations: [OperationStat; 4],
    /// Requests answered with an I/O error of the model or of its data; none of them for want of power.
    pub(crate) errors: u64,
    pub(crate) in_flight: u64,
    /// Bytes that a power cut could take away now.
    pub(crate) volatile_bytes: u64,
    /// Connections of NBD clients.
    pub(crate) nbd_clients: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct OperationStat {
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    /// Sum of latencies as a client sees them.
    pub(crate) latency_ns: u64,
    /// Sum of the modelled waiting for other requests.
    pub(crate) queue_ns: u64,
    /// Those that a model was asked about.
    pub(crate) modelled: ModelledIo,
}

impl OperationStat {
    pub(crate) fn of(counted: &OperationCounters) -> OperationStat {
        let OperationCounters { ios, bytes, latency_ns, queue_ns, modelled } = *counted;
        let ModelledCounters { ios: modelled_ios, modelled_ns, actual_ns } = modelled;
        let modelled = ModelledIo { ios: modelled_ios, modelled_ns, actual_ns };
        OperationStat { ios, bytes, latency_ns, queue_ns, modelled }
    }
}

/// Requests that a model was asked about: what it said, and what their clients got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ModelledIo {
    pub(crate) ios: u64,
    /// Sum of the modelled latencies, queueing included.
    pub(crate) modelled_ns: u64,
    /// Sum of the latencies as a client sees them.
    pub(crate) actual_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct DeviceStat {
    pub(crate) name: String,
    pub(crate) condition: Condition,
    /// Not taken by any volume.
    pub(crate) free_bytes: u64,
    pub(crate) buffer_fill_bytes: u64,
    pub(crate) drained_bytes: u64,
    /// Of a mirrored device; empty for a single one.
    pub(crate) copies: Vec<CopyStat>,
}

/// One copy of a mirrored device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct CopyStat {
    pub(crate) condition: Condition,
    /// What it must still be given before it is read from.
    pub(crate) missed_bytes: u64,
}

/// A link between a host and its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct LinkStat {
    /// Time for which transfers in a direction occupied it.
    pub(crate) read_busy_ns: u64,
    pub(crate) write_busy_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct LatencyEntry {
    pub(crate) volume: usize,
    /// Index into `Operation::ALL`.
    pub(crate) operation: usize,
    pub(crate) histogram: EncodedHistogram,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ClusterLatencyEntry {
    /// `group.HOST/GROUP.CLASS.OPERATION` or `device.HOST/GROUP/DEVICE.OPERATION`.
    pub(crate) name: String,
    pub(crate) histogram: EncodedHistogram,
}

/// What a cluster is made of; nothing without one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ClusterParts {
    /// Cache devices too.
    pub(crate) devices: Vec<PartEntry>,
    pub(crate) components: Vec<ComponentEntry>,
}

/// One device of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PartEntry {
    /// `HOST/GROUP/cache` or `HOST/GROUP/disk0`.
    pub(crate) name: String,
    /// How it works.
    pub(crate) condition: Condition,
    /// Whether the cluster has given it up.
    pub(crate) has_failed: bool,
}

/// One component of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ComponentEntry {
    pub(crate) component: u32,
    pub(crate) volume: String,
    pub(crate) device: String,
    pub(crate) state: String,
    pub(crate) role: String,
    pub(crate) length_bytes: u64,
    pub(crate) stale_bytes: u64,
    /// Where its bytes are.
    pub(crate) file: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct TimingEntry {
    pub(crate) lateness: EncodedHistogram,
    pub(crate) modelled: EncodedHistogram,
    pub(crate) delayed: u64,
    pub(crate) host_limited: u64,
    /// Reads and writes answered by a model, held back or not, and their modelled latencies.
    pub(crate) modelled_ios: u64,
    pub(crate) modelled_ns: u64,
    /// By how much requests are answered early at the moment.
    pub(crate) compensation_ns: u64,
}

/// A histogram in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EncodedHistogram(String);

impl EncodedHistogram {
    pub(crate) fn encode(histogram: &Histogram) -> EncodedHistogram {
        let bytes = histogram.encode();
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).expect("a digit below 16"));
            }
        }
        EncodedHistogram(text)
    }

    pub(crate) fn decode(&self) -> Result<Histogram, DecodeError> {
        let digits: Option<Vec<u8>> =
            self.0.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.ok_or(DecodeError::Inconsistent)?;
        if digits.len() % 2 == 1 {
            return Err(DecodeError::Truncated);
        }
        let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        Histogram::decode(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, EncodedHistogram, TimingMode};
    use underlay_core::Histogram;

    #[test]
    fn commands_are_single_readable_lines() {
        let line = |command: &Command| serde_json::to_string(command).unwrap();
        assert_eq!(line(&Command::Ping), r#""ping""#);
        assert_eq!(line(&Command::SetTiming(TimingMode::Off)), r#"{"set-timing":"off"}"#);
    }

    #[test]
    fn histograms_survive() {
        let mut histogram = Histogram::new();
        [1, 5_000, 1_000_000, u64::MAX].iter().for_each(|value| histogram.record(*value));
        let encoded = EncodedHistogram::encode(&histogram);
        assert_eq!(encoded.decode(), Ok(histogram));
        assert!(EncodedHistogram("0".to_string()).decode().is_err());
        assert!(EncodedHistogram("zz".to_string()).decode().is_err());
    }
}
