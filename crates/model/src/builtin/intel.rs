//! The Intel drives of StorageReview's and VMware's test beds.

use super::solid_state::{buffer, nand, pcie, sata};
use crate::profile::{Basis, DeviceProfile, Duplex, Flash, Link, Medium};
use underlay_core::{Bytes, Nanos};

pub(super) fn optane_p4800x_375() -> DeviceProfile {
    DeviceProfile {
        name: "p4800x-375".to_string(),
        description: "Intel Optane DC P4800X, 375 GB, NVMe PCIe 3 x4".to_string(),
        source: "Sheet: 550k random read and 500k random write IOPS, 2400/2000 MB/s, typical read and write below \
                 10 us, hence 1.82 and 2 us command stage and 6.8 us of unit time per 4 KiB written. Review of \
                 2017, queue depth 1: mean 8.9, p50 9, p99 10 us, which units, service and base give. At queue \
                 depth 16 that sample did 584.8k IOPS, 6 % more than the sheet promises: not taken, as the test \
                 beds had other samples. Writes go to the medium without a buffer, so every acknowledged write \
                 is durable. Assumed: flush 5 us."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(375_000_000_000),
        medium: Medium::Flash(Flash {
            read_command: Nanos(1_820),
            write_command: Nanos(2_000),
            base: Nanos(430),
            units: 8,
            unit_bytes: 4 << 10,
            read_service: Nanos(6_750),
            read_service_cv: 0.05,
            slow_probability: 0.0,
            slow: Nanos::ZERO,
            program: Nanos(6_800),
            program_bytes: 4 << 10,
        }),
        link: Some(Link {
            read_bytes_per_second: 2_400_000_000,
            write_bytes_per_second: 2_000_000_000,
            duplex: Duplex::Full,
        }),
        write_buffer: None,
        flush: Nanos::from_micros(5),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}

pub(super) fn p4500_2000() -> DeviceProfile {
    DeviceProfile {
        name: "p4500-2000".to_string(),
        description: "Intel DC P4500, 2 TB, NVMe PCIe 3 x4".to_string(),
        source: "Sheet: 490k random read and 38k steady random write IOPS, 3200/1050 MB/s, typical random read \
                 85 us and write 20 us. Recalled: power-loss protection. Rule: command stage, units and base \
                 from 490k IOPS and 85 us; random drain = 38k x 4 KiB. Assumed: 18 us of the 20 us of a write \
                 are the buffer's, 32 MiB write buffer, 300 us per program, flush 10 us."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(2_000_000_000_000),
        medium: nand(490_000.0, 85, 1, 300, 1_050_000_000),
        link: pcie(3_200_000_000),
        write_buffer: buffer(32, 18, 1_050_000_000, 38_000),
        flush: Nanos::from_micros(10),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}

pub(super) fn s3610_400() -> DeviceProfile {
    DeviceProfile {
        name: "s3610-400".to_string(),
        description: "Intel SSD DC S3610 (SSDSC2BX400G4), 400 GB, SATA".to_string(),
        source: "Sheet of the series: up to 84k random read IOPS, 550 MB/s read, typical sequential latency \
                 55/66 us, 99.9 % of reads below 500 us and of writes below 5 ms at queue depth 1, power-loss \
                 protection. Recalled for 400 GB: 400 MB/s write, 25k steady random write IOPS, typical random \
                 read 110 us. Rule: command stage, units and base from 84k IOPS and 110 us; random drain = 25k \
                 x 4 KiB. Assumed: buffered write 60 us, 8 MiB write buffer, 300 us per program, flush 20 us."
            .to_string(),
        basis: Basis::Datasheet,
        fit_error_percent: None,
        capacity: Bytes(400_000_000_000),
        medium: nand(84_000.0, 110, 8, 300, 400_000_000),
        link: sata(550_000_000, 520_000_000),
        write_buffer: buffer(8, 60, 400_000_000, 25_000),
        flush: Nanos::from_micros(20),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}
