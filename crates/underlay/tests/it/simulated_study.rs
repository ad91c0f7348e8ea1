//! Studies of databases in virtual time: records that reports read as any other, profiles of them,
//! predictions, refusals.

use crate::common::{Bench, Ended};
use serde_json::Value;
use std::path::Path;
use underlay_record::Record;

/// Two designs of one device each, NVMe and SATA, as in the quickstart.
const STUDY: &str = r#"
name = "small"
title = "NVMe and SATA"
question = "How much faster is NVMe?"

[engine]
cpus = 2
memory-limit = "128MiB"

[engine.settings]
shared_buffers = "32MB"
checkpoint_timeout = "30s"

[volumes.data]
capacity = "2GiB"
[volumes.wal]
capacity = "2GiB"
[volumes.backup]
capacity = "1GiB"

[[design]]
use = "kingston-nvme"
name = "nvme"
title = "NVMe"

[[design]]
use = "kingston-sata-5200eco"
name = "sata"
title = "SATA"

[workload.tpcc]
warehouses = 4
home-warehouse = "drawn"

[procedure]
users = [2, 8]
warm-up = "2s"
ramp-up = "1s"
measure = "5s"
repeats = 2
"#;

fn simulated(bench: &Bench, out: &str, more: &[&str]) -> Value {
    let mut arguments =
        vec!["run", "small.toml", "--simulate", "--no-progress", "--json", "--out", out];
    arguments.extend(more);
    json(&bench.run(&arguments))
}

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// Median headline of a design at a number of users.
fn headline(analysis: &Value, design: usize, users: u64) -> f64 {
    let rungs = analysis["rungs"].as_array().expect("rungs");
    let is_it = |rung: &&Value| rung["design"] == design && rung["users"] == users;
    let rung = rungs.iter().find(is_it).expect("the rung");
    rung["metrics"]["headline"]["value"].as_f64().expect("a number")
}

#[test]
fn a_study_in_virtual_time_answers_as_a_real_one_and_the_same_again() {
    let bench = Bench::new();
    bench.write("small.toml", STUDY);
    let first = simulated(&bench, "a.sqlite", &[]);
    assert_eq!(first["study"]["evidence"], "simulated");
    for users in [2, 8] {
        let (nvme, sata) = (headline(&first, 0, users), headline(&first, 1, users));
        assert!(nvme > 1.2 * sata && sata > 0.0, "{users} users: NVMe {nvme}, SATA {sata}");
    }
    assert!(bench.path().join("a.html").exists(), "the report");
    // On one processor, runs are simulated one after the other.
    let mut bound = std::process::Command::new("taskset");
    bound.args(["--cpu-list", "0"]).arg(bench.underlay().get_program()).current_dir(bench.path());
    bound.args(["run", "small.toml", "--simulate", "--no-progress", "--json", "--out", "b.sqlite"]);
    let again = json(&Ended::of(bound.output().expect("taskset of util-linux")));
    for (design, users) in [(0, 2), (0, 8), (1, 2), (1, 8)] {
        assert_eq!(headline(&first, design, users), headline(&again, design, users));
    }
    let shown = bench.run(&["show", "a.sqlite"]);
    assert!(shown.stdout.contains("evidence: simulated"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("consistency check"), "{}", shown.stdout);
    let compared = bench.run(&["compare", "a.sqlite", "b.sqlite"]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    assert_eq!(bench.left_on_host(), Vec::<String>::new());
}

#[test]
fn repeats_end_when_the_ratio_is_precise_enough_or_at_the_limit() {
    let bench = Bench::new();
    let carried_out = |share: &str, most: u32, out: &str| {
        let repeats = format!("repeats = \"until {share} %\"\nrepeats-at-most = {most}");
        let study = STUDY.replace("users = [2, 8]", "users = [8]").replace("repeats = 2", &repeats);
        bench.write("small.toml", &study);
        let analysis = simulated(&bench, out, &[]);
        let findings = analysis["findings"].as_array().expect("findings").iter();
        let said = findings.filter_map(|finding| finding["code"].as_str());
        let said = said.filter(|code| code.starts_with("precision-")).collect::<Vec<_>>().join(" ");
        (analysis["runs"].as_array().expect("runs").len(), said)
    };
    // Five repeats of two designs are the fewest.
    let (runs, said) = carried_out("50", 8, "wide.sqlite");
    assert_eq!((runs, said.as_str()), (10, "precision-reached"));
    let (runs, said) = carried_out("0.5", 6, "narrow.sqlite");
    assert_eq!((runs, said.as_str()), (12, "precision-missed"));
}

/// Two clusters, of which one has a storage stack that carries 500 I/Os per second and host: the report says so.
#[test]
fn a_storage_stack_that_limits_is_named() {
    let cluster = |name: &str, stack: &str| {
        format!(
            r#"
[[design]]
name = "{name}"
title = "{name}"
[design.datastore.cluster]
hosts = [{{ name = "node", count = 2, disk-groups = [{{ cache = "dc1500m-960", capacity = ["dc1500m-960"] }}] }}]
network = {{ latency = "20us", bytes-per-second = "1250MB" }}
policy = {{ failures-to-tolerate = 0 }}
stack = "{stack}"
"#
        )
    };
    let (head, rest) = STUDY.split_once("[[design]]").expect("designs");
    let (_, tail) = rest.split_once("[workload.tpcc]").expect("a workload");
    let designs = cluster("fast", "0s") + &cluster("slow", "2ms");
    let bench = Bench::new();
    // More than a stack works on at a time.
    let tail = tail.replace("users = [2, 8]", "users = [64]").replace("= 4\n", "= 24\n");
    let head = head.replace("2GiB", "6GiB");
    bench.write("small.toml", &format!("{head}{designs}[workload.tpcc]{tail}"));
    let analysis = simulated(&bench, "a.sqlite", &[]);
    let parts = |design: usize| {
        let rungs = analysis["rungs"].as_array().expect("rungs");
        let is_it = |rung: &&Value| rung["design"] == design && rung["users"] == 64;
        rungs.iter().find(is_it).expect("the rung")["busy_parts"]
            .as_array()
            .expect("a list")
            .clone()
    };
    assert_eq!(parts(0), Vec::<Value>::new());
    let [only] = &parts(1)[..] else { panic!("{:?}", parts(1)) };
    // The database uses its volumes from the last host.
    assert_eq!((&only["kind"], &only["host"]), (&"storage stack".into(), &"node-2".into()));
    let shown = bench.run(&["show", "a.sqlite"]).stdout;
    assert!(shown.contains("The storage stack of node-2 is"), "{shown}");
    assert!(!shown.contains("node-1 is"), "{shown}");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_all_reasons_and_no_record() {
    let bench = Bench::new();
    let study = STUDY
        .replace("[procedure]", "[procedure]\nsettle = \"2s\"\ncausal-check = \"20s\"")
        + "\n[[background]]\nname = \"early\"\ncopy.from = \"data\"\nphase = \"settle\"\n";
    let without_memory = STUDY.replace("memory-limit = \"128MiB\"", "");
    bench.write("small.toml", &study);
    let refused = bench.run(&["run", "small.toml", "--simulate", "--out", "a.sqlite"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let reason = &refused.stderr;
    assert!(reason.contains("a causal check, which is not simulated yet"), "{reason}");
    assert!(reason.contains("`early` begins in `settle`"), "{reason}");
    assert!(!bench.path().join("a.sqlite").exists(), "nothing was begun");
    bench.write("small.toml", &without_memory);
    let refused = bench.run(&["run", "small.toml", "--simulate", "--out", "a.sqlite"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("without engine.memory-limit"), "{}", refused.stderr);
    let cores = bench.run(&["run", "small.toml", "--cores", "2"]);
    assert_eq!(cores.code, Some(2), "of no use without --simulate: {}", cores.stderr);
}

/// A neighbour for three seconds, and a copy that the load's end stops; on SATA only.
const BESIDE: &str = r#"
[[background]]
name = "neighbour"
load = { profile = "sql-80-20", volumes = ["data", "backup"], working-set = "64MiB" }
lasts = "3s"
designs = ["sata"]

[[background]]
name = "copy"
copy = { from = "data", to = "backup", space = "128MiB", bytes-per-second = "20MB" }
at = "1s"
designs = ["sata"]
"#;

#[test]
fn background_work_costs_users_and_is_recorded_as_that_of_a_host() {
    let bench = Bench::new();
    bench.write("small.toml", STUDY);
    let quiet = simulated(&bench, "a.sqlite", &[]);
    bench.write("small.toml", &format!("{STUDY}{BESIDE}"));
    let disturbed = simulated(&bench, "b.sqlite", &[]);
    let ratio =
        |design, users| headline(&disturbed, design, users) / headline(&quiet, design, users);
    assert!(ratio(1, 8) < 0.9, "{}", ratio(1, 8));
    // It begins in the last rung, in the designs that it names.
    for (design, users) in [(0, 2), (0, 8), (1, 2)] {
        let ratio = ratio(design, users);
        assert!((ratio - 1.0).abs() < 0.05, "design {design}, {users} users: {ratio}");
    }
    let record = Record::open_read_only(&bench.path().join("b.sqlite")).expect("a record");
    for run in record.runs().expect("runs") {
        let document = record.document(Some(run.id), "background").expect("read");
        let Some(document) = document else {
            assert_eq!(run.design, 0, "no work there");
            continue;
        };
        let [neighbour, copy] = [0, 1].map(|it| &document[it]);
        assert_eq!((&neighbour["name"], &copy["name"]), (&"neighbour".into(), &"copy".into()));
        let of = |work: &Value, key: &str| work[key].as_u64().expect("a number");
        let lasted = of(neighbour, "ended_ns") - of(neighbour, "began_ns");
        assert!((3_000_000_000..3_100_000_000).contains(&lasted), "{neighbour}");
        assert!(of(neighbour, "reads") > 2 * of(neighbour, "writes"), "{neighbour}");
        // Of the 80 MB of four seconds, blocks that were begun.
        assert!((79_000_000..82_000_000).contains(&of(copy, "read_bytes")), "{copy}");
        assert_eq!((&copy["complete"], &copy["errors"]), (&false.into(), &0.into()));
        let counters = record.tables(run.id).expect("tables");
        let counted = |series: &str| {
            let all = counters.iter().filter(|table| table.source.name == "background");
            let columns: Vec<f64> =
                all.filter_map(|table| table.column(series)?.values.last().copied()).collect();
            columns[..] == [of(copy, "read_bytes") as f64]
        };
        assert!(counted("copy.read_bytes"));
    }
    let findings = disturbed["findings"].as_array().expect("findings").iter();
    let texts: Vec<&str> = findings.filter_map(|finding| finding["text"].as_str()).collect();
    for said in ["neighbour: ", "copy: ", "it was stopped before it finished"] {
        assert!(texts.iter().any(|text| text.contains(said)), "{said}: {texts:#?}");
    }
    let series = disturbed["timelines"]["series"].as_array().expect("series");
    assert!(series.iter().any(|one| one["name"] == "background.neighbour.write_bytes"));
    let refused = bench.run(&["predict", "b.sqlite", "--design", "nvme"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("it has background work"), "{}", refused.stderr);
}

#[test]
fn a_simulated_record_is_profiled_and_predicted_without_error() {
    let bench = Bench::new();
    bench.write("small.toml", STUDY);
    let analysis = simulated(&bench, "a.sqlite", &[]);
    let profiled = bench.run(&["profile", "a.sqlite", "--out", "demands.toml"]);
    assert_eq!(profiled.code, Some(0), "{}", profiled.stderr);
    let text = std::fs::read_to_string(bench.path().join("demands.toml")).expect("a profile");
    assert!(text.contains("cpu-factor") && text.contains("full-page-share"), "{text}");
    let factor = |name: &str| -> f64 {
        let section = text.split(&format!("[{name}]")).nth(1).expect("a section");
        let line = section.lines().find_map(|line| line.strip_prefix("value = "));
        line.expect("a value").parse().expect("a number")
    };
    // The model is profiled by itself: only repeats differ.
    assert!((factor("cpu") - 1.0).abs() < 0.05, "{text}");
    assert!((factor("log") - 1.0).abs() < 0.05, "{text}");

    let predicted = json(&bench.run(&[
        "predict",
        "a.sqlite",
        "--design",
        "sata",
        "--design",
        "kingston-sata-5200eco",
        "--json",
    ]));
    // The same device, once as a design of the study and once by its own name.
    let [design, device] = [0, 1].map(|it| &predicted["designs"][it]["rungs"]);
    assert_eq!(design, device);
    assert_eq!(predicted["evidence"], "simulated");
    for (position, users) in [(0, 2), (1, 8)] {
        let own = &predicted["own"]["rungs"][position];
        let error = own["error"].as_f64().expect("an error");
        assert!(error.abs() < 0.1, "the model of itself: {own}");
        let row = &predicted["designs"][0]["rungs"][position]["predicted"];
        let of = |key: &str| row[key].as_f64().expect("a number");
        assert!(of("low") <= of("value") && of("value") <= of("high"), "{row}");
        let there = headline(&analysis, 1, users);
        assert!((of("value") / there - 1.0).abs() < 0.15, "{row}, simulated in full: {there}");
    }
    let changes = predicted["what_if"].as_array().expect("a table");
    let memory = changes.iter().find(|it| it["change"] == "twice the memory").expect("a row");
    assert!(memory["throughput_ratio"].as_f64().is_some_and(|ratio| ratio > 0.9), "{memory}");
    let is_backup = |it: &&Value| it["change"] == "a neighbour's backup" && it["design"] == "sata";
    let backup = changes.iter().find(is_backup).expect("a row");
    assert!(backup["throughput_ratio"].as_f64().is_some_and(|ratio| ratio < 1.0), "{backup}");

    // Half the processor time of a session is gone where its demands are halved.
    let line = text.lines().find(|line| line.starts_with("value = ")).expect("that of the CPU");
    let halved = text.replacen(line, "value = 0.5", 1);
    assert_ne!(halved, text);
    bench.write("halved.toml", &halved);
    let cheaper = simulated(&bench, "c.sqlite", &["--demands", "halved.toml"]);
    let (cheap, usual) = (headline(&cheaper, 0, 8), headline(&analysis, 0, 8));
    assert!(cheap > usual, "{cheap} with half the processor time, {usual} without");
    bench.write("wrong.toml", "format = 1\n");
    let wrong = ["run", "small.toml", "--simulate", "--demands", "wrong.toml", "--out", "d.sqlite"];
    let refused = bench.run(&wrong);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("it is not a demand profile"), "{}", refused.stderr);
    assert!(!Path::new(&bench.path().join("d.sqlite")).exists());
}

#[test]
fn backups_alone_and_beside_users_are_read_as_those_of_a_host() {
    let bench = Bench::new();
    let roomy = STUDY.replace("\"2GiB\"", "\"6GiB\"").replace("\"1GiB\"", "\"4GiB\"");
    let (before, tpcc) = roomy.split_once("[workload.tpcc]").expect("a workload");
    // Operations of whole seconds: latencies are known by the second.
    let job = "[workload.backup]\nwarehouses = 20\ncycles = 2\n[procedure]\nrepeats = 2\n";
    bench.write("small.toml", &format!("{before}{job}"));
    let analysis = simulated(&bench, "a.sqlite", &[]);
    let metric = |design: usize, name: &str| {
        let rungs = analysis["rungs"].as_array().expect("rungs");
        let rung = rungs.iter().find(|rung| rung["design"] == design).expect("the rung");
        rung["metrics"][name]["value"].as_f64().unwrap_or_else(|| panic!("{name} of {rung}"))
    };
    for name in ["headline", "restore_bytes_per_second"] {
        assert!(metric(0, name) > metric(1, name), "{name}");
    }
    for name in ["backup_s", "restore_s", "backup_latency_ns", "restore_latency_ns"] {
        assert!(metric(0, name) < metric(1, name) && metric(0, name) > 0.0, "{name}");
    }
    // MB/s times seconds are the bytes of the warehouses.
    let megabytes = metric(0, "headline") * metric(0, "backup_s");
    assert!((2_000.0..2_300.0).contains(&megabytes), "{megabytes}");
    let refused = bench.run(&["predict", "a.sqlite", "--design", "sata"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("a job, which has no users"), "{}", refused.stderr);

    let users = tpcc.replace("users = [2, 8]", "users = [8]").replace("\"5s\"", "\"20s\"");
    let alone = format!("[[database]]\nname = \"oltp\"\n[workload.tpcc]{users}");
    let job = "[[database]]\nname = \"job\"\nworkload.backup = { warehouses = 4, cycles = 9, \
               restore = false }\n";
    let mut shown = Vec::new();
    for (out, databases) in [("b.sqlite", alone.clone()), ("c.sqlite", format!("{job}{alone}"))] {
        bench.write("small.toml", &format!("{before}{databases}"));
        shown.push(headline(&simulated(&bench, out, &[]), 1, 8));
    }
    assert!(shown[1] < 0.9 * shown[0] && shown[1] > 0.0, "users of SATA with backups: {shown:?}");
}

#[test]
fn a_published_warehouse_answers_no_later_over_the_faster_link() {
    let bench = Bench::new();
    let mut study = bench.run(&["show", "demartek/d3-warehouse"]).expect(0);
    // Of the data two thousandths, of which a third fits into memory.
    for (at_paper_size, small) in [
        ("scale = 100", "scale = 0.2"),
        ("streams = 4", "streams = 2"),
        ("repeats = 3", "repeats = 1"),
        ("memory-limit = \"32GiB\"", "memory-limit = \"128MiB\""),
        ("shared_buffers = \"8GB\"", "shared_buffers = \"16MB\""),
        ("effective_cache_size = \"24GB\"", "effective_cache_size = \"100MB\""),
    ] {
        assert!(study.contains(at_paper_size), "{at_paper_size}: {study}");
        study = study.replace(at_paper_size, small);
    }
    bench.write("small.toml", &study);
    let analysis = simulated(&bench, "a.sqlite", &[]);
    assert_eq!(analysis["study"]["evidence"], "simulated");
    let metric = |design: usize, name: &str| {
        let rungs = analysis["rungs"].as_array().expect("rungs");
        let rung = rungs.iter().find(|rung| rung["design"] == design).expect("the rung");
        rung["metrics"][name]["value"].as_f64().unwrap_or_else(|| panic!("{name} of {rung}"))
    };
    let [slow, fast] = [0, 1].map(|design| metric(design, "headline"));
    assert!(fast >= slow && slow > 0.0, "queries per hour: {slow} {fast}");
    let [slow, fast] = [0, 1].map(|design| metric(design, "job_s"));
    assert!(fast <= slow && fast > 0.0, "seconds: {slow} {fast}");
    assert!(bench.path().join("a.html").exists(), "the report");
}
