//! One folder per sampler. Each begins with what it reads, emits, costs and needs, and declares its
//! series as data.

pub(crate) mod block;
pub(crate) mod cgroup;
pub(crate) mod host_cpu;
pub(crate) mod mariadb;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod postgres;
pub(crate) mod pressure;
pub(crate) mod process;
pub(crate) mod underlay;
pub(crate) mod waits;

use crate::source::Sampler;
use crate::targets::{CgroupTarget, SamplingRates, VolumeTarget};
use process::ProcessRoot;
use std::sync::Arc;

/// The samplers that only read the kernel's files, in the order in which they are read.
pub(crate) fn host(
    rates: &SamplingRates,
    volumes: &[VolumeTarget],
    cgroup: Option<&CgroupTarget>,
    processes: &[Arc<ProcessRoot>],
) -> Vec<Box<dyn Sampler>> {
    let roots = &rates.roots;
    vec![
        host_cpu::sampler(roots),
        pressure::sampler(roots),
        block::sampler(roots, volumes),
        network::sampler(roots),
        memory::sampler(roots),
        cgroup::sampler(cgroup),
        process::sampler(roots, processes),
    ]
}
