//! A day of the year in which everything in the population happened.
//!
//! Not here: how a day is written; that is the engine's.

use crate::dvdstore::random::RowRandom;

/// A day of the year 2013, in which everything in the population happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 1 to 12.
    pub month: u32,
    /// From 1.
    pub day: u32,
}

impl Date {
    /// The year of all dates.
    pub const YEAR: u32 = 2013;
    const DAYS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

    /// The days of a month.
    pub(super) fn days(month: u32) -> u32 {
        Date::DAYS[month as usize - 1]
    }

    /// A day of any month.
    pub(super) fn any(random: &mut RowRandom) -> Date {
        let month = random.uniform(1, 12);
        Date { month, day: random.uniform(1, Date::days(month)) }
    }
}
