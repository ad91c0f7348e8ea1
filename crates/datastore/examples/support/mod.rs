//! What the benchmarks of this crate share: surroundings, fio, and what the CPUs were doing.

pub mod cpu;
pub mod fio;
pub mod quiet;
pub mod site;
