//! Deduplication and compression of the real bytes of a disk group: what they save, exactly.
//!
//! When blocks of 4 KiB are destaged, each is identified by its fingerprint. A block that the group already has costs
//! only a reference. A new one is compressed with LZ4 and takes 2 KiB if it fits, else 4 KiB. References are counted, so
//! overwriting and discarding free exactly the blocks that have no other reference. A block of zeros is never stored.
//! These are the rules of vSAN 6.2 to 7.0 (deduplication and compression per disk group, near-line, at destage).
//!
//! In reading order: what a block is known by ([`Print`]), how often each is there ([`unique_blocks`]), a group's space
//! ([`ReducedGroup`]), which blocks of a component are to be counted ([`ChangedBlocks`]), what is kept per component
//! ([`PrintStore`]), and what a driver does with a cluster's components ([`Sweep`]).
//!
//! **Memory.** Only the references are in memory, 9 to 11 bytes per different block. The driver stores the fingerprint
//! under which each block was counted next to the component, like the checksums. After a restart a group's references
//! are counted again from these, so they cannot contradict them.
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
