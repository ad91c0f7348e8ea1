//! Loop devices: a file as a block device.
//!
//! The kernel is asked directly: `LOOP_CONFIGURE` (Linux 5.8) sets file, sector size and direct I/O
//! in one step, so that no half-configured device is ever visible.

mod attach;
mod control;
mod detach;

pub use attach::LoopDevice;
pub(crate) use detach::detach_all;
pub use detach::loop_devices;
