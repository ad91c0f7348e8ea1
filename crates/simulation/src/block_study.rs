//! A study whose workload is a block load, in virtual time: the loads of one run, each after the other on the same volumes.
//!
//! The course is that of a real run: every rung, or the maximum and the points of a curve. Requests go to the volumes of the plan,
//! and what joins its cluster in `settle` has joined. Deliberately not here: filling, preconditioning and verifying, because
//! volumes hold no bytes; records, threads.

use std::collections::BTreeSet;
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};
use underlay_model::cluster::HostUse;
use underlay_study::{BlockPlan, DatastoreKind, DesignPlan, Plan};
use underlay_workload::block::curve::curve_rate;
use underlay_workload::block::{IoProfile, Pace};

use crate::client::ClientSpec;
use crate::databases::{DesignTarget, StorageError, of_plan};
use crate::result::{SimulationResult, access_index};
use crate::run::{Completed, RunSpec, Watch, simulate_watched};

const SECOND_NS: u64 = 1_000_000_000;
/// Next to nothing: the rate of a job that did nothing at the maximum of a curve.
const LEAST_RATE: f64 = 0.001;

/// How long loads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Longest time before a measured window.
    pub warm_up_at_most: Nanos,
    /// A window ends early after that many requests.
    pub requests_max: u64,
}

impl Length {
    /// Long enough for a mean that is known within a percent: a fast cluster needs about a second.
    pub const SHORT: Length =
        Length { warm_up_at_most: Nanos::from_millis(500), requests_max: 400_000 };
    /// As the study says.
    pub const FULL: Length = Length { warm_up_at_most: Nanos(u64::MAX), requests_max: u64::MAX };
}

/// What requests of one kind did in a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Completed.
    pub count: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// From the intended start, ns.
    pub response: Histogram,
    /// From the submission, ns.
    pub service: Histogram,
}

/// What a volume did in a second: reads, writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfVolume {
    /// Requests completed.
    pub count: [u64; 2],
    /// Bytes moved.
    pub bytes: [u64; 2],
    /// Sum of the times from submission to completion.
    pub service_ns: [u64; 2],
}

/// A second of a load. The last one of a warm-up and of a window may be shorter.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSecond {
    /// Whether it is measured.
    pub is_measured: bool,
    /// Its begin, in the run's time.
    pub begin: Nanos,
    /// Its end.
    pub end: Nanos,
    /// Reads, writes.
    pub counted: [Counted; 2],
    /// By volume.
    pub volumes: Vec<OfVolume>,
    /// For how long requests occupied what each host of a cluster has; empty of single devices.
    pub hosts: Vec<(String, HostUse)>,
}

/// A load from its beginning to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// `8 threads`, `maximum`, `70 %`.
    pub label: String,
    /// Requests per second over all volumes, by a clock.
    pub offered: Option<f64>,
    /// Requests that could be in flight at once on each volume.
    pub in_flight: u32,
    /// What came out.
    pub result: SimulationResult,
    /// The same second by second.
    pub seconds: Vec<LoadSecond>,
}

/// Whether the workload of a plan is a block load, at all points of its axes.
pub fn is_block_study(plan: &Plan) -> bool {
    plan.plans().iter().all(|point| point.workload.kind.block().is_some())
}

/// Every reason why such a plan cannot be simulated, each once; empty where it can.
pub fn problems(plan: &Plan) -> Vec<String> {
    let mut found = BTreeSet::new();
    for point in plan.plans() {
        of_plan(point, &mut found);
        if !point.background.is_empty() {
            found.insert("background work beside a block load is not simulated".to_string());
        }
        if let Some(load) = point.workload.kind.block() {
            of_load(load, &mut found);
        }
    }
    for (position, design) in plan.designs.iter().enumerate() {
        let load = plan.plans()[plan.point_of(position)].workload.kind.block();
        if load.is_some_and(is_closed) && has_instant_devices(design) {
            found.insert(format!(
                "design `{}` has devices without delay: in a closed loop no virtual time would pass",
                design.name
            ));
        }
        if let Err(error) = DesignTarget::in_study(plan, position, RootSeed(0)) {
            found.insert(with_causes(&error));
        }
    }
    found.into_iter().collect()
}

fn of_load(load: &BlockPlan, found: &mut BTreeSet<String>) {
    if load.profile.is_durable() {
        let name = &load.profile.name;
        found.insert(format!("`{name}` uses flushes or write-through, which are not simulated"));
    }
    for threads in &load.threads {
        let problems = load.at(*threads, 1).problems(load.working_set);
        found.extend(problems.iter().map(ToString::to_string));
    }
}

fn is_closed(load: &BlockPlan) -> bool {
    let profile = load.at(1, 1);
    profile.jobs.iter().any(|job| job.pace == Pace::CLOSED)
}

fn has_instant_devices(design: &DesignPlan) -> bool {
    let DatastoreKind::Emulated { devices, .. } = &design.kind else { return false };
    let is_used = |name: &String| {
        let mut volumes = design.volumes.iter();
        volumes.any(|volume| volume.device.as_ref().is_none_or(|device| device == name))
    };
    devices.iter().any(|(name, profile)| profile.is_instant() && is_used(name))
}

fn with_causes(error: &StorageError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

/// The volumes of a design under the loads of one run.
pub struct BlockRun<'a> {
    plan: &'a Plan,
    load: &'a BlockPlan,
    target: DesignTarget,
    volumes: usize,
    length: Length,
    seed: RootSeed,
    /// When the next load begins.
    now: Nanos,
    loads: u64,
}

impl<'a> BlockRun<'a> {
    /// A run of the design at that position, before its first load. `plan` is that of its point of the axes.
    ///
    /// # Errors
    /// Storage without a model, and clusters that cannot hold the volumes.
    pub fn new(
        plan: &'a Plan,
        load: &'a BlockPlan,
        position: usize,
        length: Length,
        seed: RootSeed,
    ) -> Result<BlockRun<'a>, StorageError> {
        let target = DesignTarget::in_study(plan, position, seed.child("storage", 0))?;
        let volumes = plan.designs[position].volumes.len();
        let now = plan.procedure.settle;
        Ok(BlockRun { plan, load, target, volumes, length, seed, now, loads: 0 })
    }

    /// All loads in their order; each is handed over when it has ended. Ends early by `false`.
    pub fn carry_out(&mut self, each: &mut dyn FnMut(Load) -> bool) {
        let load = self.load;
        if load.curve.is_empty() {
            for threads in &load.threads {
                let plural = if *threads == 1 { "" } else { "s" };
                let profile = load.at(*threads, self.volumes);
                if !each(self.load(format!("{threads} thread{plural}"), &profile)) {
                    return;
                }
            }
            return;
        }
        let profile = load.at(load.threads.last().copied().unwrap_or(1), self.volumes);
        let maximum = self.load("maximum".to_string(), &profile);
        let most = maximum.result.iops();
        // Jobs keep the shares of the requests that they had at the maximum.
        let shares = job_shares(&profile, &maximum.result);
        if !each(maximum) {
            return;
        }
        for percent in &load.curve {
            let rate = curve_rate(most, *percent).rate_per_second as f64 / self.volumes as f64;
            let mut paced = profile.clone();
            for (job, share) in paced.jobs.iter_mut().zip(&shares) {
                let rate_per_second = (rate * share).max(LEAST_RATE);
                job.pace = Pace::Open { rate_per_second, arrivals: load.arrivals };
            }
            if !each(self.load(format!("{percent} %"), &paced)) {
                return;
            }
        }
    }

    /// One load, after those before.
    fn load(&mut self, label: String, profile: &IoProfile) -> Load {
        // Requests reach the end of a file, so its size is a multiple of theirs.
        let working_set = Bytes(self.load.working_set.0 >> 20 << 20);
        let of_volume = |volume: usize| {
            profile.jobs.iter().map(move |job| ClientSpec {
                name: job.workload.name.clone(),
                volume,
                workload: &job.workload,
                working_set,
                concurrency: job.concurrency,
                pace: job.pace,
            })
        };
        let clients: Vec<ClientSpec<'_>> = (0..self.volumes).flat_map(of_volume).collect();
        let procedure = &self.plan.procedure;
        let before = match self.loads {
            0 => procedure.warm_up + procedure.ramp_up,
            _ => procedure.ramp_up,
        };
        let spec = RunSpec {
            begin: self.now,
            warm_up: before.min(self.length.warm_up_at_most),
            measure: procedure.measure,
            requests_max: self.length.requests_max,
        };
        let seed = self.seed.child("block-load", self.loads);
        self.loads += 1;
        let mut seconds = Seconds::new(&spec, self.volumes, &self.target);
        let result = simulate_watched(&mut self.target, &clients, &spec, seed, &mut seconds);
        self.now = result.end;
        let seconds = seconds.until(result.measured_until, &self.target);
        let offered: Option<f64> = profile.jobs.iter().map(|job| job.rate_per_second()).sum();
        Load {
            label,
            offered: offered.map(|rate| rate * self.volumes as f64),
            in_flight: profile.jobs.iter().map(|job| job.concurrency.in_flight()).sum(),
            result,
            seconds,
        }
    }
}

/// Share of the requests that each job had.
fn job_shares(profile: &IoProfile, result: &SimulationResult) -> Vec<f64> {
    let count = |name: &str| {
        let of_job = result.streams.iter().filter(|stream| stream.client == name);
        let counts = of_job.map(|it| it.read.response.count() + it.write.response.count());
        counts.sum::<u64>() as f64
    };
    let counts: Vec<f64> = profile.jobs.iter().map(|job| count(&job.workload.name)).collect();
    let total: f64 = counts.iter().sum();
    let even = 1.0 / counts.len() as f64;
    counts.iter().map(|count| if total > 0.0 { count / total } else { even }).collect()
}

/// Cuts a load into its seconds.
struct Seconds {
    measured_from: Nanos,
    /// What the cluster's hosts had been used by the end of the last second.
    used: Vec<(String, HostUse)>,
    done: Vec<LoadSecond>,
    current: LoadSecond,
    /// When that ends, unless the load does.
    boundary: Nanos,
}

impl Seconds {
    fn new(spec: &RunSpec, volumes: usize, target: &DesignTarget) -> Seconds {
        let measured_from = spec.begin + spec.warm_up;
        let is_measured = spec.warm_up == Nanos::ZERO;
        let current = empty(is_measured, spec.begin, volumes);
        let (done, boundary) = (Vec::new(), Nanos::ZERO);
        let used = target.host_uses();
        let mut seconds = Seconds { measured_from, used, done, current, boundary };
        seconds.boundary = seconds.next_boundary();
        seconds
    }

    fn next_boundary(&self) -> Nanos {
        let second = self.current.begin + Nanos(SECOND_NS);
        if self.current.is_measured { second } else { second.min(self.measured_from) }
    }

    /// Ends the current second, and begins the next one.
    fn end(&mut self, at: Nanos, target: &DesignTarget) {
        let next = empty(at >= self.measured_from, at, self.current.volumes.len());
        let mut done = std::mem::replace(&mut self.current, next);
        done.end = at;
        done.hosts = target.host_uses();
        let before = std::mem::replace(&mut self.used, done.hosts.clone());
        for ((_, used), (_, before)) in done.hosts.iter_mut().zip(before) {
            *used = used.since(before);
        }
        self.done.push(done);
        self.boundary = self.next_boundary();
    }

    /// All seconds up to the end of the window.
    fn until(mut self, end: Nanos, target: &DesignTarget) -> Vec<LoadSecond> {
        while self.boundary < end {
            self.end(self.boundary, target);
        }
        if self.current.begin < end {
            self.end(end, target);
        }
        self.done
    }
}

fn empty(is_measured: bool, begin: Nanos, volumes: usize) -> LoadSecond {
    LoadSecond {
        is_measured,
        begin,
        end: begin,
        counted: Default::default(),
        volumes: vec![OfVolume::default(); volumes],
        hosts: Vec::new(),
    }
}

impl Watch<DesignTarget> for Seconds {
    fn completed(&mut self, done: Completed) {
        let kind = access_index(done.access);
        let counted = &mut self.current.counted[kind];
        counted.count += 1;
        counted.bytes += u64::from(done.bytes);
        counted.response.record(done.response.0);
        counted.service.record(done.service.0);
        let volume = &mut self.current.volumes[done.volume];
        volume.count[kind] += 1;
        volume.bytes[kind] += u64::from(done.bytes);
        volume.service_ns[kind] += done.service.0;
    }

    fn at(&mut self, now: Nanos, target: &DesignTarget) {
        // What completes at a boundary belongs to the second before it.
        while now > self.boundary {
            self.end(self.boundary, target);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockRun, Length, Load, problems};
    use underlay_core::{Nanos, RootSeed};
    use underlay_study::{HostView, Plan, PlanOptions, StudySize, check, find_study};

    fn planned(name: &str, size: Option<StudySize>) -> Plan {
        let source = find_study(name).expect("built in").source();
        let options = PlanOptions { size, ..PlanOptions::default() };
        let checked = check(&source, &options, &HostView::unlimited());
        checked.unwrap_or_else(|problems| panic!("{name}: {}", problems.to_json())).1
    }

    fn loads(plan: &Plan, position: usize, length: Length) -> Vec<Load> {
        let load = plan.workload.kind.block().expect("a block load");
        let run = BlockRun::new(plan, load, position, length, RootSeed(3));
        let mut all = Vec::new();
        run.expect("volumes").carry_out(&mut |load| {
            all.push(load);
            true
        });
        all
    }

    /// Every second is counted once: seconds of the window add up to its result, and follow each other without a gap.
    #[test]
    fn seconds_of_a_curve_add_up_to_its_windows() {
        let plan = planned("storagereview/sr3", Some(StudySize::Laptop));
        let length = Length { requests_max: 20_000, ..Length::SHORT };
        let all = loads(&plan, 0, length);
        let labels: Vec<&str> = all.iter().map(|load| load.label.as_str()).collect();
        assert_eq!(labels[..2], ["maximum", "10 %"]);
        assert_eq!(all.len(), plan.workload.kind.block().expect("a block load").loads());
        let mut end = plan.procedure.settle;
        for load in &all {
            let seconds = &load.seconds;
            assert!(seconds[0].begin >= end, "{}", load.label);
            assert!(seconds.windows(2).all(|pair| pair[0].end == pair[1].begin));
            assert!(seconds.iter().all(|second| second.end <= second.begin + Nanos::from_secs(1)));
            let measured = || seconds.iter().filter(|second| second.is_measured);
            assert_eq!(measured().next().map(|it| it.begin), Some(load.result.measured_from));
            assert_eq!(seconds.last().map(|it| it.end), Some(load.result.measured_until));
            let count: u64 =
                measured().flat_map(|it| &it.counted).map(|counted| counted.count).sum();
            assert_eq!(count, load.result.total().response.count(), "{}", load.label);
            let of_volumes = |second: &super::LoadSecond| -> u64 {
                second.volumes.iter().flat_map(|it| it.count).sum()
            };
            assert_eq!(measured().map(of_volumes).sum::<u64>(), count);
            end = load.result.end;
        }
        let kept = &all[1];
        let (offered, done) = (kept.offered.expect("by a clock"), kept.result.iops());
        assert!((done / offered - 1.0).abs() < 0.03, "{done} of {offered}");
        let busiest = |load: &Load| {
            let second = load.seconds.iter().find(|second| second.is_measured).expect("a second");
            let length = (second.end - second.begin).0 as f64;
            let shares = second.hosts.iter().map(|(_, used)| used.stack_busy.0 as f64 / length);
            shares.fold(0.0, f64::max)
        };
        let (most, least) = (busiest(&all[0]), busiest(&all[1]));
        assert!((0.5..=1.01).contains(&most) && least < most / 4.0, "{most}, {least}");
    }

    #[test]
    fn equal_seeds_give_equal_loads() {
        let plan = planned("kingston/kh1", Some(StudySize::Laptop));
        let length = Length { requests_max: 5_000, ..Length::SHORT };
        assert_eq!(loads(&plan, 1, length), loads(&plan, 1, length));
    }

    #[test]
    fn every_built_in_block_study_can_be_simulated_at_both_sizes() {
        let mut count = 0;
        for study in underlay_study::builtin_studies() {
            for size in [None, Some(StudySize::Laptop)] {
                let options = PlanOptions { size, ..PlanOptions::default() };
                let planned = check(&study.source(), &options, &HostView::unlimited());
                let Ok((_, plan)) = planned else { continue };
                if super::is_block_study(&plan) {
                    assert_eq!(problems(&plan), Vec::<String>::new(), "{}", study.name);
                    count += 1;
                }
            }
        }
        assert!(count > 50, "{count} plans");
    }
}
