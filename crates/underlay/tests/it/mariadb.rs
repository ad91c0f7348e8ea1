//! MariaDB from the command line: a whole small study that compares two designs, and the load generator
//! alone against a server by URL.

use crate::common::{Bench, cannot_run_servers};
use serde_json::Value;
use underlay_database::Engine;
use underlay_database::managed::{Listen, StopMode};
use underlay_database::mariadb::find_installs;
use underlay_testbed::{Bed, TestServer, or_skip};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON on standard output")
}

/// Says why a test cannot run here; the caller returns.
fn cannot_run_mariadb() -> Option<&'static str> {
    match cannot_run_servers() {
        None if find_installs(None, None).is_empty() => Some("needs MariaDB's server programs"),
        reason => reason,
    }
}

const STUDY: &str = r#"
name = "maria"
title = "A small study of MariaDB"
question = "Does the lab work with another engine?"

[engine]
kind = "mariadb"
memory-limit = "320MiB"

[engine.settings]
innodb_buffer_pool_size = "64M"
innodb_log_file_size = "64M"

[volumes.data]
capacity = "1GiB"

[volumes.wal]
capacity = "256MiB"

[volumes.backup]
capacity = "128MiB"

[[design]]
use = "null"
name = "a"

[[design]]
use = "kingston-nvme"
name = "b"

[workload.tpcc]
warehouses = 1
pacing.closed.key-think = 0.001

[procedure]
users = [1, 4]
settle = "0s"
warm-up = "1s"
ramp-up = "1s"
measure = "5s"
repeats = 1
"#;

#[test]
fn a_study_compares_two_designs_on_mariadb() {
    if let Some(reason) = cannot_run_mariadb() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("maria.toml", STUDY);
    let plan = json(&bench.run(&["check", "maria.toml", "--json"]).expect(0));
    assert_eq!(plan["engine"]["kind"], "mariadb", "{plan:#}");

    let ended =
        bench.run(&["run", "maria.toml", "--out", "maria.sqlite", "--no-progress", "--json"]);
    let stderr = ended.stderr.clone();
    let analysis = json(&ended.expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    let runs = analysis["runs"].as_array().expect("a list of runs");
    assert_eq!(runs.iter().filter(|run| run["counted"] == true).count(), 2, "{stderr}");

    // What was recorded: whose engine, its settings with their origin, and its own counters.
    bench.run(&["export", "maria.sqlite", "--jsonl", "all.jsonl"]).expect(0);
    let exported = std::fs::read_to_string(bench.path().join("all.jsonl")).expect("the export");
    for wanted in [
        "mariadb",
        "innodb_flush_log_at_trx_commit",
        "status.innodb_lsn_current",
        "status.com_commit",
        "mariadb.on_cpu",
        "InnodbLogFlush",
    ] {
        assert!(exported.contains(wanted), "the record lacks {wanted}");
    }
    bench.run(&["report", "maria.sqlite", "--out", "page.html"]).expect(0);

    // The server is on this host: its processor time is told by type, and apart from background threads.
    let profile = bench.run(&["profile", "maria.sqlite"]).expect(0);
    let told = profile.matches("[type.cpu-factor]").count();
    assert!(told >= 2, "new orders and payments at least: {profile}");
    let background = profile.lines().find_map(|line| line.strip_prefix("background-cpu-us = "));
    let background: f64 = background.expect("a time").parse().expect("a number");
    assert!(background > 0.0, "{profile}");

    // Settings that MariaDB refuses are told before anything is touched, as are PostgreSQL's.
    let wrong =
        STUDY.replace("innodb_buffer_pool_size = \"64M\"", "innodb_buffer_pool_size = \"64MB\"");
    bench.write("wrong.toml", &wrong);
    let ended = bench.run(&["check", "wrong.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("K, M, G and T"), "{}", ended.stderr);
    bench.write("wrong.toml", &STUDY.replace("innodb_log_file_size", "innodb_log_file_sizes"));
    let ended = bench.run(&["check", "wrong.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("did you mean `innodb_log_file_size`?"), "{}", ended.stderr);
}

/// Statements that commit by themselves, on a folder of this host: they are counted among the server's own commits; what no
/// counter knows is said, not made up.
#[test]
fn statements_that_commit_by_themselves_are_counted_and_a_shared_disk_is_not_judged() {
    if let Some(reason) = cannot_run_mariadb() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    // On a disk: the server writes with direct I/O, which memory file systems refuse.
    let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody).expect("its permissions are set");
    let here = format!("name = \"a\"\ndatastore.path.directory = \"{}\"", folder.path().display());
    let workload = "[workload.sysbench]\ntables = 1\ntable-size = 1000\nscript = \"update_index\"";
    let study = STUDY
        .replace("use = \"null\"\nname = \"a\"", &here)
        .replace("[workload.tpcc]\nwarehouses = 1\npacing.closed.key-think = 0.001", workload);
    assert!(study.contains(&here) && study.contains(workload));
    bench.write("here.toml", &study);
    let arguments = ["run", "here.toml", "--out", "here.sqlite", "--no-progress", "--json"];
    let options = ["--users", "2", "--designs", "a"];
    let analysis = json(&bench.run(&[&arguments[..], &options].concat()).expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    let gates = analysis["bottlenecks"][0]["gates"].as_array().expect("gates");
    let gate = |id: &str| gates.iter().find(|gate| gate["id"] == id).expect("it is always there");
    assert_eq!(gate("G3")["state"], "passed", "{}", gate("G3"));
    assert_eq!(gate("G7")["state"], "not-judged", "{}", gate("G7"));
    let rung = &analysis["rungs"][0];
    let rate = rung["metrics"]["headline"]["value"].as_f64().expect("a rate");
    let tpm = rung["metrics"]["tpm"]["value"].as_f64().expect("the server has a count of these");
    let share = tpm / 60.0 / rate;
    assert!(rate > 0.0 && (0.8..1.2).contains(&share), "{tpm} TPM of {rate}/s");
    // Where the folder lies on a block device, that is shown as a whole, once, and said.
    let volumes = rung["volumes"].as_array().expect("volumes");
    let names: Vec<&str> = volumes.iter().filter_map(|row| row["volume"].as_str()).collect();
    let findings = analysis["findings"].as_array().expect("findings");
    let told = findings.iter().filter(|finding| finding["code"] == "shared-device").count();
    assert!(names.is_empty() || names == ["whole device"], "{names:?}");
    assert_eq!(told, names.len(), "{findings:#?}");
    assert_predicted_from_real_storage(&bench, rate);
}

/// What users did on real storage is predicted for designs, once it is said what that storage is like.
fn assert_predicted_from_real_storage(bench: &Bench, rate: f64) {
    let predict = |more: &[&str]| {
        let what = ["predict", "here.sqlite", "--design", "kingston-sata-5200eco", "--json"];
        bench.run(&[&what[..], more].concat())
    };
    let refused = predict(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("--measured-as"), "{}", refused.stderr);
    let predicted = json(&predict(&["--measured-as", "p4800x-375"]).expect(0));
    let own = &predicted["own"];
    let named = ["measured", "p4800x-375"];
    assert_eq!([&own["evidence"], &own["measured_as"]], named, "{own:#}");
    let measured = own["rungs"][0]["measured"]["value"].as_f64().expect("a rate");
    assert!((measured / rate - 1.0).abs() < 0.01, "{own:#}, {rate}/s in the answer");
    let rung = &predicted["designs"][0]["rungs"][0];
    let of = |key: &str| rung["predicted"][key].as_f64().expect("a number");
    // No closer than the model was on the storage that was measured.
    let error = own["rungs"][0]["error"].as_f64().expect("an error").abs();
    assert!(of("value") > 0.0 && of("high") / of("low") >= 1.0 + error, "{predicted:#}");
    assert!(rung["bottleneck"].as_str().is_some_and(|name| !name.is_empty()), "{rung:#}");
}

#[test]
fn a_server_is_loaded_driven_checked_and_emptied_by_url() {
    if let Some(reason) = cannot_run_mariadb() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let bed = or_skip!(Bed::on_disk(Engine::Mariadb));
    let mut host = TestServer::start_on(bed, |spec| spec.listen = Listen::Loopback);
    let target = host.server.tcp_target().unwrap().with_database("shop");
    let url = target.to_string();
    let password = target.password.as_ref().unwrap().reveal().to_string();
    let drive_of = |workload: &str, arguments: &[&str]| {
        let output = bench
            .underlay()
            .args(["drive", workload, "--json", "--url", &url])
            .args(arguments)
            .env("MYSQL_PWD", &password)
            .output()
            .expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!text.contains(&password) && !errors.contains(&password), "the password is shown");
        assert_eq!(output.status.code(), Some(0), "{text}\n{errors}");
        json(&text)
    };
    let drive = |arguments: &[&str]| drive_of("tpcc", arguments);
    let loaded = drive(&["--load", "--warehouses", "1"]);
    assert!(loaded["load"]["rows"].as_u64().unwrap() > 590_000, "{loaded:#}");
    for more in [&[][..], &["--statements"][..]] {
        let mut arguments = vec!["--run", "--users", "4", "--warm-up", "1s", "--duration", "3s"];
        arguments.extend(more);
        let ran = drive(&arguments);
        assert!(ran["run"]["nopm"].as_f64().unwrap() > 100.0, "{ran:#}");
    }
    let checked = drive(&["--check"]);
    let results = checked["check"]["results"].as_array().expect("a list of checks");
    assert_eq!(results.len(), 21, "{checked:#}");
    assert!(results.iter().all(|result| result["outcome"] == "ok"), "{checked:#}");
    drive(&["--drop"]);

    // All of it in one command: load, run, check, and the shop of an earlier one dropped.
    let load = ["--load", "--drop", "--db-size", "0.1MB", "--run", "--check", "--warm-up", "200ms"];
    let shop = drive_of("dvdstore", &[&load[..], &["--duration", "2s", "--users", "4"]].concat());
    assert_eq!(shop["load"]["customers"], 200, "{shop:#}");
    assert!(shop["load"]["stored_bytes"].as_u64() > shop["load"]["bytes"].as_u64(), "{shop:#}");
    assert!(shop["run"]["opm"].as_f64().unwrap() > 100.0, "{shop:#}");
    assert!(shop["run"]["acknowledged"]["orders"].as_u64().unwrap() > 5, "{shop:#}");
    for (checks, count) in [(&shop["run"]["checks"], 34), (&shop["check"], 26)] {
        let checks = checks.as_array().expect("a list of checks");
        assert_eq!(checks.len(), count, "{shop:#}");
        assert!(checks.iter().all(|check| check["outcome"] == "ok"), "{shop:#}");
    }
    drive_of("dvdstore", &["--drop"]);
    let batch = drive_of("batch", &["--run", "--check", "--rows", "3000", "--sessions", "2"]);
    assert_eq!(batch["run"]["rows_acknowledged"], 3000, "{batch:#}");
    assert_eq!(batch["run"]["commit_latency_ns"]["count"], 3000, "{batch:#}");
    assert_eq!(batch["check"]["sha256"], batch["run"]["check"]["sha256_expected"], "{batch:#}");
    drive_of("batch", &["--drop"]);
    let asked = ["--scale", "0.01", "--load", "--run", "--check"];
    let warehouse = drive_of("warehouse", &asked);
    assert_eq!(warehouse["run"]["throughput"]["queries"], 44, "{warehouse:#}");
    let results = warehouse["check"]["results"].as_array().expect("a list of checks");
    assert_eq!(results.len(), 40, "{warehouse:#}");
    assert!(results.iter().all(|result| result["outcome"] == "ok"), "{warehouse:#}");
    drive_of("warehouse", &["--drop"]);
    host.server.stop(StopMode::Fast).unwrap();
}
