//! Runs a test bed's experiments and compares them with the published numbers.

use super::fit::{Fit, fit_stack};
use super::testbed::{Experiment, Load, Prefill, Shape, System, Testbed};
use crate::client::ClientSpec;
use crate::curve::{Curve, CurveSpec, rate_curve};
use crate::result::SimulationResult;
use crate::run::{RunSpec, simulate};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::Stack;
use underlay_model::disk_group::Reduction;
use underlay_model::target::StoreTarget;
use underlay_model::target::{ClusterTarget, ClusterTargetError};
use underlay_model::{Store, StoreDevice, StoreVolume, builtin};
use underlay_study::{
    ClusterPlan, DatastoreKind, PublishedNumber, builtin_datastore, published_numbers,
};
use underlay_workload::block::curve::PERCENTS;
use underlay_workload::block::{BlockWorkload, Concurrency, Pace};

/// Measured per run and point, at most.
const MEASURE: Nanos = Nanos::from_secs(5);

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Requests measured per run, and per point of a curve. A step of a fit takes a quarter of them.
    pub requests: u64,
}

impl Effort {
    /// Enough for differences of one percent: 2.5 times as many change no number by more than 0.3 %.
    pub const FULL: Effort = Effort { requests: 400_000 };

    /// For a step of a fit.
    fn quarter(self) -> Effort {
        Effort { requests: self.requests.div_ceil(4) }
    }
}

/// What a row is evidence of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A parameter was chosen so that it fits.
    Fitted,
    /// A mean latency, which follows from the rate and the requests in flight.
    Implied,
    /// Nothing was chosen for it.
    Predicted,
}

impl Role {
    /// The word used in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Fitted => "fitted",
            Role::Implied => "implied",
            Role::Predicted => "predicted",
        }
    }
}

/// One published number and the simulated one.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What was published.
    pub published: PublishedNumber,
    /// What the simulation gives; none where it never shows such a thing (no point below 1 ms).
    pub simulated: Option<f64>,
    /// What the row is evidence of.
    pub role: Role,
}

impl Row {
    /// The error relative to the published number, in percent.
    pub fn error_percent(&self) -> Option<f64> {
        self.simulated.map(|simulated| (simulated / self.published.value - 1.0) * 100.0)
    }
}

/// A test bed's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was compared.
    pub testbed: Testbed,
    /// The fitted time of the stack per I/O; none where nothing was fitted or nothing was left to fit.
    pub stack_per_io: Option<Nanos>,
    /// Each published number with the simulated one.
    pub rows: Vec<Row>,
    /// What to know, as sentences.
    pub notes: Vec<String>,
    /// Simulated requests in all.
    pub requests: u64,
}

impl Comparison {
    /// The median size of the errors of predicted rows, in percent; a row without a simulated number counts as
    /// wholly wrong.
    pub fn median_error_percent(&self) -> Option<f64> {
        median(self.predicted_errors())
    }

    /// The sizes of the errors of predicted rows, in percent.
    pub fn predicted_errors(&self) -> Vec<f64> {
        let predicted = self.rows.iter().filter(|row| row.role == Role::Predicted);
        predicted.map(|row| row.error_percent().map_or(100.0, f64::abs)).collect()
    }
}

/// The median; none of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Carries out all experiments of a test bed.
///
/// # Errors
/// When a design cannot be built or its volumes cannot be placed.
pub fn compare(
    testbed: &Testbed,
    effort: Effort,
    seed: RootSeed,
) -> Result<Comparison, ClusterTargetError> {
    let published = published_numbers(testbed.publication).unwrap_or_default();
    let mut bench = Bench { effort: effort.quarter(), seed, requests: 0, at_home: None };
    let mut notes = Vec::new();
    let stack_per_io = bench.fit(testbed, &published, &mut notes)?;
    bench.effort = effort;
    let (mut unsteady, mut kept) = (Vec::new(), Vec::new());
    let mut rows = Vec::new();
    for experiment in &testbed.experiments {
        let shown = bench.show(experiment, stack_per_io.unwrap_or(Nanos::ZERO))?;
        if !shown.is_steady() {
            unsteady.push(format!("{} {}", experiment.id, experiment.variant));
        }
        if let Shown::Curve(curve) = &shown {
            let below = curve.highest_kept_below(1.0).map_or("never".to_string(), |point| {
                format!("up to {:.0} per second", point.result.iops())
            });
            kept.push(format!("{} {} {below}", experiment.id, experiment.variant));
        }
        let numbers = published
            .iter()
            .filter(|n| n.experiment == experiment.id && n.variant == experiment.variant);
        for number in numbers {
            rows.push(Row {
                simulated: shown.metric(&number.metric),
                role: role(testbed, stack_per_io, number),
                published: number.clone(),
            });
        }
    }
    if let Some((at_home, volumes)) = bench.at_home {
        notes.push(format!(
            "Machines are assigned to hosts round-robin: {at_home} of {volumes} run on a host with some of their data \
             and need no network for it."
        ));
    }
    if !kept.is_empty() {
        notes.push(format!(
            "Curves are evaluated as in the publication: service times, which count from the submission, and \
             overloaded points. By response time, and without overloaded points, below 1 ms: {}.",
            kept.join("; ")
        ));
    }
    if !unsteady.is_empty() {
        notes.push(format!(
            "Not steady over the measured window of at most {} requests or {} s (fifths of it differ by more than 20 % of \
             their mean, or their line rises or falls by more than 10 %): {}.",
            effort.requests,
            MEASURE.as_secs_f64(),
            unsteady.join("; ")
        ));
    }
    Ok(Comparison { testbed: testbed.clone(), stack_per_io, rows, notes, requests: bench.requests })
}

/// Whether any disk group of the cluster reduces its data.
pub fn is_reduced(plan: &ClusterPlan) -> bool {
    let mut groups = plan.spec.hosts.iter().flat_map(|host| &host.groups);
    groups.any(|group| group.reduction != Reduction::Off)
}

/// Of a fitted experiment the rate is fitted. Mean latencies follow everywhere from rate and requests in flight by
/// Little's law: counting them in addition to the rates would count each error twice.
fn role(testbed: &Testbed, stack_per_io: Option<Nanos>, number: &PublishedNumber) -> Role {
    if matches!(number.metric.as_str(), "latency" | "latency-at-peak" | "latency-ratio") {
        return Role::Implied;
    }
    let Some((id, metric)) = testbed.fitted.filter(|_| stack_per_io.is_some()) else {
        return Role::Predicted;
    };
    let first = testbed.experiments.iter().find(|experiment| experiment.id == id);
    let is_first = first.is_some_and(|first| number.variant == first.variant);
    if number.experiment == id && is_first && number.metric == metric {
        return Role::Fitted;
    }
    Role::Predicted
}

/// What an experiment showed.
enum Shown {
    Run(Box<SimulationResult>),
    Curve(Box<Curve>),
    /// Reads and writes of two drives.
    Drives(Box<[DriveRun; 2]>),
}

/// A single drive: the mixed or sequential runs of it.
struct DriveRun {
    runs: Vec<SimulationResult>,
}

impl Shown {
    /// Whether all runs as fast as it goes were steady.
    fn is_steady(&self) -> bool {
        let runs: Vec<&SimulationResult> = match self {
            Shown::Run(result) => vec![result],
            Shown::Curve(curve) => vec![&curve.maximum],
            Shown::Drives(drives) => drives.iter().flat_map(|drive| &drive.runs).collect(),
        };
        let is_steady = |run: &&SimulationResult| run.steadiness().is_some_and(|s| s.is_steady());
        runs.iter().all(is_steady)
    }

    fn metric(&self, metric: &str) -> Option<f64> {
        match self {
            Shown::Run(result) => of_run(result, metric),
            Shown::Curve(curve) => match metric {
                "peak-iops" => Some(curve.peak_as_published().0),
                "latency-at-peak" => Some(curve.peak_as_published().1),
                "iops-below-1ms" => curve.rate_below_as_published(1.0),
                _ => None,
            },
            Shown::Drives(drives) => of_drives(drives, metric),
        }
    }
}

fn of_run(result: &SimulationResult, metric: &str) -> Option<f64> {
    let [read, write] = result.totals();
    let ms = |mean: Option<f64>| mean.map(|ns| ns / 1e6);
    match metric {
        "iops" => Some(result.iops()),
        "throughput" => Some(result.bytes_per_second() / 1e9),
        "latency" => ms(result.mean_response_ns()),
        "latency-read" => ms(read.response.mean()),
        "latency-write" => ms(write.response.mean()),
        _ => None,
    }
}

fn of_drives(drives: &[DriveRun; 2], metric: &str) -> Option<f64> {
    let [above, below] = drives;
    let pairs = above.runs.iter().zip(&below.runs);
    match metric {
        "drives" | "throughput-ratio" => {
            pairs.map(|(a, b)| a.iops() / b.iops()).max_by(f64::total_cmp)
        }
        "latency-ratio" => pairs
            .filter_map(|(a, b)| Some(b.mean_response_ns()? / a.mean_response_ns()?))
            .max_by(f64::total_cmp),
        _ => None,
    }
}

/// Runs experiments and counts what it simulates.
struct Bench {
    effort: Effort,
    seed: RootSeed,
    requests: u64,
    /// Of the first cluster's volumes: how many are used by a machine on a host that holds something of them, and all.
    at_home: Option<(usize, usize)>,
}

impl Bench {
    fn fit(
        &mut self,
        testbed: &Testbed,
        published: &[PublishedNumber],
        notes: &mut Vec<String>,
    ) -> Result<Option<Nanos>, ClusterTargetError> {
        let Some((id, metric)) = testbed.fitted else { return Ok(None) };
        let Some(experiment) = testbed.experiments.iter().find(|e| e.id == id) else {
            return Ok(None);
        };
        let wanted = published
            .iter()
            .find(|n| n.experiment == id && n.variant == experiment.variant && n.metric == metric);
        let Some(wanted) = wanted else { return Ok(None) };
        // The rate of a curve's peak is that of its maximum run, which is all the fit needs.
        let closed = Experiment { shape: Shape::Closed, ..experiment.clone() };
        let mut failed = None;
        let fitted = fit_stack(wanted.value, |per_io| match self.show(&closed, per_io) {
            Ok(shown) => shown.metric("iops").unwrap_or(0.0),
            Err(error) => {
                failed = Some(error);
                0.0
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        match fitted {
            Fit::Found(per_io) => Ok(Some(per_io)),
            Fit::NothingLeft => {
                notes.push(format!(
                    "The model is slower than published in {id} even if the hypervisor's stack costs nothing: nothing \
                     was fitted, and all rows are predictions."
                ));
                Ok(None)
            }
        }
    }

    fn show(
        &mut self,
        experiment: &Experiment,
        per_io: Nanos,
    ) -> Result<Shown, ClusterTargetError> {
        match experiment.system {
            System::Cluster { design, write_buffer } => {
                let mut plan = cluster(design, write_buffer);
                plan.spec.settings.stack = Stack::copying(per_io, is_reduced(&plan));
                self.on_cluster(experiment, &plan)
            }
            System::Drives { numerator, denominator } => {
                let drives =
                    [numerator, denominator].map(|drive| self.on_drive(drive, &experiment.load));
                Ok(Shown::Drives(Box::new(drives)))
            }
        }
    }

    fn on_cluster(
        &mut self,
        experiment: &Experiment,
        plan: &ClusterPlan,
    ) -> Result<Shown, ClusterTargetError> {
        let load = &experiment.load;
        let workload = underlay_study::find_io_profile(load.workload)
            .expect("the catalogue was tested")
            .merged();
        let clients = clients(load, &workload);
        let volumes = vec![load.working_set; load.volumes as usize];
        let (spec, policy, seed) = (&plan.spec, plan.policy, self.seed);
        let fresh = || ClusterTarget::new(spec, policy, &volumes, seed);
        // Errors do not depend on time: building one target shows whether there will be one.
        let mut target = fresh()?;
        self.at_home.get_or_insert_with(|| (target.volumes_at_home(), volumes.len()));
        match experiment.shape {
            Shape::Closed => {
                let begin = match load.prefill {
                    Prefill::Nothing => Nanos::ZERO,
                    Prefill::Everything => self.prefill(&mut target, load),
                };
                let result = simulate(&mut target, &clients, &self.span(begin), self.seed);
                self.requests += result.completed;
                Ok(Shown::Run(Box::new(result)))
            }
            Shape::Curve => {
                let span = self.span(Nanos::ZERO);
                let spec = CurveSpec {
                    percents: PERCENTS.to_vec(),
                    warm_up: span.warm_up,
                    measure: span.measure,
                    requests_max: span.requests_max,
                    requests_max_closed: span.requests_max,
                };
                let fresh = || fresh().expect("a target of the same arguments was just built");
                let curve = rate_curve(fresh, &clients, &spec, self.seed);
                let points = curve.points.iter().map(|point| point.result.completed);
                self.requests += curve.maximum.completed + points.sum::<u64>();
                Ok(Shown::Curve(Box::new(curve)))
            }
        }
    }

    /// Writes every working set once, and returns when that was done.
    fn prefill(&mut self, target: &mut ClusterTarget, load: &Load) -> Nanos {
        let workload =
            underlay_study::find_io_profile("64k-sequential-write").expect("built in").merged();
        let once = Load { threads: 1, queue_depth: 8, ..*load };
        let bytes = load.working_set.0 * u64::from(load.volumes);
        // A little more than once, as volumes do not advance at the same pace.
        let requests_max = bytes / (64 << 10) * 11 / 10;
        let spec = RunSpec {
            begin: Nanos::ZERO,
            warm_up: Nanos::ZERO,
            measure: Nanos::from_secs(3_600),
            requests_max,
        };
        let result = simulate(target, &clients(&once, &workload), &spec, self.seed);
        self.requests += result.completed;
        result.end
    }

    fn on_drive(&mut self, profile: &str, load: &Load) -> DriveRun {
        let named = underlay_study::find_io_profile(load.workload)
            .expect("the catalogue was tested")
            .merged();
        // Sequential reads and writes are separate runs, as published.
        let is_sequential = named.streams[0].random_share == 0.0;
        let shares = if is_sequential { vec![1.0, 0.0] } else { vec![named.streams[0].read_share] };
        let runs = shares.into_iter().map(|read_share| {
            let mut workload = named.clone();
            workload.streams[0].read_share = read_share;
            let profile = builtin::find(profile).expect("the catalogue was tested");
            let device = StoreDevice { name: "drive".to_string(), profile };
            let volume = StoreVolume { device: 0, capacity: load.working_set };
            let mut target = StoreTarget::new(Store::new(&[device], &[volume], self.seed));
            let result = simulate(
                &mut target,
                &clients(load, &workload),
                &self.span(Nanos::ZERO),
                self.seed,
            );
            self.requests += result.completed;
            result
        });
        DriveRun { runs: runs.collect() }
    }

    fn span(&self, begin: Nanos) -> RunSpec {
        RunSpec {
            begin,
            warm_up: Nanos::from_millis(300),
            measure: MEASURE,
            requests_max: self.effort.requests,
        }
    }
}

fn clients<'w>(load: &Load, workload: &'w BlockWorkload) -> Vec<ClientSpec<'w>> {
    let client = |volume| ClientSpec {
        name: "load".to_string(),
        volume: volume as usize,
        workload,
        working_set: load.working_set,
        concurrency: Concurrency { threads: load.threads, queue_depth: load.queue_depth },
        pace: Pace::CLOSED,
    };
    (0..load.volumes).map(client).collect()
}

/// The cluster of a built-in design, with another write buffer if asked.
fn cluster(design: &str, write_buffer: Option<Bytes>) -> ClusterPlan {
    let Some(DatastoreKind::Cluster(mut plan)) = builtin_datastore(design) else {
        panic!("design {design} is a built-in cluster, as the catalogue's test says");
    };
    if let Some(usable) = write_buffer {
        for group in plan.spec.hosts.iter_mut().flat_map(|host| &mut host.groups) {
            group.write_buffer.usable = usable;
        }
    }
    *plan
}
