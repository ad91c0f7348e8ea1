//! A cluster and the policies of its volumes as JSON: part of the server's configuration, and of `datastore.json`.
//!
//! Mirror types, because the model's own know no format. Everything that decides behaviour is here; texts for people
//! stay behind, as with device profiles.

use serde::{Deserialize, Serialize};
use underlay_core::{Bytes, Nanos};
use underlay_model::cluster::{
    Checksum, ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy, Stack,
};
use underlay_model::{
    CongestionSpec, DiskGroupSpec, Policy as SchedulerPolicy, Reduction, ReductionCosts,
    SchedulerSpec, WriteBufferSpec,
};

use crate::profile_config::{ProfileConfig, undivided};

/// A whole cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ClusterConfig {
    hosts: Vec<HostConfig>,
    network: NetworkConfig,
    settings: SettingsConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct HostConfig {
    name: String,
    fault_domain: Option<String>,
    groups: Vec<GroupConfig>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct GroupConfig {
    name: String,
    cache: ProfileConfig,
    capacity: Vec<ProfileConfig>,
    write_buffer: BufferConfig,
    congestion: CongestionConfig,
    scheduler: SchedulerConfig,
    reduction: Option<ReductionConfig>,
    extents_bytes: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BufferConfig {
    usable_bytes: u64,
    elevator_start: f64,
    elevator_stop: f64,
    elevator_unthrottle: f64,
    elevator_run_bytes: u64,
    elevator_window: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct CongestionConfig {
    low_fill: f64,
    high_fill: f64,
    unit_min_ns: u64,
    delay_max_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SchedulerConfig {
    policy: SchedulerPolicyConfig,
    slice_bytes: u64,
    window: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum SchedulerPolicyConfig {
    #[serde(rename_all = "kebab-case")]
    Adaptive {
        resync_floor: f64,
    },
    None,
    #[serde(rename_all = "kebab-case")]
    StaticLimit {
        bytes_per_second: u64,
    },
    #[serde(rename_all = "kebab-case")]
    LatencyWatermark {
        low_ns: u64,
        high_ns: u64,
        interval_ns: u64,
        step_bytes_per_second: u64,
        floor_bytes_per_second: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ReductionConfig {
    fingerprint_ns: u64,
    compress_ns: u64,
    hash_map_hit: f64,
    address_map_hit: f64,
    metadata_writes_per_block: f64,
    stored_bytes_per_destaged_byte: f64,
    unique_share: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct NetworkConfig {
    latency_ns: u64,
    bytes_per_second: u64,
    #[serde(default = "undivided")]
    divisor: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SettingsConfig {
    stripe_unit_bytes: u64,
    component_limit_bytes: u64,
    components_per_host: u32,
    repair_delay_ns: u64,
    failure_detection_ns: u64,
    device_timeout_ns: u64,
    device_read_errors: u32,
    resync_slice_bytes: u64,
    resync_window: u32,
    rebalance_full_percent: u8,
    rebalance_variance_percent: Option<u8>,
    rebalance_interval_ns: u64,
    #[serde(default)]
    stack_ns_per_io: u64,
    #[serde(default)]
    stack_ps_per_byte: u64,
    #[serde(default)]
    stack_ps_per_read_byte: u64,
    owner_overhead_ns: u64,
    checksum_overhead_per_4k_ns: u64,
}

/// What a volume asks of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PolicyConfig {
    failures_to_tolerate: u8,
    erasure_coding: bool,
    stripe_width: u8,
    iops_limit: Option<u32>,
    checksum: bool,
    space_reservation_percent: u8,
}

impl ClusterConfig {
    pub(crate) fn from_spec(spec: &ClusterSpec) -> ClusterConfig {
        let ClusterSpec { hosts, network, settings } = spec;
        let host = |host: &HostSpec| HostConfig {
            name: host.name.clone(),
            fault_domain: host.fault_domain.clone(),
            groups: host.groups.iter().map(GroupConfig::from_spec).collect(),
        };
        ClusterConfig {
            hosts: hosts.iter().map(host).collect(),
            network: NetworkConfig {
                latency_ns: network.latency.0,
                bytes_per_second: network.bytes_per_second,
                divisor: network.divisor,
            },
            settings: SettingsConfig {
                stripe_unit_bytes: settings.stripe_unit.0,
                component_limit_bytes: settings.component_limit.0,
                components_per_host: settings.components_per_host,
                repair_delay_ns: settings.repair_delay.0,
                failure_detection_ns: settings.failure_detection.0,
                device_timeout_ns: settings.device_timeout.0,
                device_read_errors: settings.device_read_errors,
                resync_slice_bytes: settings.resync_slice.0,
                resync_window: settings.resync_window,
                rebalance_full_percent: settings.rebalance_full_percent,
                rebalance_variance_percent: settings.rebalance_variance_percent,
                rebalance_interval_ns: settings.rebalance_interval.0,
                stack_ns_per_io: settings.stack.per_io.0,
                stack_ps_per_byte: settings.stack.per_byte_ps,
                stack_ps_per_read_byte: settings.stack.per_read_byte_ps,
                owner_overhead_ns: settings.owner_overhead.0,
                checksum_overhead_per_4k_ns: settings.checksum_overhead_per_4k.0,
            },
        }
    }

    pub(crate) fn to_spec(&self) -> ClusterSpec {
        let host = |host: &HostConfig| HostSpec {
            name: host.name.clone(),
            fault_domain: host.fault_domain.clone(),
            groups: host.groups.iter().map(GroupConfig::to_spec).collect(),
        };
        let settings = &self.settings;
        ClusterSpec {
            hosts: self.hosts.iter().map(host).collect(),
            network: NetworkSpec {
                latency: Nanos(self.network.latency_ns),
                bytes_per_second: self.network.bytes_per_second,
                divisor: self.network.divisor,
            },
            settings: ClusterSettings {
                stripe_unit: Bytes(settings.stripe_unit_bytes),
                component_limit: Bytes(settings.component_limit_bytes),
                components_per_host: settings.components_per_host,
                repair_delay: Nanos(settings.repair_delay_ns),
                failure_detection: Nanos(settings.failure_detection_ns),
                device_timeout: Nanos(settings.device_timeout_ns),
                device_read_errors: settings.device_read_errors,
                resync_slice: Bytes(settings.resync_slice_bytes),
                resync_window: settings.resync_window,
                rebalance_full_percent: settings.rebalance_full_percent,
                rebalance_variance_percent: settings.rebalance_variance_percent,
                rebalance_interval: Nanos(settings.rebalance_interval_ns),
                stack: Stack {
                    per_io: Nanos(settings.stack_ns_per_io),
                    per_byte_ps: settings.stack_ps_per_byte,
                    per_read_byte_ps: settings.stack_ps_per_read_byte,
                },
                owner_overhead: Nanos(settings.owner_overhead_ns),
                checksum_overhead_per_4k: Nanos(settings.checksum_overhead_per_4k_ns),
            },
        }
    }
}

impl GroupConfig {
    pub(crate) fn from_spec(group: &DiskGroupSpec) -> GroupConfig {
        let (buffer, congestion) = (&group.write_buffer, &group.congestion);
        GroupConfig {
            name: group.name.clone(),
            cache: ProfileConfig::from_profile(&group.cache),
            capacity: group.capacity.iter().map(ProfileConfig::from_profile).collect(),
            write_buffer: BufferConfig {
                usable_bytes: buffer.usable.0,
                elevator_start: buffer.elevator_start,
                elevator_stop: buffer.elevator_stop,
                elevator_unthrottle: buffer.elevator_unthrottle,
                elevator_run_bytes: buffer.elevator_run.0,
                elevator_window: buffer.elevator_window,
            },
            congestion: CongestionConfig {
                low_fill: congestion.low_fill,
                high_fill: congestion.high_fill,
                unit_min_ns: congestion.unit_min.0,
                delay_max_ns: congestion.delay_max.0,
            },
            scheduler: SchedulerConfig {
                policy: SchedulerPolicyConfig::from_policy(&group.scheduler.policy),
                slice_bytes: group.scheduler.slice.0,
                window: group.scheduler.window,
            },
            reduction: match group.reduction {
                Reduction::Off => None,
                Reduction::DedupeCompress(costs) => Some(ReductionConfig {
                    fingerprint_ns: costs.fingerprint.0,
                    compress_ns: costs.compress.0,
                    hash_map_hit: costs.hash_map_hit,
                    address_map_hit: costs.address_map_hit,
                    metadata_writes_per_block: costs.metadata_writes_per_block,
                    stored_bytes_per_destaged_byte: costs.stored_bytes_per_destaged_byte,
                    unique_share: costs.unique_share,
                }),
            },
            extents_bytes: group.extents.iter().map(|extent| extent.0).collect(),
        }
    }

    pub(crate) fn to_spec(&self) -> DiskGroupSpec {
        let (buffer, congestion) = (&self.write_buffer, &self.congestion);
        DiskGroupSpec {
            name: self.name.clone(),
            cache: self.cache.to_profile(),
            capacity: self.capacity.iter().map(ProfileConfig::to_profile).collect(),
            write_buffer: WriteBufferSpec {
                usable: Bytes(buffer.usable_bytes),
                elevator_start: buffer.elevator_start,
                elevator_stop: buffer.elevator_stop,
                elevator_unthrottle: buffer.elevator_unthrottle,
                elevator_run: Bytes(buffer.elevator_run_bytes),
                elevator_window: buffer.elevator_window,
            },
            congestion: CongestionSpec {
                low_fill: congestion.low_fill,
                high_fill: congestion.high_fill,
                unit_min: Nanos(congestion.unit_min_ns),
                delay_max: Nanos(congestion.delay_max_ns),
            },
            scheduler: SchedulerSpec {
                policy: self.scheduler.policy.to_policy(),
                slice: Bytes(self.scheduler.slice_bytes),
                window: self.scheduler.window,
            },
            reduction: self.reduction.as_ref().map_or(Reduction::Off, |costs| {
                Reduction::DedupeCompress(ReductionCosts {
                    fingerprint: Nanos(costs.fingerprint_ns),
                    compress: Nanos(costs.compress_ns),
                    hash_map_hit: costs.hash_map_hit,
                    address_map_hit: costs.address_map_hit,
                    metadata_writes_per_block: costs.metadata_writes_per_block,
                    stored_bytes_per_destaged_byte: costs.stored_bytes_per_destaged_byte,
                    unique_share: costs.unique_share,
                })
            }),
            extents: self.extents_bytes.iter().copied().map(Bytes).collect(),
        }
    }
}

impl SchedulerPolicyConfig {
    fn from_policy(policy: &SchedulerPolicy) -> SchedulerPolicyConfig {
        match *policy {
            SchedulerPolicy::Adaptive { resync_floor } => {
                SchedulerPolicyConfig::Adaptive { resync_floor }
            }
            SchedulerPolicy::None => SchedulerPolicyConfig::None,
            SchedulerPolicy::StaticLimit { bytes_per_second } => {
                SchedulerPolicyConfig::StaticLimit { bytes_per_second }
            }
            SchedulerPolicy::LatencyWatermark {
                low,
                high,
                interval,
                step_bytes_per_second,
                floor_bytes_per_second,
            } => SchedulerPolicyConfig::LatencyWatermark {
                low_ns: low.0,
                high_ns: high.0,
                interval_ns: interval.0,
                step_bytes_per_second,
                floor_bytes_per_second,
            },
        }
    }

    fn to_policy(&self) -> SchedulerPolicy {
        match *self {
            SchedulerPolicyConfig::Adaptive { resync_floor } => {
                SchedulerPolicy::Adaptive { resync_floor }
            }
            SchedulerPolicyConfig::None => SchedulerPolicy::None,
            SchedulerPolicyConfig::StaticLimit { bytes_per_second } => {
                SchedulerPolicy::StaticLimit { bytes_per_second }
            }
            SchedulerPolicyConfig::LatencyWatermark {
                low_ns,
                high_ns,
                interval_ns,
                step_bytes_per_second,
                floor_bytes_per_second,
            } => SchedulerPolicy::LatencyWatermark {
                low: Nanos(low_ns),
                high: Nanos(high_ns),
                interval: Nanos(interval_ns),
                step_bytes_per_second,
                floor_bytes_per_second,
            },
        }
    }
}

impl From<Policy> for PolicyConfig {
    fn from(policy: Policy) -> PolicyConfig {
        PolicyConfig {
            failures_to_tolerate: policy.failures_to_tolerate,
            erasure_coding: policy.method == Method::ErasureCoding,
            stripe_width: policy.stripe_width,
            iops_limit: policy.iops_limit,
            checksum: policy.checksum == Checksum::On,
            space_reservation_percent: policy.space_reservation_percent,
        }
    }
}

impl From<PolicyConfig> for Policy {
    fn from(policy: PolicyConfig) -> Policy {
        Policy {
            failures_to_tolerate: policy.failures_to_tolerate,
            method: if policy.erasure_coding { Method::ErasureCoding } else { Method::Mirror },
            stripe_width: policy.stripe_width,
            iops_limit: policy.iops_limit,
            checksum: if policy.checksum { Checksum::On } else { Checksum::Off },
            space_reservation_percent: policy.space_reservation_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClusterConfig, PolicyConfig};
    use underlay_core::Nanos;
    use underlay_model::cluster::{
        Checksum, ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy,
    };
    use underlay_model::{
        Basis, DeviceProfile, DiskGroupSpec, Policy as SchedulerPolicy, Reduction, ReductionCosts,
        builtin,
    };

    fn profile(name: &str) -> DeviceProfile {
        let profile = builtin::find(name).unwrap();
        DeviceProfile {
            description: String::new(),
            source: String::new(),
            basis: Basis::Assumed,
            fit_error_percent: None,
            ..profile
        }
    }

    #[test]
    fn clusters_survive_the_file() {
        let watermark = SchedulerPolicy::LatencyWatermark {
            low: Nanos(1),
            high: Nanos(2),
            interval: Nanos(3),
            step_bytes_per_second: 4,
            floor_bytes_per_second: 5,
        };
        let policies = [
            SchedulerPolicy::ADAPTIVE,
            SchedulerPolicy::None,
            SchedulerPolicy::StaticLimit { bytes_per_second: 7 },
            watermark,
        ];
        let hosts = policies.into_iter().enumerate().map(|(index, policy)| {
            let (cache, capacity) = (profile("dc1500m-960"), vec![profile("dc500m-1920"); 2]);
            let mut group = DiskGroupSpec::new(&format!("g{index}"), cache, capacity);
            group.scheduler.policy = policy;
            if index == 1 {
                group.reduction = Reduction::DedupeCompress(ReductionCosts::DEFAULT);
                group.extents = vec![underlay_core::Bytes(1), underlay_core::Bytes(2)];
            }
            let fault_domain = (index > 1).then(|| "rack".to_string());
            HostSpec { name: format!("h{index}"), fault_domain, groups: vec![group] }
        });
        let spec = ClusterSpec {
            hosts: hosts.collect(),
            network: NetworkSpec {
                latency: Nanos(20_000),
                bytes_per_second: 1_250_000_000,
                divisor: 1,
            },
            settings: ClusterSettings::default(),
        };
        let text = serde_json::to_string(&ClusterConfig::from_spec(&spec)).unwrap();
        let read: ClusterConfig = serde_json::from_str(&text).unwrap();
        assert_eq!(read.to_spec(), spec);
    }

    #[test]
    fn policies_survive_the_file() {
        let raid_5 = Policy {
            method: Method::ErasureCoding,
            checksum: Checksum::Off,
            iops_limit: Some(3),
            stripe_width: 2,
            space_reservation_percent: 100,
            ..Policy::DEFAULT
        };
        for policy in [Policy::DEFAULT, raid_5] {
            let text = serde_json::to_string(&PolicyConfig::from(policy)).unwrap();
            let read: PolicyConfig = serde_json::from_str(&text).unwrap();
            assert_eq!(Policy::from(read), policy);
        }
    }
}
