//! A hash map of numbers without a random seed, so that equal runs do equal work.
//!
//! Keys come from the simulation itself, so they are not chosen to collide.

use crate::draw::scatter;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes one 64-bit number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = scatter(self.0 ^ number);
    }
}

/// A map from numbers.
pub(crate) type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;
