//! How a request to a store ended.
//!
//! What is not here: when it ended.

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// As asked.
    Done,
    /// The device reported an error.
    DeviceError,
    /// The device is gone.
    DeviceLost,
}
