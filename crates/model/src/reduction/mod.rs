//! Deduplication and compression of the real bytes of a disk group: what they save, exactly.
//!
//! When blocks of 4 KiB are destaged, each is known by its fingerprint; one that the group has already is
//! stored once more only as a reference, a new one is compressed with LZ4 and takes 2 KiB if it fits, else
//! 4 KiB. References are counted, so overwriting and discarding give back exactly what nobody else uses.
//! These are the rules of vSAN 6.2 to 7.0 (deduplication and compression per disk group, near-line, at destage).
//!
//! The fingerprint is SHA-256, cut to 128 bits: the chance that two different blocks among 2^40 have the same
//! one is 2^-49, and the bytes themselves stay where the data plane keeps them, so even that would cost nothing
//! but a wrong count.
//!
//! What is not here: the bytes (the caller has them), the time it takes and its metadata I/O
//! ([`crate::DiskGroup`] models them; [`ReducedGroup::observed`] is what it wants to know), and persistence:
//! after a restart the caller destages what it has once more.

mod address_map;

mod fingerprint;

mod group;

pub use fingerprint::{BLOCK_BYTES, COMPRESSED_BYTES, Fingerprint, compressed_length};
pub use group::{Destaged, Observed, ReducedGroup, Space};
