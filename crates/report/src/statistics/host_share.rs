//! How much this host, instead of the modelled device, can have changed a result: bounds from the excess of I/O times.
//!
//! *Excess* is actual less modelled time of I/O, in seconds per second, per class. What it did to a transaction is bounded, not
//! estimated: at most, every session waited for every second of the log's excess (one flush may hold up all of
//! them), and each for the excess of its own reads; at least nobody waited for any of it. Background writes hold up nobody by
//! themselves: where they delay the log or a read, that is in the excess of those.
//!
//! A negative excess (answers that left too early) bounds the other side in the same way.
//!
//! Deliberately not here: which class a request is of, and how excess is measured (the emulated datastore does both).

/// No bound says that more than this share of the time was the host's: the other side would be infinite.
const SHARE_MAX: f64 = 0.99;

/// Excess of the classes that sessions wait for, seconds per second; negative = answered too early.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Excess {
    pub(crate) log: f64,
    pub(crate) read: f64,
}

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Waiting {
    /// So many users, each with one transaction at a time, of which responses and think times take this long.
    Closed { users: f64, response_s: f64, think_s: f64 },
    /// Transactions that arrive whatever happens, so many at once on average.
    Open { busy: f64 },
}

/// The factors that a result may have to be multiplied by to be the device's; 1 lies between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Factors {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Factors {
    /// Nothing of it is in doubt.
    pub(crate) const EXACT: Factors = Factors { low: 1.0, high: 1.0 };

    /// An interval of the ratio `over / base`, with what is in doubt about both.
    pub(crate) fn widen(interval: (f64, f64), over: Factors, base: Factors) -> (f64, f64) {
        (interval.0 * over.low / base.high, interval.1 * over.high / base.low)
    }
}

/// The largest shares of the sessions' time that may be the host's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HostShare {
    /// Time that I/O took too long, as a share of the time between two transactions of a user; in an open loop of the response time.
    pub(crate) late: f64,
    /// Time that it took too short.
    pub(crate) early: f64,
    waiting: Waiting,
}

impl HostShare {
    /// The bound. `None` where nobody waits.
    pub(crate) fn bound(excess: Excess, waiting: Waiting) -> Option<HostShare> {
        let share = |log: f64, read: f64| -> Option<f64> {
            let (log, read) = (log.max(0.0), read.max(0.0));
            let share = match waiting {
                Waiting::Closed { users, .. } if users > 0.0 => log + read / users,
                Waiting::Open { busy } if busy > 0.0 => (log * busy.max(1.0) + read) / busy,
                _ => return None,
            };
            Some(share.min(SHARE_MAX))
        };
        let late = share(excess.log, excess.read)?;
        let early = share(-excess.log, -excess.read)?;
        Some(HostShare { late, early, waiting })
    }

    /// The bound of programs that read and write files one after the other, from the modelled and the actual time of each class of I/O,
    /// seconds of all requests per second. A program may have waited for requests of any class, for at most as long as there were
    /// some; of that wait the host's share is that of the class. `None` without I/O.
    pub(crate) fn of_programs(classes: impl Iterator<Item = (f64, f64)>) -> Option<HostShare> {
        let classes: Vec<(f64, f64)> = classes.filter(|(_, actual)| *actual > 0.0).collect();
        if classes.is_empty() {
            return None;
        }
        let worst = |excess: &dyn Fn(f64, f64) -> f64| {
            let mut shares: Vec<(f64, f64)> = classes
                .iter()
                .map(|(modelled, actual)| (excess(*modelled, *actual).max(0.0) / actual, *actual))
                .collect();
            shares.sort_by(|a, b| b.0.total_cmp(&a.0));
            let (mut left, mut bound) = (1.0f64, 0.0);
            for (share, wait) in shares {
                let waited = wait.min(left);
                bound += share * waited;
                left -= waited;
            }
            bound.min(SHARE_MAX)
        };
        let late = worst(&|modelled, actual| actual - modelled);
        let early = worst(&|modelled, actual| modelled - actual);
        let waiting = Waiting::Closed { users: 1.0, response_s: 0.0, think_s: 0.0 };
        Some(HostShare { late, early, waiting })
    }

    /// What throughput may have to be multiplied by. In an open loop it is given.
    pub(crate) fn throughput(&self) -> Factors {
        match self.waiting {
            Waiting::Closed { .. } => {
                Factors { low: 1.0 / (1.0 + self.early), high: 1.0 / (1.0 - self.late) }
            }
            Waiting::Open { .. } => Factors::EXACT,
        }
    }

    /// What response times may have to be multiplied by. Their quantiles too, provided that the host's share of slow transactions
    /// is that of the others: they are slow because they wait for more I/O, not for worse.
    pub(crate) fn response(&self) -> Factors {
        // Nobody waits for I/O while thinking: all of it is in the responses.
        let concentrated = match self.waiting {
            Waiting::Closed { response_s, think_s, .. } if response_s > 0.0 => {
                (response_s + think_s) / response_s
            }
            Waiting::Closed { .. } | Waiting::Open { .. } => 1.0,
        };
        let of = |share: f64| share * concentrated;
        Factors { low: 1.0 - of(self.late).min(SHARE_MAX), high: 1.0 + of(self.early) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Excess, Factors, HostShare, Waiting};
    use proptest::prelude::*;

    fn closed(users: f64) -> Waiting {
        Waiting::Closed { users, response_s: 0.01, think_s: 0.0 }
    }

    fn bound(log: f64, read: f64, waiting: Waiting) -> HostShare {
        HostShare::bound(Excess { log, read }, waiting).expect("somebody waits")
    }

    #[test]
    fn programs_wait_for_the_worst_class_as_long_as_there_is_any() {
        // Reads in flight all the time, a tenth of each the host's; flushes for a tenth of the time, half of it the host's.
        let share = HostShare::of_programs([(3.6, 4.0), (0.05, 0.1)].into_iter()).expect("I/O");
        assert!((share.late - (0.5 * 0.1 + 0.1 * 0.9)).abs() < 1e-12 && share.early == 0.0);
        let early = HostShare::of_programs([(1.1, 1.0)].into_iter()).expect("I/O");
        assert!((early.early - 0.1).abs() < 1e-12 && early.late == 0.0, "{early:?}");
        assert!(HostShare::of_programs([(0.0, 0.0)].into_iter()).is_none());
    }

    #[test]
    fn one_user_waits_for_all_of_it() {
        let share = bound(0.05, 0.15, closed(1.0));
        assert!((share.late - 0.2).abs() < 1e-12 && share.early == 0.0);
        assert!((share.throughput().high - 1.25).abs() < 1e-12);
        assert_eq!(share.throughput().low, 1.0);
        assert!((share.response().low - 0.8).abs() < 1e-12);
    }

    #[test]
    fn a_flush_holds_up_everybody_and_a_read_one() {
        let share = bound(0.05, 0.16, closed(16.0));
        assert!((share.late - 0.06).abs() < 1e-12, "{share:?}");
    }

    #[test]
    fn answers_that_are_early_flatter_the_design() {
        let share = bound(-0.04, -0.04, closed(4.0));
        assert!(share.late == 0.0 && (share.early - 0.05).abs() < 1e-12);
        assert!(share.throughput().low < 1.0 && share.throughput().high == 1.0);
        assert!(share.response().high > 1.0 && share.response().low == 1.0);
    }

    #[test]
    fn an_open_loop_has_the_throughput_it_is_given() {
        let share = bound(0.01, 0.02, Waiting::Open { busy: 0.5 });
        assert!((share.late - 0.06).abs() < 1e-12, "{share:?}");
        assert_eq!(share.throughput(), Factors::EXACT);
        assert!(share.response().low < 0.95);
        assert_eq!(HostShare::bound(Excess::default(), Waiting::Open { busy: 0.0 }), None);
    }

    #[test]
    fn think_times_hide_nothing_of_the_response() {
        let waiting = Waiting::Closed { users: 10.0, response_s: 0.01, think_s: 0.09 };
        let share = bound(0.01, 0.0, waiting);
        assert!((share.response().low - 0.9).abs() < 1e-12, "{share:?}");
    }

    fn any_excess() -> impl Strategy<Value = Excess> {
        (-2.0..2.0f64, -20.0..20.0f64).prop_map(|(log, read)| Excess { log, read })
    }

    fn anybody() -> impl Strategy<Value = Waiting> {
        let closed = (1u32..200, 1e-4..1.0f64, 0.0..10.0f64);
        prop_oneof![
            closed.prop_map(|(users, response_s, think_s)| {
                Waiting::Closed { users: f64::from(users), response_s, think_s }
            }),
            (0.01..100.0f64).prop_map(|busy| Waiting::Open { busy }),
        ]
    }

    proptest! {
        #[test]
        fn an_interval_with_the_hosts_share_contains_the_one_by_chance(
            (low, length) in (0.1..10.0f64, 0.0..10.0f64),
            excesses in (any_excess(), any_excess()),
            waiting in (anybody(), anybody()),
        ) {
            let over = HostShare::bound(excesses.0, waiting.0).expect("somebody waits");
            let base = HostShare::bound(excesses.1, waiting.1).expect("somebody waits");
            for of in [HostShare::throughput, HostShare::response] {
                let interval = (low, low + length);
                let wide = Factors::widen(interval, of(&over), of(&base));
                prop_assert!(wide.0 <= interval.0 && wide.1 >= interval.1, "{wide:?}");
                prop_assert!(wide.0 > 0.0 && wide.1.is_finite());
            }
        }

        #[test]
        fn more_excess_never_narrows(
            excess in any_excess(),
            more in 0.0..5.0f64,
            waiting in anybody(),
        ) {
            let grown = Excess { log: excess.log + more.copysign(excess.log), ..excess };
            let (less, more) = (HostShare::bound(excess, waiting), HostShare::bound(grown, waiting));
            let (less, more) = (less.expect("somebody waits"), more.expect("somebody waits"));
            prop_assert!(more.late >= less.late && more.early >= less.early);
            prop_assert!(more.throughput().high >= less.throughput().high);
            prop_assert!(more.response().low <= less.response().low);
        }
    }
}
