//! The Samsung drives of VMware's and Demartek's test beds.

use super::solid_state::{buffer, nand, pcie};
use crate::profile::{Basis, DeviceProfile};
use underlay_core::{Bytes, Nanos};

pub(super) fn pm1725a_1600() -> DeviceProfile {
    DeviceProfile {
        name: "pm1725a-1600".to_string(),
        description: "Samsung PM1725a, 1.6 TB, NVMe PCIe 3 x4 (U.2)".to_string(),
        source: "Sheet of the U.2 series: up to 800k random read and 160k steady random write IOPS, 3300/3000 \
                 MB/s. Recalled: typical random read 90 to 95 us (92 us taken), write 20 us, power-loss \
                 protection. Rule: command stage, units and base from 800k IOPS and 92 us; random drain = \
                 160k x 4 KiB. Assumed: 18 us of the 20 us of a write are the buffer's, 32 MiB write buffer, \
                 200 us per program, flush 10 us."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(1_600_000_000_000),
        medium: nand(800_000.0, 92, 1, 200, 3_000_000_000),
        link: pcie(3_300_000_000),
        write_buffer: buffer(32, 18, 3_000_000_000, 160_000),
        flush: Nanos::from_micros(10),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}

pub(super) fn sm1715_1600() -> DeviceProfile {
    DeviceProfile {
        name: "sm1715-1600".to_string(),
        description: "Samsung SM1715, 1.6 TB, NVMe PCIe 3 x4".to_string(),
        source: "Recalled: 750k random read and 130k steady random write IOPS, 3000/2200 MB/s, typical random \
                 read 85 to 90 us (88 us taken), power-loss protection; the slides that name the card do not \
                 give its size. Rule: command stage, units and base from 750k IOPS and 88 us; random drain = \
                 130k x 4 KiB. Published by those slides under SQL Server: writes of about 80 us, reads that \
                 approach 100 us. The reads are some 10 us above the card's, so 70 us of a write are taken as \
                 the card's. Assumed: 32 MiB write buffer, 200 us per program, flush 10 us."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(1_600_000_000_000),
        medium: nand(750_000.0, 88, 1, 200, 2_200_000_000),
        link: pcie(3_000_000_000),
        write_buffer: buffer(32, 69, 2_200_000_000, 130_000),
        flush: Nanos::from_micros(10),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}
