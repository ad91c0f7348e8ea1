//! Counters of a simulated run, as samplers of a real one read them. What they count is said where they are added to.

use std::collections::BTreeMap;
use underlay_core::series::{Layer, SeriesSpec};
use underlay_model::cluster::HostUse;
use underlay_record::{Source, SourceStatus};

/// Bytes of a sector in the kernel's statistics.
const SECTOR_BYTES: f64 = 512.0;
const NS_PER_MS: f64 = 1e6;

/// Counters as samplers read them: cumulative, in the order of their names.
#[derive(Default)]
pub struct Counters(BTreeMap<String, (f64, &'static str)>);

impl Counters {
    /// Adds to a counter.
    pub fn add(&mut self, name: impl Into<String>, unit: &'static str, by: f64) {
        self.0.entry(name.into()).or_insert((0.0, unit)).0 += by;
    }

    /// Adds requests of a kind on a volume, the time they took together, and what they moved.
    pub fn add_requests(&mut self, (volume, operation): (&str, &str), sums: [f64; 3]) {
        let [requests, time_ns, bytes] = sums;
        let mut add = |field: &str, unit, by: f64| {
            self.add(format!("volume.{volume}.{operation}.{field}"), unit, by);
        };
        add("ios", "ios", requests);
        add("time", "ms", time_ns / NS_PER_MS);
        if operation != "flush" {
            add("sectors", "sectors", bytes / SECTOR_BYTES);
        }
    }

    /// Adds what a host of a cluster was used, so many times.
    pub fn add_host_use(&mut self, host: &str, used: HostUse, times: f64) {
        let busy =
            [("stack", used.stack_busy), ("send", used.send_busy), ("receive", used.receive_busy)];
        for (part, busy) in busy {
            let series = format!("cluster.host.{host}.{part}.busy");
            self.add(series, "ns", times * busy.0 as f64);
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn series(&self) -> Vec<SeriesSpec> {
        let named = self.0.iter();
        named.map(|(name, (_, unit))| SeriesSpec::counter(name.clone(), *unit)).collect()
    }

    /// Their values.
    pub fn values(&self) -> Vec<f64> {
        self.0.values().map(|(value, _)| *value).collect()
    }

    /// As a source of a run, with that number and name.
    pub fn source(&self, index: u32, name: &str, layer: Layer) -> Source {
        Source {
            index,
            name: name.to_string(),
            layer,
            status: SourceStatus::Available,
            series: self.series(),
        }
    }
}
