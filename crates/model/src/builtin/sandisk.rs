//! The consumer drive of Demartek's SATA layouts.

use super::solid_state::{buffer, nand, sata};
use crate::profile::{Basis, DeviceProfile};
use underlay_core::{Bytes, Nanos};

pub(super) fn extreme_pro_480() -> DeviceProfile {
    DeviceProfile {
        name: "extreme-pro-480".to_string(),
        description: "SanDisk Extreme Pro, 480 GB, SATA, consumer drive".to_string(),
        source: "Sheet: 550/515 MB/s. Recalled: 100k random read IOPS, no power-loss protection, so a flush \
                 waits for the drain. Not published, so assumed: typical random read 105 \
                 us, 12k steady random write IOPS, buffered write 45 us, 16 MiB write buffer, 400 us per \
                 program, 800 us per flush for the map of the flash. Rule: command stage, units and base from \
                 100k IOPS and 105 us. The slides do not give the size of the drives."
            .to_string(),
        basis: Basis::Assumed,
        fit_error_percent: None,
        capacity: Bytes(480_000_000_000),
        medium: nand(100_000.0, 105, 8, 400, 515_000_000),
        link: sata(550_000_000, 515_000_000),
        write_buffer: buffer(16, 45, 515_000_000, 12_000),
        flush: Nanos::from_micros(800),
        power_loss_protected: false,
        divisor: 1,
        copies: 1,
    }
}
