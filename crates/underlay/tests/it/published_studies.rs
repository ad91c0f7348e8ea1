//! Every published study at its laptop size, shrunk further to seconds, end to end on real servers and real volumes: designs, axes,
//! databases, faults, jobs and block loads of each are carried out, what comes out is complete, and nothing is left on the host.
//!
//! Numbers are not judged: windows of five seconds and less on a small part of the data say nothing about storage.

use crate::common::{Bench, cannot_run_servers, control_groups_of};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use underlay_study::find_study;

/// What is smaller of every study. The scale makes the sizes below those of a run.
const OF_ALL: &[(&str, &str)] =
    &[("scale", "\"1/64\""), ("procedure.repeats", "1"), ("procedure.settle", "\"0s\"")];
/// What is smaller of studies with users.
const OF_USERS: &[(&str, &str)] = &[
    ("procedure.cache-warm-up", "\"500ms\""),
    ("procedure.warm-up", "\"500ms\""),
    ("procedure.ramp-up", "\"500ms\""),
    ("procedure.measure", "\"5s\""),
    ("procedure.null-twin", "false"),
];
/// One warehouse at the scale of 1/64.
const ONE_WAREHOUSE: (&str, &str) = ("workload.tpcc.warehouses", "64");
/// A shop of a thousand products at the scale of 1/64, on volumes of its size.
const SMALL_SHOP: &[(&str, &str)] = &[
    ("workload.dvdstore.db-size", "\"64MB\""),
    ("volumes.data.capacity", "\"64GiB\""),
    ("volumes.wal.capacity", "\"48GiB\""),
];

/// What is smaller of block loads: 64 MiB of each volume at the scale of 1/8, at the host's own speed.
const OF_BLOCKS: &[(&str, &str)] = &[
    ("procedure.repeats", "1"),
    ("procedure.time-dilation", "1"),
    ("procedure.warm-up", "\"100ms\""),
    ("procedure.ramp-up", "\"100ms\""),
    ("procedure.measure", "\"5s\""),
    ("procedure.null-twin", "false"),
    ("workload.block.working-set", "\"512MiB\""),
];
/// A curve of one point behind the maximum.
const SHORT_CURVE: (&str, &str) = ("workload.block.curve", "[50]");
/// One of each form: single drives, read and written; many volumes on a cluster, of two beds and of one; a curve. The others
/// differ from them in profiles and sizes.
const BLOCK_STUDIES: [&str; 5] =
    ["kingston/kfa", "kingston/kfb-write", "kingston/kh1", "vmware/v1-90-10", "storagereview/sr17"];

/// A study that comes with Underlay, with other values in its table `[laptop]`. The last one of a key holds.
fn shrunk(bench: &Bench, name: &str, values: &[&[(&str, &str)]]) -> String {
    let text = bench.run(&["show", name]).expect(0);
    let mut set: Vec<(&str, &str)> = Vec::new();
    for (key, value) in values.iter().copied().flatten() {
        set.retain(|(known, _)| known != key);
        set.push((key, value));
    }
    let (mut shrunk, mut is_laptop) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with('[') {
            is_laptop = line == "[laptop]";
        }
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        if is_laptop && set.iter().any(|(own, _)| *own == key) {
            continue;
        }
        shrunk.push_str(line);
        shrunk.push('\n');
        if line == "[laptop]" {
            set.iter().for_each(|(key, value)| shrunk.push_str(&format!("{key} = {value}\n")));
        }
    }
    assert!(shrunk.contains("\n[laptop]\n"), "{name} has no laptop size");
    shrunk
}

/// The analysis of a shrunk study of databases, which ran to its end and is whole. `None` where this host runs no servers.
fn run(name: &str, values: &[&[(&str, &str)]], designs: &str) -> Option<(Bench, Value)> {
    let (bench, analysis) = run_unjudged(name, values, designs)?;
    is_whole(&analysis);
    Some((bench, analysis))
}

fn run_unjudged(name: &str, values: &[&[(&str, &str)]], designs: &str) -> Option<(Bench, Value)> {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return None;
    }
    let bench = Bench::with_shared_templates();
    bench.write("study.toml", &shrunk(&bench, name, values));
    let mut arguments = vec!["run", "study.toml", "--laptop", "--out", "study.sqlite"];
    arguments.extend(["--no-progress", "--json"]);
    if !designs.is_empty() {
        arguments.extend(["--designs", designs]);
    }
    let analysis = bench.run(&arguments).expect(0);
    let analysis: Value = serde_json::from_str(&analysis).expect("JSON on standard output");
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    Some((bench, analysis))
}

fn list<'a>(analysis: &'a Value, key: &str) -> &'a [Value] {
    analysis[key].as_array().map_or(&[], Vec::as_slice)
}

fn headline(rung: &Value) -> f64 {
    rung["metrics"]["headline"]["value"].as_f64().unwrap_or_else(|| panic!("a rate: {rung:#}"))
}

/// Whether every design was measured, all data is consistent, and databases add up to the total.
fn is_whole(analysis: &Value) {
    let (designs, rungs) = (list(analysis, "designs"), list(analysis, "rungs"));
    for (position, design) in designs.iter().enumerate() {
        let of_design = |rung: &&Value| rung["design"].as_u64() == Some(position as u64);
        let own: Vec<&Value> = rungs.iter().filter(of_design).collect();
        assert!(!own.is_empty(), "{} was not measured", design["name"]);
        for total in own {
            assert!(headline(total) > 0.0, "{total:#}");
            // A single database is the total itself.
            let of_users: Vec<&Value> = list(analysis, "databases")
                .iter()
                .filter(|database| database["workload"]["is_job"] == false)
                .collect();
            let parts: Vec<f64> = of_users
                .iter()
                .flat_map(|database| list(database, "rungs"))
                .filter(|rung| rung["design"] == total["design"] && rung["users"] == total["users"])
                .map(headline)
                .collect();
            let sum: f64 = parts.iter().sum();
            let adds_up = (sum / headline(total) - 1.0).abs() < 1e-6;
            assert!(of_users.is_empty() || adds_up, "{parts:?} of {}", headline(total));
        }
    }
    let checks = list(analysis, "checks");
    assert!(checks.len() >= 3, "{} checks", checks.len());
    let failed: Vec<&Value> = checks.iter().filter(|check| check["outcome"] != "ok").collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Databases that were measured in a design, without those that have a job.
fn databases_in(analysis: &Value, design: u64) -> usize {
    let databases = list(analysis, "databases").iter();
    let of_users = databases.filter(|database| database["workload"]["is_job"] == false);
    let is_here = |database: &&Value| {
        list(database, "rungs").iter().any(|rung| rung["design"].as_u64() == Some(design))
    };
    of_users.filter(is_here).count()
}

#[test]
fn kingston_k1() {
    run("kingston/k1", &[OF_ALL, OF_USERS, &[ONE_WAREHOUSE, ("procedure.users", "[89]")]], "");
}

#[test]
fn kingston_k2() {
    let own = [ONE_WAREHOUSE, ("procedure.users", "[89]")];
    run("kingston/k2", &[OF_ALL, OF_USERS, &own], "dc1500m,5200eco");
}

#[test]
fn kingston_k3() {
    run("kingston/k3", &[OF_ALL, OF_USERS, &[ONE_WAREHOUSE, ("procedure.users", "[128]")]], "");
}

#[test]
fn kingston_k4() {
    // Backups of as much data are faster on a larger part of the devices.
    let own = [
        ("scale", "\"1/16\""),
        ("workload.backup.warehouses", "16"),
        ("workload.backup.cycles", "1"),
        ("volumes.data.capacity", "\"64GiB\""),
        ("volumes.backup.capacity", "\"32GiB\""),
    ];
    run("kingston/k4", &[OF_ALL, &own], "");
}

/// Eight servers at once on four emulated hosts. Killed in the middle, nothing of them stays, and the same command resumes.
#[test]
fn kingston_k5_is_killed_and_resumed() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let own = [ONE_WAREHOUSE, ("database.oltp.per-host", "2")];
    bench.write("k5.toml", &shrunk(&bench, "kingston/k5", &[OF_ALL, OF_USERS, &own]));
    let arguments = ["run", "k5.toml", "--laptop", "--out", "k5.sqlite", "--no-progress"];
    let arguments = [&arguments[..], &["--designs", "dc1500m"]].concat();
    let mut killed = bench
        .underlay()
        .args(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let servers = |bench: &Bench| {
        bench.left_on_host().iter().filter(|line| line.contains("bin/postgres")).count()
    };
    let deadline = Instant::now() + Duration::from_secs(180);
    while servers(&bench) < 8 {
        assert!(Instant::now() < deadline, "eight servers: {:?}", bench.left_on_host());
        assert!(killed.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Eight databases, on four hosts that limit them.
    let pid = killed.id();
    let groups = control_groups_of(pid);
    let names: BTreeSet<_> = groups.iter().filter_map(|group| group.file_name()).collect();
    assert_eq!(names.len(), 12, "{names:?}");
    killed.kill().expect("SIGKILL");
    killed.wait().expect("its end");
    bench.run(&["clean"]).expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    assert_eq!(control_groups_of(pid), Vec::<PathBuf>::new());

    let analysis = bench.run(&[&arguments[..], &["--json"]].concat()).expect(0);
    let analysis: Value = serde_json::from_str(&analysis).expect("JSON on standard output");
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    assert_eq!(analysis["study"]["sessions"], 2, "it was resumed");
    is_whole(&analysis);
    assert_eq!(databases_in(&analysis, 0), 8);
    // What was printed of one machine stands beside that database, and the sum beside the total.
    let printed = |database: &str| {
        let is_it = |it: &&Value| it["database"] == database && it["metric"] == "headline";
        let series = list(&analysis, "published").iter().find(is_it).expect("published");
        (series["values"][0].as_f64(), series["ours"][0].as_f64().is_some())
    };
    assert_eq!(printed("oltp-2"), (Some(128_280.0), true));
    assert_eq!(printed(""), (Some(1_365_753.0), true));
    // There are 12 machines in the paper, and 8 databases here.
    assert_eq!(printed("oltp-12"), (Some(89_044.0), false));
    let metrics = &list(&analysis, "rungs")[0]["metrics"];
    assert!(metrics["datastore_write_iops"]["value"].as_f64().is_some_and(|rate| rate > 0.0));
    assert!(metrics["datastore_write_latency_ns"]["value"].as_f64().is_some_and(|ns| ns > 1e4));
    let shown = bench.run(&["show", "k5.sqlite"]).expect(0);
    assert!(shown.contains("oltp-8") && shown.contains("128,280"), "{shown}");
}

#[test]
fn kingston_k5_backups() {
    let own = [ONE_WAREHOUSE, ("database.backup.workload.backup.warehouses", "64")];
    let values: [&[(&str, &str)]; 3] = [OF_ALL, OF_USERS, &own];
    let Some((_, analysis)) = run("kingston/k5-backups", &values, "dc1500m") else { return };
    // Without backups and with them: the users have the same four databases.
    assert_eq!((databases_in(&analysis, 0), databases_in(&analysis, 1)), (4, 4));
    let events = list(&analysis, "runs").iter().flat_map(|run| list(run, "events"));
    let backups = events.filter(|event| event["kind"] == "job-done").count();
    let is_stopped =
        list(&analysis, "findings").iter().any(|finding| finding["code"] == "job-stopped");
    assert!(backups > 0 || is_stopped, "no job was under way");
}

#[test]
fn storagereview_sr1() {
    // Each volume is kept twice.
    let own = [
        ("scale", "\"1/128\""),
        ("workload.tpcc.warehouses", "128"),
        ("procedure.users", "[1280]"),
        ("volumes.data.capacity", "\"128GiB\""),
    ];
    let values: [&[(&str, &str)]; 3] = [OF_ALL, OF_USERS, &own];
    let Some((_, analysis)) = run("storagereview/sr1", &values, "optane,sas-reduced") else {
        return;
    };
    assert_eq!((databases_in(&analysis, 0), databases_in(&analysis, 1)), (4, 4));
}

#[test]
fn storagereview_sr2() {
    // Two databases instead of four, with 100 tables of some rows, and threads that descend.
    let own = [
        ("database.sysbench.hosts", "[\"node-1\", \"node-2\"]"),
        ("engine.memory-limit", "\"16GiB\""),
        ("engine.settings.innodb_buffer_pool_size", "\"4G\""),
        ("workload.sysbench.tables", "4"),
        ("workload.sysbench.table-size", "64_000"),
        ("procedure.users", "[128, 64]"),
    ];
    let values: [&[(&str, &str)]; 3] = [OF_ALL, OF_USERS, &own];
    let Some((_, analysis)) = run("storagereview/sr2", &values, "optane,sas") else { return };
    assert_eq!((databases_in(&analysis, 0), databases_in(&analysis, 1)), (2, 2));
    let users = |rung: &Value| rung["users"].as_u64().expect("users");
    let mut all: Vec<u64> = list(&analysis, "rungs").iter().map(users).collect();
    all.sort_unstable();
    assert_eq!(all, [1, 1, 2, 2]);
}

#[test]
fn vmware_v2() {
    run("vmware/v2", &[OF_ALL, OF_USERS, SMALL_SHOP], "");
}

#[test]
fn vmware_v3() {
    let values: [&[(&str, &str)]; 3] = [OF_ALL, OF_USERS, SMALL_SHOP];
    let Some((_, analysis)) = run("vmware/v3", &values, "") else { return };
    // What is asked is no confound.
    let confounds = list(&analysis, "confounds");
    assert!(confounds.iter().all(|it| it["asked"] == true), "{confounds:#?}");
    // At one thread per core a machine has more processors than its host.
    let refused = list(&analysis, "findings").iter().filter(|finding| {
        let text = finding["text"].as_str().unwrap_or_default();
        finding["code"] == "limit-not-enforced" && text.contains("Invalid argument")
    });
    assert_eq!(refused.count(), 0, "a limit that the kernel refuses");
}

#[test]
fn vmware_v4() {
    let own = [
        ("database.large.workload.dvdstore.db-size", "\"128MB\""),
        ("database.large.volumes.data.capacity", "\"64GiB\""),
        ("database.large.volumes.wal.capacity", "\"48GiB\""),
    ];
    let values: [&[(&str, &str)]; 4] = [OF_ALL, OF_USERS, SMALL_SHOP, &own];
    let Some((_, analysis)) = run("vmware/v4", &values, "") else { return };
    assert_eq!((databases_in(&analysis, 0), databases_in(&analysis, 1)), (4, 6));
}

#[test]
fn vmware_v5() {
    let values: [&[(&str, &str)]; 4] =
        [OF_ALL, OF_USERS, SMALL_SHOP, &[("procedure.settle", "\"2s\"")]];
    let Some((_, analysis)) = run("vmware/v5", &values, "alone,adaptive") else { return };
    let events = |design: u64| {
        let runs = list(&analysis, "runs").iter().filter(move |run| run["design"] == design);
        let texts = runs.flat_map(|run| list(run, "events")).map(|event| event.to_string());
        texts.collect::<Vec<_>>().join("\n")
    };
    assert!(events(1).contains("gets a capacity device"), "{}", events(1));
    assert!(!events(0).contains("gets a capacity device"), "{}", events(0));
}

#[test]
fn vmware_v6() {
    run("vmware/v6", &[OF_ALL, &[("scale", "\"1/1\""), ("workload.batch.rows", "2000")]], "");
}

#[test]
fn demartek_d1() {
    run("demartek/d1", &[OF_ALL, OF_USERS, &[ONE_WAREHOUSE]], "nvme-board,4-sata-single");
}

#[test]
fn demartek_d2() {
    run("demartek/d2", &[OF_ALL, OF_USERS, &[ONE_WAREHOUSE]], "");
}

#[test]
fn demartek_d3() {
    run("demartek/d3", &[OF_ALL, OF_USERS, &[ONE_WAREHOUSE]], "");
}

#[test]
fn demartek_d3_warehouse() {
    let own = [
        ("workload.warehouse.scale", "0.64"),
        ("workload.warehouse.streams", "2"),
        // 131 MiB, and room for what the server keeps whatever its size.
        ("engine.memory-limit", "\"8388MiB\""),
        ("volumes.data.capacity", "\"320GiB\""),
        ("volumes.backup.capacity", "\"160GiB\""),
    ];
    run("demartek/d3-warehouse", &[OF_ALL, &own], "");
}

#[test]
fn demartek_d3_replication() {
    run("demartek/d3-replication", &[OF_ALL, OF_USERS, &[ONE_WAREHOUSE]], "");
}

/// The same in virtual time, which needs no servers.
#[test]
fn demartek_d3_replication_simulated() {
    let bench = Bench::new();
    let values: [&[(&str, &str)]; 3] = [OF_ALL, OF_USERS, &[ONE_WAREHOUSE]];
    bench.write("study.toml", &shrunk(&bench, "demartek/d3-replication", &values));
    let arguments = ["run", "study.toml", "--laptop", "--simulate", "--no-progress", "--json"];
    let analysis = bench.run(&[&arguments[..], &["--out", "study.sqlite"]].concat()).expect(0);
    let analysis: Value = serde_json::from_str(&analysis).expect("JSON on standard output");
    for rung in list(&analysis, "rungs") {
        assert!(headline(rung) > 0.0, "{rung:#}");
    }
    let texts = list(&analysis, "findings").iter().filter_map(|finding| finding["text"].as_str());
    let copied = texts.filter(|text| text.contains("replication: ") && text.contains("MB copied"));
    assert_eq!(copied.count(), 2, "one of each design");
    let series = list(&analysis["timelines"], "series").iter();
    let names: Vec<&str> = series.filter_map(|one| one["name"].as_str()).collect();
    for name in ["background.replication.read_bytes", "background.replication.write_bytes"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

#[test]
fn demartek_d4() {
    // A host that is slow enough cannot show the third design, a card of NVRAM.
    let own = [ONE_WAREHOUSE, ("procedure.users", "[64]")];
    run("demartek/d4", &[OF_ALL, OF_USERS, &own], "array,nvme");
}

#[test]
fn block_loads() {
    for name in BLOCK_STUDIES {
        let text = &find_study(name).expect("built in").text;
        let curve = text.contains("workload.block.curve").then_some(SHORT_CURVE);
        if let Some((_, analysis)) = run_unjudged(name, &[OF_BLOCKS, curve.as_slice()], "") {
            let designs = list(&analysis, "designs").len();
            let measured: BTreeSet<u64> = list(&analysis, "rungs")
                .iter()
                .filter_map(|rung| rung["design"].as_u64())
                .collect();
            assert_eq!(measured.len(), designs, "{name}: a design was not measured");
            assert!(list(&analysis, "rungs").iter().all(|rung| headline(rung) > 0.0), "{name}");
            let failed = list(&analysis, "checks").iter().filter(|check| check["outcome"] != "ok");
            assert_eq!(failed.count(), 0, "{name}: {:#?}", analysis["checks"]);
        }
    }
}
