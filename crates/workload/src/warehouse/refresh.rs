//! The two refresh functions: a thousandth of the orders comes, a thousandth goes.
//!
//! A function of number s inserts the s-th thousandth of further orders, its counterpart deletes the s-th thousandth
//! of the loaded ones; so what is in the tables follows from how many of each were carried out.

use std::ops::Range;

use super::rows::{Order, Population};

/// Which refresh functions ran, in order, since the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// Insertions.
    pub inserted: u32,
    /// Deletions.
    pub deleted: u32,
}

impl Population {
    /// Indexes of the orders that insertion number `set` (from 0) inserts.
    pub fn inserted_orders(&self, set: u32) -> Range<u64> {
        let n = self.scale.refresh_orders();
        let first = self.scale.orders() + u64::from(set) * n;
        first..first + n
    }

    /// Indexes of the orders that deletion number `set` (from 0) deletes.
    pub fn deleted_orders(&self, set: u32) -> Range<u64> {
        let n = self.scale.refresh_orders();
        let first = u64::from(set) * n;
        first..first + n
    }

    /// The orders that are there, in no particular order of keys.
    pub fn orders(&self, refreshed: Refreshed) -> impl Iterator<Item = Order> + '_ {
        let n = self.scale.refresh_orders();
        let first = u64::from(refreshed.deleted) * n;
        let last = self.scale.orders() + u64::from(refreshed.inserted) * n;
        (first..last).map(|index| self.order(index))
    }
}
