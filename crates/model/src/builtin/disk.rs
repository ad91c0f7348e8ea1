//! The rotating disk.

use super::solid_state::sata;
use crate::profile::{Basis, DeviceProfile, Disk, Medium};
use underlay_core::{Bytes, Nanos};

pub(super) fn hdd_7200() -> DeviceProfile {
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
        divisor: 1,
        copies: 1,
    }
}
