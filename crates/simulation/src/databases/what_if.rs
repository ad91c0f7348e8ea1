//! What is changed about a design to see what it would do: the rows of a what-if table.
//!
//! A change that has no meaning for a design says why.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::{
    BackupSpec, ClientSpec, DatabaseSpec, DemandProfile, EngineSpec, HostSpec, Load, Scenario,
    VolumeUse, WorkloadSpec,
};
use underlay_study::{DatastoreKind, DesignPlan, Plan, VolumePlan};

use super::mapping::{Assumptions, scenario};
use super::storage::DesignTarget;

/// More backups than any window has time for.
const BACKUPS: u32 = 10_000;

/// What is changed about a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes and flushes of the log take half as long.
    HalfLogLatency,
    /// Twice the memory, of the server's cache and of the page cache.
    TwiceMemory,
    /// Twice the cores.
    TwiceCores,
    /// Volumes of a cluster survive two failures.
    TwoFailures,
    /// A database of the same size on the same storage, with a host of its own, is backed up all the time.
    NeighbourBackup,
}

/// Why a change has no meaning for a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMeaning(pub String);

impl Change {
    /// All of them, in the order of the table.
    pub const ALL: [Change; 5] = [
        Change::HalfLogLatency,
        Change::TwiceMemory,
        Change::TwiceCores,
        Change::TwoFailures,
        Change::NeighbourBackup,
    ];

    /// For people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Change::HalfLogLatency => "half the log latency",
            Change::TwiceMemory => "twice the memory",
            Change::TwiceCores => "twice the cores",
            Change::TwoFailures => "FTT=2",
            Change::NeighbourBackup => "a neighbour's backup",
        }
    }
}

/// A design on its storage, as it is or with a change.
///
/// # Errors
/// Designs and values that cannot be simulated.
pub(super) fn built(
    plan: &Plan,
    (design, change): (&DesignPlan, Option<Change>),
    users: u32,
    assumed: &Assumptions,
    seed: RootSeed,
) -> Result<Result<(DesignTarget, Scenario), NoMeaning>, String> {
    let scenario =
        scenario(plan, design, users, assumed).map_err(|problems| problems.join("; "))?;
    let storage = seed.child("storage", 0);
    let target = |design: &DesignPlan| DesignTarget::new(design, storage);
    let plain = |scenario| Ok(Ok((target(design).map_err(|error| chain(&error))?, scenario)));
    match change {
        None => plain(scenario),
        Some(Change::TwiceMemory) => plain(with_twice_memory(scenario)),
        Some(Change::TwiceCores) => plain(with_twice_cores(scenario)),
        Some(Change::HalfLogLatency) => {
            let log = scenario.databases.first().map_or(0, |database| database.log.volume);
            let mut target = target(design).map_err(|error| chain(&error))?;
            if target.halve_writes(log) {
                return Ok(Ok((target, scenario)));
            }
            let why = "the devices of a cluster write the log and the tables";
            Ok(Err(NoMeaning(why.to_string())))
        }
        Some(Change::TwoFailures) => match with_two_failures(design) {
            Err(why) => Ok(Err(why)),
            Ok(changed) => Ok(match target(&changed) {
                Ok(target) => Ok((target, scenario)),
                // Too few hosts for it, or too little room.
                Err(error) => Err(NoMeaning(chain(&error))),
            }),
        },
        Some(Change::NeighbourBackup) => match with_neighbour(design, scenario) {
            Err(why) => Ok(Err(why)),
            Ok((changed, scenario)) => Ok(match target(&changed) {
                Ok(target) => Ok((target, scenario)),
                // Too little room for its volumes.
                Err(error) => Err(NoMeaning(chain(&error))),
            }),
        },
    }
}

fn with_twice_memory(mut scenario: Scenario) -> Scenario {
    for database in &mut scenario.databases {
        match &mut database.engine {
            EngineSpec::Postgresql(settings) => {
                settings.shared_buffers.0 *= 2;
                settings.page_cache.0 *= 2;
            }
            EngineSpec::Mariadb(settings) => settings.buffer_pool_size.0 *= 2,
        }
    }
    scenario
}

fn with_twice_cores(mut scenario: Scenario) -> Scenario {
    scenario.hosts.iter_mut().for_each(|host| host.cores *= 2);
    scenario
}

fn with_two_failures(design: &DesignPlan) -> Result<DesignPlan, NoMeaning> {
    let mut changed = design.clone();
    let DatastoreKind::Cluster(cluster) = &mut changed.kind else {
        return Err(NoMeaning("single devices have no policy".to_string()));
    };
    let failures = &mut cluster.policy.failures_to_tolerate;
    if *failures >= 2 {
        return Err(NoMeaning("it tolerates two failures already".to_string()));
    }
    *failures = 2;
    Ok(changed)
}

/// The neighbour's volumes lie where those of the database do.
fn with_neighbour(
    design: &DesignPlan,
    mut scenario: Scenario,
) -> Result<(DesignPlan, Scenario), NoMeaning> {
    let Some(own) = scenario.databases.first().cloned() else {
        return Err(NoMeaning("there is no database".to_string()));
    };
    let WorkloadSpec::Tpcc(tpcc) = &own.workload else {
        return Err(NoMeaning("only databases of TPC-C have backups".to_string()));
    };
    let mut design = design.clone();
    let backup = design.volumes.iter().position(|volume| volume.name == "backup");
    let mut add = |like: usize, capacity: Bytes| {
        let volume = &design.volumes[like];
        let name = format!("neighbour-{}", volume.name);
        let added = VolumePlan { name, capacity, ..volume.clone() };
        design.volumes.push(added);
        let host = design.volume_hosts.get(like).copied();
        design.volume_hosts.extend(host);
        VolumeUse { volume: design.volumes.len() - 1, offset: Bytes::ZERO, length: capacity }
    };
    let data = add(own.data.volume, own.data.length);
    let log = add(own.log.volume, own.log.length);
    // A copy is as large as what it is of.
    let backups = add(backup.unwrap_or(own.data.volume), own.data.length);
    let host =
        HostSpec { name: "host of the neighbour".to_string(), ..scenario.hosts[own.host].clone() };
    let neighbour = DatabaseSpec {
        name: "neighbour".to_string(),
        host: scenario.hosts.len(),
        workload: WorkloadSpec::Backup(BackupSpec {
            tpcc: *tpcc,
            cycles: BACKUPS,
            pause: Nanos::ZERO,
            restores: false,
            bytes_per_second: None,
            volume: backups,
        }),
        demands: match own.engine {
            EngineSpec::Postgresql(_) => DemandProfile::backup_postgresql(),
            EngineSpec::Mariadb(_) => DemandProfile::backup_mariadb(),
        },
        data,
        log,
        load: Load::Job { sessions: 0 },
        client: ClientSpec { connections: None, host: None, round_trip: Nanos::ZERO },
        ..own.clone()
    };
    scenario.hosts.push(host);
    scenario.databases.push(neighbour);
    Ok((design, scenario))
}

/// An error and its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Change, NoMeaning};
    use crate::databases::tests::plan;
    use crate::databases::{Assumptions, Effort, Observation, SinglePlan};
    use underlay_core::{Bytes, Nanos, RootSeed};
    use underlay_model::cluster::Method;
    use underlay_study::{DatastoreKind, DesignPlan, Plan};

    const ASSUMED: Assumptions = Assumptions::defaults(2);

    /// A design as it is, and with a change.
    fn both(design: &str, change: Change) -> (Observation, Result<Observation, NoMeaning>) {
        let plan = plan(design);
        let mut own = plan.designs[0].clone();
        if let ("six-hosts", DatastoreKind::Cluster(cluster)) = (design, &mut own.kind) {
            // Its own policy tolerates two failures already.
            cluster.policy.method = Method::Mirror;
            cluster.policy.failures_to_tolerate = 1;
        }
        of(&plan, &own, change)
    }

    fn of(
        plan: &Plan,
        own: &DesignPlan,
        change: Change,
    ) -> (Observation, Result<Observation, NoMeaning>) {
        let single = SinglePlan::new(plan).expect("one database");
        let (effort, seed) = (Effort::PRECISE, RootSeed(7));
        let last = |rungs: Vec<Observation>| rungs.into_iter().last().expect("a rung");
        let plain = single.simulate(own, &ASSUMED, effort, seed).expect("simulated");
        let changed = single.what_if((own, change), &ASSUMED, effort, seed);
        (last(plain), changed.expect("simulated").map(last))
    }

    #[test]
    fn two_failures_cost_throughput_where_there_are_hosts_for_them() {
        let (plain, changed) = both("six-hosts", Change::TwoFailures);
        let changed = changed.expect("six hosts are enough");
        // Every write goes to one more replica, and is done when the slowest has it.
        assert!(changed.headline < plain.headline, "{} {}", changed.headline, plain.headline);
        assert!(changed.headline > plain.headline / 4.0, "{} {}", changed.headline, plain.headline);
    }

    #[test]
    fn a_neighbours_backup_slows_the_users_of_the_same_devices() {
        let (plain, changed) = both("kingston-sata-5200eco", Change::NeighbourBackup);
        let changed = changed.expect("there is room");
        assert!(changed.headline < 0.95 * plain.headline, "{changed:?} {plain:?}");
        assert!(changed.headline > 0.0);
        // What is said of a transaction is that of the database's users alone.
        let log = |it: &Observation| it.costs.log_bytes.unwrap() - it.costs.image_bytes.unwrap();
        assert!((log(&changed) / log(&plain) - 1.0).abs() < 0.05, "{changed:?} {plain:?}");
        let (plain, changed) = both("six-hosts", Change::NeighbourBackup);
        let changed = changed.expect("there is room");
        assert!(changed.headline < plain.headline, "{changed:?} {plain:?}");
    }

    #[test]
    fn volumes_that_do_not_fit_a_device_are_an_error() {
        let plan = plan("kingston-nvme");
        let mut large = plan.designs[0].clone();
        large.volumes[0].capacity = Bytes::from_gib(2_000);
        let single = SinglePlan::new(&plan).expect("one database");
        let refused = single.simulate(&large, &ASSUMED, Effort::PRECISE, RootSeed(7));
        let why = refused.expect_err("the device has 960 GB");
        assert!(why.contains("its volumes need 1.96 TiB on device"), "{why}");
    }

    #[test]
    fn a_change_without_meaning_says_why() {
        let why = |design, change| both(design, change).1.expect_err("no meaning").0;
        let hosts = why("kingston-nvme-vsan", Change::TwoFailures);
        assert!(hosts.contains("needs 5 fault domains"), "{hosts}");
        assert_eq!(why("kingston-nvme", Change::TwoFailures), "single devices have no policy");
        let log = why("six-hosts", Change::HalfLogLatency);
        assert!(log.contains("devices of a cluster"), "{log}");
    }

    #[test]
    fn a_faster_log_helps_a_design_that_waits_for_it() {
        let mut plan = plan("kingston-nvme");
        let DatastoreKind::Emulated { devices, .. } = &mut plan.designs[0].kind else {
            panic!("devices")
        };
        let buffer = devices[0].1.write_buffer.as_mut().expect("a buffer");
        buffer.latency = Nanos::from_millis(2);
        let (plain, faster) = of(&plan, &plan.designs[0], Change::HalfLogLatency);
        let faster = faster.expect("single devices have a log of their own");
        assert!(faster.headline > 1.02 * plain.headline, "{} {}", faster.headline, plain.headline);
    }
}
