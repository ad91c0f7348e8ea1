//! Several databases in plans: what each of them is, what they are together, and that a study without them is as it was.

use underlay_core::{Bytes, Nanos};
use underlay_study::{
    Colour, DesignPlan, EngineKind, HostView, Plan, PlanOptions, Scale, Source, WorkloadKind,
    builtin_studies, check, plan, plan_json, recorded_study, render_plan,
};

use crate::planned::planned_with;

/// A study of two designs with these databases, and with others of its parts.
fn study(databases: &str, tail: &str) -> Source {
    let text = format!(
        r#"
name = "several"
question = "Who disturbs whom?"
[engine]
memory-limit = "256MiB"
cpus = 2
[engine.settings]
shared_buffers = "64MB"
[volumes]
data = {{ capacity = "8GiB" }}
wal = {{ capacity = "2GiB" }}
backup = {{ capacity = "2GiB" }}
{databases}
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
mode = "statements"
[procedure]
users = [1, 4]
repeats = 2
{tail}
"#
    );
    Source { name: "several.toml".to_string(), text }
}

fn planned(databases: &str, tail: &str) -> Plan {
    planned_with(&study(databases, tail), &PlanOptions::default())
}

const THREE: &str = r#"
[[database]]
name = "oltp"
count = 2
[[database]]
name = "large"
engine = { memory-limit = "1GiB", settings = { work_mem = "8MB" } }
volumes.data.capacity = "16GiB"
workload.tpcc.warehouses = 32
"#;

fn warehouses(plan: &Plan) -> Vec<u32> {
    let each = plan.databases.iter().map(|database| match &database.workload.kind {
        WorkloadKind::Tpcc(tpcc) => tpcc.warehouses,
        other => panic!("{other:?}"),
    });
    each.collect()
}

#[test]
fn each_database_is_the_study_with_what_it_says_itself() {
    let plan = planned(THREE, "");
    let names: Vec<&str> = plan.databases.iter().map(|database| &*database.name).collect();
    assert_eq!(names, ["oltp-1", "oltp-2", "large"]);
    assert_eq!(warehouses(&plan), [8, 8, 32]);
    let large = &plan.databases[2].parts[1];
    assert_eq!((&*large.design, large.engine.cpus), ("sata", Some(2.0)));
    assert_eq!(large.engine.memory_limit, Some(Bytes::from_gib(1)));
    let settings: Vec<&str> = large.engine.settings.keys().map(String::as_str).collect();
    assert!(settings.contains(&"work_mem") && settings.contains(&"shared_buffers"), "{settings:?}");
    let volumes: Vec<&str> = plan.designs[0].volumes.iter().map(|it| &*it.name).collect();
    assert_eq!(volumes.len(), 9, "{volumes:?}");
    assert_eq!(volumes[..4], ["oltp-1-data", "oltp-1-wal", "oltp-1-backup", "oltp-2-data"]);
    let data = plan.designs[0].volumes.iter().find(|volume| volume.name == "large-data");
    assert_eq!(data.map(|volume| volume.capacity), Some(Bytes::from_gib(16)));
    assert_eq!(plan.databases[2].volume("data"), "large-data");
    // Together.
    assert_eq!(plan.size.memory_limit, Some(Bytes(2 * (256 << 20) + (1 << 30))));
    assert_eq!((plan.size.cpus, plan.size.population.count), (Some(6.0), 48));
    assert_eq!(plan.size.users, [1, 4], "users are those of each database");
}

#[test]
fn a_study_without_databases_has_one_without_a_name() {
    for builtin in builtin_studies().iter().filter(|study| !study.text.contains("[[database]]")) {
        let plan = planned_with(&builtin.source(), &PlanOptions::default());
        for (position, point) in plan.plans().into_iter().enumerate() {
            let [only] = &point.databases[..] else {
                panic!("{}: {}", plan.name, point.databases.len())
            };
            assert_eq!((&*only.name, only.volume("wal")), ("", "wal".to_string()));
            assert_eq!(only.workload, point.workload);
            // Of a study with axes each plan has the designs of all points.
            let of_point = |design: &&DesignPlan| {
                design.variant.as_ref().is_none_or(|variant| variant.point == position)
            };
            for design in point.designs.iter().filter(of_point) {
                let part = only.part(design).expect("what it is in the design");
                assert_eq!((&part.engine, &part.client), (&design.engine, &design.client));
                assert_eq!(part.volumes, design.volumes);
            }
        }
        assert!(!plan.has_named_databases() && plan_json(&plan).get("databases").is_none());
    }
}

#[test]
fn equal_databases_share_what_was_loaded() {
    let one = planned("", "").estimates;
    let two = planned("[[database]]\nname = \"oltp\"\ncount = 2\n", "").estimates;
    assert_eq!(two.disk_templates, one.disk_templates, "one template for both");
    assert_eq!((two.load, two.database), (one.load, Bytes(2 * one.database.0)));
    assert_eq!(two.disk_volumes, Bytes(2 * one.disk_volumes.0));
    assert!(two.memory > one.memory && two.run > one.run);
    let three = planned(THREE, "").estimates;
    assert!(three.disk_templates > two.disk_templates && three.load > two.load);
}

#[test]
fn an_engine_of_another_kind_inherits_no_settings() {
    let mixed = r#"
[[database]]
name = "a"
[[database]]
name = "b"
[database.engine]
kind = "mariadb"
settings = { innodb_buffer_pool_size = "64M" }
"#;
    let plan = planned(mixed, "");
    let engines: Vec<EngineKind> = plan.databases.iter().map(|it| it.engine.kind).collect();
    assert_eq!(engines, [EngineKind::Postgresql, EngineKind::Mariadb]);
    let settings: Vec<&String> = plan.databases[1].engine.settings.keys().collect();
    assert_eq!(settings, ["innodb_buffer_pool_size"]);
    assert_eq!(plan.databases[1].engine.memory_limit, Some(Bytes::from_mib(256)));
}

/// The databases themselves know no faults: only the whole study says whether designs are equal.
#[test]
fn designs_that_differ_in_a_fault_are_not_called_equal() {
    let again = "[[design]]\nuse = \"kingston-nvme\"\nname = \"again\"\n";
    let fault = "[[fault]]\nkind = \"device-slow\"\ndevice = \"nvme\"\nfactor = 10.0\nat = \"5s\"\n\
                 users = 4\ndesigns = [\"again\"]\n";
    let identical = |tail: &str| {
        let plan = planned(THREE, tail);
        plan.findings.iter().filter(|finding| finding.code == "identical-designs").count()
    };
    assert_eq!(identical(again), 1, "said once, not for each database");
    assert_eq!(identical(&format!("{again}{fault}")), 0);
}

#[test]
fn faults_and_background_work_name_the_volume_of_a_database() {
    let tail = r#"
[[background]]
name = "backup"
phase = "measure"
users = 4
at = "1s"
copy = { from = "oltp-2-data", to = "oltp-2-backup", space = "1GiB" }
"#;
    let plan = planned(THREE, tail);
    assert_eq!(plan.background.len(), 1);
    assert!(plan.background[0].work.described().starts_with("oltp-2-data is copied"));
}

#[test]
fn the_page_and_the_record_name_every_database_and_who_decided() {
    let source = study(THREE, "");
    let plan_of = |options: &PlanOptions| planned_with(&source, options);
    let whole = plan_of(&PlanOptions::default());
    let text = render_plan(&whole, 100);
    assert!(text.contains("Databases\n"), "{text}");
    assert!(text.contains("oltp-1 to oltp-2: about ") && text.contains("large: about "), "{text}");
    assert!(text.contains("3 databases of about "), "{text}");
    let row = |path: &str| {
        let row = whole.provenance.iter().find(|row| row.path == path);
        row.unwrap_or_else(|| panic!("no {path}: {:#?}", whole.provenance)).value.clone()
    };
    assert_eq!(row("engine.cpus"), "2");
    assert_eq!(row("database.oltp.engine.memory-limit"), "256MiB");
    assert_eq!(row("database.large.engine.memory-limit"), "1GiB");
    assert_eq!(row("database.large.workload.tpcc.warehouses"), "32");

    let json = plan_json(&whole);
    assert_eq!(json["databases"][2]["name"], "large");
    assert_eq!(json["databases"][2]["designs"][1]["engine"]["memory_limit_bytes"], 1u64 << 30);
    assert_eq!(json["databases"][1]["designs"][0]["volumes"][0]["name"], "oltp-2-data");
    let scaled = PlanOptions { scale: Some(Scale { divisor: 4 }), ..PlanOptions::default() };
    let small = plan_of(&scaled);
    assert_eq!(warehouses(&small), [2, 2, 8]);
    let recorded = plan_json(&small);
    let (again, options) = recorded_study(&recorded).expect("just written");
    assert_eq!((&again, &options), (&source, &scaled));
    let (study, _) = check(&again, &options, &HostView::unlimited()).expect("planned before");
    let again = plan(&study, &options, &HostView::unlimited()).expect("planned before");
    assert_eq!(plan_json(&again), recorded);
}

#[test]
fn an_axis_varies_databases() {
    let axis = r#"
[[axis]]
name = "size"
key = "database.large.workload.tpcc.warehouses"
values = [16, 64]
"#;
    let plan = planned(THREE, axis);
    let points: Vec<Vec<u32>> = plan.plans().into_iter().map(warehouses).collect();
    assert_eq!(points, [[8, 8, 16], [8, 8, 64]]);
    for (position, design) in plan.designs.iter().enumerate() {
        let point = plan.plans()[plan.point_of(position)];
        assert!(point.databases.iter().all(|database| database.part(design).is_some()));
    }
    let json = plan_json(&plan);
    assert_eq!(json["designs"][1]["databases"][2]["workload"]["tpcc"]["warehouses"], 64);
}

#[test]
fn databases_on_hosts_are_as_many_as_the_hosts_have_places() {
    let beds = r#"
name = "beds"
question = "How do two beds compare?"
[engine]
memory-limit = "256MiB"
cpus = 2
[volumes]
data = { capacity = "2GiB" }
wal = { capacity = "2GiB" }
backup = { capacity = "2GiB" }
[[database]]
name = "oltp"
per-host = 2
[[database]]
name = "other"
hosts = ["node-1"]
[[design]]
use = "kingston-nvme-vsan"
[[design]]
name = "three"
[design.datastore.cluster]
hosts = [{ name = "node", count = 3, cores = 16, memory = "2GiB", disk-groups = [{ cache = "dc1500m-960", capacity = ["dc1500m-960"] }] }]
network = { latency = "20us", bytes-per-second = "4706MB" }
policy = { failures-to-tolerate = 0 }
[workload.tpcc]
warehouses = 2
[procedure]
users = [2]
repeats = 2
"#;
    let source = Source { name: "beds.toml".to_string(), text: beds.to_string() };
    let plan = planned_with(&source, &PlanOptions::default());
    let names: Vec<&str> = plan.databases.iter().map(|it| &*it.name).collect();
    assert_eq!(names.len(), 9, "{names:?}");
    assert_eq!((names[0], names[7], names[8]), ("oltp-1", "oltp-8", "other-1"));
    let hosts = |design: usize| -> Vec<String> {
        let design = &plan.designs[design];
        let parts = plan.databases.iter().filter_map(|database| database.part(design));
        parts.filter_map(|part| part.host.clone()).collect()
    };
    assert_eq!(hosts(0).len(), 9);
    let three = ["node-1", "node-1", "node-2", "node-2", "node-3", "node-3", "node-1"];
    assert_eq!(hosts(1), three);
    assert_eq!((plan.designs[0].volumes.len(), plan.designs[1].volumes.len()), (27, 21));
    let text = render_plan(&plan, 100);
    let gives = "each of node-1, node-2, node-3 gives its databases 16 cores, 2 GiB of memory";
    assert!(text.contains(gives), "{text}");
    assert_eq!(plan_json(&plan)["databases"][5]["designs"][1]["host"], "node-3");
    // Each volume is used from the host of its database.
    let of_three: Vec<u32> = [0, 0, 1, 1, 2, 2, 0].iter().flat_map(|host| [*host; 3]).collect();
    assert_eq!(plan.designs[1].volume_hosts, of_three);
    assert_eq!(plan_json(&plan)["designs"][1]["volume_hosts"][17], "node-3");

    // What one host has is scaled as everything of it is.
    let scaled = PlanOptions { scale: Some(Scale { divisor: 2 }), ..PlanOptions::default() };
    let text = render_plan(&planned_with(&source, &scaled), 100);
    assert!(text.contains("gives its databases 8 cores, 1 GiB of memory"), "{text}");
}

#[test]
fn a_database_without_a_place_uses_its_volumes_from_one_host() {
    let of_two = study("[[database]]\nname = \"oltp\"\ncount = 2\n", "");
    let text = of_two.text.replace("kingston-nvme\"", "kingston-nvme-vsan\"");
    let plan = planned_with(&Source { name: of_two.name, text }, &PlanOptions::default());
    let [cluster, single] = [0, 1].map(|design: usize| &plan.designs[design]);
    assert_eq!(cluster.volume_hosts, [3, 3, 3, 2, 2, 2]);
    assert!(single.volume_hosts.is_empty());
    // On another datastore as well.
    assert!(cluster.on_datastore(single.kind.clone()).volume_hosts.is_empty());
    let moved = single.on_datastore(cluster.kind.clone());
    assert_eq!(moved.volume_hosts, cluster.volume_hosts);
}

const BACKUPS_BESIDE_USERS: &str = r#"
[[database]]
name = "other"
[database.workload.backup]
warehouses = 4
cycles = 3
[[database]]
name = "oltp"
count = 2
"#;

fn with_users(users: &str) -> Source {
    let Source { name, text } = study(BACKUPS_BESIDE_USERS, "");
    Source { name, text: text.replace("users = [1, 4]", users) }
}

#[test]
fn a_job_works_beside_the_users_of_other_databases() {
    let options = PlanOptions { warm_up: Some(Nanos::from_secs(5)), ..PlanOptions::default() };
    let plan = planned_with(&with_users("users = [4]"), &options);
    let jobs: Vec<(&str, bool)> =
        plan.databases.iter().map(|database| (&*database.name, database.is_job())).collect();
    assert_eq!(jobs, [("other", true), ("oltp-1", false), ("oltp-2", false)]);
    assert_eq!(plan.workload.kind.population().count, 8, "what the users do is the workload");
    assert_eq!((&*plan.procedure.users, plan.procedure.warm_up), (&[4][..], Nanos::from_secs(5)));
    // Jobs would not be beside the users of the twin.
    assert!(plan.has_jobs_beside_users() && !plan.has_null_twin(0));
    let written = plan_json(&plan);
    assert_eq!(written["databases"][0]["outcome"]["kind"], "job");
    assert!(written["databases"][1].get("outcome").is_none(), "{written}");
    let text = render_plan(&plan, 100);
    assert!(text.contains("volumes of other to oltp-2: data 8 GiB on nvme (ext4)"), "{text}");
}

#[test]
fn a_job_is_beside_one_number_of_users() {
    let refused =
        |source: &Source| match check(source, &PlanOptions::default(), &HostView::unlimited()) {
            Ok(_) => panic!("it was accepted"),
            Err(problems) => problems.render(100, Colour::Plain),
        };
    let text = refused(&with_users("users = [1, 4]"));
    assert!(text.contains("users of the others rise 2 times"), "{text}");
    let text = refused(&with_users("users = [4]\ntime-dilation = 4"));
    assert!(text.contains("cannot be slowed down"), "{text}");
    let only = "[[database]]\nname = \"a\"\nworkload.backup = { warehouses = 4 }\n";
    let text = refused(&study(only, ""));
    assert!(text.contains("no database has users"), "{text}");
}
