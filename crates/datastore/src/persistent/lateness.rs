//! Lateness over two spans: since the last query, and since the start of the datastore.
//!
//! The server reports each value once, so the values are collected here for both spans. Nothing is
//! judged here.

use crate::control::TimingEntry;
use crate::error::DatastoreError;

/// What a server told so far.
#[derive(Default)]
pub(super) struct Lateness {
    recent: Option<TimingEntry>,
    all: Option<TimingEntry>,
}

impl Lateness {
    /// Takes over what happened since the server's last answer.
    pub(super) fn add(&mut self, told: &TimingEntry) -> Result<(), DatastoreError> {
        for span in [&mut self.recent, &mut self.all] {
            match span {
                Some(span) => span.merge(told)?,
                None => *span = Some(told.clone()),
            }
        }
        Ok(())
    }

    /// What happened since the last such call.
    pub(super) fn take_recent(&mut self) -> Option<TimingEntry> {
        self.recent.take()
    }

    /// What happened since the start.
    pub(super) fn all(&self) -> Option<&TimingEntry> {
        self.all.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::Lateness;
    use crate::control::{EncodedHistogram, TimingEntry};
    use underlay_core::{Histogram, Nanos};

    fn told(late_ns: u64, answers: u64, host_limited: u64) -> TimingEntry {
        let of = |value| {
            let mut histogram = Histogram::new();
            histogram.record_n(value, answers);
            EncodedHistogram::encode(&histogram)
        };
        TimingEntry {
            lateness: of(late_ns),
            modelled: of(100_000),
            delayed: answers,
            host_limited,
            modelled_ios: answers,
            modelled_ns: answers * 100_000,
            compensation_ns: 50_000,
        }
    }

    #[test]
    fn who_asks_for_the_latest_takes_nothing_from_the_whole() {
        let mut lateness = Lateness::default();
        assert!(lateness.take_recent().is_none() && lateness.all().is_none());
        lateness.add(&told(90_000, 100, 300)).unwrap();
        let recent = lateness.take_recent().expect("something was told");
        assert!(!recent.judge(Nanos::ZERO, None).unwrap().valid);
        lateness.add(&told(1_000, 899, 0)).unwrap();
        lateness.add(&told(1_000, 1, 0)).unwrap();
        let recent = lateness.take_recent().expect("something was told");
        assert_eq!((recent.delayed, recent.host_limited), (900, 0));
        assert!(recent.judge(Nanos::ZERO, None).unwrap().valid);

        let all = lateness.all().expect("something was told");
        assert_eq!((all.delayed, all.modelled_ios, all.modelled_ns), (1000, 1000, 100_000_000));
        let report = all.judge(Nanos::ZERO, None).unwrap();
        assert!(!report.valid, "one answer in ten was late: {report:?}");
        assert!((report.host_limited_share - 300.0 / 1300.0).abs() < 1e-9);
    }
}
