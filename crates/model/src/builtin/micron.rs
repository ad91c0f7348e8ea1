//! The Micron drive of the vSAN white paper.

use super::solid_state::{buffer, nand, sata};
use crate::profile::{Basis, DeviceProfile};
use underlay_core::{Bytes, Nanos};

pub(super) fn micron_5200_eco_1920() -> DeviceProfile {
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
        medium: nand(95_000.0, 133, 8, 300, 520_000_000),
        link: sata(540_000_000, 520_000_000),
        write_buffer: buffer(8, 60, 520_000_000, 22_000),
        flush: Nanos::from_micros(20),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}
