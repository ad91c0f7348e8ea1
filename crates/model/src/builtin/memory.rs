//! Log devices as fast as memory: NVRAM on the bus, NVDIMM, and an array that acknowledges from its cache.

use super::solid_state::{nand, pcie};
use crate::profile::{Basis, DeviceProfile, Duplex, Flash, Link, Medium, WriteBuffer};
use underlay_core::{Bytes, Nanos};

/// Memory has no grains: small units, no variation, as fast to write as to read.
fn memory(command_ns: u64, base_ns: u64, service_ns: u64) -> Medium {
    Medium::Flash(Flash {
        read_command: Nanos(command_ns),
        write_command: Nanos(command_ns),
        base: Nanos(base_ns),
        units: 4,
        unit_bytes: 4 << 10,
        read_service: Nanos(service_ns),
        read_service_cv: 0.05,
        slow_probability: 0.0,
        slow: Nanos::ZERO,
        program: Nanos(service_ns),
        program_bytes: 4 << 10,
    })
}

pub(super) fn nvdimm_16() -> DeviceProfile {
    DeviceProfile {
        name: "nvdimm-16".to_string(),
        description: "NVDIMM-N, 16 GB of DRAM that saves itself to flash, as a block device".to_string(),
        source: "Recalled: 1 to 3 us per 4 KiB through the block driver, more than 1M IOPS, 5 to 10 GB/s per \
                 module (6 GB/s taken); persistent by design, so a flush has only its fence to wait for. \
                 Assumed: 0.2 us command stage, 1.2 us of copying in four lanes, flush 1 us."
            .to_string(),
        basis: Basis::Assumed,
        fit_error_percent: None,
        capacity: Bytes(16_000_000_000),
        medium: memory(200, 600, 1_200),
        link: Some(Link {
            read_bytes_per_second: 6_000_000_000,
            write_bytes_per_second: 6_000_000_000,
            duplex: Duplex::Half,
        }),
        write_buffer: None,
        flush: Nanos::from_micros(1),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}

pub(super) fn flashtec_nv1616() -> DeviceProfile {
    DeviceProfile {
        name: "flashtec-nv1616".to_string(),
        description: "Microsemi Flashtec NV1616, 16 GB NVRAM card, NVMe PCIe 3 x8".to_string(),
        source: "Press report of 2014 on the card's family: 10M small I/Os per second through its memory \
                 interface; the log-device test of 2016 names the card and gives no figure. Assumed for its \
                 block interface: 1M IOPS of 4 KiB, 10 us through the NVMe driver, 6 GB/s, persistent, flush \
                 5 us."
            .to_string(),
        basis: Basis::Assumed,
        fit_error_percent: None,
        capacity: Bytes(16_000_000_000),
        medium: memory(1_000, 6_000, 3_000),
        link: pcie(6_000_000_000),
        write_buffer: None,
        flush: Nanos::from_micros(5),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}

pub(super) fn fc_array_slc() -> DeviceProfile {
    DeviceProfile {
        name: "fc-array-slc".to_string(),
        description: "External array with SLC SSDs behind 16 Gbit/s Fibre Channel".to_string(),
        source: "Nothing is published about the array of the log-device test but the kind of its drives. \
                 Assumed, for a mid-range array of its time: reads 350 us at queue depth 1 and 100k IOPS, \
                 writes acknowledged from a protected cache after 250 us, 1.6 GB/s of one port each way, \
                 60k steady random writes, flush 200 us."
            .to_string(),
        basis: Basis::Assumed,
        fit_error_percent: None,
        capacity: Bytes(2_000_000_000_000),
        medium: nand(100_000.0, 350, 8, 200, 1_200_000_000),
        link: pcie(1_600_000_000),
        write_buffer: Some(WriteBuffer {
            capacity: Bytes::from_gib(1),
            latency: Nanos::from_micros(250),
            latency_per_4k: Nanos::from_micros(2),
            drain_sequential_bytes_per_second: 1_200_000_000,
            drain_random_bytes_per_second: 60_000 * 4096,
            fresh_budget: Bytes::ZERO,
        }),
        flush: Nanos::from_micros(200),
        power_loss_protected: true,
        divisor: 1,
        copies: 1,
    }
}
