//! What a simulated cluster counts of its copies: fast while nothing else is asked of it, slow beside a load.

use underlay_core::series::SeriesSpec;

use crate::simulation::Second;

/// Copies of a simulated execution, made by its first design.
#[derive(Clone, Copy, Debug)]
pub struct Resync {
    /// Seconds of copying before any load.
    pub alone_s: u64,
    /// Seconds that are watched after the load.
    pub after_s: u64,
    /// I/Os to make; each is of [`SLICE`] bytes.
    pub ios: f64,
    /// Their rate without load, per second.
    pub ios_alone: f64,
    /// Beside load.
    pub ios_beside_load: f64,
}

/// Bytes of one I/O of a copy.
pub const SLICE: f64 = 65_536.0;

/// What the cluster has counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    ios: f64,
    of_volumes: f64,
}

impl Copied {
    /// Adds a second. A design that does not copy has the volumes' I/Os alone.
    pub fn count(&mut self, resync: &Resync, copies: bool, happened: &Second) {
        let load = (happened.reads.0 + happened.log_writes.0) as f64;
        self.of_volumes += load;
        if copies {
            let rate = if load > 0.0 { resync.ios_beside_load } else { resync.ios_alone };
            self.ios = (self.ios + rate).min(resync.ios);
        }
    }

    /// The values of [`series`].
    pub fn values(&self, resync: &Resync, copies: bool) -> Vec<f64> {
        let left = if copies { (resync.ios - self.ios) * SLICE } else { 0.0 };
        let of = |ios: f64, bytes: f64| [ios, ios * bytes];
        let (copied, volumes) = (of(self.ios, SLICE), of(self.of_volumes, 8_192.0));
        [vec![left, 80.0], copied.to_vec(), copied.to_vec(), volumes.to_vec()].concat()
    }
}

/// The names are those of the datastore's sampler.
pub fn series() -> Vec<SeriesSpec> {
    let gauges = [
        ("cluster.resync.rebalance.left", "bytes"),
        ("cluster.group.h0/g0.buffer.free", "percent"),
    ];
    let counters = [
        "cluster.resync.rebalance",
        "cluster.group.h0/g0.queue.resync",
        "cluster.group.h0/g0.queue.vm",
    ];
    let counters = counters.iter().flat_map(|name| {
        [("ios", "ios"), ("bytes", "bytes")]
            .map(|(what, unit)| SeriesSpec::counter(format!("{name}.{what}"), unit))
    });
    gauges.map(|(name, unit)| SeriesSpec::gauge(name, unit)).into_iter().chain(counters).collect()
}
