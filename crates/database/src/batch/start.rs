//! The common start of all sessions: no session inserts before all are connected, or if one is missing.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct State {
    arrived: usize,
    /// Whether to go on, once that is decided.
    decision: Option<bool>,
}

/// Where sessions wait for each other.
#[derive(Default)]
pub(super) struct Start {
    state: Mutex<State>,
    changed: Condvar,
}

impl Start {
    fn state(&self) -> MutexGuard<'_, State> {
        // No state is half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session is ready, or will never be; returns when all are, with whether to go on.
    pub fn arrive(&self) -> bool {
        let mut state = self.state();
        state.arrived += 1;
        self.changed.notify_all();
        let decided = self.changed.wait_while(state, |state| state.decision.is_none());
        decided.unwrap_or_else(PoisonError::into_inner).decision == Some(true)
    }

    /// Waits for this many sessions, then lets them continue.
    pub fn release(&self, sessions: usize) {
        let arrived = self.changed.wait_while(self.state(), |state| state.arrived < sessions);
        arrived.unwrap_or_else(PoisonError::into_inner).decision = Some(true);
        self.changed.notify_all();
    }

    /// Sends all sessions home, also those that arrive later.
    pub fn abandon(&self) {
        self.state().decision = Some(false);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::Start;

    #[test]
    fn all_go_on_together_or_nobody_does() {
        for is_complete in [true, false] {
            let start = Start::default();
            let answers: Vec<bool> = std::thread::scope(|scope| {
                let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| start.arrive())).collect();
                if is_complete {
                    start.release(3);
                } else {
                    start.abandon();
                }
                waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(answers, [is_complete; 3]);
        }
    }
}
