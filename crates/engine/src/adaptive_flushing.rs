//! How many pages InnoDB's page cleaner flushes in a round without a target.
//!
//! MariaDB 10.11, storage/innobase/buf/buf0flu.cc: `page_cleaner_flush_pages_recommendation`, and
//! what `buf_flush_page_cleaner` looks at before it asks. Divisions are those of whole numbers, as
//! there. Not here: which pages, and rounds that have a target ([`crate::cleaner`]).

use crate::redo_limits::RedoLimits;
use crate::settings::InnodbSettings;
use underlay_core::Nanos;

/// `innodb_adaptive_flushing_lwm`: below this share of the log, age is no reason to flush.
const AGE_LOW_PERCENT: f64 = 10.0;
/// `innodb_flushing_avg_loops`: rounds, or seconds, after which averages are updated.
const AVERAGE_ROUNDS: u64 = 30;
/// Seconds of log whose pages are counted (`buf_flush_lsn_scan_factor`).
const SCAN_SECONDS: u64 = 3;

/// The settings that decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdaptiveFlushing {
    io_capacity: u64,
    io_capacity_max: u64,
    dirty_max_percent: f64,
    dirty_low_percent: f64,
    limits: RedoLimits,
}

/// What a round finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Log bytes since the oldest change that is not written.
    pub(crate) age: u64,
    /// Dirty pages.
    pub(crate) dirty: u64,
    /// Frames of the pool.
    pub(crate) frames: u64,
}

impl Found {
    fn dirty_percent(&self) -> f64 {
        self.dirty as f64 * 100.0 / self.frames as f64
    }
}

/// What is known from earlier rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Averages {
    /// Pages flushed per second.
    pub(crate) pages_per_second: u64,
    /// Dirty pages that were changed within three seconds of log from the oldest change on; more
    /// than `io_capacity_max` are not counted.
    pub(crate) aged_pages: u64,
}

impl AdaptiveFlushing {
    pub(crate) fn new(settings: &InnodbSettings) -> AdaptiveFlushing {
        AdaptiveFlushing {
            io_capacity: settings.io_capacity.into(),
            io_capacity_max: settings.io_capacity_max.into(),
            dirty_max_percent: settings.max_dirty_pages_pct,
            dirty_low_percent: settings.max_dirty_pages_pct_lwm,
            limits: RedoLimits::new(settings.log_file_size),
        }
    }

    fn age_low(&self) -> u64 {
        (AGE_LOW_PERCENT * self.limits.capacity as f64 / 100.0) as u64
    }

    /// Whether a cleaner that had nothing to do sleeps on: only without a low limit of dirty pages
    /// are its rounds not timed (`buf_pool_t::page_cleaner_wakeup`).
    pub(crate) fn sleeps_on(&self, found: &Found) -> bool {
        self.dirty_low_percent == 0.0 && found.dirty_percent() < self.dirty_max_percent
    }

    /// Whether pages are flushed: because too many are dirty, or the oldest change is too old.
    pub(crate) fn is_due(&self, found: &Found) -> bool {
        let has_low = self.dirty_low_percent > 0.0;
        let limit = if has_low { self.dirty_low_percent } else { self.dirty_max_percent };
        found.dirty_percent() >= limit || found.age > self.age_low()
    }

    /// Percent of `io_capacity` that age asks for; 0 for a young log (`af_get_pct_for_lsn`).
    fn percent_for_age(&self, age: u64) -> u64 {
        if age < self.age_low() {
            return 0;
        }
        let percent = age * 100 / self.limits.soft_age;
        let factor = self.io_capacity_max / self.io_capacity * percent;
        (factor as f64 * (percent as f64).sqrt() / 7.5) as u64
    }

    /// Whether the log is too young for averages to count.
    pub(crate) fn is_young(&self, age: u64) -> bool {
        self.percent_for_age(age) == 0
    }

    /// Pages to flush in a round that is due; without averages in the first round and while the log
    /// is young.
    pub(crate) fn pages(&self, found: &Found, averages: Option<Averages>) -> u64 {
        match averages {
            Some(averages) => self.pages_by_averages(found, averages),
            None => self.pages_by_dirt(found),
        }
    }

    fn pages_by_dirt(&self, found: &Found) -> u64 {
        if self.io_capacity >= found.dirty {
            return found.dirty;
        }
        let divisor = if self.dirty_max_percent > 1.0 { self.dirty_max_percent } else { 1.0 };
        let pages = (found.dirty_percent() / divisor * self.io_capacity as f64) as u64;
        if pages < found.dirty { self.io_capacity } else { self.io_capacity_max.min(found.dirty) }
    }

    /// The mean of three wishes. The share of dirty pages and the age change the first one only
    /// above a low limit of dirty pages; by default there is none.
    fn pages_by_averages(&self, found: &Found, averages: Averages) -> u64 {
        let dirty_percent = found.dirty_percent();
        let has_low = self.dirty_low_percent > 0.0 && dirty_percent >= self.dirty_low_percent;
        let ratio = if has_low && self.dirty_max_percent > 0.0 {
            let for_age = self.percent_for_age(found.age) as f64 / 100.0;
            for_age.max(dirty_percent / self.dirty_max_percent)
        } else {
            1.0
        };
        let for_log = (averages.aged_pages / SCAN_SECONDS).max(1);
        let wanted = (self.io_capacity as f64 * ratio) as u64;
        ((wanted + averages.pages_per_second + for_log) / 3).min(self.io_capacity_max)
    }
}

/// Averages of pages and log bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushRates {
    /// When the present period began, and the log's position then; none before the first round.
    since: Option<(Nanos, u64)>,
    rounds: u64,
    pages: u64,
    pages_per_second: u64,
    log_per_second: u64,
}

impl FlushRates {
    /// Begins the present period again. The averages stay.
    pub(crate) fn restart(&mut self, now: Nanos, position: u64) {
        self.since = Some((now, position));
    }

    /// Counts a round after one that flushed so many pages. Whether it was not the first.
    pub(crate) fn count(&mut self, now: Nanos, position: u64, last_pages: u64) -> bool {
        let Some((begun, begun_at)) = self.since else {
            self.restart(now, position);
            return false;
        };
        self.pages += last_pages;
        self.rounds += 1;
        let seconds = ((now - begun).as_secs_f64() as u64).max(1);
        if self.rounds >= AVERAGE_ROUNDS || seconds >= AVERAGE_ROUNDS {
            // Half of an average is the last period, a quarter the one before it, and so on.
            self.pages_per_second = (self.pages / seconds + self.pages_per_second) / 2;
            self.log_per_second = ((position - begun_at) / seconds + self.log_per_second) / 2;
            self.rounds = 0;
            self.pages = 0;
            self.restart(now, position);
        }
        true
    }

    /// Pages flushed per second.
    pub(crate) fn pages_per_second(&self) -> u64 {
        self.pages_per_second
    }

    /// Log bytes of the time whose pages are counted.
    pub(crate) fn scanned_log(&self) -> u64 {
        self.log_per_second * SCAN_SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::{AdaptiveFlushing, Averages, FlushRates, Found};
    use crate::settings::InnodbSettings;
    use underlay_core::Nanos;

    /// A pool of 128 MiB.
    const FRAMES: u64 = 8_192;

    fn flushing(io: (u32, u32), max_percent: f64, low_percent: f64) -> AdaptiveFlushing {
        AdaptiveFlushing::new(&InnodbSettings {
            io_capacity: io.0,
            io_capacity_max: io.1,
            max_dirty_pages_pct: max_percent,
            max_dirty_pages_pct_lwm: low_percent,
            ..InnodbSettings::default()
        })
    }

    fn found(age: u64, dirty: u64) -> Found {
        Found { age, dirty, frames: FRAMES }
    }

    const DEFAULT: ((u32, u32), f64, f64) = ((200, 2_000), 90.0, 0.0);

    #[test]
    fn flushing_is_due_when_the_log_is_old_or_too_many_pages_are_dirty() {
        // A tenth of the log of 96 MiB is 9,058,590 bytes; 90 % of 8,192 frames are 7,372.8.
        let rows = [
            (0.0, 9_058_590, 7_372, false),
            (0.0, 9_058_591, 1, true),
            (0.0, 0, 7_373, true),
            (10.0, 0, 819, false),
            (10.0, 0, 820, true),
            (10.0, 9_058_591, 1, true),
        ];
        for (low, age, dirty, is_due) in rows {
            let flushing = flushing((200, 2_000), 90.0, low);
            assert_eq!(flushing.is_due(&found(age, dirty)), is_due, "{low} {age} {dirty}");
        }
        let (io, max, low) = DEFAULT;
        assert!(flushing(io, max, low).sleeps_on(&found(70_000_000, 7_372)), "age wakes nobody");
        assert!(!flushing(io, max, low).sleeps_on(&found(0, 7_373)));
        assert!(!flushing(io, max, 10.0).sleeps_on(&found(0, 1)), "timed");
    }

    #[test]
    fn age_asks_for_a_percentage() {
        let (io, max, low) = DEFAULT;
        let default = flushing(io, max, low);
        // 12 % of the soft limit: 10 * 12 * 3.4641 / 7.5 = 55.4; 50 %: 10 * 50 * 7.0711 / 7.5.
        let rows = [(9_058_589, 0), (9_058_590, 55), (35_358_544, 471), (70_717_088, 1_333)];
        for (age, percent) in rows {
            assert_eq!(default.percent_for_age(age), percent, "{age}");
        }
        // The quotient of the capacities is a whole number: 3,000 / 2,000 counts as 1.
        assert_eq!(flushing((2_000, 3_000), max, low).percent_for_age(35_358_544), 47);
        assert!(default.is_young(9_058_589) && !default.is_young(9_058_590));
    }

    #[test]
    fn a_round_flushes_what_the_formula_says() {
        let (io, max, low) = DEFAULT;
        let half = 35_358_544;
        let averages = |pages_per_second, aged_pages| Averages { pages_per_second, aged_pages };
        let rows = [
            // By default (200 + rate + aged / 3) / 3, whatever the age is.
            (io, max, low, found(10_000_000, 4_096), averages(0, 0), 67),
            (io, max, low, found(half, 4_096), averages(0, 0), 67),
            (io, max, low, found(half, 4_096), averages(100, 900), 200),
            (io, max, low, found(half, 4_096), averages(2_000, 2_000), 955),
            ((200, 200), max, low, found(half, 4_096), averages(5_000, 200), 200),
            // Above a low limit, age counts: 471 % of 200 are 942.
            (io, max, 10.0, found(half, 4_096), averages(100, 300), 380),
            // The age of 12 % asks for 55 % of 200, half of the pool being dirty for 56 %: 111.
            (io, max, 10.0, found(9_058_591, 4_096), averages(100, 300), 103),
            // Below it, it does not.
            (io, max, 10.0, found(half, 409), averages(100, 300), 133),
        ];
        for (io, max, low, found, averages, pages) in rows {
            let flushing = flushing(io, max, low);
            assert_eq!(flushing.pages(&found, Some(averages)), pages, "{found:?} {averages:?}");
        }
    }

    #[test]
    fn without_averages_the_dirty_pages_decide() {
        let rows = [
            (90.0, 150, 150),
            (90.0, 1_000, 200),
            (90.0, 8_192, 200),
            // 10 % of the pool, undivided, times 200 are more than there are.
            (1.0, 819, 819),
            (0.5, 4_096, 2_000),
        ];
        for (max, dirty, pages) in rows {
            let flushing = flushing((200, 2_000), max, 0.0);
            assert_eq!(flushing.pages(&found(0, dirty), None), pages, "{max} {dirty}");
        }
    }

    #[test]
    fn averages_are_updated_every_thirty_rounds() {
        let mut rates = FlushRates::default();
        assert!(!rates.count(Nanos::ZERO, 0, 0), "the first");
        for round in 1..=60 {
            assert!(rates.count(Nanos::from_secs(round), round * 1_000, 100));
            let pages = match round {
                0..30 => 0,
                30..60 => 50,
                _ => 75,
            };
            assert_eq!(rates.pages_per_second(), pages, "{round}");
            assert_eq!(rates.scanned_log(), pages * 10 * 3, "{round}");
        }
        // Rounds may follow each other sooner: the time of a period is at least a second.
        for _ in 0..30 {
            rates.count(Nanos::from_secs(60), 60_000, 10);
        }
        assert_eq!((rates.pages_per_second(), rates.scanned_log()), (187, 1_125));
    }
}
