//! What a simulation drives, as an interface: requests go in, time passes, completions come out.
//!
//! What is not here: what implements it.

use crate::Request;
use underlay_core::Nanos;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetOutcome {
    /// Done.
    Ok,
    /// Refused with an I/O error.
    Failed,
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetFinished {
    /// The name it was submitted under.
    pub slot: u32,
    /// When it completed.
    pub at: Nanos,
    /// Time it waited for others inside the target.
    pub queue: Nanos,
    /// How it ended.
    pub outcome: TargetOutcome,
}

/// Volumes in virtual time.
///
/// Time never goes back: `submit` and `advance` are called with the same or a later `now` than before.
pub trait Target {
    /// Accepts a request to a volume. It comes back from [`Target::advance`] under `slot`.
    fn submit(&mut self, now: Nanos, volume: usize, request: &Request, slot: u32);

    /// When something will happen next inside the target; none when it is idle.
    fn next_wakeup(&self) -> Option<Nanos>;

    /// Moves the target to `now` and appends what completed by then, in order of time.
    fn advance(&mut self, now: Nanos, finished: &mut Vec<TargetFinished>);

    /// Moves the target until something has completed, though not beyond `limit`; appends everything that completed at that
    /// moment, and returns when that was.
    fn advance_to_finish(&mut self, limit: Nanos, finished: &mut Vec<TargetFinished>) -> Nanos {
        while let Some(now) = self.next_wakeup().filter(|now| *now <= limit) {
            self.advance(now, finished);
            if !finished.is_empty() {
                return now;
            }
        }
        limit
    }
}
