//! The non-uniform random function NURand (clause 2.1.6).
//!
//! `NURand(A, x, y) = (((random(0, A) | random(x, y)) + C) % (y - x + 1)) + x` with the bitwise OR
//! of two uniform numbers: a few values are drawn far more often than others, which gives the
//! database its hot rows.

use rand_pcg::Pcg64;

use super::cardinality::{CUSTOMERS_PER_DISTRICT, ITEMS, LAST_NAMES};
use crate::draw::uniform;

/// A of customer last names.
pub const A_LAST_NAME: u32 = 255;
/// A of customer numbers.
pub const A_CUSTOMER: u32 = 1_023;
/// A of item numbers.
pub const A_ITEM: u32 = 8_191;

/// The number of a last name, 0 to 999; `c` is the load or the run constant.
pub fn last_name_number(random: &mut Pcg64, c: u32) -> u32 {
    nurand(random, A_LAST_NAME, c, 0, LAST_NAMES - 1)
}

/// A customer number, 1 to 3,000.
pub fn customer(random: &mut Pcg64, c: u32) -> u32 {
    nurand(random, A_CUSTOMER, c, 1, CUSTOMERS_PER_DISTRICT)
}

/// An item number, 1 to 100,000.
pub fn item(random: &mut Pcg64, c: u32) -> u32 {
    nurand(random, A_ITEM, c, 1, ITEMS)
}

/// NURand(`a`, `low`, `high`) with the run constant `c`.
fn nurand(random: &mut Pcg64, a: u32, c: u32, low: u32, high: u32) -> u32 {
    let skew = uniform(random, 0, a);
    let value = uniform(random, low, high);
    ((skew | value) + c) % (high - low + 1) + low
}
