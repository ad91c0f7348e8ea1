//! What single rules promise: placement and its refusals, votes, limits, space, restarts.
//!
//! Everything that depends on combinations of them is in `tests/it/cluster_simulation`.

use super::{
    Checksum, Cluster, ClusterEvent, ClusterSettings, ClusterSpec, ComponentRole, ComponentState,
    DeviceId, Fault, GroupId, HostId, HostSpec, IoFailure, Method, NetworkSpec, Notice, Outcome,
    PlacementRefusal, Policy, PriorFault, Restart, ResyncReason, ReturnedContent, Stack, VolumeId,
};
use crate::disk_group::DiskGroupSpec;
use crate::store::RequestId;
use crate::{Request, builtin};
use std::collections::BTreeSet;
use underlay_core::{Bytes, Nanos, RootSeed};

const RAID5: Policy = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };
const RAID6: Policy = Policy { failures_to_tolerate: 2, ..RAID5 };

fn group(name: &str, disks: usize, capacity: Bytes) -> DiskGroupSpec {
    let mut profile = builtin::find("null").expect("built in");
    profile.capacity = capacity;
    DiskGroupSpec::new(name, profile.clone(), vec![profile; disks])
}

fn host(index: usize, disks: usize) -> HostSpec {
    HostSpec {
        name: format!("h{index}"),
        fault_domain: None,
        groups: vec![group("g", disks, Bytes::from_mib(64))],
    }
}

fn spec(hosts: usize, disks: usize) -> ClusterSpec {
    ClusterSpec {
        hosts: (0..hosts).map(|index| host(index, disks)).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(50),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings {
            stripe_unit: Bytes::from_kib(64),
            repair_delay: Nanos::from_secs(60),
            ..ClusterSettings::default()
        },
    }
}

fn cluster(hosts: usize, disks: usize) -> Cluster {
    Cluster::new(spec(hosts, disks), RootSeed(1)).expect("valid")
}

fn create(cluster: &mut Cluster, policy: Policy) -> Result<VolumeId, PlacementRefusal> {
    cluster.create_volume(Nanos::ZERO, "v", Bytes::from_mib(4), policy)
}

/// Lets time pass until nothing happens for a while.
fn run(cluster: &mut Cluster, until: Nanos) -> Vec<ClusterEvent> {
    let mut events = Vec::new();
    cluster.advance(until, &mut events);
    events
}

fn outcomes(events: &[ClusterEvent]) -> Vec<Outcome> {
    let finished = events.iter().filter_map(|event| match event {
        ClusterEvent::Finished(finished) => Some(finished.outcome),
        ClusterEvent::Data(_) | ClusterEvent::StateChanged(_) | ClusterEvent::Notice { .. } => None,
    });
    finished.collect()
}

fn write_all(cluster: &mut Cluster, volume: VolumeId, now: Nanos) {
    for unit in 0..64 {
        let request = Request::write(unit * (64 << 10), 64 << 10);
        cluster.submit(now, volume, &request, RequestId(unit));
    }
}

#[test]
fn members_and_witnesses_lie_in_fault_domains_of_their_own() {
    for (policy, hosts) in [
        (Policy::DEFAULT, 3),
        (Policy { failures_to_tolerate: 2, ..Policy::DEFAULT }, 5),
        (RAID5, 4),
        (RAID6, 6),
    ] {
        let mut cluster = cluster(hosts, 3);
        let volume =
            create(&mut cluster, Policy { stripe_width: 3, ..policy }).expect("enough hosts");
        let status = cluster.volume_status(volume).expect("exists");
        let mut domains: Vec<BTreeSet<HostId>> = Vec::new();
        for slot in 0..policy.set_kind().members() {
            let components = status.components.iter().filter(|component| component.slot == slot);
            let devices: BTreeSet<DeviceId> = components.clone().map(|c| c.device).collect();
            assert_eq!(devices.len(), 3, "three stripes on three devices");
            domains.push(components.map(|component| component.host).collect());
        }
        domains.extend(status.witnesses.iter().map(|host| BTreeSet::from([*host])));
        assert_eq!(domains.len(), hosts);
        let all: BTreeSet<HostId> = domains.iter().flatten().copied().collect();
        assert_eq!(all.len(), hosts, "no host is used twice");
    }
}

#[test]
fn hosts_of_one_rack_count_once() {
    let mut spec = spec(4, 1);
    for host in &mut spec.hosts[..2] {
        host.fault_domain = Some("rack".to_string());
    }
    let mut cluster = Cluster::new(spec, RootSeed(1)).expect("valid");
    assert!(create(&mut cluster, RAID5).is_err());
    assert!(create(&mut cluster, Policy::DEFAULT).is_ok());
}

#[test]
fn refusals_say_what_is_missing_and_what_to_do() {
    let refusal = |hosts, disks, policy| {
        create(&mut cluster(hosts, disks), policy).expect_err("impossible").to_string()
    };
    assert_eq!(
        refusal(3, 1, RAID5),
        "needs 4 fault domains for RAID-5, the cluster has 3: add a host or use mirroring"
    );
    assert_eq!(
        refusal(2, 1, Policy::DEFAULT),
        "needs 3 fault domains for RAID-1, the cluster has 2: add a host or tolerate fewer failures"
    );
    assert_eq!(
        refusal(4, 1, RAID6),
        "needs 6 fault domains for RAID-6, the cluster has 4: add 2 hosts or use mirroring"
    );
    let wide = Policy { stripe_width: 3, ..Policy::DEFAULT };
    assert!(refusal(3, 2, wide).starts_with("needs 3 capacity devices"), "{}", refusal(3, 2, wide));
    let mut cluster = cluster(3, 1);
    let thick = Policy { space_reservation_percent: 100, ..Policy::DEFAULT };
    let large = cluster.create_volume(Nanos::ZERO, "v", Bytes::from_mib(65), thick);
    let text = large.expect_err("too large").to_string();
    assert!(text.starts_with("needs 65 MiB on one capacity device"), "{text}");
}

#[test]
fn placement_goes_where_there_is_most_room() {
    let mut cluster = cluster(4, 1);
    let thick =
        Policy { failures_to_tolerate: 0, space_reservation_percent: 100, ..Policy::DEFAULT };
    let mut used = BTreeSet::new();
    for index in 0..4 {
        let name = format!("v{index}");
        let volume = cluster.create_volume(Nanos::ZERO, &name, Bytes::from_mib(16), thick);
        let status = cluster.volume_status(volume.expect("room")).expect("exists");
        used.insert(status.components[0].host);
    }
    assert_eq!(used.len(), 4, "each volume found an empty host");
    assert!(cluster.space_is_exact());
}

#[test]
fn thin_volumes_without_redundancy_lie_on_different_hosts() {
    // Empty devices are all alike: a second one of a host is no better than that of another host.
    let mut spec = spec(3, 2);
    spec.settings.component_limit = Bytes::from_mib(2);
    let mut cluster = Cluster::new(spec, RootSeed(1)).expect("valid");
    let bare = Policy { failures_to_tolerate: 0, ..Policy::DEFAULT };
    let mut hosts_of = |name: &str, capacity| {
        let volume = cluster.create_volume(Nanos::ZERO, name, capacity, bare).expect("room");
        let status = cluster.volume_status(volume).expect("exists");
        status.components.iter().map(|component| component.host).collect::<Vec<HostId>>()
    };
    let small = ["data", "wal", "backup"].map(|name| hosts_of(name, Bytes::from_mib(2)));
    assert_eq!(small.concat(), [HostId(0), HostId(1), HostId(2)]);
    let long = hosts_of("long", Bytes::from_mib(6));
    assert_eq!(long.iter().collect::<BTreeSet<_>>().len(), 3, "{long:?}");
}

#[test]
fn long_objects_are_split_at_the_component_limit() {
    let mut spec = spec(3, 1);
    spec.settings.component_limit = Bytes::from_mib(1);
    let mut cluster = Cluster::new(spec, RootSeed(1)).expect("valid");
    let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
    let status = cluster.volume_status(volume).expect("exists");
    assert_eq!(status.components.len(), 8);
    assert!(status.components.iter().all(|component| component.length <= Bytes::from_mib(1)));
}

#[test]
fn the_side_with_more_than_half_of_the_votes_serves() {
    let second = Nanos::from_secs(1);
    for (away, served) in [(1, Outcome::Ok), (2, Outcome::Ok)] {
        let mut cluster = cluster(3, 1);
        let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
        let hosts = (0..away).map(HostId).collect();
        cluster.inject(second, Fault::HostsPartitioned { hosts }).expect("possible");
        cluster.submit(second, volume, &Request::write(0, 4096), RequestId(1));
        let events = run(&mut cluster, Nanos::from_secs(20));
        assert_eq!(outcomes(&events), [served], "{away} hosts away");
    }
    let mut cluster = cluster(3, 1);
    let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
    for host in 0..2 {
        cluster.inject(second, Fault::HostLost { host: HostId(host) }).expect("possible");
    }
    cluster.submit(second, volume, &Request::read(0, 4096), RequestId(1));
    let events = run(&mut cluster, Nanos::from_secs(20));
    assert_eq!(outcomes(&events), [Outcome::Error(IoFailure::NoQuorum)]);
}

#[test]
fn a_slot_that_is_being_replaced_votes_on_one_side() {
    let mut cluster = cluster(4, 1);
    let volume = create(&mut cluster, Policy::DEFAULT).expect("placed");
    write_all(&mut cluster, volume, Nanos::ZERO);
    run(&mut cluster, Nanos::from_secs(1));
    let hosts = |cluster: &Cluster, role: ComponentRole| -> Vec<HostId> {
        let status = cluster.volume_status(volume).expect("exists");
        let found = status.components.iter().filter(|component| component.role == role);
        found.map(|component| component.host).collect()
    };
    let replicas = hosts(&cluster, ComponentRole::Current);
    let partition = |cluster: &mut Cluster, at: Nanos, hosts: &[HostId]| {
        let hosts = hosts.to_vec();
        cluster.inject(at, Fault::HostsPartitioned { hosts }).expect("they exist");
    };
    partition(&mut cluster, Nanos::from_secs(2), &replicas[..1]);
    let mut now = Nanos::from_secs(60);
    while hosts(&cluster, ComponentRole::Replacement).is_empty() {
        now += Nanos::from_micros(100);
        assert!(now < Nanos::from_secs(80), "nothing replaces the replica that is away");
        run(&mut cluster, now);
    }
    // One side has both replicas, the other one the witness and what the replacement has so far.
    partition(&mut cluster, now, &replicas);
    run(&mut cluster, now + Nanos::from_secs(10));
    let now = now + Nanos::from_secs(10);
    cluster.submit(now, volume, &Request::read(0, 4096), RequestId(100));
    let events = run(&mut cluster, now + Nanos::from_secs(10));
    assert_eq!(outcomes(&events), [Outcome::Ok]);
}

#[test]
fn a_returned_component_copies_only_what_it_missed() {
    let mut cluster = cluster(3, 1);
    let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
    write_all(&mut cluster, volume, Nanos::ZERO);
    run(&mut cluster, Nanos::from_secs(1));
    let status = cluster.volume_status(volume).expect("exists");
    let host = status.components[1].host;
    cluster.inject(Nanos::from_secs(1), Fault::HostLost { host }).expect("possible");
    run(&mut cluster, Nanos::from_secs(10));
    let missed = Request::write(3 << 20, 4096);
    cluster.submit(Nanos::from_secs(10), volume, &missed, RequestId(99));
    run(&mut cluster, Nanos::from_secs(20));
    cluster.inject(Nanos::from_secs(20), Fault::HostReturned { host }).expect("possible");
    run(&mut cluster, Nanos::from_secs(30));
    let status = cluster.volume_status(volume).expect("exists");
    assert!(status.components.iter().all(|c| c.state == ComponentState::Active), "{status:?}");
    assert_eq!(cluster.resync_status().copied_bytes.iter().sum::<u64>(), 64 << 10);
}

#[test]
fn an_absent_component_is_rebuilt_after_the_delay_and_a_degraded_one_at_once() {
    for (fault, wait) in [
        (Fault::HostLost { host: HostId(0) }, Nanos::from_secs(66)),
        (
            Fault::DeviceLost { device: DeviceId { group: GroupId(0), member: 1 } },
            Nanos::from_secs(2),
        ),
    ] {
        let mut cluster = cluster(4, 1);
        let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
        write_all(&mut cluster, volume, Nanos::ZERO);
        run(&mut cluster, Nanos::from_secs(1));
        cluster.inject(Nanos::from_secs(1), fault).expect("possible");
        run(&mut cluster, wait - Nanos::from_millis(990));
        run(&mut cluster, wait + Nanos::from_secs(8));
        let status = cluster.volume_status(volume).expect("exists");
        assert!(status.components.iter().all(|component| {
            component.state == ComponentState::Active && component.host != HostId(0)
        }));
        assert_eq!(cluster.resync_status().copied_bytes[0], 4 << 20);
        assert!(cluster.space_is_exact());
    }
}

#[test]
fn a_full_device_hands_components_to_a_host_that_is_added() {
    let mut cluster = cluster(3, 1);
    for index in 0..3 {
        let name = format!("v{index}");
        let volume = cluster
            .create_volume(Nanos::ZERO, &name, Bytes::from_mib(18), Policy::DEFAULT)
            .expect("room");
        cluster.assume_written(volume).expect("room");
    }
    let spread = |cluster: &Cluster| {
        let used: Vec<u64> = cluster.devices().map(|device| device.used.0).collect();
        (used.iter().max().expect("devices") - used.iter().min().expect("devices")) >> 20
    };
    assert_eq!(spread(&cluster), 0);
    cluster.add_host(Nanos::from_secs(1), &host(9, 2)).expect("new");
    assert_eq!(spread(&cluster), 36);
    run(&mut cluster, Nanos::from_secs(120));
    // 30 % of 64 MiB start it; two of the six components of 18 MiB can go without making another device as full.
    assert_eq!(spread(&cluster), 18);
    assert!(cluster.resync_status().copied_bytes[3] > 0);
    assert!(cluster.space_is_exact());
}

#[test]
fn a_policy_change_serves_all_the_while_and_gives_the_old_space_back() {
    let mut cluster = cluster(6, 1);
    let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
    write_all(&mut cluster, volume, Nanos::ZERO);
    run(&mut cluster, Nanos::from_secs(1));
    for (step, policy) in [RAID6, RAID5, Policy::DEFAULT].into_iter().enumerate() {
        let now = Nanos::from_secs(10 * (step as u64 + 1));
        cluster.set_policy(now, volume, policy).expect("room");
        cluster.submit(now, volume, &Request::write(0, 4096), RequestId(99));
        let events = run(&mut cluster, now + Nanos::from_secs(9));
        assert_eq!(outcomes(&events), [Outcome::Ok]);
        let status = cluster.volume_status(volume).expect("exists");
        assert_eq!(status.policy, policy);
        assert!(status.components.iter().all(|c| c.role == ComponentRole::Current));
        let used: u64 = cluster.devices().map(|device| device.used.0).sum();
        let unit = 64 << 10;
        let rows = (4u64 << 20).div_ceil(unit * u64::from(policy.set_kind().data_units()));
        // The last row may be used in part: then not all of its units are.
        let most = rows * u64::from(policy.set_kind().members()) * unit;
        assert!(used <= most && used + 4 * unit > most, "{used} of {most}");
    }
}

/// Requests enter the stack of the host that owns their volume one after the other, a mirrored write once per copy; a head start
/// is taken from the time there.
#[test]
fn requests_wait_for_each_other_in_the_stack_of_their_host() {
    let mut spec = spec(3, 1);
    spec.settings.stack = Stack { per_io: Nanos::from_millis(1), ..Stack::NONE };
    let mut cluster = Cluster::new(spec, RootSeed(1)).expect("valid");
    let [here, there] = ["a", "b"].map(|name| {
        let capacity = Bytes::from_mib(4);
        cluster.create_volume(Nanos::ZERO, name, capacity, Policy::DEFAULT).expect("there is room")
    });
    for (volume, host) in [(here, 0), (there, 1)] {
        cluster.set_owner(Nanos::ZERO, volume, HostId(host)).expect("it exists");
    }
    let begin = Nanos::from_secs(1);
    cluster.submit(begin, here, &Request::write(0, 4096), RequestId(1));
    cluster.submit(begin, here, &Request::write(0, 4096), RequestId(2));
    cluster.submit(begin, there, &Request::read(0, 4096), RequestId(3));
    cluster.submit_early(
        begin,
        there,
        &Request::read(0, 4096),
        RequestId(4),
        Nanos::from_micros(500),
    );
    let events = run(&mut cluster, Nanos::from_secs(2));
    let mut ended: Vec<(u64, u64, u64, u64)> = events
        .iter()
        .filter_map(|event| match event {
            ClusterEvent::Finished(done) => {
                let ms = |time: Nanos| time.0 / 1_000_000;
                Some((done.request.0, ms(done.at - begin), ms(done.queue), done.early.0 / 1_000))
            }
            _ => None,
        })
        .collect();
    ended.sort_unstable();
    // Each ends within a fraction of a millisecond after its time in the stack, of which 31 ms are in nobody's way.
    assert_eq!(ended, [(1, 33, 0, 0), (2, 35, 2, 0), (3, 32, 0, 0), (4, 33, 1, 500)]);
}

/// Where what was acknowledged is durable, a flush takes no time; where the cache may lose it, it takes its turn.
#[test]
fn only_what_is_volatile_is_flushed() {
    let took = |is_protected: bool| {
        let mut spec = spec(3, 1);
        spec.settings.stack = Stack { per_io: Nanos::from_micros(10), ..Stack::NONE };
        for group in spec.hosts.iter_mut().flat_map(|host| &mut host.groups) {
            group.cache = builtin::find("pm1725a-1600").expect("built in");
            group.cache.power_loss_protected = is_protected;
        }
        let mut cluster = Cluster::new(spec, RootSeed(1)).expect("valid");
        let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
        cluster.set_owner(Nanos::ZERO, volume, HostId(0)).expect("it exists");
        cluster.submit(Nanos::ZERO, volume, &Request::write(0, 4096), RequestId(1));
        run(&mut cluster, Nanos::from_secs(1));
        let begin = Nanos::from_secs(1);
        cluster.submit(begin, volume, &Request::flush(), RequestId(2));
        let events = run(&mut cluster, Nanos::from_secs(2));
        let done = events.iter().find_map(|event| match event {
            ClusterEvent::Finished(done) => Some(done.at - begin),
            _ => None,
        });
        (done.expect("it ends"), cluster.host_use(HostId(0)).expect("it exists").stack_busy)
    };
    let (durable, busy) = took(true);
    assert_eq!(
        (durable, busy),
        (Nanos::ZERO, Nanos::from_micros(20)),
        "only the write of two copies"
    );
    let (volatile, busy) = took(false);
    assert!(volatile >= Nanos::from_micros(320), "{volatile:?}");
    assert_eq!(busy, Nanos::from_micros(30));
}

/// A durable cluster receives no flushes, so a device that needs them cannot join. A cluster that is
/// flushed accepts both kinds.
#[test]
fn what_is_volatile_cannot_join_what_is_durable() {
    let mut volatile = group("more", 1, Bytes::from_mib(64));
    volatile.cache = builtin::find("pm1725a-1600").expect("built in");
    volatile.cache.power_loss_protected = false;
    let mut durable = cluster(3, 1);
    assert!(durable.is_durable());
    let refused = durable.add_group(Nanos::ZERO, HostId(0), &volatile).expect_err("refused");
    assert!(refused[0].to_string().contains("power_loss_protected"), "{refused:?}");
    let more = HostSpec { groups: vec![volatile.clone()], ..host(9, 1) };
    assert!(durable.add_host(Nanos::ZERO, &more).is_err());
    let mut spec = spec(3, 1);
    spec.hosts[0].groups[0].cache = volatile.cache.clone();
    let mut flushed = Cluster::new(spec, RootSeed(1)).expect("valid");
    assert!(!flushed.is_durable());
    flushed.add_group(Nanos::ZERO, HostId(0), &volatile).expect("it joins");
}

/// A volume that has used up its limit does not keep others of its host from the stack.
#[test]
fn what_waits_for_its_limit_is_not_in_the_stack() {
    let mut spec = spec(3, 1);
    spec.settings.stack = Stack { per_io: Nanos::from_micros(10), ..Stack::NONE };
    let mut cluster = Cluster::new(spec, RootSeed(1)).expect("valid");
    let policy = |iops_limit| Policy { iops_limit, ..Policy::DEFAULT };
    let [limited, free] = [("limited", Some(10)), ("free", None)].map(|(name, limit)| {
        let capacity = Bytes::from_mib(4);
        let volume = cluster.create_volume(Nanos::ZERO, name, capacity, policy(limit));
        let volume = volume.expect("there is room");
        cluster.set_owner(Nanos::ZERO, volume, HostId(0)).expect("it exists");
        volume
    });
    for id in 0..5 {
        cluster.submit(Nanos::ZERO, limited, &Request::read(0, 4096), RequestId(id));
    }
    cluster.submit(Nanos::ZERO, free, &Request::read(0, 4096), RequestId(9));
    let events = run(&mut cluster, Nanos::from_secs(2));
    let ended = |wanted: u64| {
        events.iter().find_map(|event| match event {
            ClusterEvent::Finished(done) if done.request.0 == wanted => Some(done.at),
            _ => None,
        })
    };
    assert!(ended(9) < Some(Nanos::from_millis(2)), "{:?}", ended(9));
    assert!(ended(4) >= Some(Nanos::from_millis(400)), "{:?}", ended(4));
}

#[test]
fn the_limit_spaces_requests_by_32_kib() {
    let mut cluster = cluster(1, 1);
    let policy = Policy { failures_to_tolerate: 0, iops_limit: Some(100), ..Policy::DEFAULT };
    let volume = create(&mut cluster, policy).expect("room");
    for request in 0..10 {
        cluster.submit(Nanos::ZERO, volume, &Request::write(0, 64 << 10), RequestId(request));
    }
    let early = run(&mut cluster, Nanos::from_millis(175));
    // Each counts twice, so that one passes per 20 ms: at 0, 20, .. 160 ms.
    assert_eq!(outcomes(&early).len(), 9);
    let counters = cluster.volume_counters(volume).expect("exists");
    assert_eq!((counters.normalised, counters.normalised_delayed), (20, 18));
}

#[test]
fn a_full_device_answers_no_space_and_loses_nothing() {
    let mut cluster = cluster(1, 1);
    let policy = Policy { failures_to_tolerate: 0, ..Policy::DEFAULT };
    let volume = cluster
        .create_volume(Nanos::ZERO, "v", Bytes::from_mib(80), policy)
        .expect("thin volumes may exceed the device");
    for unit in 0..1280 {
        let request = Request::write(unit * (64 << 10), 4096);
        cluster.submit(Nanos::ZERO, volume, &request, RequestId(unit));
    }
    let outcomes = outcomes(&run(&mut cluster, Nanos::from_secs(5)));
    let refused = outcomes.iter().filter(|o| **o == Outcome::Error(IoFailure::NoSpace)).count();
    assert_eq!((outcomes.len(), refused), (1280, 256));
    assert!(cluster.space_is_exact());
}

#[test]
fn what_was_left_to_copy_is_left_after_a_restart() {
    for restart in [Restart::Clean, Restart::Unclean, Restart::AfterHostCrash] {
        let mut cluster = cluster(3, 1);
        let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
        write_all(&mut cluster, volume, Nanos::ZERO);
        run(&mut cluster, Nanos::from_secs(1));
        let host = cluster.volume_status(volume).expect("exists").components[1].host;
        cluster.inject(Nanos::from_secs(1), Fault::HostLost { host }).expect("possible");
        run(&mut cluster, Nanos::from_secs(10));
        cluster.submit(Nanos::from_secs(10), volume, &Request::write(0, 4096), RequestId(99));
        run(&mut cluster, Nanos::from_secs(12));
        let state = cluster.state();
        let mut again =
            Cluster::restore(spec(3, 1), RootSeed(2), &state, restart).expect("its own state");
        let status = again.volume_status(volume).expect("remembered");
        let stale: u64 = status.components.iter().map(|component| component.stale.0).sum();
        match restart {
            Restart::Clean => {
                assert_eq!(stale, 64 << 10);
                assert_eq!(again.state().components, state.components);
            }
            Restart::Unclean | Restart::AfterHostCrash => {
                assert_eq!(stale, 4 << 20, "it may have missed anything")
            }
        }
        again.inject(Nanos::ZERO, Fault::HostReturned { host }).expect("possible");
        run(&mut again, Nanos::from_secs(30));
        let status = again.volume_status(volume).expect("remembered");
        assert!(status.components.iter().all(|c| c.state == ComponentState::Active), "{status:?}");
        assert_eq!(again.resync_status().copied_bytes.iter().sum::<u64>(), stale);
        assert!(again.space_is_exact());
    }
}

/// What a host that comes back missed is copied because it is stale, whatever its components were once filled for.
#[test]
fn what_a_returned_host_missed_is_counted_as_stale() {
    for restart in [None, Some(Restart::Clean), Some(Restart::Unclean)] {
        let mut cluster = cluster(3, 1);
        let volume = create(&mut cluster, Policy::DEFAULT).expect("room");
        write_all(&mut cluster, volume, Nanos::ZERO);
        run(&mut cluster, Nanos::from_secs(1));
        let host = cluster.volume_status(volume).expect("exists").components[1].host;
        cluster.inject(Nanos::from_secs(1), Fault::HostLost { host }).expect("possible");
        run(&mut cluster, Nanos::from_secs(10));
        cluster.submit(Nanos::from_secs(10), volume, &Request::write(0, 4096), RequestId(99));
        run(&mut cluster, Nanos::from_secs(12));
        if let Some(restart) = restart {
            let state = cluster.state();
            cluster =
                Cluster::restore(spec(3, 1), RootSeed(2), &state, restart).expect("its own state");
        }
        cluster.inject(Nanos::from_secs(12), Fault::HostReturned { host }).expect("possible");
        let events = run(&mut cluster, Nanos::from_secs(30));
        let began = events.iter().filter_map(|event| match event {
            ClusterEvent::Notice { notice: Notice::ResyncStarted { reason, .. }, .. } => {
                Some(*reason)
            }
            _ => None,
        });
        assert_eq!(began.collect::<Vec<_>>(), [ResyncReason::Stale], "{restart:?}");
        let copied = cluster.resync_status().copied_bytes;
        assert_eq!(copied[ResyncReason::Stale as usize], copied.iter().sum::<u64>());
        assert!(copied[ResyncReason::Stale as usize] > 0);
    }
}

#[test]
fn a_partitioned_host_is_not_reachable_until_it_returns() {
    let mut cluster = cluster(3, 1);
    let host = HostId(1);
    cluster.inject(Nanos::ZERO, Fault::HostsPartitioned { hosts: vec![host] }).expect("possible");
    run(&mut cluster, Nanos::from_secs(10));
    let seen: Vec<bool> = cluster.hosts().map(|host| cluster.is_reachable(host)).collect();
    assert_eq!(seen, [true, false, true]);
    cluster.inject(Nanos::from_secs(10), Fault::HostReturned { host }).expect("possible");
    assert!(cluster.is_reachable(host));
}

#[test]
fn a_partition_has_two_sides_and_names_nobody_twice() {
    let mut cluster = cluster(3, 1);
    let mut partition = |hosts: &[u32]| {
        let hosts = hosts.iter().map(|host| HostId(*host)).collect();
        cluster.inject(Nanos::ZERO, Fault::HostsPartitioned { hosts })
    };
    let refusal = partition(&[0, 1, 2]).expect_err("nobody is left");
    assert_eq!(
        refusal.to_string(),
        "hosts is h0, h1, h2; leave at least one host on the other side"
    );
    let refusal = partition(&[1, 1]).expect_err("twice");
    assert_eq!(refusal.to_string(), "hosts is h1, h1; name each host once");
    assert_eq!(partition(&[0, 1]), Ok(()));
}

/// A host's name says that it is a host, or the sentence does.
#[test]
fn a_host_is_called_one_once() {
    let mut named = spec(2, 1);
    named.hosts[1].name = "host-1".to_string();
    let cluster = Cluster::new(named, RootSeed(1)).expect("valid");
    assert_eq!(cluster.host_in_words(HostId(0)), "host h0");
    assert_eq!(cluster.host_in_words(HostId(1)), "host-1");
}

#[test]
fn a_state_of_another_cluster_is_refused() {
    let mut cluster = cluster(5, 1);
    create(&mut cluster, Policy { failures_to_tolerate: 2, ..Policy::DEFAULT }).expect("room");
    let state = cluster.state();
    let refusal =
        Cluster::restore(spec(2, 1), RootSeed(1), &state, Restart::Clean).expect_err("fewer hosts");
    assert!(refusal.to_string().starts_with("the stored state does not fit the cluster"));
}

#[test]
fn a_replaced_device_without_redundancy_answers_errors_instead_of_zeros() {
    let mut cluster = cluster(1, 1);
    let policy = Policy { failures_to_tolerate: 0, checksum: Checksum::Off, ..Policy::DEFAULT };
    let volume = create(&mut cluster, policy).expect("room");
    cluster.submit(Nanos::ZERO, volume, &Request::write(0, 4096), RequestId(1));
    run(&mut cluster, Nanos::from_secs(1));
    let device = DeviceId { group: GroupId(0), member: 1 };
    let content = ReturnedContent::Blank;
    cluster.inject(Nanos::from_secs(1), Fault::DeviceLost { device }).expect("possible");
    cluster
        .inject(Nanos::from_secs(2), Fault::DeviceReturned { device, content })
        .expect("possible");
    cluster.submit(Nanos::from_secs(3), volume, &Request::read(0, 4096), RequestId(2));
    // What never held anything can still be read.
    cluster.submit(Nanos::from_secs(3), volume, &Request::read(1 << 20, 4096), RequestId(3));
    let events = run(&mut cluster, Nanos::from_secs(10));
    let outcomes = outcomes(&events);
    assert!(outcomes.contains(&Outcome::Error(IoFailure::NoCurrentCopy)), "{outcomes:?}");
    assert!(outcomes.contains(&Outcome::Ok), "{outcomes:?}");
}

/// A device that was slow was never out of use, and no event says that it was.
#[test]
fn what_was_wrong_with_a_device_is_told_when_it_is_mended() {
    let mut cluster = cluster(2, 1);
    let device = DeviceId { group: GroupId(0), member: 1 };
    let faults = [
        (None, PriorFault::None),
        (Some(Fault::DeviceSlow { device, factor: 10.0 }), PriorFault::Slow),
        (Some(Fault::DeviceErroring { device, probability: 0.5 }), PriorFault::Erroring),
        (Some(Fault::DeviceStuck { device }), PriorFault::Stuck),
        (Some(Fault::DeviceLost { device }), PriorFault::OutOfUse),
    ];
    for (second, (fault, expected)) in (1..).map(Nanos::from_secs).zip(faults) {
        if let Some(fault) = fault {
            cluster.inject(second, fault).expect("possible");
        }
        let mended = Fault::DeviceReturned { device, content: ReturnedContent::Kept };
        cluster.inject(second, mended).expect("possible");
        let mut events = Vec::new();
        cluster.advance(second, &mut events);
        let told = events.iter().find_map(|event| match event {
            ClusterEvent::Notice { notice: Notice::DeviceReturned { was, .. }, .. } => Some(*was),
            _ => None,
        });
        assert_eq!(told, Some(expected));
    }
}

/// A study may ask for anything; being told why not must not take an hour.
#[test]
fn a_volume_of_more_components_than_hosts_can_hold_is_refused_at_once() {
    let mut cluster = cluster(4, 1);
    let largest = Bytes(u64::MAX / 4096 * 4096);
    let refusal = cluster.create_volume(Nanos::ZERO, "v", largest, Policy::DEFAULT);
    assert!(matches!(refusal, Err(PlacementRefusal::Components { .. })), "{refusal:?}");
}

/// Used share of each capacity device in percent, rounded down.
fn fullness(cluster: &Cluster) -> Vec<u64> {
    cluster.devices().map(|device| device.used.0 * 100 / device.capacity.0).collect()
}

/// Bytes copied to even devices out.
fn rebalanced(cluster: &Cluster) -> u64 {
    cluster.resync_status().copied_bytes[ResyncReason::Rebalance as usize]
}

#[test]
fn a_filled_cluster_rests_until_a_device_joins_and_evens_out_then() {
    let mut cluster = cluster(3, 2);
    let volume = create(&mut cluster, Policy::DEFAULT).expect("placed");
    cluster.fill(Nanos::ZERO, 81).expect("there is room");
    assert_eq!(cluster.volumes().collect::<Vec<_>>(), [volume], "other data is nobody's");
    assert!(fullness(&cluster).iter().all(|percent| (81..=82).contains(percent)));
    assert!(cluster.space_is_exact());
    run(&mut cluster, Nanos::from_secs(600));
    assert_eq!(rebalanced(&cluster), 0, "all devices are equally full");

    let group = cluster.find_group("h1/g").expect("there is one");
    let mut profile = builtin::find("null").expect("built in");
    profile.capacity = Bytes::from_mib(64);
    let now = Nanos::from_secs(600);
    let device = cluster.add_device(now, group, &profile).expect("a third device");
    assert_eq!(cluster.device_name(device), "h1/g/disk2");
    assert_eq!(cluster.find_device("h1/g/disk2"), Some(device));
    assert!(cluster.resync_status().active > 0, "rebalancing begins at once");
    // The volume is written to meanwhile.
    write_all(&mut cluster, volume, now);
    let events = run(&mut cluster, Nanos::from_secs(1_200));
    let done = outcomes(&events);
    assert!(done.len() == 64 && done.iter().all(|outcome| *outcome == Outcome::Ok), "{done:?}");
    let full = fullness(&cluster);
    assert!(full.iter().all(|percent| *percent <= 80), "{full:?}");
    let (least, most) = (full.iter().min().expect("seven"), full.iter().max().expect("seven"));
    assert!(*least > 50 && most - least <= 16, "{full:?}");
    assert!(cluster.space_is_exact());
    let status = cluster.resync_status();
    assert_eq!((status.active, status.suspended), (0, 0));
    let moved = rebalanced(&cluster);
    assert!(moved >= *least * (64 << 20) / 100 / 2, "{moved} bytes");
    run(&mut cluster, Nanos::from_secs(3_600));
    assert_eq!(rebalanced(&cluster), moved, "and rests again");
}

#[test]
fn devices_that_cannot_join_are_refused_with_their_reasons() {
    let mut cluster = cluster(1, 7);
    let group = cluster.find_group("h0/g").expect("there is one");
    let mut profile = builtin::find("null").expect("built in");
    profile.capacity = Bytes(1);
    let problems = cluster.add_device(Nanos::ZERO, group, &profile).expect_err("an eighth");
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[1].contains("up to 7 capacity devices"), "{texts:?}");
    assert!(cluster.add_device(Nanos::ZERO, GroupId(9), &profile).is_err());
    assert_eq!(cluster.find_group("h0/h"), None);
}

#[test]
fn a_fill_stops_at_what_hosts_may_hold() {
    let mut specification = spec(2, 1);
    specification.settings.components_per_host = 80;
    let mut cluster = Cluster::new(specification, RootSeed(1)).expect("valid");
    let refusal = cluster.fill(Nanos::ZERO, 95).expect_err("more components than allowed");
    assert_eq!(refusal, PlacementRefusal::Components { limit: 80 });
    assert!(fullness(&cluster).iter().all(|percent| *percent == 0), "nothing was filled");
    cluster.fill(Nanos::ZERO, 50).expect("half of them");
    cluster.fill(Nanos::ZERO, 40).expect("nothing to do");
    assert!(fullness(&cluster).iter().all(|percent| (50..=51).contains(percent)));
}
