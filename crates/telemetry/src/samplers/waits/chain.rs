//! The session at the root of a lock chain. Pure.
//!
//! A session that waits on a lock says nothing about why; the session that holds the lock does. The
//! holder may itself wait on a lock, so the chain is followed to the first session that does not:
//! its state shows what the waiter really waits for.

use crate::item::WaitKey;
use std::collections::{BTreeMap, BTreeSet};

/// A session in the snapshot, and whom it waits for if it waits on a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) key: WaitKey,
    /// Pids, 0 = a prepared transaction; `None` = not looked up.
    pub(super) blockers: Option<Vec<i32>>,
}

/// The root of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChainRoot {
    /// A session in this state.
    Session(WaitKey),
    /// No session: a prepared transaction.
    Prepared,
    /// It was gone already, the chain is a circle, or is longer than was looked up.
    Unknown,
}

impl ChainRoot {
    /// The key it is counted under.
    pub(super) fn into_key(self) -> WaitKey {
        let nameless = |state: &str| WaitKey {
            state: state.to_string(),
            class: String::new(),
            event: String::new(),
            backend_type: String::new(),
        };
        match self {
            ChainRoot::Session(key) => key,
            ChainRoot::Prepared => nameless("prepared transaction"),
            ChainRoot::Unknown => nameless("unknown"),
        }
    }
}

/// Wait class of sessions that wait on a heavyweight lock.
pub(super) const LOCK: &str = "Lock";

/// The root for every waiter whose blockers were looked up and found: one entry per waiter.
pub(super) fn roots(links: &BTreeMap<i32, Link>, waiters: &[i32]) -> Vec<ChainRoot> {
    let blocked = |waiter: &&i32| {
        let blockers = links.get(waiter).and_then(|link| link.blockers.as_ref());
        // It is no longer blocked: it got the lock between the two readings.
        blockers.is_some_and(|blockers| !blockers.is_empty())
    };
    waiters.iter().filter(blocked).map(|waiter| root(links, *waiter)).collect()
}

/// Breadth first over the blockers; the first session that does not wait on a lock is the root.
fn root(links: &BTreeMap<i32, Link>, waiter: i32) -> ChainRoot {
    let mut visited = BTreeSet::from([waiter]);
    let mut level = vec![waiter];
    let mut prepared = false;
    while !level.is_empty() {
        let mut next = Vec::new();
        for pid in level {
            let blockers = links.get(&pid).and_then(|link| link.blockers.as_deref());
            for blocker in blockers.unwrap_or_default() {
                if !visited.insert(*blocker) {
                    continue;
                }
                prepared |= *blocker == 0;
                match links.get(blocker) {
                    Some(link) if link.key.class != LOCK => {
                        return ChainRoot::Session(link.key.clone());
                    }
                    Some(_) => next.push(*blocker),
                    None => {}
                }
            }
        }
        level = next;
    }
    if prepared { ChainRoot::Prepared } else { ChainRoot::Unknown }
}

#[cfg(test)]
mod tests {
    use super::{ChainRoot, LOCK, Link, roots};
    use crate::item::WaitKey;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    fn key(class: &str) -> WaitKey {
        WaitKey {
            state: "active".to_string(),
            class: class.to_string(),
            event: "x".to_string(),
            backend_type: "client backend".to_string(),
        }
    }

    fn waits_for(blockers: &[i32]) -> Link {
        Link { key: key(LOCK), blockers: Some(blockers.to_vec()) }
    }

    fn holds(class: &str) -> Link {
        Link { key: key(class), blockers: None }
    }

    #[test]
    fn the_root_is_whoever_does_not_wait_on_a_lock() {
        // 3 and 4 queue behind 2, which waits for 1, which writes the log.
        let links = BTreeMap::from([
            (1, holds("IO")),
            (2, waits_for(&[1])),
            (3, waits_for(&[2])),
            (4, waits_for(&[2, 3])),
        ]);
        assert_eq!(roots(&links, &[2, 3, 4]), vec![ChainRoot::Session(key("IO")); 3]);
    }

    #[test]
    fn circles_and_gone_holders_are_unknown_and_prepared_ones_are_named() {
        let links = BTreeMap::from([
            (1, waits_for(&[2])),
            (2, waits_for(&[1])),
            (3, waits_for(&[99])),
            (4, waits_for(&[0])),
            (5, waits_for(&[])),
            (6, Link { key: key(LOCK), blockers: None }),
            (7, waits_for(&[6])),
        ]);
        assert_eq!(roots(&links, &[1]), [ChainRoot::Unknown], "a deadlock");
        assert_eq!(roots(&links, &[3]), [ChainRoot::Unknown], "gone");
        assert_eq!(roots(&links, &[4]), [ChainRoot::Prepared]);
        assert_eq!(roots(&links, &[5, 6]), [], "not blocked, not looked up");
        assert_eq!(roots(&links, &[7]), [ChainRoot::Unknown], "longer than was looked up");
    }

    proptest! {
        /// Any graph ends, and every blocked waiter is counted exactly once.
        #[test]
        fn every_waiter_has_one_root(
            edges in proptest::collection::vec(proptest::collection::vec(0i32..12, 0..4), 10),
            running in 0usize..10,
        ) {
            let mut links: BTreeMap<i32, Link> = (1..)
                .zip(&edges)
                .map(|(pid, blockers)| (pid, waits_for(blockers)))
                .collect();
            links.insert(running as i32 + 1, holds("IO"));
            let waiters: Vec<i32> =
                links.iter().filter(|(_, l)| l.key.class == LOCK).map(|(pid, _)| *pid).collect();
            let blocked = waiters.iter().filter(|pid| !edges[**pid as usize - 1].is_empty());
            let roots = roots(&links, &waiters);
            prop_assert_eq!(roots.len(), blocked.count());
            let waits = |root: &ChainRoot| matches!(root, ChainRoot::Session(key) if key.class == LOCK);
            prop_assert!(!roots.iter().any(waits));
        }
    }
}
