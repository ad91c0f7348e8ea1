//! Answers that a cluster tells before their time: early by what was asked for, and otherwise as without.

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{
    Cluster, ClusterEvent, ClusterSettings, ClusterSpec, HostSpec, Method, NetworkSpec, Policy,
    VolumeFinished,
};
use underlay_model::{DiskGroupSpec, Request, RequestId, builtin};

const VOLUME: Bytes = Bytes::from_mib(64);

fn cluster(policy: Policy) -> (Cluster, underlay_model::cluster::VolumeId) {
    let profile = |name| builtin::find(name).expect("built in");
    let host = |index: usize| HostSpec {
        name: format!("h{index}"),
        fault_domain: None,
        groups: vec![DiskGroupSpec::new(
            &format!("g{index}"),
            profile("s3610-400"),
            vec![profile("5200eco-1920")],
        )],
    };
    let spec = ClusterSpec {
        hosts: (0..4).map(host).collect(),
        network: NetworkSpec {
            latency: Nanos::from_micros(30),
            bytes_per_second: 1_250_000_000,
            divisor: 1,
        },
        settings: ClusterSettings::default(),
    };
    let mut cluster = Cluster::new(spec, RootSeed(5)).expect("valid");
    let volume = cluster.create_volume(Nanos::ZERO, "v", VOLUME, policy).expect("room");
    cluster.assume_written(volume).expect("room");
    (cluster, volume)
}

/// The k-th request: reads and writes of some blocks, and now and then a flush or a write that must be durable.
fn request(k: u64) -> Request {
    let hash = k.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (offset, length) = ((hash >> 40) % 16_000 * 4096, 4096 * (1 + (hash >> 20) as u32 % 8));
    match hash % 10 {
        0..5 => Request::read(offset, length),
        5..8 => Request::write(offset, length),
        8 => Request { force_unit_access: true, ..Request::write(offset, length) },
        _ => Request::flush(),
    }
}

/// One request after the other, a millisecond apart; when each was told, and what was told.
fn alone(policy: Policy, head_start: Nanos) -> Vec<(Nanos, VolumeFinished)> {
    let (mut cluster, volume) = cluster(policy);
    let mut events = Vec::new();
    let mut told = Vec::new();
    for k in 0..400 {
        let begin = Nanos::from_millis(1 + 20 * k);
        cluster.submit_early(begin, volume, &request(k), RequestId(k), head_start);
        while told.len() as u64 == k {
            // Waking for answers alone must be enough.
            let now = cluster.next_answer().expect("a request is in flight").max(begin);
            cluster.advance(now, &mut events);
            told.extend(events.drain(..).filter_map(|event| match event {
                ClusterEvent::Finished(done) => Some((now, done)),
                _ => None,
            }));
        }
    }
    told
}

#[test]
fn a_lone_request_is_told_early_and_takes_what_it_takes() {
    let raid_5 = Policy { method: Method::ErasureCoding, ..Policy::DEFAULT };
    for policy in [Policy::DEFAULT, raid_5] {
        let on_time = alone(policy, Nanos::ZERO);
        assert!(on_time.iter().all(|(now, done)| done.at == *now && done.early == Nanos::ZERO));
        for head_start in [Nanos(1_000), Nanos::from_micros(25), Nanos::from_micros(90)] {
            let early = alone(policy, head_start);
            let mut used = 0;
            for ((_, expected), (now, done)) in on_time.iter().zip(&early) {
                assert_eq!(done.at, *now + done.early, "{done:?}");
                assert!(done.early <= head_start, "{done:?}");
                assert_eq!(done.outcome, expected.outcome);
                let (took, expected) = (done.at - done.arrived, expected.at - expected.arrived);
                // Devices are asked earlier, so what depends on the moment (when a buffer has drained) may differ a little.
                let difference = took.0.abs_diff(expected.0);
                assert!(difference <= head_start.0, "{took} instead of {expected}: {done:?}");
                used += u32::from(done.early == head_start);
            }
            assert!(used > 300, "{used} of {} were early by {head_start}", early.len());
        }
    }
}

/// Random reads and writes of one block.
fn mixed(k: u64) -> Request {
    let hash = k.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let offset = (hash >> 40) % 16_000 * 4096;
    if hash % 10 < 7 { Request::read(offset, 4096) } else { Request::write(offset, 4096) }
}

/// Closed loops see the same rate when their clients are as far away as answers are early.
#[test]
fn a_distant_client_gets_the_rate_of_a_near_one() {
    let rate = |distance: Nanos| {
        let (mut cluster, volume) = cluster(Policy::DEFAULT);
        let mut events = Vec::new();
        // Requests on their way: when they arrive, and their number.
        let mut coming: Vec<(Nanos, u64)> = (0..8).map(|k| (Nanos(k), k)).collect();
        let (mut sent, mut done, mut latency) = (8, 0u64, 0u64);
        while done < 20_000 {
            coming.sort_unstable();
            let arrival = coming.first().map_or(Nanos(u64::MAX), |(at, _)| *at);
            let wakeup = cluster.next_answer().unwrap_or(Nanos(u64::MAX));
            if arrival <= wakeup {
                let (at, k) = coming.remove(0);
                cluster.submit_early(at, volume, &mixed(k), RequestId(k), distance);
                continue;
            }
            cluster.advance(wakeup, &mut events);
            for event in events.drain(..) {
                if let ClusterEvent::Finished(finished) = event {
                    done += 1;
                    assert_eq!(finished.at, wakeup + finished.early, "{finished:?}");
                    latency += (finished.at - finished.arrived).0;
                    coming.push((wakeup + distance, sent));
                    sent += 1;
                }
            }
        }
        latency as f64 / done as f64
    };
    let (near, far) = (rate(Nanos::ZERO), rate(Nanos::from_micros(60)));
    assert!((far / near - 1.0).abs() < 0.03, "{near:.0} ns near, {far:.0} ns from afar");
}
