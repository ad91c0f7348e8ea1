//! Axes: which variants a study with them has, and that each is what the study says at its points.

use underlay_core::{Bytes, Nanos};
use underlay_study::{
    AxisUnit, ClientPlace, HostView, Plan, PlanOptions, Scale, Source, WorkloadKind, check, plan,
    plan_json, recorded_study, render_plan,
};

use crate::planned::planned_with;

/// A study of two designs, with axes and others of its parts.
fn study(tail: &str) -> Source {
    let text = format!(
        r#"
name = "varied"
question = "What does it change?"
[engine]
memory-limit = "256MiB"
[engine.settings]
shared_buffers = "64MB"
[volumes]
data = {{ capacity = "8GiB" }}
wal = {{ capacity = "2GiB" }}
backup = {{ capacity = "2GiB" }}
[[design]]
use = "kingston-nvme"
name = "nvme"
title = "NVMe"
[[design]]
use = "kingston-sata-5200eco"
name = "sata"
title = "SATA"
[workload.tpcc]
warehouses = 8
[procedure]
users = [4, 1]
repeats = 2
{tail}
"#
    );
    Source { name: "varied.toml".to_string(), text }
}

fn planned(tail: &str) -> Plan {
    planned_with(&study(tail), &PlanOptions::default())
}

const MEMORY: &str = r#"
[[axis]]
name = "memory"
key = "engine.memory-limit"
values = ["256MiB", "512MiB", "1GiB"]
"#;

#[test]
fn each_design_runs_at_each_point() {
    let plan = planned(MEMORY);
    let names: Vec<&str> = plan.designs.iter().map(|design| design.name.as_str()).collect();
    assert_eq!(
        names,
        ["nvme.256mib", "nvme.512mib", "nvme.1gib", "sata.256mib", "sata.512mib", "sata.1gib"]
    );
    assert_eq!(plan.designs[4].title, "SATA, 512 MiB of memory");
    let limits: Vec<Option<Bytes>> = plan.designs.iter().map(|it| it.engine.memory_limit).collect();
    let mib = |mib| Some(Bytes::from_mib(mib));
    assert_eq!(limits, [mib(256), mib(512), mib(1024), mib(256), mib(512), mib(1024)]);
    // Six variants, two repeats.
    assert_eq!(plan.schedule.len(), 12);
    assert_eq!(
        (plan.axes[0].unit, plan.axes[0].points[1].number),
        (Some(AxisUnit::Bytes), Some(Bytes::from_mib(512).0 as f64))
    );
    assert_eq!(plan.points.len(), 3);
    assert_eq!(plan.point_of(4), 1);
    assert_eq!(plan.points[1].engine.memory_limit, mib(512));
    assert_eq!(plan.points[1].designs.len(), 6, "a run finds its variant in the plan of its point");
    // The same data at all points.
    let alone = planned("");
    assert_eq!(plan.estimates.disk_templates, alone.estimates.disk_templates);
    assert_eq!(plan.estimates.load, alone.estimates.load);
    let codes: Vec<&str> = plan.findings.iter().map(|finding| finding.code).collect();
    assert!(!codes.contains(&"identical-designs"), "{codes:?}");
    assert!(
        plan.provenance.iter().any(|row| {
            row.path == "engine.memory-limit (memory 512MiB)" && row.value == "512MiB"
        })
    );
}

#[test]
fn a_single_design_is_named_by_its_points() {
    let options = PlanOptions { designs: Some(vec!["sata".to_string()]), ..PlanOptions::default() };
    let plan = planned_with(&study(MEMORY), &options);
    let titles: Vec<&str> = plan.designs.iter().map(|design| design.title.as_str()).collect();
    assert_eq!(titles, ["256 MiB of memory", "512 MiB of memory", "1 GiB of memory"]);
    let variant = plan.designs[0].variant.as_ref().expect("a variant");
    assert_eq!((variant.design.as_str(), variant.design_title.as_str()), ("sata", "SATA"));
    assert!(plan.findings.iter().all(|finding| finding.code != "single-design"));
}

#[test]
fn a_point_sets_what_the_format_has() {
    let plan = planned(
        r#"
[[axis]]
name = "tuning"
points = [
    { name = "as it is" },
    { name = "More of it", set = { engine.cpus = 2, "engine.settings.work_mem" = "8MB", "workload.tpcc.warehouses" = 16 } },
    { name = "other storage", set = { "design.nvme.datastore.emulated.durability" = "flushed", "design.volumes.data.capacity" = "9GiB" } },
]
"#,
    );
    let names: Vec<&str> = plan.designs.iter().map(|design| design.name.as_str()).collect();
    assert_eq!(names[..3], ["nvme.as-it-is", "nvme.more-of-it", "nvme.other-storage"]);
    let warehouses: Vec<u64> =
        plan.points.iter().map(|point| point.workload.kind.population().count).collect();
    assert_eq!(warehouses, [8, 16, 8]);
    assert_eq!(plan.designs[1].engine.cpus, Some(2.0));
    assert_eq!(plan.designs[4].engine.settings["work_mem"], "8MB");
    // Below `design` without a name: of every design.
    let capacity = |design: usize| plan.designs[design].volumes[0].capacity;
    assert_eq!((capacity(2), capacity(5)), (Bytes::from_gib(9), Bytes::from_gib(9)));
    assert_eq!(capacity(1), Bytes::from_gib(8));
    let json = plan_json(&plan);
    assert_eq!(json["designs"][4]["workload"]["tpcc"]["warehouses"], 16);
    assert_eq!(json["designs"][4]["variant"]["at"]["tuning"], "More of it");
    assert_eq!(json["designs"][4]["variant"]["design"], "sata");
    assert_eq!(json["axes"][0]["points"][1]["set"]["engine.cpus"], "2");
    // Two populations: two loads.
    assert!(plan.estimates.load > planned("").estimates.load);
}

#[test]
fn the_client_can_be_what_is_varied() {
    let plan = planned(
        r#"
[client]
round-trip = "1ms"
[[axis]]
key = "client.place"
values = ["local", "remote"]
[[axis]]
key = "client.connections"
values = [2, 8]
"#,
    );
    // The network is behind the remote clients; connections that are not shared are one of the points.
    let clients = plan.designs[..4].iter().map(|design| {
        let network = design.client.network.map(|network| network.round_trip);
        (design.client.place, network, design.client.connections)
    });
    let far = Some(Nanos(1_000_000));
    assert_eq!(
        clients.collect::<Vec<_>>(),
        [
            (ClientPlace::Local, None, Some(2)),
            (ClientPlace::Local, None, Some(8)),
            (ClientPlace::Remote, far, Some(2)),
            (ClientPlace::Remote, far, Some(8)),
        ]
    );
}

#[test]
fn a_block_load_can_be_varied() {
    let source = Source {
        name: "varied.toml".to_string(),
        text: r#"
name = "varied"
question = "What do more requests in flight change?"
[volumes]
data = { capacity = "8GiB" }
[[design]]
use = "kingston-nvme"
name = "nvme"
[workload.block]
profile = "4k-random-70-30"
threads = [1, 4]
working-set = "1GiB"
[[axis]]
key = "workload.block.queue-depth"
values = [1, 8]
"#
        .to_string(),
    };
    let plan = planned_with(&source, &PlanOptions::default());
    let blocks = plan.plans().into_iter().filter_map(|point| point.workload.kind.block());
    let depths: Vec<u32> =
        blocks.map(|block| block.profile.jobs[0].concurrency.queue_depth).collect();
    assert_eq!(depths, [1, 8]);
    assert_eq!(plan.designs.len(), 2);
}

#[test]
fn faults_background_and_weights_happen_in_the_variants_of_their_designs() {
    let plan = planned(&format!(
        r#"{MEMORY}
[[fault]]
kind = "device-slow"
device = "nvme"
factor = 10.0
at = "5s"
designs = ["nvme"]
[[weights]]
at = "10s"
set = {{ new_order = 100 }}
"#
    ));
    assert_eq!(plan.faults.len(), 1);
    assert_eq!(plan.faults[0].designs, [0, 1, 2]);
    assert_eq!(plan.weights.len(), 1);
    assert_eq!(plan.weights[0].designs, [0, 1, 2, 3, 4, 5]);
    assert_eq!(plan.points[2].faults, plan.faults);
}

#[test]
fn the_scale_holds_at_every_point() {
    let options = PlanOptions { scale: Some(Scale { divisor: 2 }), ..PlanOptions::default() };
    let source = study(&MEMORY.replace("256MiB\", ", "768MiB\", "));
    let plan = planned_with(&source, &options);
    assert_eq!(plan.designs[0].engine.memory_limit, Some(Bytes::from_mib(384)));
    let point = &plan.axes[0].points[0];
    assert_eq!((point.name.as_str(), point.label.as_str()), ("768MiB", "384MiB"));
    assert_eq!(point.phrase, "384 MiB of memory");
}

#[test]
fn a_plan_with_axes_is_planned_again_from_its_record() {
    let axes =
        format!("{MEMORY}\n[[axis]]\nkey = \"workload.tpcc.warehouses\"\nvalues = [8, 12]\n");
    let source = study(&axes);
    let host = HostView::unlimited();
    let (study, first) = check(&source, &PlanOptions::default(), &host).expect("a study");
    let recorded = plan_json(&first);
    let (again, options) = recorded_study(&recorded).expect("just written");
    assert_eq!(&again, study.source());
    assert_eq!(plan_json(&plan(&study, &options, &host).expect("as before")), recorded);
    let page = render_plan(&first, 100);
    assert!(page.contains("memory: engine.memory-limit = 256MiB, 512MiB, 1GiB"), "{page}");
    assert!(page.contains("storage as nvme.256mib.8"), "{page}");
}

#[test]
fn published_results_belong_to_points() {
    let plan = planned(&format!(
        r#"{MEMORY}
[[published]]
design = "sata"
at = {{ memory = "512MiB" }}
metric = "p95"
unit = "ms"
users = [1]
values = [3.5]
experiment = "D2"
source = "somewhere"
"#
    ));
    let series = &plan.published[0];
    assert_eq!(series.at, [("memory".to_string(), "512MiB".to_string())]);
    assert_eq!((series.factor, series.experiment.as_str()), (1e6, "D2"));
}

#[test]
fn ladders_may_descend() {
    let plan = planned("");
    assert_eq!(plan.procedure.users, [4, 1]);
    assert_eq!(plan.procedure.most_users(), 4);
    let options = PlanOptions { scale: Some(Scale { divisor: 2 }), ..PlanOptions::default() };
    assert_eq!(planned_with(&study(""), &options).procedure.users, [2, 1]);
}

#[test]
fn the_batch_of_vmware_has_its_points_and_two_more() {
    let study = underlay_study::find_study("vmware/v6").expect("built in");
    let plan = planned_with(&study.source(), &PlanOptions::default());
    assert_eq!(plan.designs.len(), 5);
    let ways: Vec<_> = plan
        .points
        .iter()
        .map(|point| match &point.workload.kind {
            WorkloadKind::Batch(batch) => (batch.mode.as_str(), batch.place.as_str()),
            _ => ("another", ""),
        })
        .collect();
    let in_server = ["implicit", "implicit", "explicit"].map(|mode| (mode, "server"));
    assert_eq!(ways[..3], in_server);
    assert_eq!(ways[3..], [("implicit", "client"), ("explicit", "client")]);
    assert!(plan.estimates.duration > Nanos::from_secs(60));
    assert_eq!(plan.published.len(), 4);
}

/// Whatever the sizes of axes: every combination of points is there once per design, and runs once per repeat.
#[test]
fn variants_are_all_combinations() {
    for (first, second) in (2..5).flat_map(|first| (2..5).map(move |second| (first, second))) {
        has_all_combinations(first, second);
    }
}

fn has_all_combinations(first: usize, second: usize) {
    let values = |n: usize, least: usize| {
        (0..n).map(|value| (value + least).to_string()).collect::<Vec<_>>().join(", ")
    };
    let plan = planned(&format!(
        "[[axis]]\nkey = \"engine.cpus\"\nvalues = [{}]\n[[axis]]\nkey = \"workload.tpcc.warehouses\"\nvalues = [{}]\n",
        values(first, 1),
        values(second, 4),
    ));
    let combinations = first * second;
    assert_eq!(plan.points.len(), combinations);
    assert_eq!(plan.designs.len(), 2 * combinations);
    assert_eq!(plan.schedule.len(), 4 * combinations);
    let mut names: Vec<&String> = plan.designs.iter().map(|design| &design.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), plan.designs.len());
    for design in &plan.designs {
        let variant = design.variant.as_ref().expect("a variant");
        let point = &plan.points[variant.point];
        assert_eq!(design.engine.cpus, Some((variant.coordinates[0] + 1) as f64));
        let warehouses = point.workload.kind.population().count;
        assert!(warehouses == (variant.coordinates[1] + 4) as u64);
    }
}
