//! The sizes of a plan that similarity scaling divides. How they are divided is decided where each is resolved.

use underlay_core::Bytes;

use super::workload::Population;

/// The sizes that similarity scaling divides.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Processors of the database server.
    pub cpus: Option<f64>,
    /// Memory of the database server.
    pub memory_limit: Option<Bytes>,
    /// What sets the size of the database.
    pub population: Population,
    /// Estimated size of the loaded database.
    pub database: Bytes,
    /// The user ladder; of a block load threads per volume.
    pub users: Vec<u32>,
}
