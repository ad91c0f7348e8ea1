//! Days of the calendar.

use std::fmt;

/// A day, counted from 1992-01-01, the first one of the population.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i32);

impl Day {
    /// The first day of the population.
    pub const START: Day = Day(0);
    /// The day that the population takes for today, 1995-06-17.
    pub const CURRENT: Day = Day::new(1995, 6, 17);
    /// The last day of the population.
    pub const END: Day = Day::new(1998, 12, 31);

    /// From year, month (1 to 12) and day (1 to 31) of the Gregorian calendar.
    pub const fn new(year: i32, month: i32, day: i32) -> Day {
        // A year that begins in March has its leap day at the end; see H. Hinnant, "chrono-Compatible Low-Level Date
        // Algorithms" (2021). Years here are positive.
        let year = if month <= 2 { year - 1 } else { year };
        let month = (month + 9) % 12;
        let of_year = (153 * month + 2) / 5 + day - 1;
        let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year;
        // 1992-01-01 by the same count.
        Day(days - 727_503)
    }

    /// The first day of the month that comes `months` after January of `year`.
    pub const fn of_month(year: i32, months: i32) -> Day {
        Day::new(year + months / 12, months % 12 + 1, 1)
    }

    /// The day after so many days.
    pub const fn plus(self, days: i32) -> Day {
        Day(self.0 + days)
    }

    /// Year, month and day.
    pub fn parts(self) -> (i32, i32, i32) {
        let days = self.0 + 727_503;
        let era = days / 146_097;
        let of_era = days % 146_097;
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (year_of_era + era * 400 + i32::from(month <= 2), month, day)
    }

    /// The year.
    pub fn year(self) -> i32 {
        self.parts().0
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.parts();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::Day;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(Day::new(1992, 1, 1), Day::START);
        assert_eq!(Day::END, Day(366 + 365 * 3 + 366 + 365 * 2 - 1));
        let (mut year, mut month, mut day) = (1992, 1, 1);
        for n in 0..4_000 {
            assert_eq!((Day(n).parts(), Day::new(year, month, day)), ((year, month, day), Day(n)));
            let leap = year % 4 == 0;
            let length = [31, 28 + i32::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            day += 1;
            if day > length[month as usize - 1] {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!(Day::CURRENT.to_string(), "1995-06-17");
        assert_eq!(Day::of_month(1993, 14).to_string(), "1994-03-01");
    }
}
