//! What was acknowledged of each district, and how often nothing was answered.
//!
//! Not here: the ledger as bytes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::id_set::IdSet;

/// The acknowledged new orders of a run, by district.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub(super) districts: BTreeMap<DistrictKey, DistrictLedger>,
}

/// Which district.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DistrictKey {
    /// The warehouse, from 1.
    pub warehouse: u32,
    /// The district, 1 to 10.
    pub district: u32,
}

/// What is known about the new orders of one district.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistrictLedger {
    pub(super) acknowledged: IdSet,
    pub(super) unknown: u64,
    pub(super) duplicates: u64,
}

/// What an acknowledgement turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    /// The order number was new, as it must be.
    New,
    /// The same order number was acknowledged before: the database gave it to two orders, so the
    /// first one was lost.
    Duplicate,
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// Notes that the database acknowledged the order `order` of a district.
    pub fn acknowledge(&mut self, warehouse: u32, district: u32, order: u32) -> Acknowledgement {
        self.entry(warehouse, district).acknowledge(order)
    }

    /// Notes a new order whose commit was sent and never answered: it may exist or not.
    pub fn unknown(&mut self, warehouse: u32, district: u32) {
        self.entry(warehouse, district).unknown += 1;
    }

    /// Adds the acknowledgements of another client of the same database.
    ///
    /// The sets are united and the counts added. An order number acknowledged to both counts as a
    /// duplicate, so merge each client's ledger once.
    pub fn merge(&mut self, other: &Ledger) {
        for (key, theirs) in &other.districts {
            self.districts.entry(*key).or_default().merge(theirs);
        }
    }

    /// All districts with any entry, by warehouse and district.
    pub fn districts(&self) -> impl Iterator<Item = (DistrictKey, &DistrictLedger)> {
        self.districts.iter().map(|(key, district)| (*key, district))
    }

    /// The entries of one district, if there is any.
    pub fn district(&self, warehouse: u32, district: u32) -> Option<&DistrictLedger> {
        self.districts.get(&DistrictKey { warehouse, district })
    }

    /// How many orders were acknowledged, each counted once.
    pub fn acknowledged_count(&self) -> u64 {
        self.districts.values().map(|district| district.acknowledged.count()).sum()
    }

    /// How many commits were sent and never answered.
    pub fn unknown_count(&self) -> u64 {
        self.districts.values().map(|district| district.unknown).sum()
    }

    /// How many acknowledgements repeated an order number.
    pub fn duplicate_count(&self) -> u64 {
        self.districts.values().map(|district| district.duplicates).sum()
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.districts.is_empty()
    }

    fn entry(&mut self, warehouse: u32, district: u32) -> &mut DistrictLedger {
        self.districts.entry(DistrictKey { warehouse, district }).or_default()
    }
}

impl DistrictLedger {
    /// The acknowledged order numbers as ranges without gaps, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u32>> {
        self.acknowledged.ranges()
    }

    /// The acknowledged order numbers, ascending.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.acknowledged.ranges().flatten()
    }

    /// Whether this order number was acknowledged.
    pub fn contains(&self, order: u32) -> bool {
        self.acknowledged.contains(order)
    }

    /// How many orders were acknowledged, each counted once.
    pub fn acknowledged_count(&self) -> u64 {
        self.acknowledged.count()
    }

    /// The highest acknowledged order number.
    pub fn highest(&self) -> Option<u32> {
        self.acknowledged.highest()
    }

    /// How many commits were sent and never answered.
    pub fn unknown_count(&self) -> u64 {
        self.unknown
    }

    /// How many acknowledgements repeated an order number.
    pub fn duplicate_count(&self) -> u64 {
        self.duplicates
    }

    /// By how much D_NEXT_O_ID has moved on: at least by one for each acknowledged order, at most
    /// by one more for each unanswered commit. Valid if no other client entered orders meanwhile.
    pub fn next_order_advance(&self) -> RangeInclusive<u64> {
        let least = self.acknowledged.count();
        least..=least + self.unknown
    }

    fn acknowledge(&mut self, order: u32) -> Acknowledgement {
        if self.acknowledged.insert(order) {
            Acknowledgement::New
        } else {
            self.duplicates += 1;
            Acknowledgement::Duplicate
        }
    }

    fn merge(&mut self, other: &DistrictLedger) {
        let overlap = self.acknowledged.merge(&other.acknowledged);
        self.unknown += other.unknown;
        self.duplicates += other.duplicates + overlap;
    }
}
