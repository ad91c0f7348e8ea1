//! A block workload on the volumes of a design.

use crate::cli::designs::datastore_of;
use crate::stop::{Stop, chain};
use clap::Args;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{Policy, Stack};
use underlay_model::profile::Medium;
use underlay_model::{DeviceProfile, HostLink, Store, StoreDevice, StoreVolume};
use underlay_simulation::experiments::is_reduced;
use underlay_simulation::{
    ClientSpec, ClusterTarget, Curve, CurveSpec, RunSpec, SimulationResult, StoreTarget, Target,
    WriteBuffers, rate_curve, simulate as drive,
};
use underlay_study::{
    ClusterPlan, DatastoreKind, builtin_io_profiles, find_io_profile, suggest_io_profile,
};
use underlay_workload::arrivals::Arrivals;
use underlay_workload::block::{BlockWorkload, Concurrency, IoProfile, Pace};

/// Requests of a run: a second or so of a fast cluster.
pub(super) const REQUESTS: u64 = 1_000_000;
/// Requests per point of a curve, of which there are thirteen.
pub(super) const REQUESTS_PER_POINT: u64 = 200_000;

/// The load on the volumes of a design.
#[derive(Debug, Args)]
pub struct Load {
    /// A built-in block workload; `underlay list io-profiles` shows them.
    #[arg(long, default_value = "4k-random-70-30", value_name = "NAME", conflicts_with = "study")]
    workload: String,
    /// Number of equal volumes.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, conflicts_with = "study")]
    volumes: u32,
    /// Bytes used of each volume.
    #[arg(long, default_value_t = default_size(), conflicts_with = "study")]
    size: Bytes,
    /// Threads per volume.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true, conflicts_with = "study")]
    threads: u32,
    /// Requests in flight per thread.
    #[arg(long, default_value_t = 32, allow_negative_numbers = true, conflicts_with = "study")]
    queue_depth: u32,
    /// Open loop: requests per second over all volumes. Without it: a closed loop.
    #[arg(
        long,
        value_name = "PER_SECOND",
        allow_negative_numbers = true,
        conflicts_with = "study"
    )]
    rate: Option<f64>,
    /// Measure a rate curve: the maximum, then 10 to 120 % of it.
    #[arg(long, conflicts_with_all = ["rate", "study"])]
    curve: bool,
    /// Limit of the measured virtual seconds; `--requests` usually ends a run earlier.
    #[arg(long, default_value_t = 10.0, allow_negative_numbers = true, conflicts_with = "study")]
    seconds: f64,
    /// Virtual seconds of warm-up, not measured.
    #[arg(long, default_value_t = 0.5, allow_negative_numbers = true, conflicts_with = "study")]
    warm_up: f64,
    /// Cost of the storage stack on a cluster's hosts, instead of the design's: microseconds per I/O, plus 0.19 ns per
    /// copied byte; 0 = none.
    #[arg(long, value_name = "MICROSECONDS", allow_hyphen_values = true)]
    stack: Option<String>,
    /// Size of a cluster's write buffer per disk group, instead of the design's. A small one (256MiB in the studies)
    /// fills at once and shows the steady state of destaging.
    #[arg(long, value_name = "SIZE")]
    write_buffer: Option<Bytes>,
}

/// A size as people write it on the command line.
fn default_size() -> Bytes {
    Bytes::from_gib(10)
}

impl Load {
    /// Whether points of a curve are asked for.
    pub fn is_curve(&self) -> bool {
        self.curve
    }

    /// An option that changes the storage, if one is given.
    pub fn storage_option(&self) -> Option<&'static str> {
        let given =
            [("--stack", self.stack.is_some()), ("--write-buffer", self.write_buffer.is_some())];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// The load of a study on one of its designs, with this command's other options.
    pub fn of_study(&self, load: StudyLoad<'_>) -> Load {
        Load {
            workload: load.workload.to_string(),
            volumes: load.volumes,
            size: load.size,
            threads: load.concurrency.threads,
            queue_depth: load.concurrency.queue_depth,
            rate: load.rate,
            curve: load.is_curve,
            seconds: self.seconds,
            warm_up: self.warm_up,
            stack: self.stack.clone(),
            write_buffer: self.write_buffer,
        }
    }
}

/// What a study asks of each of some equal files.
pub struct StudyLoad<'a> {
    pub workload: &'a str,
    pub volumes: u32,
    pub size: Bytes,
    pub concurrency: Concurrency,
    /// Requests per second over all volumes.
    pub rate: Option<f64>,
    pub is_curve: bool,
}

/// One simulation.
pub struct Run<'a> {
    pub design: &'a str,
    pub load: &'a Load,
    pub requests: u64,
    pub seed: RootSeed,
    /// Points of a curve, percent of the maximum.
    pub percents: &'a [u32],
    /// The device of each volume by number; round-robin, when empty.
    pub devices: &'a [usize],
}

/// What came out.
pub enum Outcome {
    Once(Box<SimulationResult>),
    Curve(Box<Curve>),
}

/// Everything that is needed to repeat a simulation, and what it left out.
pub struct Setup {
    pub design: String,
    pub workload: String,
    /// Jobs of the workload that were merged into one, or whose own rates were not used; none when there is nothing to say.
    pub merged_jobs: Option<usize>,
    pub writes: bool,
    pub volumes: u32,
    pub size: Bytes,
    pub threads: u32,
    pub queue_depth: u32,
    pub rate: Option<f64>,
    pub is_curve: bool,
    pub seconds: f64,
    pub warm_up: f64,
    pub requests: u64,
    pub seed: u64,
    pub storage: Storage,
}

/// What the design is made of, as far as a reader must know it.
pub enum Storage {
    /// Devices alone.
    Devices {
        /// Whether seeks of a rotating disk count.
        has_disks: bool,
    },
    /// A cluster.
    Cluster(ClusterSetup),
}

/// What a cluster was simulated with.
pub struct ClusterSetup {
    pub stack: Stack,
    pub write_buffer: Option<Bytes>,
    pub is_reduced: bool,
    /// Volumes that are used by a machine on a host with data of theirs.
    pub volumes_at_home: usize,
    /// At the end; none for a curve.
    pub buffers: Option<WriteBuffers>,
}

/// Carries it out.
pub fn simulate(run: &Run<'_>) -> Result<(Setup, Outcome), Stop> {
    let kind = datastore_of(run.design)?;
    let named = named_workload(run.load)?;
    simulate_on(kind, named, run)
}

/// The same on storage and with a workload that are there already.
pub fn simulate_on(
    kind: DatastoreKind,
    (workload, merged_jobs): (BlockWorkload, Option<usize>),
    run: &Run<'_>,
) -> Result<(Setup, Outcome), Stop> {
    let load = run.load;
    let clients = clients(load, &workload)?;
    let seed = run.seed;
    let (storage, outcome) = match kind {
        DatastoreKind::Path { .. } => {
            return Err(Stop::bad_input(format!(
                "design `{}` is real storage, which cannot be simulated",
                run.design
            )));
        }
        DatastoreKind::Emulated { devices, link, .. } => {
            if run.devices.is_empty() {
                check_space(&devices, load)?;
            }
            check_delay(&devices, run)?;
            if load.stack.is_some() {
                return Err(Stop::bad_input(format!(
                    "--stack applies to clusters only; design `{}` is not a cluster",
                    run.design
                ))
                .with_hint("leave it out"));
            }
            if load.write_buffer.is_some() {
                return Err(Stop::bad_input(format!(
                    "--write-buffer applies to clusters only; design `{}` is not a cluster",
                    run.design
                ))
                .with_hint("leave it out"));
            }
            let has_disks =
                devices.iter().any(|(_, profile)| matches!(profile.medium, Medium::Disk(_)));
            let (outcome, _) = outcome(|| Ok(on_devices(&devices, link, run)), &clients, run)?;
            (Storage::Devices { has_disks }, outcome)
        }
        DatastoreKind::Cluster(mut plan) => {
            if let Some(usable) = load.write_buffer {
                for group in plan.spec.hosts.iter_mut().flat_map(|host| &mut host.groups) {
                    group.write_buffer.usable = usable;
                }
            }
            let stack = stack(run, &plan)?;
            plan.spec.settings.stack = stack;
            let fresh = || on_cluster(&plan, load, seed);
            let (outcome, mut target) = outcome(fresh, &clients, run)?;
            let cluster = ClusterSetup {
                stack,
                write_buffer: load.write_buffer,
                is_reduced: is_reduced(&plan),
                volumes_at_home: target.volumes_at_home(),
                buffers: (!load.curve).then(|| target.write_buffers()),
            };
            (Storage::Cluster(cluster), outcome)
        }
    };
    let setup = Setup {
        design: run.design.to_string(),
        workload: load.workload.clone(),
        merged_jobs,
        writes: workload.streams.iter().any(|stream| stream.read_share < 1.0),
        volumes: load.volumes,
        size: load.size,
        threads: load.threads,
        queue_depth: load.queue_depth,
        rate: load.rate,
        is_curve: load.curve,
        seconds: load.seconds,
        warm_up: load.warm_up,
        requests: run.requests,
        seed: run.seed.0,
        storage,
    };
    Ok((setup, outcome))
}

/// What the hosts' software costs, as asked.
fn stack(run: &Run<'_>, plan: &ClusterPlan) -> Result<Stack, Stop> {
    let Some(asked) = &run.load.stack else { return Ok(plan.spec.settings.stack) };
    match asked.parse::<f64>() {
        Ok(0.0) => Ok(Stack::NONE),
        Ok(micros) if (0.0..=1e4).contains(&micros) => {
            Ok(Stack::copying(Nanos((micros * 1e3) as u64), is_reduced(plan)))
        }
        _ => Err(Stop::bad_input(format!("--stack is `{asked}`; use 0 to 10000 microseconds"))),
    }
}

fn outcome<T: Target>(
    fresh: impl Fn() -> Result<T, Stop>,
    clients: &[ClientSpec<'_>],
    run: &Run<'_>,
) -> Result<(Outcome, T), Stop> {
    let spec = RunSpec {
        begin: Nanos::ZERO,
        warm_up: nanos(run.load.warm_up, "--warm-up")?,
        measure: nanos(run.load.seconds, "--seconds")?,
        requests_max: run.requests,
    };
    if spec.measure == Nanos::ZERO {
        return Err(Stop::bad_input("--seconds must lie above 0: nothing would be measured"));
    }
    let mut target = fresh()?;
    if !run.load.curve {
        let result = drive(&mut target, clients, &spec, run.seed);
        if result.swamped && result.total().response.is_empty() {
            return Err(Stop::load_not_delivered(format!(
                "design `{}` cannot sustain {:.0} requests per second: {} were waiting before the measurement began",
                run.design,
                run.load.rate.unwrap_or_default(),
                result.backlog_at_end
            ))
            .with_hint("use a lower --rate, or omit it to measure the maximum"));
        }
        return Ok((Outcome::Once(Box::new(result)), target));
    }
    let spec = CurveSpec {
        percents: run.percents.to_vec(),
        warm_up: spec.warm_up,
        measure: spec.measure,
        requests_max: spec.requests_max,
        requests_max_closed: spec.requests_max,
    };
    // What can go wrong does not depend on the point, and the first target went well.
    let fresh = || fresh().unwrap_or_else(|stop| panic!("the same target was just built: {stop}"));
    Ok((Outcome::Curve(Box::new(rate_curve(fresh, clients, &spec, run.seed))), target))
}

/// The workload, and how many jobs of it were merged, if that or their rates changes what it is.
fn named_workload(load: &Load) -> Result<(BlockWorkload, Option<usize>), Stop> {
    let Some(profile) = find_io_profile(&load.workload) else {
        let stop = Stop::bad_input(format!("no block workload is called `{}`", load.workload));
        let names = builtin_io_profiles().iter().map(|profile| profile.name.as_str());
        return Err(match suggest_io_profile(&load.workload) {
            Some(similar) => stop.with_hint(format!("did you mean `{similar}`?")),
            None => stop.with_hint(format!("use one of {}", names.collect::<Vec<_>>().join(", "))),
        });
    };
    merged(profile)
}

/// A profile as one mix, and how many of its jobs were merged, if that or their rates changes what it is.
pub fn merged(profile: &IoProfile) -> Result<(BlockWorkload, Option<usize>), Stop> {
    if profile.is_durable() {
        return Err(Stop::bad_input(format!(
            "`{}` uses flushes or write-through, which are not simulated",
            profile.name
        ))
        .with_hint("run it on an emulated volume: `underlay volume create`, then `underlay io`"));
    }
    let has_rates = profile.jobs.iter().any(|job| job.rate_per_second().is_some());
    let merged = (profile.jobs.len() > 1 || has_rates).then_some(profile.jobs.len());
    Ok((profile.merged(), merged))
}

fn clients<'w>(load: &Load, workload: &'w BlockWorkload) -> Result<Vec<ClientSpec<'w>>, Stop> {
    for (option, value) in [
        ("--volumes", load.volumes),
        ("--threads", load.threads),
        ("--queue-depth", load.queue_depth),
    ] {
        if !(1..=4096).contains(&value) {
            return Err(Stop::bad_input(format!("{option} must lie in 1 to 4096")));
        }
    }
    let pace = match load.rate {
        None => Pace::CLOSED,
        Some(rate) if rate > 0.0 && rate <= 1e9 => Pace::Open {
            rate_per_second: rate / f64::from(load.volumes),
            arrivals: Arrivals::Poisson,
        },
        Some(_) => return Err(Stop::bad_input("--rate must lie above 0, up to 1e9")),
    };
    let concurrency = Concurrency { threads: load.threads, queue_depth: load.queue_depth };
    // Requests reach the end of a volume, so its size is a multiple of theirs.
    let working_set = Bytes(load.size.0 >> 20 << 20);
    if let Some(problem) = workload.problems(working_set, concurrency).first() {
        return Err(Stop::bad_input(problem.to_string()).with_hint("choose a larger --size"));
    }
    let client = |volume| ClientSpec {
        name: workload.name.clone(),
        volume: volume as usize,
        workload,
        working_set,
        concurrency,
        pace,
    };
    Ok((0..load.volumes).map(client).collect())
}

/// Volumes go round the devices.
fn check_space(devices: &[(String, DeviceProfile)], load: &Load) -> Result<(), Stop> {
    for (index, (name, profile)) in devices.iter().enumerate() {
        let volumes = (u64::from(load.volumes) + devices.len() as u64 - 1 - index as u64)
            / devices.len() as u64;
        let needed = volumes.saturating_mul(load.size.0.next_multiple_of(1 << 20));
        if needed > profile.capacity.0 {
            return Err(Stop::bad_input(format!(
                "{volumes} volumes of {} do not fit device `{name}` of {}",
                load.size, profile.capacity
            ))
            .with_hint("choose a smaller --size or fewer --volumes"));
        }
    }
    Ok(())
}

/// A closed loop starts a request when one has completed: on a device without delay at the same moment, for ever.
fn check_delay(devices: &[(String, DeviceProfile)], run: &Run<'_>) -> Result<(), Stop> {
    let mut used = devices.iter().take(run.load.volumes as usize);
    if run.load.rate.is_none() && used.any(|(_, profile)| profile.is_instant()) {
        return Err(Stop::bad_input(format!(
            "design `{}` has devices without delay: in a closed loop no virtual time would pass",
            run.design
        ))
        .with_hint("use --rate, without --curve"));
    }
    Ok(())
}

fn on_devices(
    devices: &[(String, DeviceProfile)],
    link: Option<HostLink>,
    run: &Run<'_>,
) -> StoreTarget {
    let (load, seed) = (run.load, run.seed);
    let device = |number: usize| match run.devices.get(number) {
        Some(device) => *device,
        None => number % devices.len(),
    };
    let volume = |number: u32| StoreVolume { device: device(number as usize), capacity: load.size };
    let volumes: Vec<StoreVolume> = (0..load.volumes).map(volume).collect();
    let devices: Vec<StoreDevice> = devices
        .iter()
        .map(|(name, profile)| StoreDevice { name: name.clone(), profile: profile.clone() })
        .collect();
    let mut store = Store::new(&devices, &volumes, seed);
    store.set_link(link);
    StoreTarget::new(store)
}

fn on_cluster(plan: &ClusterPlan, load: &Load, seed: RootSeed) -> Result<ClusterTarget, Stop> {
    let capacity = Bytes(load.size.0 >> 20 << 20);
    let volumes = vec![capacity; load.volumes as usize];
    let policy: Policy = plan.policy;
    let mut target = ClusterTarget::new(&plan.spec, policy, &volumes, seed)
        .map_err(|error| Stop::bad_input(chain(&error)))?;
    if let Some(percent) = plan.fill_percent {
        target.fill(percent).map_err(|error| Stop::bad_input(chain(&error)))?;
    }
    Ok(target)
}

fn nanos(seconds: f64, option: &str) -> Result<Nanos, Stop> {
    if (0.0..=1e6).contains(&seconds) {
        return Ok(Nanos((seconds * 1e9) as u64));
    }
    Err(Stop::bad_input(format!("{option} must lie in 0 to 1000000 seconds")))
}
