//! What solid-state profiles share, and the one board that none of the vendor files holds.

use crate::profile::{
    Basis, DeviceProfile, Duplex, Flash, FlashDatasheet, Link, Medium, WriteBuffer,
};
use underlay_core::{Bytes, Nanos};

/// SATA 3 with its protocol overhead taken off; one direction at a time.
pub(super) const fn sata(read: u64, write: u64) -> Option<Link> {
    Some(Link { read_bytes_per_second: read, write_bytes_per_second: write, duplex: Duplex::Half })
}

/// PCI Express: both directions at once, each as fast as the sheet's sequential read.
pub(super) const fn pcie(bytes_per_second: u64) -> Option<Link> {
    Some(Link {
        read_bytes_per_second: bytes_per_second,
        write_bytes_per_second: bytes_per_second,
        duplex: Duplex::Full,
    })
}

/// The flash of a datasheet: 0.6 of the typical latency in the unit, as the rule says for NAND.
pub(super) fn nand(
    read_iops: f64,
    read_latency_us: u64,
    units_min: u32,
    program_us: u64,
    write_bytes_per_second: u64,
) -> Medium {
    Medium::Flash(Flash::from_datasheet(&FlashDatasheet {
        read_iops,
        read_latency: Nanos::from_micros(read_latency_us),
        service_share: 0.6,
        units_min,
        program: Nanos::from_micros(program_us),
        write_bytes_per_second,
    }))
}

/// A buffer in front of NAND in its steady state: sequential writes drain at the sheet's rate, scattered
/// ones at the sheet's steady random write rate of 4 KiB blocks.
pub(super) const fn buffer(
    mebibytes: u64,
    latency_us: u64,
    sequential_bytes_per_second: u64,
    random_writes_per_second: u64,
) -> Option<WriteBuffer> {
    Some(WriteBuffer {
        capacity: Bytes::from_mib(mebibytes),
        latency: Nanos::from_micros(latency_us),
        latency_per_4k: Nanos::ZERO,
        drain_sequential_bytes_per_second: sequential_bytes_per_second,
        drain_random_bytes_per_second: random_writes_per_second * 4096,
        fresh_budget: Bytes::ZERO,
    })
}

pub(super) fn flashtec_nvme2032() -> DeviceProfile {
    DeviceProfile {
        name: "flashtec-nvme2032".to_string(),
        description: "Evaluation board with a PMC Flashtec NVMe2032 controller, 32 channels, PCIe 3 x8"
            .to_string(),
        source: "Press report of 2014: more than 875k random read IOPS, up to 8 TB of flash, 32 channels, \
                 PCIe x8. The board's flash, and every other figure, are not published. Rule: command stage, \
                 units and base from 875k IOPS and an assumed 95 us. Assumed: 1.6 TB, 5 GB/s read, 2 GB/s \
                 write, 130k steady random writes, buffered write 20 us, 32 MiB write buffer, 300 us per \
                 program, flush 15 us, power-loss protection."
            .to_string(),
        basis: Basis::Assumed,
        fit_error_percent: None,
        capacity: Bytes(1_600_000_000_000),
        medium: nand(875_000.0, 95, 1, 300, 2_000_000_000),
        link: pcie(5_000_000_000),
        write_buffer: buffer(32, 20, 2_000_000_000, 130_000),
        flush: Nanos::from_micros(15),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}
