//! Volumes as block devices of the kernel's ublk driver, where it has one.
//!
//! In reading order: the messages and the life of a tag ([`protocol`]), the one queue of a device ([`queue`]). What a
//! request does to a volume is the service's business; that a device is added, started and removed is the keeper's, through
//! [`underlay_host::UblkDevice`].

pub(crate) mod protocol;
pub(crate) mod queue;
