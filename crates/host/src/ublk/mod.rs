//! Block devices whose requests a process of ours answers: the kernel's ublk driver (Linux 6.4 and later, where it is built).
//!
//! In reading order: the messages of the control device ([`protocol`]), and the life of one device ([`device`]). What its
//! requests do is the business of whoever serves them, over the device's own character device.
//!
//! Written from the kernel's public interface (`linux/ublk_cmd.h`) and its documentation (`Documentation/block/ublk.rst`).

mod device;
mod protocol;

pub(crate) use device::remove;
pub use device::{MISSING, UblkDevice, UblkSpec, is_available};
