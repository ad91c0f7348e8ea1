//! The loss of a load generator in another process.
//!
//! It deliberately says only why: what to do about it is the caller's business.

/// A load generator's process that ended, or said what no load generator says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the load generator's process is lost: {0}")]
pub struct LostDriver(pub String);
