//! FUSE over io_uring (Linux 6.14 and later): requests and answers in memory that is shared with the kernel.
//!
//! In reading order: what passes between kernel and server ([`protocol`]), the memory ([`places`]), and the ring through which
//! both are told of it ([`ring`]). Each CPU of the host has a queue of its own on the kernel's side; one ring and one thread
//! serve them all, for the same reasons for which one thread serves everything else.
//!
//! `/dev/fuse` remains: the first request, forgotten inodes and the end of the mount come through it. Where the kernel
//! does not offer the ring (it is a setting of the host, and off unless somebody switched it on), everything does.

pub(crate) mod places;
pub(crate) mod protocol;
pub(crate) mod ring;
