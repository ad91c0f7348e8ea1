//! Deterministic simulation of whole clusters: topology, policies, workload and faults from one seed.
//!
//! Each run drives a [`underlay_model::cluster::Cluster`] and its data plane through random requests and faults in virtual
//! time, and checks after each step against a simple reference: per sector the set of contents that may be read. Within the
//! policy's promise no request may fail, also after the program or the power of all hosts stopped for a moment while a host was
//! away; beyond it errors are allowed and wrong data never is. At the end everything is healed: members must agree, space must add up,
//! nothing may still be copying, and every block must be readable unless a device was replaced or damaged.
//!
//! `UNDERLAY_SEED=n` runs one seed. `UNDERLAY_SIMULATION_SECONDS=s` runs further seeds for that time, from
//! `UNDERLAY_SIMULATION_START=n` upwards (`make soak`).
//! In every second run the program that drives the cluster is killed now and then, between two commands or in the midst of one.
//! `UNDERLAY_TRACE=1` prints what happens, `UNDERLAY_TRACE=data` the commands of the data plane as well.

mod reference;

mod topology;

mod world;

mod faults;

mod degraded;

mod grown;

mod restart;

mod crash_points;

mod healed;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use world::World;

/// Seeds that once failed. 1795347409900629478: the program was killed between a write of a row with parity that one member
/// missed and the state that says so, while another member was being filled. 1795350549855037700: a rotten block of a row with
/// two members missing was made out of what the two that were being filled held. 1795351564044273322: the program was killed
/// between a write that a replacement took alone and the state that says so; what was read then was gone when the replaced one was
/// back. 1795351876014156759: parity of a row in doubt after a power cut decoded a member while another host was frozen.
/// 1795358648565335260: the reference was wrong about a write that began after another one and ended at the moment at which that began.
/// 363 and 921: with a host away, a power cut made parity of RAID-5 useless that was all there was of the host's data. 538 and 932: so did a
/// kill. 1795400001981: a power cut of a single copy that was being replaced chose the replacement as the truth, which was
/// given up later.
const ONCE_FAILED: [u64; 10] = [
    363,
    538,
    921,
    932,
    1_795_400_001_981,
    1_795_347_409_900_629_478,
    1_795_350_549_855_037_700,
    1_795_351_564_044_273_322,
    1_795_351_876_014_156_759,
    1_795_358_648_565_335_260,
];

/// Runs one seed; a failure names the command that repeats it.
fn run(seed: u64) {
    let result = catch_unwind(AssertUnwindSafe(|| World::new(seed).run()));
    if result.is_err() {
        panic!(
            "seed {seed} failed; repeat with: UNDERLAY_SEED={seed} cargo test -p underlay-datastore \
             --test it seeds_that_once_failed"
        );
    }
}

/// The same with devices that join; returns how many did.
fn run_growing(seed: u64) -> u32 {
    match catch_unwind(AssertUnwindSafe(|| World::growing(seed).run())) {
        Ok(joined) => joined,
        Err(_) => panic!(
            "seed {seed} failed while growing; repeat with: UNDERLAY_SEED={seed} cargo test -p \
             underlay-datastore --test it seeds_with_devices_that_join"
        ),
    }
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs `seeds`, or the seed of the environment alone.
fn run_fixed(seeds: impl IntoIterator<Item = u64>) {
    match number_from("UNDERLAY_SEED") {
        Some(seed) => run(seed),
        None => seeds.into_iter().for_each(run),
    }
}

// In quarters, so that they run in parallel.

#[test]
fn first_quarter_of_the_fixed_seeds() {
    run_fixed(0..15);
}

#[test]
fn second_quarter_of_the_fixed_seeds() {
    run_fixed(15..30);
}

#[test]
fn third_quarter_of_the_fixed_seeds() {
    run_fixed(30..45);
}

#[test]
fn last_quarter_of_the_fixed_seeds() {
    run_fixed(45..60);
}

#[test]
fn seeds_with_devices_that_join() {
    if let Some(seed) = number_from("UNDERLAY_SEED") {
        run_growing(seed);
        return;
    }
    let joined: u32 = (2_000..2_020).map(run_growing).sum();
    assert!(joined >= 20, "only {joined} devices joined");
}

#[test]
fn seeds_that_once_failed() {
    run_fixed(ONCE_FAILED);
}

#[test]
fn further_seeds() {
    let Some(seconds) = number_from("UNDERLAY_SIMULATION_SECONDS") else { return };
    let start = number_from("UNDERLAY_SIMULATION_START").unwrap_or(1_000);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0;
    while Instant::now() < end {
        let seed = start.wrapping_add(runs);
        run(seed);
        run_growing(seed);
        runs += 1;
    }
    println!("{runs} seeds from {start}");
}
