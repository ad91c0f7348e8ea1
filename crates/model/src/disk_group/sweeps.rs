//! The state of the elevator: where each sweep is, and what failed.
//!
//! What is not here: when it starts, and what a sweep takes (`elevator`).

use super::member::NEVER;
use underlay_core::Nanos;

/// A device is no longer used after this many failed runs in a row.
const FAILURES_MAX: u32 = 32;

/// The state of the sweeps.
#[derive(Clone, Debug)]
pub(super) struct Elevator {
    pub(super) is_running: bool,
    pub(super) cycles: u64,
    pub(super) runs: u64,
    pub(super) failures: u64,
    /// When a sweep that paused goes on.
    pub(super) wake: Nanos,
    pub(super) sweeps: Vec<Sweep>,
    /// Failures in a row per member.
    pub(super) failures_in_a_row: Vec<u32>,
}

/// The sweep over one capacity device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    /// The block after the last one taken.
    pub(super) cursor: u64,
    pub(super) under_way: u32,
    pub(super) paused_until: Nanos,
}

impl Elevator {
    pub(super) fn new(disks: usize) -> Elevator {
        Elevator {
            is_running: false,
            cycles: 0,
            runs: 0,
            failures: 0,
            wake: NEVER,
            sweeps: vec![Sweep::default(); disks],
            failures_in_a_row: vec![0; disks + 1],
        }
    }

    /// One capacity device more.
    pub(super) fn add_disk(&mut self) {
        self.sweeps.push(Sweep::default());
        self.failures_in_a_row.push(0);
    }

    /// Whether a member failed so often that nothing more is tried.
    pub(super) fn is_given_up(&self, member: usize) -> bool {
        self.failures_in_a_row[member] >= FAILURES_MAX
    }

    /// Nothing is under way any more.
    pub(super) fn forget_runs(&mut self) {
        for sweep in &mut self.sweeps {
            (sweep.under_way, sweep.paused_until) = (0, Nanos::ZERO);
        }
        (self.is_running, self.wake) = (false, NEVER);
    }

    /// Resets the count of failures in a row: the state of the member was set.
    pub(super) fn reset_failures(&mut self, member: usize) {
        self.failures_in_a_row[member] = 0;
    }
}
