//! What a measured window shows of its load, however it came about: on a host, or in virtual time.

use std::collections::BTreeSet;

use underlay_core::{Histogram, Nanos};
use underlay_engine::result::Place;
use underlay_engine::{EngineRun, Scenario};

use super::bottleneck::Bottleneck;
use super::ladder::counted;

/// A measured window at a number of users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Users.
    pub users: u32,
    /// The headline in its unit.
    pub headline: f64,
    /// Transactions of all types per second.
    pub transactions_per_second: f64,
    /// 95th percentile of the response times of what the headline counts.
    pub p95: Option<Nanos>,
    /// 99th percentile.
    pub p99: Option<Nanos>,
    /// What a transaction costs.
    pub costs: Costs,
    /// The types of the workload, in the order of its shape; empty where they were not observed.
    pub types: Vec<TypeCosts>,
    /// Where transactions spent most of their time; `None` where it is not known.
    pub bottleneck: Option<Bottleneck>,
}

/// Per transaction, of all types together, unless it says otherwise; `None` where it was not observed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Processor time of the server, nanoseconds.
    pub cpu_ns: Option<f64>,
    /// That of its processes and threads that serve no session.
    pub background_ns: Option<f64>,
    /// Processor time of the load generator, nanoseconds.
    pub client_ns: Option<f64>,
    /// Processor time of the host per I/O request beside the server's, nanoseconds.
    pub io_ns: Option<f64>,
    /// Bytes of log.
    pub log_bytes: Option<f64>,
    /// Those of page images.
    pub image_bytes: Option<f64>,
    /// Pages that were not in the server's cache.
    pub pages_missed: Option<f64>,
    /// Pages that the server wrote.
    pub pages_written: Option<f64>,
}

/// Transactions of one type in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TypeCosts {
    /// How many ended.
    pub ended: u64,
    /// Processor time of the server's session per transaction, nanoseconds; `None` where it was not observed.
    pub cpu_ns: Option<f64>,
}

/// A number that varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The median.
    pub value: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Range {
    /// Of some values; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Range> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let value = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Range { value, low, high })
    }
}

/// Adds up the seconds of a simulated window.
#[derive(Clone, Debug, Default)]
pub struct Observing {
    seconds: f64,
    headline: f64,
    response: Histogram,
    ended: u64,
    cpu_ns: f64,
    /// Transactions and processor time by type.
    types: Vec<(u64, u64)>,
    log: u64,
    images: u64,
    missed: u64,
    written: u64,
    present: [f64; Place::COUNT],
    /// Busy share of the threads of the busiest host, times its seconds.
    busy: f64,
}

impl Observing {
    /// A second of the databases whose headlines count; not of the jobs beside users.
    pub fn add(&mut self, second: &EngineRun, scenario: &Scenario) {
        let length = second.length().as_secs_f64();
        self.seconds += length;
        let counted = counted(scenario);
        let hosts: BTreeSet<usize> =
            counted.iter().map(|number| scenario.databases[*number].host).collect();
        let hosts = || hosts.iter().filter_map(|host| second.hosts.get(*host));
        let busy = hosts().map(|host| host.busy(second.length()));
        self.busy += busy.fold(0.0, f64::max) * length;
        self.cpu_ns += hosts().map(|host| host.used.done_ns).sum::<f64>();
        for number in counted {
            let database = &second.databases[number];
            self.headline += second.headline(number) * length;
            for kind in database.headline.types {
                self.response.merge(&database.types[*kind].response);
            }
            self.types.resize(self.types.len().max(database.types.len()), (0, 0));
            let mut ended = 0;
            for (sum, kind) in self.types.iter_mut().zip(&database.types) {
                let of_kind = kind.committed + kind.rolled_back;
                ended += of_kind;
                sum.0 += of_kind;
                sum.1 += kind.cpu_ns;
            }
            self.ended += ended;
            if let Some(spec) = scenario.databases.get(number) {
                let requests = database.requests() * spec.demands.cpu_per_io.0;
                let client = if spec.client.host.is_some() { spec.demands.client_cpu.0 } else { 0 };
                self.cpu_ns -= (requests + ended * client) as f64;
            }
            self.log += database.log.inserted;
            self.images += database.log.images;
            self.missed += database.pool.misses;
            let writers = &database.writers;
            self.written +=
                writers.checkpoint_pages + writers.background_pages + writers.session_pages;
            for (sum, place) in self.present.iter_mut().zip(&database.places) {
                *sum += place.present_ns as f64;
            }
        }
    }

    /// Transactions that the headline counts.
    pub fn counted(&self) -> u64 {
        self.response.count()
    }

    /// What they show together.
    pub fn observation(&self, users: u32) -> Observation {
        let per = |amount: f64| (self.ended > 0).then(|| amount / self.ended as f64);
        let of_sessions: u64 = self.types.iter().map(|(_, cpu_ns)| cpu_ns).sum();
        let of_type = |&(ended, cpu_ns): &(u64, u64)| TypeCosts {
            ended,
            cpu_ns: (ended > 0).then(|| cpu_ns as f64 / ended as f64),
        };
        Observation {
            users,
            headline: self.headline / self.seconds.max(f64::MIN_POSITIVE),
            transactions_per_second: self.ended as f64 / self.seconds.max(f64::MIN_POSITIVE),
            p95: self.response.quantile(0.95).map(Nanos),
            p99: self.response.quantile(0.99).map(Nanos),
            costs: Costs {
                cpu_ns: per(self.cpu_ns.max(0.0)),
                background_ns: per((self.cpu_ns - of_sessions as f64).max(0.0)),
                client_ns: None,
                io_ns: None,
                log_bytes: per(self.log as f64),
                image_bytes: per(self.images as f64),
                pages_missed: per(self.missed as f64),
                pages_written: per(self.written as f64),
            },
            types: self.types.iter().map(of_type).collect(),
            bottleneck: self.bottleneck(),
        }
    }

    /// Where the transactions spent their time.
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        Bottleneck::of(&self.present, self.busy / self.seconds.max(f64::MIN_POSITIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::Range;

    #[test]
    fn a_range_is_median_and_extremes() {
        assert_eq!(Range::of([]), None);
        assert_eq!(Range::of([3.0, 1.0]), Some(Range { value: 2.0, low: 1.0, high: 3.0 }));
        let of_three = Range::of([9.0, 1.0, f64::NAN, 2.0]);
        assert_eq!(of_three, Some(Range { value: 2.0, low: 1.0, high: 9.0 }));
    }
}
