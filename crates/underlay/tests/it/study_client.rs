//! Studies whose client is not where it always is: within the server's limits, or behind a network; and users who share
//! connections.

use crate::common::{Bench, SMALL_STUDY, SMALL_WORKLOAD, cannot_run_servers};
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};
use underlay_database::mariadb::find_installs as find_mariadb;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON on standard output")
}

fn metric(analysis: &Value, design: usize, name: &str) -> f64 {
    let rungs = analysis["rungs"].as_array().expect("rungs").iter();
    let of_design: Vec<&Value> = rungs.filter(|rung| rung["design"] == design).collect();
    let value = &of_design[0]["metrics"][name]["value"];
    value.as_f64().unwrap_or_else(|| panic!("no {name} of design {design}: {:#}", of_design[0]))
}

fn has_finding(analysis: &Value, code: &str) -> bool {
    let findings = analysis["findings"].as_array().expect("findings");
    findings.iter().any(|finding| finding["code"] == code)
}

/// Sessions by class of the only rung of a design.
fn budget(analysis: &Value, design: usize) -> Vec<(String, f64)> {
    let rungs = analysis["bottlenecks"].as_array().expect("bottlenecks").iter();
    let of_design: Vec<&Value> = rungs.filter(|rung| rung["design"] == design).collect();
    let parts = of_design[0]["budget"].as_array().expect("a budget").iter();
    parts
        .map(|part| {
            let class = part["class"].as_str().expect("a class").to_string();
            (class, part["sessions"].as_f64().expect("sessions"))
        })
        .collect()
}

fn sessions(budget: &[(String, f64)], class: &str) -> f64 {
    budget.iter().find(|(name, _)| name == class).map_or(0.0, |(_, sessions)| *sessions)
}

const FAR: &str = "name = \"b\"\n[design.client]\nplace = \"remote\"\nround-trip = \"10ms\"\n";

#[test]
fn a_remote_client_waits_for_its_network_and_the_report_says_so() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    // Users that do not pause: what they wait for is the network.
    let unpaced = SMALL_STUDY.replace(SMALL_WORKLOAD, "[workload.tpcc]\nwarehouses = 1\n");
    assert_ne!(unpaced, SMALL_STUDY);
    let study = unpaced.replace("kingston-nvme", "null").replace("name = \"b\"\n", FAR);
    bench.write("far.toml", &study);
    let plan = bench.run(&["check", "far.toml"]).expect(0);
    assert!(plan.contains("client remote, round trip 10 ms"), "{plan}");
    let arguments = ["run", "far.toml", "--out", "far.sqlite", "--no-progress", "--json"];
    let analysis = json(&bench.run(&[&arguments[..], &["--users", "2"]].concat()).expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    // A transaction of procedures is one round trip.
    let round_trips = metric(&analysis, 1, "client_round_trips");
    assert!((0.9..1.2).contains(&round_trips), "{round_trips} round trips");
    let network_ns = metric(&analysis, 1, "client_network_ns");
    assert!((9.8e6..13e6).contains(&network_ns), "{network_ns} ns");
    let rungs = analysis["rungs"].as_array().expect("rungs");
    let rung = rungs.iter().find(|rung| rung["design"] == 1).expect("a rung");
    // What one without a network takes beside it depends on who else uses this host's processors.
    let median_ns = rung["latencies"][0]["p50"]["value"].as_f64().expect("a median");
    assert!(median_ns >= 10e6, "{median_ns} ns over the network");
    let far = budget(&analysis, 1);
    assert!(sessions(&far, "client-network") > sessions(&far, "client"), "{far:?}");
    assert_eq!(sessions(&budget(&analysis, 0), "client-network"), 0.0);
    assert!(has_finding(&analysis, "client-network"), "{:#}", analysis["findings"]);
    // Where the client is, is no storage; what follows from it is not listed besides.
    let paths: Vec<&str> = analysis["confounds"]
        .as_array()
        .expect("confounds")
        .iter()
        .filter_map(|confound| confound["path"].as_str())
        .collect();
    assert!(paths.contains(&"design.client.place"), "{paths:?}");
    assert!(!paths.iter().any(|path| path.contains("listen_addresses")), "{paths:?}");
}

#[test]
fn users_of_mariadb_share_connections_over_a_network() {
    let reason = cannot_run_servers().or_else(|| {
        find_mariadb(None, None).is_empty().then_some("needs MariaDB's server programs")
    });
    if let Some(reason) = reason {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let study = SMALL_STUDY
        .replace("[engine]\nmemory-limit = \"192MiB\"", "[engine]\nkind = \"mariadb\"")
        .replace("shared_buffers = \"48MB\"", "innodb_buffer_pool_size = \"64M\"")
        .replace("max_wal_size = \"256MB\"", "innodb_log_file_size = \"64M\"")
        .replace("warehouses = 1", "warehouses = 1\nhome-warehouse = \"drawn\"")
        .replace(
            "[volumes.data]",
            "[client]\nplace = \"remote\"\nround-trip = \"2ms\"\nbytes-per-second = \"12MB\"\n\
             connections = 2\n\n[volumes.data]",
        )
        .replace("users = [1, 2]", "users = [8]\nwarm-up-users = 3");
    bench.write("pool.toml", &study);
    let arguments = ["run", "pool.toml", "--out", "pool.sqlite", "--no-progress", "--json"];
    let analysis = json(&bench.run(&[&arguments[..], &["--designs", "a"]].concat()).expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    // Three of four users wait at any time, for two who need 2 ms each and more.
    let wait_ns = metric(&analysis, 0, "connection_wait_ns");
    assert!(wait_ns > 4e6, "{wait_ns} ns");
    assert!(metric(&analysis, 0, "client_network_ns") > 1.8e6);
    for code in ["connection-wait", "client-network"] {
        assert!(has_finding(&analysis, code), "no {code}: {:#}", analysis["findings"]);
    }
    let sampled: f64 = budget(&analysis, 0).iter().map(|(_, sessions)| sessions).sum();
    assert!((1.6..2.4).contains(&sampled), "{sampled} sessions");
    let phases = analysis["runs"][0]["phases"].as_array().expect("phases");
    let warm_up = phases.iter().find(|phase| phase["kind"] == "warm-up").expect("a warm-up");
    assert_eq!(warm_up["users"], 3, "{warm_up:#}");
}

/// The lab's process for a local client, with the control groups it is in.
fn client_process(bench: &Bench) -> Option<(u32, String)> {
    let state = bench.state().to_string_lossy().into_owned();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found = numbers.filter_map(|pid| {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let is_client = command.contains("\0client\0") && command.contains(&state);
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        is_client.then_some((pid, groups))
    });
    found.next()
}

fn wait_for_client(bench: &Bench) -> (u32, String) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = client_process(bench) {
            return found;
        }
        assert!(Instant::now() < deadline, "there is no process of a local client");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_local_client_is_within_the_limits_of_the_server_and_leaves_nothing_behind() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let study = SMALL_STUDY
        .replace("[volumes.data]", "[client]\nplace = \"local\"\n\n[volumes.data]")
        .replace("memory-limit", "cpus = 1\nmemory-limit");
    bench.write("local.toml", &study);
    let start = || {
        let mut command = bench.underlay();
        command.args(["run", "local.toml", "--out", "local.sqlite", "--no-progress", "--json"]);
        command.args(["--designs", "a", "--users", "2"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    };
    // Killed with a client under way: it ends with its lab, and nothing stays once the host is cleaned.
    let mut killed = start();
    let (client, groups) = wait_for_client(&bench);
    let of_run = format!("-{}-", killed.id());
    let is_of_run = |line: &str| line.contains("underlay") && line.contains(&of_run);
    assert!(groups.lines().any(is_of_run), "{client}: {groups}");
    killed.kill().expect("SIGKILL");
    killed.wait().expect("its end");
    bench.run(&["clean"]).expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");

    let ended = start().wait_with_output().expect("its end");
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{stderr}");
    let analysis = json(&String::from_utf8_lossy(&ended.stdout));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    assert!(metric(&analysis, 0, "transactions_per_second") > 0.0);
    // Together they have one processor.
    let both = metric(&analysis, 0, "server_cores") + metric(&analysis, 0, "driver_cores");
    assert!(both <= 1.1, "{both} cores");
    assert!(metric(&analysis, 0, "driver_cores") > 0.0);
    assert!(has_finding(&analysis, "client-within-limits"), "{:#}", analysis["findings"]);
    assert!(!has_finding(&analysis, "generator-saturated"));
    let checks = analysis["checks"].as_array().expect("checks");
    assert!(
        !checks.is_empty() && checks.iter().all(|check| check["outcome"] == "ok"),
        "{checks:#?}"
    );
}
