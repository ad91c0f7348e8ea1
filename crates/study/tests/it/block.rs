//! Block loads in plans: what is decided, scaled and estimated without a server.

use underlay_core::{Bytes, Nanos};
use underlay_study::{
    Pacing, Plan, PlanOptions, Scale, Source, WorkloadKind, find_study, plan_json, render_plan,
};

use crate::planned::planned_with;

fn planned(source: &Source, divisor: u32) -> Plan {
    let options = PlanOptions { scale: Some(Scale { divisor }), ..PlanOptions::default() };
    planned_with(source, &options)
}

fn shipped(name: &str, divisor: u32) -> Plan {
    planned(&find_study(name).expect("built in").source(), divisor)
}

/// A study of two equal volumes on two drives, with lines of `load` and of the rest to vary.
fn study(load: &str, rest: &str) -> Source {
    let text = format!(
        "name = \"two\"\nquestion = \"Which?\"\n[volumes]\ndata = {{ capacity = \"4GiB\", count = 2 }}\n\
         [[design]]\nuse = \"kingston-nvme\"\n[[design]]\nuse = \"kingston-sata-5200eco\"\n\
         [workload.block]\n{load}\n[procedure]\nmeasure = \"10s\"\nramp-up = \"1s\"\nwarm-up = \"2s\"\n{rest}"
    );
    Source { name: "two.toml".to_string(), text }
}

/// Requests in flight on all volumes of a design at the top, and bytes of all files.
fn load_of(plan: &Plan, design: usize) -> (u64, u64) {
    let WorkloadKind::Block(block) = &plan.workload.kind else { panic!("a block load") };
    let volumes = plan.designs[design].volumes.len() as u64;
    let top = block.threads.last().copied().expect("a rung");
    (volumes * u64::from(block.in_flight(top)), volumes * block.working_set.0)
}

#[test]
fn a_plan_of_a_block_load_has_no_server() {
    let plan = planned(&study("profile = \"sql\"\nthreads = [4, 8]", ""), 1);
    let json = plan_json(&plan);
    assert!(json["engine"].is_null() && json["designs"][1]["engine"].is_null());
    assert_eq!(json["workload"]["block"]["profile"]["name"], "sql");
    assert_eq!(json["workload"]["block"]["shape"]["headline"]["unit"], "IOPS");
    let names: Vec<&str> =
        plan.designs[0].volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["data-1", "data-2"]);
    assert_eq!((&plan.procedure.users[..], plan.estimates.load), (&[4, 8][..], Nanos::ZERO));
    assert_eq!(plan.estimates.disk_templates, Bytes::ZERO);
    assert_eq!(plan.estimates.disk_volumes, Bytes::from_gib(2));
    let paths: Vec<&str> = plan.provenance.iter().map(|row| row.path.as_str()).collect();
    assert!(!paths.iter().any(|path| path.contains("engine")), "{paths:?}");
    let codes: Vec<&str> = plan.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, Vec::<&str>::new(), "nothing is doubtful");
    let text = render_plan(&plan, 100);
    assert!(text.contains("2 like data-1 4 GiB on nvme"), "{text}");
    assert!(text.contains("for 4, 8 threads per volume"), "{text}");
    assert!(!text.contains("database") && !text.contains("users"), "{text}");
}

#[test]
fn a_rate_is_over_all_volumes_and_a_curve_has_none() {
    let of = |load: &str| planned(&study(load, ""), 1).workload;
    let rate = of("profile = \"4k-random-read\"\nrate-per-second = 5000.0\narrivals = \"uniform\"");
    let WorkloadKind::Block(block) = &rate.kind else { panic!("a block load") };
    assert!(matches!(rate.pacing, Pacing::Open { rate_per_second: 5000.0, .. }));
    let per_volume: Option<f64> = block.at(128, 2).jobs[0].rate_per_second();
    assert_eq!(per_volume, Some(2500.0));
    let curve = of("profile = \"4k-random-read\"\ncurve = [50, 100]");
    let WorkloadKind::Block(block) = &curve.kind else { panic!("a block load") };
    assert!(matches!(curve.pacing, Pacing::Closed { .. }));
    assert_eq!((block.loads(), block.threads.as_slice()), (3, &[128][..]));
    let own = of("profile = \"sql-vmfleet\"");
    let WorkloadKind::Block(block) = &own.kind else { panic!("a block load") };
    let rates: Vec<_> = block.at(2, 2).jobs.iter().map(|job| job.rate_per_second()).collect();
    assert_eq!(rates, [Some(1500.0), Some(300.0)], "of the profile, per volume");
}

#[test]
fn windows_of_all_rungs_and_points_are_estimated() {
    let under_load = |load: &str| planned(&study(load, ""), 1).estimates.under_load;
    let rungs = under_load("profile = \"4k-random-read\"\nthreads = [1, 2, 4]");
    let curve = under_load("profile = \"4k-random-read\"\ncurve = [10, 50, 90]");
    // Settle and warm-up once, then 11 s per rung, or per point and maximum.
    assert_eq!(rungs, Nanos::from_secs(1 + 2 + 3 * 11));
    assert_eq!(curve, Nanos::from_secs(1 + 2 + 4 * 11));
}

#[test]
fn scaling_divides_the_whole_load_and_all_files() {
    for (name, divisors) in [
        ("kingston/kh1", [4, 16, 64]),
        ("storagereview/sr3", [4, 16, 64]),
        ("vmware/v1", [4, 16, 64]),
    ] {
        let full = load_of(&shipped(name, 1), 0);
        for divisor in divisors {
            let (in_flight, bytes) = load_of(&shipped(name, divisor), 0);
            let k = divisor as f64;
            let near = |scaled: u64, full: u64| {
                let ratio = scaled as f64 * k / full as f64;
                assert!((0.9..1.15).contains(&ratio), "{name} 1/{divisor}: {scaled} of {full}");
            };
            near(in_flight, full.0);
            near(bytes, full.1);
        }
    }
    let plan = shipped("kingston/kh1", 64);
    let volumes: Vec<usize> = plan.designs.iter().map(|design| design.volumes.len()).collect();
    assert_eq!(volumes, [2, 2]);
    let halved = planned(&study("profile = \"4k-random-read\"\nrate-per-second = 500.0", ""), 2);
    let WorkloadKind::Block(block) = &halved.workload.kind else { panic!("a block load") };
    assert_eq!((block.rate_per_second, block.threads[0]), (Some(250.0), 64));
}

/// Each volume is a machine of its own, and no host has more of them than another.
#[test]
fn volumes_of_a_block_load_are_used_from_all_hosts() {
    let plan = shipped("vmware/v1", 1);
    for design in &plan.designs {
        for host in 0..4 {
            let here = design.volume_hosts.iter().filter(|it| **it == host).count();
            assert_eq!(here, 8, "host {host} of {}", design.name);
        }
    }
}
