//! Row locks: exclusive, first come first served.
//!
//! A session waits for one lock at a time. There is no detection of deadlocks: callers lock in one
//! order.

use crate::hashing::NumberMap;
use std::collections::hash_map::Entry;

const NO_SESSION: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Held {
    owner: u32,
    first_waiter: u32,
    last_waiter: u32,
}

/// The locks that are held, and who waits for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    held: NumberMap<Held>,
    /// Per waiting session: who waits next.
    next_waiter: Vec<u32>,
}

impl Locks {
    /// Takes a lock or joins its queue; whether the session has it now. One that it has already it
    /// has.
    pub(crate) fn acquire(&mut self, key: u64, session: u32) -> bool {
        match self.held.entry(key) {
            Entry::Vacant(free) => {
                free.insert(Held {
                    owner: session,
                    first_waiter: NO_SESSION,
                    last_waiter: NO_SESSION,
                });
                true
            }
            Entry::Occupied(held) if held.get().owner == session => true,
            Entry::Occupied(mut held) => {
                let held = held.get_mut();
                if session as usize >= self.next_waiter.len() {
                    self.next_waiter.resize(session as usize + 1, NO_SESSION);
                }
                self.next_waiter[session as usize] = NO_SESSION;
                match held.last_waiter {
                    NO_SESSION => held.first_waiter = session,
                    last_waiter => self.next_waiter[last_waiter as usize] = session,
                }
                held.last_waiter = session;
                false
            }
        }
    }

    /// Gives a lock up, if the session has it; returns who has it now.
    pub(crate) fn release(&mut self, key: u64, session: u32) -> Option<u32> {
        let Entry::Occupied(mut entry) = self.held.entry(key) else { return None };
        let held = entry.get_mut();
        if held.owner != session {
            return None;
        }
        if held.first_waiter == NO_SESSION {
            entry.remove();
            return None;
        }
        let next = held.first_waiter;
        held.owner = next;
        held.first_waiter = self.next_waiter[next as usize];
        if held.first_waiter == NO_SESSION {
            held.last_waiter = NO_SESSION;
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::Locks;

    #[test]
    fn waiters_are_served_in_their_order() {
        let mut locks = Locks::default();
        assert!(locks.acquire(1, 10) && locks.acquire(1, 10) && locks.acquire(2, 11));
        assert!(!locks.acquire(1, 11) && !locks.acquire(1, 12) && !locks.acquire(1, 13));
        assert_eq!(locks.release(1, 10), Some(11));
        assert_eq!(locks.release(1, 10), None, "it has it no longer");
        assert_eq!(locks.release(1, 11), Some(12));
        assert!(!locks.acquire(1, 10), "12 has it, 13 waits");
        assert_eq!((locks.release(1, 12), locks.release(1, 13)), (Some(13), Some(10)));
        assert_eq!((locks.release(1, 10), locks.release(2, 11)), (None, None));
        assert!(locks.held.is_empty());
    }
}
