//! Which disk group wants to be called next.
//!
//! A tournament: each node of a binary tree holds the earlier of the two below it, so that a change of one group is played out
//! against as many others as the tree has levels, and the winner is known at any time. Of equal ones the first group wins.

/// A moment and the group it belongs to.
#[derive(Clone, Copy, Debug)]
struct Wakeup {
    at: u64,
    group: u32,
}

/// When each group wants to be called.
#[derive(Clone, Debug)]
pub(super) struct Wakeups {
    /// The root at 1, the children of `n` at `2 n` and `2 n + 1`, the groups in the second half.
    nodes: Vec<Wakeup>,
    groups: usize,
}

impl Wakeups {
    /// No groups.
    pub(super) fn new() -> Wakeups {
        Wakeups { nodes: vec![Wakeup { at: u64::MAX, group: 0 }; 2], groups: 0 }
    }

    /// One more group, which does not want to be called.
    pub(super) fn push(&mut self) {
        let old = std::mem::replace(self, Wakeups::new());
        let leaves = (old.groups + 1).next_power_of_two();
        self.groups = old.groups + 1;
        self.nodes = vec![Wakeup { at: u64::MAX, group: 0 }; 2 * leaves];
        for group in 0..leaves {
            self.nodes[leaves + group].group = group as u32;
        }
        for group in 0..old.groups {
            self.set(group, old.at(group));
        }
    }

    /// When a group wants to be called, in ns; `u64::MAX` = never.
    #[inline]
    pub(super) fn at(&self, group: usize) -> u64 {
        self.nodes[self.nodes.len() / 2 + group].at
    }

    /// The group now wants to be called then.
    #[inline]
    pub(super) fn set(&mut self, group: usize, at: u64) {
        let mut node = self.nodes.len() / 2 + group;
        if self.nodes[node].at == at {
            return;
        }
        self.nodes[node].at = at;
        while node > 1 {
            let [left, right] = [self.nodes[node & !1], self.nodes[node | 1]];
            node /= 2;
            self.nodes[node] = if right.at < left.at { right } else { left };
        }
    }

    /// The first to be called: when, in ns, and which.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        let winner = self.nodes[1];
        (winner.at, winner.group as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::Wakeups;
    use proptest::prelude::{prop_assert_eq, proptest};

    proptest! {
        /// Whatever changes, the first of the earliest groups is known, as a search would find it.
        #[test]
        fn the_winner_is_the_first_of_the_earliest(
            steps in proptest::collection::vec((0..9usize, 0..20u64), 1..200),
        ) {
            let mut wakeups = Wakeups::new();
            let mut reference: Vec<u64> = Vec::new();
            for (group, at) in steps {
                if group >= reference.len() {
                    wakeups.push();
                    reference.push(u64::MAX);
                } else {
                    let at = if at == 0 { u64::MAX } else { at };
                    wakeups.set(group, at);
                    reference[group] = at;
                }
                let earliest = *reference.iter().min().expect("there is one");
                let first = reference.iter().position(|at| *at == earliest).expect("it is there");
                prop_assert_eq!(wakeups.first(), (earliest, first));
                prop_assert_eq!(wakeups.at(first), earliest);
            }
        }
    }
}
