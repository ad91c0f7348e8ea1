//! A block workload on the volumes of a design.

use super::default_size;
use crate::cli::designs::datastore_of;
use crate::stop::{Stop, chain};
use clap::Args;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::Policy;
use underlay_model::{DeviceProfile, Store, StoreDevice, StoreVolume};
use underlay_simulation::{
    ClientSpec, ClusterTarget, Curve, CurveSpec, RunSpec, SimulationResult, Stack, StoreTarget,
    Target, rate_curve, simulate as drive,
};
use underlay_study::{
    ClusterPlan, DatastoreKind, builtin_io_profiles, find_io_profile, suggest_io_profile,
};
use underlay_workload::arrivals::Arrivals;
use underlay_workload::block::curve::PERCENTS;
use underlay_workload::block::{BlockWorkload, Concurrency, Pace};

/// The load on the volumes of a design.
#[derive(Debug, Args)]
pub struct Load {
    /// A built-in block workload; `underlay list io-profiles` shows them.
    #[arg(long, default_value = "4k-random-70-30", value_name = "NAME", conflicts_with = "study")]
    workload: String,
    /// Number of equal volumes.
    #[arg(long, default_value_t = 1, conflicts_with = "study")]
    volumes: u32,
    /// Bytes used of each volume.
    #[arg(long, default_value_t = default_size(), conflicts_with = "study")]
    size: Bytes,
    /// Threads per volume.
    #[arg(long, default_value_t = 1, conflicts_with = "study")]
    threads: u32,
    /// Requests in flight per thread.
    #[arg(long, default_value_t = 32, conflicts_with = "study")]
    queue_depth: u32,
    /// Requests per second over all volumes, by a clock; as fast as possible when left out.
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "study")]
    rate: Option<f64>,
    /// A rate curve: the maximum first, then 10 to 120 % of it.
    #[arg(long, conflicts_with_all = ["rate", "study"])]
    curve: bool,
    /// Virtual seconds measured at most.
    #[arg(long, default_value_t = 10.0, conflicts_with = "study")]
    seconds: f64,
    /// Virtual seconds before that are not measured.
    #[arg(long, default_value_t = 0.5, conflicts_with = "study")]
    warm_up: f64,
    /// Microseconds that a host's storage stack is occupied per I/O (clusters only).
    #[arg(long, value_name = "MICROSECONDS", conflicts_with = "study")]
    stack: Option<f64>,
}

/// One simulation.
pub struct Run<'a> {
    pub design: &'a str,
    pub load: &'a Load,
    pub requests: u64,
    pub seed: RootSeed,
}

/// What came out.
pub enum Outcome {
    Once(Box<SimulationResult>),
    Curve(Box<Curve>),
}

/// Carries it out.
pub fn simulate(run: &Run<'_>) -> Result<Outcome, Stop> {
    let load = run.load;
    let kind = datastore_of(run.design)?;
    let workload = workload(load)?;
    let clients = clients(load, &workload)?;
    let seed = run.seed;
    match kind {
        DatastoreKind::Path { .. } => Err(Stop::bad_input(format!(
            "design `{}` is real storage, which has no model",
            run.design
        ))),
        DatastoreKind::Emulated { devices, .. } => {
            check_space(&devices, load)?;
            check_delay(&devices, run)?;
            if load.stack.is_some() {
                return Err(Stop::bad_input(format!(
                    "--stack is of a cluster's hosts; design `{}` has none",
                    run.design
                ))
                .with_hint("leave it out"));
            }
            outcome(|| Ok(on_devices(&devices, load, seed)), &clients, run)
        }
        DatastoreKind::Cluster(plan) => outcome(|| on_cluster(&plan, load, seed), &clients, run),
    }
}

fn outcome<T: Target>(
    fresh: impl Fn() -> Result<T, Stop>,
    clients: &[ClientSpec<'_>],
    run: &Run<'_>,
) -> Result<Outcome, Stop> {
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
                "design `{}` cannot keep {:.0} requests per second: {} waited before anything was measured",
                run.design,
                run.load.rate.unwrap_or_default(),
                result.backlog_at_end
            ))
            .with_hint("ask for a lower --rate; without one, the highest is shown"));
        }
        return Ok(Outcome::Once(Box::new(result)));
    }
    let spec = CurveSpec {
        percents: PERCENTS.to_vec(),
        warm_up: spec.warm_up,
        measure: spec.measure,
        requests_max: spec.requests_max,
    };
    // What can go wrong does not depend on the point, and the first target went well.
    let fresh = || fresh().unwrap_or_else(|stop| panic!("the same target was just built: {stop}"));
    Ok(Outcome::Curve(Box::new(rate_curve(fresh, clients, &spec, run.seed))))
}

fn workload(load: &Load) -> Result<BlockWorkload, Stop> {
    let Some(profile) = find_io_profile(&load.workload) else {
        let stop = Stop::bad_input(format!("no block workload is called `{}`", load.workload));
        let names = builtin_io_profiles().iter().map(|profile| profile.name.as_str());
        return Err(match suggest_io_profile(&load.workload) {
            Some(similar) => stop.with_hint(format!("did you mean `{similar}`?")),
            None => stop.with_hint(format!("use one of {}", names.collect::<Vec<_>>().join(", "))),
        });
    };
    if profile.is_durable() {
        return Err(Stop::bad_input(format!(
            "`{}` flushes or writes through caches, which is not simulated",
            load.workload
        ))
        .with_hint("run it on an emulated volume: `underlay volume create`, then `underlay io`"));
    }
    Ok(profile.merged())
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
            "design `{}` has devices without delay: a closed loop has no rate there, and no virtual time passes",
            run.design
        ))
        .with_hint("give a --rate, without --curve"));
    }
    Ok(())
}

fn on_devices(devices: &[(String, DeviceProfile)], load: &Load, seed: RootSeed) -> StoreTarget {
    let volume =
        |number: u32| StoreVolume { device: number as usize % devices.len(), capacity: load.size };
    let volumes: Vec<StoreVolume> = (0..load.volumes).map(volume).collect();
    let devices: Vec<StoreDevice> = devices
        .iter()
        .map(|(name, profile)| StoreDevice { name: name.clone(), profile: profile.clone() })
        .collect();
    StoreTarget::new(Store::new(&devices, &volumes, seed))
}

fn on_cluster(plan: &ClusterPlan, load: &Load, seed: RootSeed) -> Result<ClusterTarget, Stop> {
    let per_io = load.stack.unwrap_or(0.0);
    if !(0.0..=1e6).contains(&per_io) {
        return Err(Stop::bad_input("--stack must lie in 0 to 1000000 microseconds"));
    }
    let stack = Stack { per_io: Nanos((per_io * 1e3) as u64), ..Stack::NONE };
    let capacity = Bytes(load.size.0 >> 20 << 20);
    let volumes = vec![capacity; load.volumes as usize];
    let policy: Policy = plan.policy;
    ClusterTarget::new(&plan.spec, policy, stack, &volumes, seed)
        .map_err(|error| Stop::bad_input(chain(&error)))
}

fn nanos(seconds: f64, option: &str) -> Result<Nanos, Stop> {
    if (0.0..=1e6).contains(&seconds) {
        return Ok(Nanos((seconds * 1e9) as u64));
    }
    Err(Stop::bad_input(format!("{option} must lie in 0 to 1000000 seconds")))
}
