//! What the relay's thread shares with its owner.
//!
//! It deliberately has no channel: everything in it is read and written without waiting.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What the relay shares with its owner.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) wake: OwnedFd,
    pub(super) stop: AtomicBool,
    pub(super) counters: Counters,
}

/// [`super::NetworkCounts`] as they are counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) round_trips: AtomicU64,
    pub(super) delay_ns: AtomicU64,
    pub(super) late_ns: AtomicU64,
    pub(super) pieces: AtomicU64,
    pub(super) bytes: [AtomicU64; 2],
    pub(super) cpu_ns: AtomicU64,
    pub(super) connections: AtomicU64,
}
