//! Deduplication and compression of the real bytes of a disk group: what they save, exactly.
//!
//! When blocks of 4 KiB are destaged, each is known by its fingerprint; one that the group has already is
//! stored once more only as a reference, a new one is compressed with LZ4 and takes 2 KiB if it fits, else
//! 4 KiB. References are counted, so overwriting and discarding give back exactly what nobody else uses. A block of zeros
//! is never stored. These are the rules of vSAN 6.2 to 7.0 (deduplication and compression per disk group, near-line, at
//! destage).
//!
//! In reading order: what a block is known by ([`Print`]), how often each is there ([`unique_blocks`]), a group's space
//! ([`ReducedGroup`]), which blocks of a component are to be counted ([`ChangedBlocks`]), what is kept per component
//! ([`PrintStore`]), and what a driver does with a cluster's components ([`Sweep`]).
//!
//! **Memory.** Only the references are in memory, 9 to 11 bytes per different block. What each block of a component was
//! counted as, its print, is kept beside the component by the driver, as its checksums are; a group's references are
//! counted again from there after a restart, so they cannot contradict it.
//!
//! What is not here: the bytes (the data plane has them), the time it takes and its metadata I/O
//! ([`underlay_model::DiskGroup`] models them; [`ReducedGroup::observed`] is what it wants to know).

mod fingerprint;

mod unique_blocks;

mod group;

mod changed_blocks;

mod print_store;

mod sweep;

pub use changed_blocks::ChangedBlocks;
pub use fingerprint::{BLOCK_BYTES, COMPRESSED_BYTES, Print, compressed_length};
pub use group::{Destaged, ReducedGroup};
pub use print_store::{MemoryPrints, PRINT_RECORD_BYTES, PrintRecord, PrintStore};
pub use sweep::Sweep;
pub use underlay_model::reduction::{Observed, Space};
