//! `underlay volume stat` of a cluster: hosts, disk groups, devices, resync, data reduction, recent events.
//!
//! Rates and means are taken from two readings of the performance service's counters; see `docs/volumes.md` for their names.

use std::collections::{BTreeMap, BTreeSet};
use underlay_core::{Bytes, Nanos};
use underlay_datastore::persistent::{BackendLatencyStatus, DeviceStatus, RecentNotice};

/// Notices printed.
const NOTICES: usize = 20;
/// Slowdown of copying on this host from which on it is reported.
const REPORTED_SLOWDOWN_MIN: f64 = 1.1;
const REASONS: [&str; 4] = ["repair", "stale", "policy", "rebalance"];

/// Two readings of a cluster's counters.
pub struct ClusterView<'a> {
    /// The later reading.
    pub now: &'a BTreeMap<String, f64>,
    /// The earlier one, and how long before; none for what was counted since the start.
    pub before: Option<(&'a BTreeMap<String, f64>, f64)>,
    /// Latencies in between.
    pub latencies: &'a [BackendLatencyStatus],
    /// How the devices work.
    pub devices: &'a [DeviceStatus],
    /// What happened lately.
    pub notices: &'a [RecentNotice],
    /// Now, in nanoseconds since 1970.
    pub unix_ns: u64,
}

impl ClusterView<'_> {
    fn gauge(&self, name: &str) -> f64 {
        self.now.get(name).copied().unwrap_or(0.0)
    }

    /// Increase of a counter, or all of it.
    fn increase(&self, name: &str) -> f64 {
        let before = self.before.and_then(|(before, _)| before.get(name).copied()).unwrap_or(0.0);
        (self.gauge(name) - before).max(0.0)
    }

    fn rate(&self, name: &str) -> f64 {
        self.before.map_or(0.0, |(_, seconds)| self.increase(name) / seconds.max(1e-9))
    }

    /// Mean time per request, of a counter of times.
    fn mean(&self, time: &str, requests: &[String]) -> Nanos {
        let ios: f64 = requests.iter().map(|name| self.increase(name)).sum();
        Nanos(if ios > 0.0 { (self.increase(time) / ios) as u64 } else { 0 })
    }

    /// The parts of the names between a prefix and a suffix.
    fn parts(&self, prefix: &str, suffix: &str) -> BTreeSet<String> {
        let part =
            |name: &String| Some(name.strip_prefix(prefix)?.strip_suffix(suffix)?.to_string());
        self.now.keys().filter_map(part).collect()
    }

    fn p99(&self, name: &str) -> String {
        let found = self.latencies.iter().find(|latency| latency.name == name);
        found.map_or("-".to_string(), |latency| Nanos(latency.p99_ns).to_string())
    }

    /// Everything, as lines.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        self.hosts(&mut lines);
        self.groups(&mut lines);
        self.devices(&mut lines);
        self.resync(&mut lines);
        self.reduction(&mut lines);
        lines.extend(happened(self.notices, self.unix_ns));
        lines.join("\n")
    }

    fn hosts(&self, lines: &mut Vec<String>) {
        lines.push(format!(
            "{:20}{:>12}{:>10}{:>10}{:>10}{:>10}{:>12}{:>8}",
            "host", "", "read/s", "write/s", "MB/s", "resync/s", "MB/s", "open"
        ));
        for host in self.parts("cluster.host.", ".reachable") {
            let name = |what: &str| format!("cluster.host.{host}.{what}");
            let sum = |class: &str, what: &str| {
                self.rate(&name(&format!("{class}.read.{what}")))
                    + self.rate(&name(&format!("{class}.write.{what}")))
            };
            let state =
                if self.gauge(&name("reachable")) > 0.0 { "reachable" } else { "unreachable" };
            lines.push(format!(
                "{host:20}{state:>12}{:10.0}{:10.0}{:10.1}{:10.0}{:12.1}{:8.0}",
                self.rate(&name("vm.read.ios")),
                self.rate(&name("vm.write.ios")),
                sum("vm", "bytes") / 1e6,
                sum("resync", "ios"),
                sum("resync", "bytes") / 1e6,
                self.gauge(&name("vm.outstanding")) + self.gauge(&name("resync.outstanding")),
            ));
        }
    }

    fn groups(&self, lines: &mut Vec<String>) {
        lines.push(format!(
            "{:20}{:>12}{:>12}{:>14}{:>12}{:>12}{:>10}{:>10}",
            "disk group",
            "buffer free",
            "congestion",
            "destaged MB/s",
            "read p99",
            "write p99",
            "dedupe",
            "compress"
        ));
        for group in self.parts("cluster.group.", ".buffer.free") {
            let name = |what: &str| format!("cluster.group.{group}.{what}");
            let holds_something = self.gauge(&name("reduction.logical")) > 0.0;
            let ratio = |what: &str| {
                let ratio = self.now.get(&name(what)).filter(|_| holds_something);
                ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}"))
            };
            lines.push(format!(
                "{group:20}{:10.1} %{:12.0}{:14.1}{:>12}{:>12}{:>10}{:>10}",
                self.gauge(&name("buffer.free")),
                self.gauge(&name("congestion")),
                self.rate(&name("buffer.destaged")) / 1e6,
                self.p99(&format!("group.{group}.vm.read")),
                self.p99(&format!("group.{group}.vm.write")),
                ratio("reduction.dedupe-ratio"),
                ratio("reduction.compression-ratio"),
            ));
        }
    }

    fn devices(&self, lines: &mut Vec<String>) {
        let devices = self.parts("cluster.device.", ".service");
        let width = devices.iter().map(String::len).max().unwrap_or(0).max(18) + 2;
        lines.push(format!(
            "{:width$}{:>11}{:>10}{:>10}{:>12}{:>12}{:>12}{:>6}{:>12}",
            "device", "", "I/Os/s", "MB/s", "queue", "service", "read p99", "open", "used"
        ));
        for device in devices {
            let name = |what: &str| format!("cluster.device.{device}.{what}");
            let ios = [name("read.ios"), name("write.ios")];
            let sum = |what: [&str; 2]| -> f64 {
                what.into_iter().map(|what| self.rate(&name(what))).sum()
            };
            let used = self.now.get(&name("used"));
            lines.push(format!(
                "{device:width$}{:>11}{:10.0}{:10.1}{:>12}{:>12}{:>12}{:6.0}{:>12}",
                self.condition(&device),
                sum(["read.ios", "write.ios"]),
                sum(["read.bytes", "write.bytes"]) / 1e6,
                self.mean(&name("queue"), &ios).to_string(),
                self.mean(&name("service"), &ios).to_string(),
                self.p99(&format!("device.{device}.read")),
                self.gauge(&name("outstanding")),
                used.map_or(String::new(), |used| Bytes(*used as u64).to_string()),
            ));
        }
    }

    fn condition(&self, name: &str) -> &str {
        let device = self.devices.iter().find(|device| device.name == name);
        device.map_or("-", |device| &device.condition)
    }

    fn resync(&self, lines: &mut Vec<String>) {
        let left = |reason: &str| self.gauge(&format!("cluster.resync.{reason}.left"));
        let total: f64 = REASONS.iter().map(|reason| left(reason)).sum();
        let repair_in = self.gauge("cluster.resync.repair-in");
        let repair = (repair_in > 0.0).then(|| {
            format!(
                "unreachable components will be rebuilt elsewhere in {} unless they return",
                whole(repair_in)
            )
        });
        if total == 0.0 {
            let impaired = self.gauge("cluster.components.impaired");
            if impaired == 0.0 {
                return lines.push("resync: idle".to_string());
            }
            let next = repair.unwrap_or_else(|| {
                "until hosts and devices return, or there is room to rebuild them".to_string()
            });
            return lines.push(format!(
                "resync: idle, but {impaired:.0} components are unreachable or stale, so volumes have fewer copies than their \
                 policy requires: {next}"
            ));
        }
        let reasons: Vec<String> = REASONS
            .iter()
            .filter(|reason| left(reason) > 0.0)
            .map(|reason| format!("{} {reason}", Bytes(left(reason) as u64)))
            .collect();
        let rate: f64 =
            REASONS.iter().map(|reason| self.rate(&format!("cluster.resync.{reason}.bytes"))).sum();
        let end = match self.time_left_ns(total, rate) {
            time_left if time_left > 0.0 => {
                format!("done in about {}{}", Nanos(time_left as u64), self.slowly())
            }
            _ => "remaining time unknown".to_string(),
        };
        lines.push(format!(
            "resync: {} left ({}), {:.1} MB/s, {end}; {:.0} components in progress, {:.0} waiting",
            Bytes(total as u64),
            reasons.join(", "),
            rate / 1e6,
            self.gauge("cluster.resync.active"),
            self.gauge("cluster.resync.waiting"),
        ));
        lines.extend(repair.map(|repair| format!("resync: {repair}")));
    }

    /// The remaining time of copying: at the rate shown with it, if copying lasted all through the
    /// interval, otherwise as the cluster estimates it; 0 = not known.
    fn time_left_ns(&self, left_bytes: f64, bytes_per_second: f64) -> f64 {
        const ACTIVE: &str = "cluster.resync.active";
        let was_active = |(before, _): (&BTreeMap<String, f64>, f64)| {
            before.get(ACTIVE).is_some_and(|active| *active > 0.0)
        };
        let went_on = self.gauge(ACTIVE) > 0.0 && self.before.is_some_and(was_active);
        if went_on && bytes_per_second > 0.0 {
            return left_bytes / bytes_per_second * 1e9;
        }
        self.gauge("cluster.resync.time-left")
    }

    /// What this host adds to the time that copying takes.
    fn slowly(&self) -> String {
        match self.gauge("cluster.resync.slowdown") {
            times if times >= REPORTED_SLOWDOWN_MIN => {
                format!(" (this host copies {times:.1} times slower than the modelled devices)")
            }
            _ => String::new(),
        }
    }

    fn reduction(&self, lines: &mut Vec<String>) {
        if !self.now.contains_key("cluster.reduction.stored") {
            return;
        }
        let bytes = |what: &str| Bytes(self.gauge(&format!("cluster.reduction.{what}")) as u64);
        let uncounted = Bytes(self.gauge("cluster.reduction.uncounted") as u64 * 4096);
        if self.gauge("cluster.reduction.logical") == 0.0 {
            return lines.push(format!("reduction: nothing counted; {uncounted} not counted yet"));
        }
        lines.push(format!(
            "reduction: {} in {}, deduplication {:.2} to 1, compression {:.2} to 1; {uncounted} not counted yet",
            bytes("logical"),
            bytes("stored"),
            self.gauge("cluster.reduction.dedupe-ratio"),
            self.gauge("cluster.reduction.compression-ratio"),
        ));
    }
}

/// The latest events, as lines.
pub fn happened(notices: &[RecentNotice], unix_ns: u64) -> Vec<String> {
    let skipped = notices.len().saturating_sub(NOTICES);
    let heading = (!notices.is_empty()).then(|| "recent events:".to_string());
    let events = notices[skipped..].iter().map(|notice| {
        let ago = whole(unix_ns.saturating_sub(notice.at_unix_ns) as f64);
        format!("  {:>10} ago  {:10} {}", ago.to_string(), notice.kind, notice.text)
    });
    heading.into_iter().chain(events).collect()
}

/// Whole seconds.
fn whole(ns: f64) -> Nanos {
    Nanos(ns as u64 / 1_000_000_000 * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::ClusterView;
    use std::collections::BTreeMap;
    use underlay_datastore::persistent::{BackendLatencyStatus, DeviceStatus, RecentNotice};

    fn map(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|(name, value)| (name.to_string(), *value)).collect()
    }

    #[test]
    fn rates_means_and_progress_are_told() {
        let before = map(&[
            ("cluster.device.h0/g/disk0.read.ios", 100.0),
            ("cluster.device.h0/g/disk0.service", 1e6),
            ("cluster.resync.repair.bytes", 0.0),
        ]);
        let now = map(&[
            ("cluster.host.h0.reachable", 1.0),
            ("cluster.host.h1.reachable", 0.0),
            ("cluster.group.h0/g.buffer.free", 71.5),
            ("cluster.group.h0/g.congestion", 12.0),
            ("cluster.group.h0/g.reduction.dedupe-ratio", 2.0),
            ("cluster.group.h0/g.reduction.logical", 4096.0),
            ("cluster.device.h0/g/disk0.read.ios", 300.0),
            ("cluster.device.h0/g/disk0.service", 21e6),
            ("cluster.resync.repair.left", 3e9),
            ("cluster.resync.repair.bytes", 200e6),
            ("cluster.resync.time-left", 30e9),
            ("cluster.resync.slowdown", 2.44),
            ("cluster.resync.repair-in", 50e9),
            ("cluster.reduction.stored", 1024.0),
            ("cluster.reduction.logical", 4096.0),
        ]);
        let latencies = [BackendLatencyStatus {
            name: "group.h0/g.vm.read".to_string(),
            ios: 5,
            p50_ns: 1,
            p99_ns: 250_000,
            max_ns: 300_000,
        }];
        let notices = [RecentNotice {
            at_unix_ns: 5_000_000_000,
            kind: "fault".to_string(),
            text: "host h1 lost power".to_string(),
        }];
        let device = |name: &str, condition: &str| DeviceStatus {
            name: name.to_string(),
            profile: "p".to_string(),
            condition: condition.to_string(),
            capacity_bytes: 1,
            free_bytes: 0,
            buffer_fill_bytes: 0,
            drained_bytes: 0,
        };
        let devices = [device("h0/g/cache", "healthy"), device("h0/g/disk0", "unreachable")];
        let view = ClusterView {
            now: &now,
            devices: &devices,
            before: Some((&before, 2.0)),
            latencies: &latencies,
            notices: &notices,
            unix_ns: 17_500_000_000,
        };
        let idle = |impaired: f64| {
            let now = map(&[("cluster.components.impaired", impaired)]);
            ClusterView { now: &now, before: None, latencies: &[], notices: &[], ..view }.text()
        };
        assert!(idle(0.0).contains("resync: idle"), "{}", idle(0.0));
        assert!(idle(4.0).contains("4 components are unreachable or stale"), "{}", idle(4.0));
        let timer =
            map(&[("cluster.components.impaired", 4.0), ("cluster.resync.repair-in", 3_540.9e9)]);
        let timer = ClusterView { now: &timer, before: None, latencies: &[], notices: &[], ..view };
        let timer = timer.text();
        assert!(timer.contains("rebuilt elsewhere in 59 min 00 s unless they return"), "{timer}");
        let empty = map(&[
            ("cluster.group.h0/g.buffer.free", 100.0),
            ("cluster.group.h0/g.reduction.dedupe-ratio", 1.0),
            ("cluster.reduction.stored", 0.0),
            ("cluster.reduction.uncounted", 2.0),
        ]);
        let empty = ClusterView { now: &empty, before: None, latencies: &[], notices: &[], ..view };
        assert!(!empty.text().contains("1.00"), "nothing has no ratio: {}", empty.text());
        assert!(
            empty.text().contains("nothing counted; 8 KiB not counted yet"),
            "{}",
            empty.text()
        );
        let text = view.text();
        let line = |begin: &str| {
            let found = text.lines().find(|line| line.starts_with(begin));
            found.unwrap_or_else(|| panic!("{begin}: {text}")).to_string()
        };
        assert!(line("h1").contains("unreachable"));
        let group = line("h0/g ");
        assert!(
            group.contains("71.5 %") && group.contains("2.00") && group.contains("250"),
            "{group}"
        );
        // 200 reads in 2 s, 20 ms of service in all.
        let device = line("h0/g/disk0");
        assert!(device.contains(" unreachable "), "{device}");
        assert!(device.contains(" 100 ") && device.contains("100 us"), "{device}");
        let resync = line("resync");
        assert!(resync.contains("100.0 MB/s") && resync.contains("done in about 30"), "{resync}");
        assert!(resync.contains("30 s (this host copies 2.4 times slower"), "{resync}");
        assert!(text.contains("resync: unreachable components will be rebuilt"), "{text}");
        // Copied all through the interval, at 100 MB/s: what is left takes 30 s, whatever the cluster hoped for.
        let earlier = map(&[("cluster.resync.active", 2.0)]);
        let mut later = now.clone();
        later.insert("cluster.resync.active".to_string(), 2.0);
        later.insert("cluster.resync.time-left".to_string(), 22e9);
        let steady = ClusterView { now: &later, before: Some((&earlier, 2.0)), ..view };
        assert!(steady.text().contains("100.0 MB/s, done in about 30"), "{}", steady.text());
        let begun = ClusterView { now: &later, before: Some((&before, 2.0)), ..view };
        assert!(begun.text().contains("100.0 MB/s, done in about 22"), "{}", begun.text());
        assert!(line("reduction").contains("4 KiB in 1 KiB"), "{text}");
        assert!(text.contains("12 s ago") && text.contains("host h1 lost power"), "{text}");
    }
}
