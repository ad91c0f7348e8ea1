//! The device profiles that come with Underlay, each number with its source.
//!
//! Marks in the `source` texts: *sheet* = the vendor's datasheet as quoted by a third party, *recalled* =
//! a published figure not checked against the primary document, *rule* = derived by
//! [`Flash::from_datasheet`], *assumed* = no public figure exists.
//!
//! This is a table of values. The text form of profiles belongs to the study file format.

use crate::profile::{
    Basis, DeviceProfile, Disk, Duplex, Flash, FlashDatasheet, Link, Medium, WriteBuffer,
};
use underlay_core::{Bytes, Nanos};

/// All built-in profiles, sorted by name.
pub fn all() -> Vec<DeviceProfile> {
    vec![micron_5200_eco_1920(), kingston_dc1500m_960(), kingston_dc500m_1920(), hdd_7200(), null()]
}

/// The built-in profile of that name.
pub fn find(name: &str) -> Option<DeviceProfile> {
    all().into_iter().find(|profile| profile.name == name)
}

/// SATA 3 with its protocol overhead taken off; one direction at a time.
const fn sata(read: u64, write: u64) -> Option<Link> {
    Some(Link { read_bytes_per_second: read, write_bytes_per_second: write, duplex: Duplex::Half })
}

fn micron_5200_eco_1920() -> DeviceProfile {
    DeviceProfile {
        name: "5200eco-1920".to_string(),
        description: "Micron 5200 ECO, 1.92 TB, SATA".to_string(),
        source: "Recalled: 95k random read IOPS, 540/520 MB/s, 22k steady random write IOPS, typical \
                 read latency 125 to 150 us (133 us taken), typical buffered write 60 us, power-loss \
                 protection. Checked against the predecessor 5100 ECO (93k/31k IOPS, protected). \
                 Rule: command stage, units and base from 95k IOPS and 133 us; random drain = 22k x 4 KiB. \
                 Assumed: 8 MiB write buffer, 300 us per program, flush 20 us."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(1_920_000_000_000),
        medium: Medium::Flash(Flash::from_datasheet(&FlashDatasheet {
            read_iops: 95_000.0,
            read_latency: Nanos::from_micros(133),
            service_share: 0.6,
            units_min: 8,
            program: Nanos::from_micros(300),
        })),
        link: sata(540_000_000, 520_000_000),
        write_buffer: Some(WriteBuffer {
            capacity: Bytes::from_mib(8),
            latency: Nanos::from_micros(60),
            latency_per_4k: Nanos::ZERO,
            drain_sequential_bytes_per_second: 520_000_000,
            drain_random_bytes_per_second: 22_000 * 4096,
            fresh_budget: Bytes::ZERO,
        }),
        flush: Nanos::from_micros(20),
        power_loss_protected: true,
    }
}

fn kingston_dc1500m_960() -> DeviceProfile {
    DeviceProfile {
        name: "dc1500m-960".to_string(),
        description: "Kingston DC1500M, 960 GB, NVMe PCIe 3 x4".to_string(),
        source: "Sheet: 440k random read and 150k steady random write IOPS, 3100/1700 MB/s, 99.9 % of \
                 reads below 110 us and of writes below 206 us at queue depth 1, power-loss protection. \
                 Rule: command stage, units and base from 440k IOPS and a typical read of 95 us, the \
                 largest that keeps the 99.9 % bound plausible; random drain = 150k x 4 KiB. \
                 Assumed: buffered write 25 us, 32 MiB write buffer, 200 us per program; flush 12 us \
                 after a field report of 13 us mean fsync on this drive in a mirror."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(960_000_000_000),
        medium: Medium::Flash(Flash::from_datasheet(&FlashDatasheet {
            read_iops: 440_000.0,
            read_latency: Nanos::from_micros(95),
            service_share: 0.6,
            units_min: 1,
            program: Nanos::from_micros(200),
        })),
        link: Some(Link {
            read_bytes_per_second: 3_100_000_000,
            write_bytes_per_second: 3_100_000_000,
            duplex: Duplex::Full,
        }),
        write_buffer: Some(WriteBuffer {
            capacity: Bytes::from_mib(32),
            latency: Nanos::from_micros(25),
            latency_per_4k: Nanos::ZERO,
            drain_sequential_bytes_per_second: 1_700_000_000,
            drain_random_bytes_per_second: 150_000 * 4096,
            fresh_budget: Bytes::ZERO,
        }),
        flush: Nanos::from_micros(12),
        power_loss_protected: true,
    }
}

fn kingston_dc500m_1920() -> DeviceProfile {
    DeviceProfile {
        name: "dc500m-1920".to_string(),
        description: "Kingston DC500M, 1.92 TB, SATA".to_string(),
        source: "Recalled: 98k random read and 75k steady random write IOPS, 555/520 MB/s, power-loss \
                 protection. Published review: 8k to 9k IOPS at queue depth 1, hence a typical read of \
                 119 us. Rule: command stage, units and base from 98k IOPS and 119 us; random drain = \
                 75k x 4 KiB. Assumed: buffered write 55 us, 8 MiB write buffer, 300 us per program, \
                 flush 15 us."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(1_920_000_000_000),
        medium: Medium::Flash(Flash::from_datasheet(&FlashDatasheet {
            read_iops: 98_000.0,
            read_latency: Nanos::from_micros(119),
            service_share: 0.6,
            units_min: 8,
            program: Nanos::from_micros(300),
        })),
        link: sata(555_000_000, 520_000_000),
        write_buffer: Some(WriteBuffer {
            capacity: Bytes::from_mib(8),
            latency: Nanos::from_micros(55),
            latency_per_4k: Nanos::ZERO,
            drain_sequential_bytes_per_second: 520_000_000,
            drain_random_bytes_per_second: 75_000 * 4096,
            fresh_budget: Bytes::ZERO,
        }),
        flush: Nanos::from_micros(15),
        power_loss_protected: true,
    }
}

fn hdd_7200() -> DeviceProfile {
    DeviceProfile {
        name: "hdd-7200".to_string(),
        description: "7,200 rpm nearline disk, 4 TB, SATA, write cache off".to_string(),
        source: "Published class figures: 150 IOPS queued, 200 MB/s. Recalled mechanics: 8.5 ms average seek, \
                 hence 0.8 ms + 14.4 ms x sqrt(distance); rotation 8.33 ms; together 75 to 80 IOPS at queue \
                 depth 1; choice among 32 queued commands. The write \
                 cache is off, as hyper-converged systems require, so a flush has nothing to write; a \
                 sequential write that comes late loses a rotation instead."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(4_000_000_000_000),
        medium: Medium::Disk(Disk {
            command: Nanos::from_micros(200),
            seek_shortest: Nanos::from_micros(800),
            seek_span: Nanos::from_micros(14_400),
            rotations_per_minute: 7200,
            media_bytes_per_second: 200_000_000,
            queue_depth: 32,
        }),
        link: sata(550_000_000, 550_000_000),
        write_buffer: None,
        flush: Nanos::from_micros(200),
        power_loss_protected: false,
    }
}

fn null() -> DeviceProfile {
    DeviceProfile {
        name: "null".to_string(),
        description: "No delay: the export alone".to_string(),
        source: "Made up on purpose, to measure what the export itself costs.".to_string(),
        basis: Basis::Assumed,
        fit_error_percent: None,
        capacity: Bytes(1 << 50),
        medium: Medium::Instant,
        link: None,
        write_buffer: None,
        flush: Nanos::ZERO,
        power_loss_protected: true,
    }
}

#[cfg(test)]
mod tests {
    use super::{all, find};

    #[test]
    fn every_builtin_profile_is_valid() {
        for profile in all() {
            assert_eq!(profile.problems(), [], "{}", profile.name);
            assert!(!profile.source.contains("  "), "{}: {}", profile.name, profile.source);
        }
    }

    #[test]
    fn names_are_sorted_and_found() {
        let names: Vec<_> = all().into_iter().map(|profile| profile.name).collect();
        assert!(names.is_sorted());
        for name in &names {
            assert_eq!(&find(name).expect("listed").name, name);
        }
        assert!(find("none").is_none());
    }
}
