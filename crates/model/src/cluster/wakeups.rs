//! The disk group that is to be called next.
//!
//! A tournament tree with four players per game: a change of one group costs one game per level, and the winner is always
//! known. Of groups with equal times the first wins.

/// Players of a game. With four, a game takes little longer than with two, and there are half as many levels.
const PLAYERS: usize = 4;

/// A moment and the group it belongs to.
#[derive(Clone, Copy, Debug)]
struct Wakeup {
    at: u64,
    group: u32,
}

const NEVER: Wakeup = Wakeup { at: u64::MAX, group: 0 };

/// When each group wants to be called.
#[derive(Clone, Debug)]
pub(super) struct Wakeups {
    /// The last game first; the winners of the games `4 n + 1` to `4 n + 4` play in game `n`.
    games: Vec<[Wakeup; PLAYERS]>,
    /// The first of the games in which groups play, in order.
    first_round: usize,
    winner: Wakeup,
    groups: usize,
}

impl Wakeups {
    /// No groups.
    pub(super) fn new() -> Wakeups {
        Wakeups { games: vec![[NEVER; PLAYERS]], first_round: 0, winner: NEVER, groups: 0 }
    }

    /// One more group, which does not want to be called.
    pub(super) fn push(&mut self) {
        let mut places = PLAYERS * (self.games.len() - self.first_round);
        let old = std::mem::replace(self, Wakeups::new());
        self.groups = old.groups + 1;
        if self.groups > places {
            places *= PLAYERS;
        }
        while PLAYERS * (self.games.len() - self.first_round) < places {
            self.first_round = self.games.len();
            self.games.resize(PLAYERS * self.games.len() + 1, [NEVER; PLAYERS]);
        }
        for group in 0..self.groups {
            self.set(group, if group < old.groups { old.at(group) } else { u64::MAX });
        }
    }

    /// When a group wants to be called, in ns; `u64::MAX` = never.
    #[inline]
    pub(super) fn at(&self, group: usize) -> u64 {
        self.games[self.first_round + group / PLAYERS][group % PLAYERS].at
    }

    /// The group now wants to be called then.
    #[inline]
    pub(super) fn set(&mut self, group: usize, at: u64) {
        debug_assert!(group < self.groups, "group {group} of {}", self.groups);
        let (mut number, mut place) = (self.first_round + group / PLAYERS, group % PLAYERS);
        let mut winner = Wakeup { at, group: group as u32 };
        loop {
            let game = &mut self.games[number];
            game[place] = winner;
            winner = earlier(earlier(game[0], game[1]), earlier(game[2], game[3]));
            if number == 0 {
                break;
            }
            (number, place) = ((number - 1) / PLAYERS, (number - 1) % PLAYERS);
        }
        self.winner = winner;
    }

    /// The first to be called: when, in ns, and which.
    #[inline]
    pub(super) fn first(&self) -> (u64, usize) {
        (self.winner.at, self.winner.group as usize)
    }
}

/// The earlier of two, of which `a` is the first.
#[inline]
fn earlier(a: Wakeup, b: Wakeup) -> Wakeup {
    if b.at < a.at { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::Wakeups;
    use proptest::prelude::{prop_assert_eq, proptest};

    proptest! {
        /// Whatever changes, the first of the earliest groups is known, as a search would find it.
        #[test]
        fn the_winner_is_the_first_of_the_earliest(
            steps in proptest::collection::vec((0..40usize, 0..20u64), 1..300),
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
