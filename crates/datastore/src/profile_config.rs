//! A device profile as JSON: the only place where one is written down for another process.
//!
//! Mirror types, because the model's own types know no format. Texts for people stay behind.

use serde::{Deserialize, Serialize};
use underlay_core::{Bytes, Nanos};
use underlay_model::{Basis, DeviceProfile, Disk, Duplex, Flash, Link, Medium, WriteBuffer};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ProfileConfig {
    name: String,
    capacity_bytes: u64,
    medium: MediumConfig,
    link: Option<LinkConfig>,
    write_buffer: Option<WriteBufferConfig>,
    flush_ns: u64,
    power_loss_protected: bool,
    #[serde(default = "undivided")]
    divisor: u32,
    #[serde(default = "undivided")]
    copies: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum MediumConfig {
    Instant,
    Flash(FlashConfig),
    Disk(DiskConfig),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FlashConfig {
    read_command_ns: u64,
    write_command_ns: u64,
    base_ns: u64,
    units: u32,
    unit_bytes: u32,
    read_service_ns: u64,
    read_service_cv: f64,
    slow_probability: f64,
    slow_ns: u64,
    program_ns: u64,
    program_bytes: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct DiskConfig {
    command_ns: u64,
    seek_shortest_ns: u64,
    seek_span_ns: u64,
    rotations_per_minute: u32,
    media_bytes_per_second: u64,
    queue_depth: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LinkConfig {
    read_bytes_per_second: u64,
    write_bytes_per_second: u64,
    half_duplex: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WriteBufferConfig {
    capacity_bytes: u64,
    latency_ns: u64,
    latency_per_4k_ns: u64,
    drain_sequential_bytes_per_second: u64,
    drain_random_bytes_per_second: u64,
    fresh_budget_bytes: u64,
}

impl ProfileConfig {
    /// What the server must know of a profile. Texts for people stay behind.
    pub(crate) fn from_profile(profile: &DeviceProfile) -> ProfileConfig {
        ProfileConfig {
            name: profile.name.clone(),
            capacity_bytes: profile.capacity.0,
            medium: MediumConfig::from_medium(&profile.medium),
            link: profile.link.map(LinkConfig::from_link),
            write_buffer: profile.write_buffer.map(WriteBufferConfig::from_buffer),
            flush_ns: profile.flush.0,
            power_loss_protected: profile.power_loss_protected,
            divisor: profile.divisor,
            copies: profile.copies,
        }
    }

    pub(crate) fn to_profile(&self) -> DeviceProfile {
        DeviceProfile {
            name: self.name.clone(),
            description: String::new(),
            source: String::new(),
            basis: Basis::Assumed,
            fit_error_percent: None,
            capacity: Bytes(self.capacity_bytes),
            medium: self.medium.to_medium(),
            link: self.link.as_ref().map(LinkConfig::to_link),
            write_buffer: self.write_buffer.as_ref().map(WriteBufferConfig::to_buffer),
            flush: Nanos(self.flush_ns),
            power_loss_protected: self.power_loss_protected,
            divisor: self.divisor,
            copies: self.copies,
        }
    }
}

/// The divisor and the copies of a profile that names none.
pub(crate) fn undivided() -> u32 {
    1
}

impl MediumConfig {
    fn from_medium(medium: &Medium) -> MediumConfig {
        match medium {
            Medium::Instant => MediumConfig::Instant,
            Medium::Flash(flash) => MediumConfig::Flash(FlashConfig {
                read_command_ns: flash.read_command.0,
                write_command_ns: flash.write_command.0,
                base_ns: flash.base.0,
                units: flash.units,
                unit_bytes: flash.unit_bytes,
                read_service_ns: flash.read_service.0,
                read_service_cv: flash.read_service_cv,
                slow_probability: flash.slow_probability,
                slow_ns: flash.slow.0,
                program_ns: flash.program.0,
                program_bytes: flash.program_bytes,
            }),
            Medium::Disk(disk) => MediumConfig::Disk(DiskConfig {
                command_ns: disk.command.0,
                seek_shortest_ns: disk.seek_shortest.0,
                seek_span_ns: disk.seek_span.0,
                rotations_per_minute: disk.rotations_per_minute,
                media_bytes_per_second: disk.media_bytes_per_second,
                queue_depth: disk.queue_depth,
            }),
        }
    }

    fn to_medium(&self) -> Medium {
        match self {
            MediumConfig::Instant => Medium::Instant,
            MediumConfig::Flash(flash) => Medium::Flash(Flash {
                read_command: Nanos(flash.read_command_ns),
                write_command: Nanos(flash.write_command_ns),
                base: Nanos(flash.base_ns),
                units: flash.units,
                unit_bytes: flash.unit_bytes,
                read_service: Nanos(flash.read_service_ns),
                read_service_cv: flash.read_service_cv,
                slow_probability: flash.slow_probability,
                slow: Nanos(flash.slow_ns),
                program: Nanos(flash.program_ns),
                program_bytes: flash.program_bytes,
            }),
            MediumConfig::Disk(disk) => Medium::Disk(Disk {
                command: Nanos(disk.command_ns),
                seek_shortest: Nanos(disk.seek_shortest_ns),
                seek_span: Nanos(disk.seek_span_ns),
                rotations_per_minute: disk.rotations_per_minute,
                media_bytes_per_second: disk.media_bytes_per_second,
                queue_depth: disk.queue_depth,
            }),
        }
    }
}

impl LinkConfig {
    fn from_link(link: Link) -> LinkConfig {
        LinkConfig {
            read_bytes_per_second: link.read_bytes_per_second,
            write_bytes_per_second: link.write_bytes_per_second,
            half_duplex: link.duplex == Duplex::Half,
        }
    }

    fn to_link(&self) -> Link {
        Link {
            read_bytes_per_second: self.read_bytes_per_second,
            write_bytes_per_second: self.write_bytes_per_second,
            duplex: if self.half_duplex { Duplex::Half } else { Duplex::Full },
        }
    }
}

impl WriteBufferConfig {
    fn from_buffer(buffer: WriteBuffer) -> WriteBufferConfig {
        WriteBufferConfig {
            capacity_bytes: buffer.capacity.0,
            latency_ns: buffer.latency.0,
            latency_per_4k_ns: buffer.latency_per_4k.0,
            drain_sequential_bytes_per_second: buffer.drain_sequential_bytes_per_second,
            drain_random_bytes_per_second: buffer.drain_random_bytes_per_second,
            fresh_budget_bytes: buffer.fresh_budget.0,
        }
    }

    fn to_buffer(&self) -> WriteBuffer {
        WriteBuffer {
            capacity: Bytes(self.capacity_bytes),
            latency: Nanos(self.latency_ns),
            latency_per_4k: Nanos(self.latency_per_4k_ns),
            drain_sequential_bytes_per_second: self.drain_sequential_bytes_per_second,
            drain_random_bytes_per_second: self.drain_random_bytes_per_second,
            fresh_budget: Bytes(self.fresh_budget_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProfileConfig;
    use underlay_model::{Basis, DeviceProfile, builtin};

    /// Everything but the texts for people survives the way through JSON.
    #[test]
    fn profiles_survive_the_file() {
        for profile in builtin::all() {
            let text = serde_json::to_string(&ProfileConfig::from_profile(&profile)).unwrap();
            let read: ProfileConfig = serde_json::from_str(&text).unwrap();
            let without_texts = DeviceProfile {
                description: String::new(),
                source: String::new(),
                basis: Basis::Assumed,
                fit_error_percent: None,
                ..profile
            };
            assert_eq!(read.to_profile(), without_texts);
        }
    }
}
