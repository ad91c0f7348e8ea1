//! The Kingston drives of the vSAN white paper.

use super::solid_state::{buffer, nand, pcie, sata};
use crate::profile::{Basis, DeviceProfile};
use underlay_core::{Bytes, Nanos};

pub(super) fn dc1500m_960() -> DeviceProfile {
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
        medium: nand(440_000.0, 95, 1, 200, 1_700_000_000),
        link: pcie(3_100_000_000),
        write_buffer: buffer(32, 25, 1_700_000_000, 150_000),
        flush: Nanos::from_micros(12),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}

pub(super) fn dc1500m_1920() -> DeviceProfile {
    DeviceProfile {
        name: "dc1500m-1920".to_string(),
        description: "Kingston DC1500M, 1.92 TB, NVMe PCIe 3 x4".to_string(),
        source: "Recalled: 510k random read and 220k steady random write IOPS, 3300/2700 MB/s, power-loss \
                 protection. Rule: command stage, units and base from 510k IOPS and the typical read of 95 us \
                 of the 960 GB drive; random drain = 220k x 4 KiB. Assumed, as for that drive: buffered \
                 write 25 us, 32 MiB write buffer, 200 us per program, flush 12 us."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(1_920_000_000_000),
        medium: nand(510_000.0, 95, 1, 200, 2_700_000_000),
        link: pcie(3_300_000_000),
        write_buffer: buffer(32, 25, 2_700_000_000, 220_000),
        flush: Nanos::from_micros(12),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}

pub(super) fn dc500m_1920() -> DeviceProfile {
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
        medium: nand(98_000.0, 119, 8, 300, 520_000_000),
        link: sata(555_000_000, 520_000_000),
        write_buffer: buffer(8, 55, 520_000_000, 75_000),
        flush: Nanos::from_micros(15),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}
