//! What is kept of a run: the changes that the database acknowledged, for comparison with its tables.

use crate::transactional::{RunAccounting, decode_numbers, encode_numbers};

/// Changes of the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New customers.
    pub customers: u64,
    /// New members.
    pub members: u64,
    /// New reviews.
    pub reviews: u64,
    /// New ratings of reviews.
    pub ratings: u64,
    /// New orders.
    pub orders: u64,
    /// Their lines.
    pub lines: u64,
    /// Pieces sold.
    pub pieces: u64,
    /// Their price in cents.
    pub net_cents: u64,
}

impl Changes {
    /// How many numbers there are.
    pub const COUNT: usize = 8;
    /// Their names, in the order of [`Changes::values`].
    pub const NAMES: [&str; Changes::COUNT] =
        ["customers", "members", "reviews", "ratings", "orders", "lines", "pieces", "net_cents"];

    /// All numbers.
    pub const fn values(&self) -> [u64; Changes::COUNT] {
        [
            self.customers,
            self.members,
            self.reviews,
            self.ratings,
            self.orders,
            self.lines,
            self.pieces,
            self.net_cents,
        ]
    }

    /// From all numbers.
    pub const fn of(values: [u64; Changes::COUNT]) -> Changes {
        let [customers, members, reviews, ratings, orders, lines, pieces, net_cents] = values;
        Changes { customers, members, reviews, ratings, orders, lines, pieces, net_cents }
    }

    pub(super) fn add(&mut self, other: &Changes) {
        let (mine, others) = (self.values(), other.values());
        *self = Changes::of(std::array::from_fn(|index| mine[index] + others[index]));
    }
}

/// What is kept of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DvdStoreAccounting {
    /// What the database acknowledged.
    pub acknowledged: Changes,
    /// What transactions of unknown outcome may have changed besides.
    pub perhaps: Changes,
    /// Purchases that were rolled back because something was not in stock.
    pub shortages: u64,
    /// Registrations under a name that was taken.
    pub names_taken: u64,
    /// Memberships of customers who were members already.
    pub members_already: u64,
}

impl RunAccounting for DvdStoreAccounting {
    fn merge(&mut self, other: &DvdStoreAccounting) {
        self.acknowledged.add(&other.acknowledged);
        self.perhaps.add(&other.perhaps);
        self.shortages += other.shortages;
        self.names_taken += other.names_taken;
        self.members_already += other.members_already;
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = encode_numbers([self.shortages, self.names_taken, self.members_already]);
        bytes.extend(encode_numbers(self.acknowledged.values()));
        bytes.extend(encode_numbers(self.perhaps.values()));
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<DvdStoreAccounting> {
        let ([shortages, names_taken, members_already], bytes) = decode_numbers(bytes)?;
        let (acknowledged, bytes) = decode_numbers(bytes)?;
        let (perhaps, rest) = decode_numbers(bytes)?;
        rest.is_empty().then_some(DvdStoreAccounting {
            acknowledged: Changes::of(acknowledged),
            perhaps: Changes::of(perhaps),
            shortages,
            names_taken,
            members_already,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Changes, DvdStoreAccounting};
    use crate::transactional::RunAccounting;

    #[test]
    fn it_survives_as_bytes() {
        let accounting = DvdStoreAccounting {
            acknowledged: Changes::of([1, 2, 3, 4, 5, 6, 7, u64::MAX]),
            perhaps: Changes::of([9, 8, 7, 6, 5, 4, 3, 2]),
            shortages: 11,
            names_taken: 12,
            members_already: 13,
        };
        let bytes = accounting.encode();
        assert_eq!(DvdStoreAccounting::decode(&bytes), Some(accounting));
        assert_eq!(DvdStoreAccounting::decode(&bytes[1..]), None);
        assert_eq!(DvdStoreAccounting::decode(&[&bytes[..], &[0]].concat()), None);
    }
}
