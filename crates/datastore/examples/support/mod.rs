//! What the benchmarks of this crate share: surroundings, fio, and what the CPUs were doing.

// Every benchmark uses its part of this.
#![allow(dead_code)]

pub mod buffers;
pub mod clusters;
pub mod cpu;
pub mod fio;
pub mod peer;
pub mod quiet;
pub mod site;
pub mod virtual_cluster;
