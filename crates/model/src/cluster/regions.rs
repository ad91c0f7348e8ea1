//! A set of regions: which stripe units of a component are stale, or hold data.
//!
//! A bitmap with a count. One bit stands for one stripe unit (1 MiB unless set otherwise), so a terabyte costs
//! 128 KiB. It is what makes a returned component copy only what it missed.

/// A set of region numbers below a fixed limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSet {
    words: Vec<u64>,
    limit: u64,
    count: u64,
}

impl RegionSet {
    /// An empty set for regions `0..limit`.
    pub fn new(limit: u64) -> RegionSet {
        RegionSet { words: vec![0; limit.div_ceil(64) as usize], limit, count: 0 }
    }

    /// One more than the highest region that can be in the set.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Number of regions in the set.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether no region is in the set.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether the region is in the set.
    pub fn contains(&self, region: u64) -> bool {
        debug_assert!(region < self.limit, "region {region} of {}", self.limit);
        self.count != 0 && self.words[(region / 64) as usize] >> (region % 64) & 1 == 1
    }

    /// Adds a region; tells whether it was new.
    ///
    /// # Panics
    /// If the region is not below the limit.
    pub fn insert(&mut self, region: u64) -> bool {
        assert!(region < self.limit, "region {region} of {}", self.limit);
        let word = &mut self.words[(region / 64) as usize];
        let bit = 1 << (region % 64);
        let new = *word & bit == 0;
        *word |= bit;
        self.count += u64::from(new);
        new
    }

    /// Takes a region out; tells whether it was there.
    pub fn remove(&mut self, region: u64) -> bool {
        if !self.contains(region) {
            return false;
        }
        debug_assert!(self.count > 0, "the count covers the region");
        self.words[(region / 64) as usize] &= !(1 << (region % 64));
        self.count -= 1;
        true
    }

    /// Takes all regions out.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.count = 0;
    }

    /// Adds all regions of another set with the same limit.
    pub fn unite(&mut self, other: &RegionSet) {
        assert_eq!(self.limit, other.limit, "sets of one layout");
        let mut count = 0;
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
            count += u64::from(word.count_ones());
        }
        debug_assert!(count >= other.count, "a union holds both sets");
        self.count = count;
    }

    /// The lowest region in the set that is at least `from`.
    pub fn next_from(&self, from: u64) -> Option<u64> {
        if self.count == 0 || from >= self.limit {
            return None;
        }
        let mut index = (from / 64) as usize;
        let mut word = self.words[index] & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                return Some(index as u64 * 64 + u64::from(word.trailing_zeros()));
            }
            index += 1;
            word = *self.words.get(index)?;
        }
    }

    /// All regions in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let next = self.next_from(from)?;
            from = next + 1;
            Some(next)
        })
    }

    /// The set as runs of (first region, number of regions): what is stored.
    pub fn runs(&self) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for region in self.iter() {
            match runs.last_mut() {
                Some((first, length)) if *first + *length == region => *length += 1,
                _ => runs.push((region, 1)),
            }
        }
        runs
    }

    /// The set of those runs; none if a run leaves the limit.
    pub fn from_runs(limit: u64, runs: &[(u64, u64)]) -> Option<RegionSet> {
        let mut set = RegionSet::new(limit);
        for (first, length) in runs {
            if first.checked_add(*length)? > limit {
                return None;
            }
            for region in *first..first + length {
                set.insert(region);
            }
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::RegionSet;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    proptest! {
        /// The bitmap behaves like a set of numbers, and its stored form gives it back.
        #[test]
        fn behaves_like_a_set(steps in proptest::collection::vec((any::<bool>(), 0..200u64), 0..300)) {
            let mut regions = RegionSet::new(200);
            let mut reference = BTreeSet::new();
            for (add, region) in steps {
                if add {
                    prop_assert_eq!(regions.insert(region), reference.insert(region));
                } else {
                    prop_assert_eq!(regions.remove(region), reference.remove(&region));
                }
                prop_assert_eq!(regions.count(), reference.len() as u64);
            }
            prop_assert!(regions.iter().eq(reference.iter().copied()));
            for from in 0..200 {
                prop_assert_eq!(regions.next_from(from), reference.range(from..).next().copied());
            }
            prop_assert_eq!(RegionSet::from_runs(200, &regions.runs()), Some(regions));
        }
    }

    #[test]
    fn runs_beyond_the_limit_are_refused() {
        assert_eq!(RegionSet::from_runs(10, &[(8, 3)]), None);
        assert_eq!(RegionSet::from_runs(10, &[(u64::MAX, 2)]), None);
    }
}
