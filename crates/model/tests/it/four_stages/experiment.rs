//! The four stages of adaptive resynchronisation on one virtual time line, as the performance service sees them: volumes
//! alone (1), copying alone (2), both with volumes below their share (3), both saturating (4).
//!
//! A mirrored volume is read while one of its two hosts is gone; the host comes back with an empty device. So all reads and
//! all copying meet at the other one's, a SATA device. Shared by the test of the shares and by the example that draws them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use underlay_core::series::SeriesSpec;
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};
use underlay_model::cluster::{
    Cluster, ClusterEvent, ClusterSettings, ClusterSpec, DeviceId, Fault, HostId, HostSpec,
    NetworkSpec, Notice, Policy, ReturnedContent, VolumeId,
};
use underlay_model::performance::{Catalogue, EmulatorStatus};
use underlay_model::{DiskGroupSpec, Operation, Request, RequestId, builtin};

/// Length of a stage.
pub const STAGE_S: usize = 8;
/// What each stage shows.
pub const STAGES: [&str; 4] = [
    "volumes alone",
    "resynchronisation alone",
    "both, volumes below their share",
    "both saturating",
];
const SEED: RootSeed = RootSeed(11);
const READ_BYTES: u32 = 8192;
/// So large that hardly any of it is copied back during the experiment: what is, is read from both replicas.
const VOLUME: Bytes = Bytes::from_gib(200);
/// Requests in flight while volumes saturate the device.
const DEPTH: usize = 128;
/// Share of the device that volumes ask for in the third stage.
const BELOW: f64 = 0.4;

/// One second.
pub struct Second {
    /// In the order of [`Stages::series`].
    pub values: Vec<f64>,
    pub latencies: Vec<(String, Operation, Histogram)>,
    /// When, kind and words.
    pub notices: Vec<(Nanos, &'static str, String)>,
    /// Bytes that volumes read, and bytes read for copies.
    pub vm_bytes: f64,
    pub resync_bytes: f64,
}

/// The whole time line.
pub struct Stages {
    pub series: Vec<SeriesSpec>,
    pub seconds: Vec<Second>,
}

impl Stages {
    /// Bytes per second of volumes and of copies in a stage, without its first two seconds.
    pub fn rates(&self, stage: usize) -> (f64, f64) {
        let seconds = &self.seconds[stage * STAGE_S + 2..(stage + 1) * STAGE_S];
        let mean =
            |of: fn(&Second) -> f64| seconds.iter().map(of).sum::<f64>() / seconds.len() as f64;
        (mean(|second| second.vm_bytes), mean(|second| second.resync_bytes))
    }
}

/// What volumes ask for in the third stage, bytes per second, if they alone have `alone`.
pub fn asked_below_share(alone: f64) -> f64 {
    alone * BELOW
}

fn spec() -> ClusterSpec {
    let device = |name: &str| builtin::find(name).expect("built in");
    let host = |index: usize| HostSpec {
        name: format!("h{index}"),
        fault_domain: None,
        groups: vec![DiskGroupSpec::new("g0", device("dc1500m-960"), vec![device("dc500m-1920")])],
    };
    ClusterSpec {
        hosts: (0..3).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(20),
            bytes_per_second: 3_125_000_000,
            divisor: 1,
        },
        settings: ClusterSettings {
            resync_window: 32,
            failure_detection: Nanos::from_millis(1),
            ..ClusterSettings::default()
        },
    }
}

struct World {
    cluster: Cluster,
    volume: VolumeId,
    /// Where the second replica is.
    other: (HostId, DeviceId),
    /// Numbers drawn so far.
    drawn: u64,
    now: Nanos,
    /// When the next read is to be sent.
    due: BinaryHeap<Reverse<Nanos>>,
    next: u64,
    stage: usize,
    open_gap_ns: f64,
    notices: Vec<(Nanos, &'static str, String)>,
}

impl World {
    fn advance(&mut self, until: Nanos) {
        loop {
            let wakeup = self.cluster.next_wakeup().unwrap_or(Nanos(u64::MAX));
            let due = self.due.peek().map_or(Nanos(u64::MAX), |Reverse(at)| *at);
            let at = wakeup.min(due).max(self.now);
            if at > until {
                break;
            }
            self.now = at;
            self.collect();
            if due <= at {
                self.due.pop();
                self.read();
            }
        }
        self.now = until;
        self.collect();
    }

    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        SEED.child("reads", self.drawn).0
    }

    fn read(&mut self) {
        match self.stage {
            0 | 3 => {}
            2 => {
                let uniform = (self.draw() >> 11) as f64 / (1u64 << 53) as f64;
                let gap = -(1.0 - uniform).ln() * self.open_gap_ns;
                self.due.push(Reverse(self.now + Nanos(gap as u64)));
            }
            _ => return,
        }
        let block = self.draw() % (VOLUME.0 / u64::from(READ_BYTES));
        let request = Request::read(block * u64::from(READ_BYTES), READ_BYTES);
        self.next += 1;
        self.cluster.submit(self.now, self.volume, &request, RequestId(self.next));
    }

    fn collect(&mut self) {
        let mut events = Vec::new();
        self.cluster.advance(self.now, &mut events);
        for event in events {
            match event {
                ClusterEvent::Finished(_) if matches!(self.stage, 0 | 3) => {
                    self.due.push(Reverse(self.now));
                }
                ClusterEvent::Notice { at, notice } => match notice {
                    Notice::Fault { description } => self.notices.push((at, "fault", description)),
                    Notice::ResyncStarted { bytes, .. } => {
                        self.notices.push((at, "resync", format!("copying {bytes} began")));
                    }
                    _ => {}
                },
                ClusterEvent::Finished(_)
                | ClusterEvent::Data(_)
                | ClusterEvent::StateChanged(_) => {}
            }
        }
    }

    fn begin_stage(&mut self, stage: usize, alone: f64) {
        self.stage = stage;
        self.due.clear();
        match stage {
            1 => {
                let content = ReturnedContent::Blank;
                let empty = Fault::DeviceReturned { device: self.other.1, content };
                for fault in [Fault::HostReturned { host: self.other.0 }, empty] {
                    self.cluster.inject(self.now, fault).expect("they exist");
                }
            }
            2 => {
                self.open_gap_ns = f64::from(READ_BYTES) * 1e9 / asked_below_share(alone);
                self.due.push(Reverse(self.now));
            }
            _ => (0..DEPTH).for_each(|_| self.due.push(Reverse(self.now))),
        }
    }
}

/// Runs the four stages, one after the other.
pub fn run() -> Stages {
    let mut cluster = Cluster::new(spec(), SEED).expect("a valid cluster");
    let volume = cluster
        .create_volume(Nanos::ZERO, "data", VOLUME, Policy::DEFAULT)
        .expect("there is room for it");
    cluster.assume_written(volume).expect("there is room for it");
    let status = cluster.volume_status(volume).expect("it was created");
    let other = (status.components[1].host, status.components[1].device);
    cluster.inject(Nanos::ZERO, Fault::HostLost { host: other.0 }).expect("it runs");
    let catalogue = Catalogue::of(&cluster);
    let mut stages = Stages { series: catalogue.series().to_vec(), seconds: Vec::new() };
    let mut world = World {
        cluster,
        volume,
        other,
        drawn: 0,
        now: Nanos::ZERO,
        due: BinaryHeap::new(),
        next: 0,
        stage: 0,
        open_gap_ns: 0.0,
        notices: Vec::new(),
    };
    let status = EmulatorStatus::default();
    let sum = |series: &[SeriesSpec], values: &[f64], suffix: &str| -> f64 {
        let named = series.iter().zip(values);
        let of = |(series, _): &(&SeriesSpec, &f64)| {
            series.name.starts_with("cluster.group.") && series.name.ends_with(suffix)
        };
        named.filter(of).map(|(_, value)| *value).sum()
    };
    let mut before = (0.0, 0.0);
    for second in 0..STAGES.len() * STAGE_S {
        if second % STAGE_S == 0 {
            let alone = if second == 0 { 0.0 } else { stages.rates(0).0 };
            world.begin_stage(second / STAGE_S, alone);
        }
        world.advance(Nanos::from_secs(second as u64 + 1));
        let values = catalogue.values(&mut world.cluster, &status);
        let total = (
            sum(&stages.series, &values, ".vm.read.bytes"),
            sum(&stages.series, &values, ".resync.read.bytes"),
        );
        stages.seconds.push(Second {
            values,
            latencies: world.cluster.take_latencies(),
            notices: std::mem::take(&mut world.notices),
            vm_bytes: total.0 - before.0,
            resync_bytes: total.1 - before.1,
        });
        before = total;
    }
    stages
}
