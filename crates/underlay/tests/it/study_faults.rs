//! Faults that a study schedules, through the program: what is refused, what happens when, and what is said afterwards. Real
//! PostgreSQL on emulated storage that breaks under it.

use crate::common::{Bench, SMALL_STUDY, cannot_run_servers};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The small study on a cluster of that many hosts, and on a single device; then `faults`.
fn study(hosts: usize, failures_to_tolerate: u8, faults: &str) -> String {
    let (head, rest) = SMALL_STUDY.split_once("[[design]]").expect("designs");
    let (_, rest) = rest.split_once("[workload.tpcc]").expect("a workload");
    let rest = rest
        .replace("users = [1, 2]", "users = [4]")
        .replace("measure = \"5s\"", "measure = \"14s\"");
    format!(
        r#"{head}
[[design]]
name = "cluster"
[design.datastore.cluster]
hosts = [{{ name = "h", count = {hosts}, disk-groups = [{{ cache = "dc1500m-960", capacity = ["dc500m-1920"] }}] }}]
network = {{ latency = "20us", bytes-per-second = "1250MB" }}
policy = {{ failures-to-tolerate = {failures_to_tolerate} }}
repair-delay = "1s"

[[design]]
name = "device"
datastore.emulated.devices = [{{ name = "ssd", profile = "dc1500m-960" }}]

[workload.tpcc]{rest}
{faults}
"#
    )
}

/// The lines of a table of a record.
struct Exported(Vec<Value>);

impl Exported {
    fn of(bench: &Bench, record: &str) -> Exported {
        bench.run(&["export", record, "--jsonl", "all.jsonl"]).expect(0);
        let text = std::fs::read_to_string(bench.path().join("all.jsonl")).expect("the export");
        Exported(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
    }

    fn table(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |line| line["table"] == name)
    }

    /// The run of that design.
    fn run_of(&self, design: &str) -> &Value {
        let index =
            &self.table("design").find(|it| it["name"] == design).expect("a design")["design"];
        self.table("run").find(|run| run["design"] == *index).expect("a run")
    }

    fn events<'e>(&'e self, run: &'e Value, kind: &'e str) -> Vec<&'e Value> {
        self.table("event").filter(|it| it["run"] == run["run"] && it["kind"] == kind).collect()
    }

    fn document(&self, run: &Value, name: &str) -> &Value {
        let mut documents = self.table("document");
        let found = documents.find(|it| it["run"] == run["run"] && it["name"] == name);
        &found.unwrap_or_else(|| panic!("no document {name}"))["content"]
    }

    fn findings(&self, run: &Value) -> Vec<&str> {
        let of_run = self.table("finding").filter(|it| it["run"] == run["run"]);
        of_run.filter_map(|it| it["code"].as_str()).collect()
    }

    /// How long after the beginning of the measured window an event was.
    fn seconds_into_measure(&self, run: &Value, event: &Value) -> f64 {
        let measure = self
            .table("phase")
            .find(|it| it["run"] == run["run"] && it["kind"] == "measure")
            .expect("a measured window");
        let at = |value: &Value| value.as_u64().expect("a time") as f64 / 1e9;
        at(&event["at_ns"]) - at(&measure["begin_ns"])
    }
}

#[track_caller]
fn close_to(found: f64, expected: f64) {
    // Late by what a loaded host takes to notice; never early, but for the way of an answer between two clocks.
    assert!(
        (expected - 0.05..expected + 1.5).contains(&found),
        "at {found:.3} s instead of {expected} s"
    );
}

#[test]
fn a_plan_names_its_faults_and_refuses_what_cannot_happen() {
    let bench = Bench::new();
    let fault = "[[fault]]\nkind = \"host-lost\"\nhost = \"h-2\"\nat = \"2s\"\nlasts = \"3s\"\n";
    bench.write("good.toml", &study(4, 1, &format!("{fault}designs = [\"cluster\"]\n")));
    let plan: Value = serde_json::from_str(&bench.run(&["check", "good.toml", "--json"]).expect(0))
        .expect("JSON");
    let planned = &plan["faults"][0];
    assert_eq!(planned["kind"], "host-lost");
    assert_eq!(planned["host"], "h-2");
    assert_eq!((&planned["users"], &planned["phase"]), (&Value::from(4), &Value::from("measure")));
    assert_eq!(planned["at_ns"], 2_000_000_000u64);
    let page = bench.run(&["check", "good.toml"]).expect(0);
    assert!(page.contains("2 s into measure at 4 users: host h-2 is lost"), "{page}");

    let unknown = fault.replace("h-2", "h-9");
    bench.write("bad.toml", &study(4, 1, &format!("{unknown}designs = [\"cluster\"]\n{fault}")));
    let ended = bench.run(&["check", "bad.toml"]);
    assert_eq!(ended.code, Some(2));
    // Both problems at once, with their lines.
    for expected in
        ["no host `h-9`", "`h-1`, `h-2`", "cannot happen to design `device`", "bad.toml:"]
    {
        assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
    }
    let loaded = std::fs::read_dir(bench.state().join("templates")).into_iter().flatten().count();
    assert_eq!(loaded, 0, "something was touched");
}

#[test]
fn a_lost_host_costs_nothing_and_a_power_cut_is_recovered_from() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let faults = r#"
[[fault]]
kind = "device-slow"
device = "h-2/group-1/disk0"
factor = 3.0
at = "1s"
lasts = "500ms"
designs = ["cluster"]

[[fault]]
kind = "host-lost"
host = "h-1"
at = "2s"
lasts = "8s"
designs = ["cluster"]

[[fault]]
kind = "power-cut"
at = "2s"
lasts = "1s"
designs = ["device"]
"#;
    bench.write("faults.toml", &study(4, 1, faults));
    let ended = bench.run(&["run", "faults.toml", "--out", "faults.sqlite", "--no-progress"]);
    let stderr = ended.stderr.clone();
    ended.expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    let exported = Exported::of(&bench, "faults.sqlite");

    let run = exported.run_of("cluster");
    let happened = exported.events(run, "fault");
    let kinds: Vec<_> = happened.iter().filter_map(|it| it["data"]["kind"].as_str()).collect();
    assert_eq!(kinds, ["device-slow", "host-lost"]);
    close_to(exported.seconds_into_measure(run, happened[0]), 1.0);
    close_to(exported.seconds_into_measure(run, happened[1]), 2.0);
    let repairs = exported.events(run, "repair");
    assert_eq!(repairs.len(), 2);
    close_to(exported.seconds_into_measure(run, repairs[0]), 1.5);
    close_to(exported.seconds_into_measure(run, repairs[1]), 10.0);
    let verdict = exported.document(run, "faults");
    assert_eq!(verdict["verdict"], "survived", "{verdict:#}\n{stderr}");
    assert_eq!((&verdict["tolerated"], &verdict["failures_at_once"]), (&1.into(), &1.into()));
    assert!(exported.findings(run).contains(&"faults-survived"));
    // The loss was noticed after the time it takes, and what was missed was copied.
    let storage = exported.events(run, "storage");
    let noticed = storage.iter().find(|it| it["text"] == "host h-1 is not reachable");
    let noticed = noticed.unwrap_or_else(|| panic!("nobody noticed: {storage:#?}"));
    close_to(exported.seconds_into_measure(run, noticed), 7.0);
    assert!(!exported.events(run, "resync").is_empty());

    let run = exported.run_of("device");
    let cut = exported.events(run, "fault");
    close_to(exported.seconds_into_measure(run, cut[0]), 2.0);
    let recovery = exported.events(run, "recovery");
    assert!(recovery[0]["text"].as_str().is_some_and(|text| text.contains("power was cut")));
    let verdict = exported.document(run, "faults");
    assert_eq!(verdict["verdict"], "down", "{verdict:#}\n{stderr}");
    assert!(exported.findings(run).contains(&"fault-took-database-down"));
    // Users went on afterwards.
    let up = recovery[0]["data"]["until_ns"].as_u64().expect("a time");
    let after = exported.table("transactions").filter(|tick| {
        tick["run"] == run["run"] && tick["begin_ns"].as_u64().is_some_and(|begin| begin > up)
    });
    let committed: u64 = after.filter_map(|tick| tick["committed"].as_u64()).sum();
    assert!(committed > 0, "nothing was committed after the power was back\n{stderr}");
}

#[test]
fn rot_is_repaired_while_the_cluster_changes_and_a_stuck_device_is_waited_for() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let faults = r#"
[[fault]]
kind = "bit-rot"
volume = "data"
bits = 20
at = "1s"
designs = ["cluster"]

[[fault]]
kind = "policy-change"
volume = "data"
policy = { iops-limit = 50000 }
at = "2s"
designs = ["cluster"]

[[fault]]
kind = "disk-group-added"
host = "h-1"
disk-group = { cache = "dc1500m-960", capacity = ["dc500m-1920"] }
at = "3s"
designs = ["cluster"]

[[fault]]
kind = "device-stuck"
device = "ssd"
at = "2s"
lasts = "2s"
designs = ["device"]
"#;
    bench.write("rot.toml", &study(3, 1, faults));
    let ended = bench.run(&["run", "rot.toml", "--out", "rot.sqlite", "--no-progress"]);
    let stderr = ended.stderr.clone();
    ended.expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    let exported = Exported::of(&bench, "rot.sqlite");

    let run = exported.run_of("cluster");
    let verdict = exported.document(run, "faults");
    assert_eq!(verdict["verdict"], "survived", "{verdict:#}\n{stderr}");
    assert_eq!(verdict["faults"].as_array().map(Vec::len), Some(3));
    assert!(exported.events(run, "repair").is_empty(), "single acts are not mended");

    // Nobody wrote anything while it was stuck, and everybody went on afterwards.
    let run = exported.run_of("device");
    assert_eq!(exported.document(run, "faults")["verdict"], "survived", "{stderr}");
    let measure =
        exported.table("phase").find(|it| it["run"] == run["run"] && it["kind"] == "measure");
    let began = measure.expect("a measured window")["begin_ns"].as_u64().expect("a time");
    let committed = |from: f64, until: f64| -> u64 {
        let ticks = exported.table("transactions").filter(|tick| {
            let at = |key: &str| tick[key].as_u64().expect("a time") as f64 - began as f64;
            tick["run"] == run["run"] && at("begin_ns") >= from * 1e9 && at("end_ns") <= until * 1e9
        });
        ticks.filter_map(|tick| tick["committed"].as_u64()).sum()
    };
    let (before, stuck, after) = (committed(0.0, 2.1), committed(2.9, 4.1), committed(4.9, 14.1));
    assert!(before > 0 && after > 0, "{before} {after}");
    assert!(stuck * 10 < before, "{stuck} commits on a stuck device, {before} before\n{stderr}");
}

/// A mirrored log loses a copy; a filled cluster gets a device before the load, and evens out after it.
#[test]
fn a_mirror_goes_on_without_a_copy_and_a_filled_cluster_takes_a_device_in() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let faults = r#"
[start]
fill-percent = 82

[[fault]]
kind = "device-lost"
device = "log/disk1"
at = "1s"
lasts = "3s"
designs = ["device"]

[[fault]]
kind = "device-added"
to = "h-1/group-1"
profile = { profile = "dc500m-1920", overrides = { capacity = "64GB" } }
phase = "warm-up"
at = "100ms"
designs = ["cluster"]
"#;
    let capacity =
        "capacity = [{ profile = \"dc500m-1920\", overrides = { capacity = \"64GB\" } }]";
    let text = study(3, 1, faults)
        .replace("capacity = [\"dc500m-1920\"]", capacity)
        .replace(
            "datastore.emulated.devices = [{ name = \"ssd\", profile = \"dc1500m-960\" }]",
            "volumes.wal.device = \"log\"\n[design.datastore.emulated]\nlink = \"1600MB\"\ndevices = [{ name = \"ssd\", \
             profile = \"dc1500m-960\" }, { name = \"log\", profile = \"dc1500m-960\", layout = \"mirror\" }]",
        )
        .replace(
            "measure = \"14s\"",
            "measure = \"7s\"\ncool-down = { until = \"resync-done\", at-most = \"5s\" }",
        );
    bench.write("joins.toml", &text);
    let ended = bench.run(&["run", "joins.toml", "--out", "joins.sqlite", "--no-progress"]);
    let stderr = ended.stderr.clone();
    ended.expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    let exported = Exported::of(&bench, "joins.sqlite");
    let cool_down = |run: &Value| -> f64 {
        let of_run = |it: &&Value| it["run"] == run["run"] && it["kind"] == "cool-down";
        let phase = exported.table("phase").find(of_run).expect("a cool-down");
        let at = |key: &str| phase[key].as_u64().expect("a time") as f64 / 1e9;
        at("end_ns") - at("begin_ns")
    };

    let mirror = exported.run_of("device");
    let verdict = exported.document(mirror, "faults");
    assert_eq!(verdict["verdict"], "survived", "{verdict:#}\n{stderr}");
    assert_eq!((&verdict["tolerated"], &verdict["failures_at_once"]), (&1.into(), &1.into()));
    let took = cool_down(mirror);
    assert!(took < 4.5, "the copy has everything, but the cool-down took {took} s");

    let cluster = exported.run_of("cluster");
    assert_eq!(exported.document(cluster, "faults")["verdict"], "survived", "{stderr}");
    // Tens of gigabytes are to be moved, which takes longer.
    assert!(cool_down(cluster) > 4.5);
    assert!(exported.findings(cluster).contains(&"resync-not-done"), "{stderr}");
}

#[test]
fn the_loss_of_the_only_copy_is_reported() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let faults = "[[fault]]\nkind = \"device-lost\"\ndevice = \"h/group-1/disk0\"\nat = \"2s\"\nlasts = \"2s\"\n\
                  designs = [\"cluster\"]\n";
    bench.write("lost.toml", &study(1, 0, faults));
    let page = bench.run(&["check", "lost.toml"]).expect(0);
    assert!(page.contains("beyond-the-promise"), "{page}");
    let arguments = ["run", "lost.toml", "--out", "lost.sqlite", "--no-progress"];
    let ended = bench.run(&arguments);
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    let exported = Exported::of(&bench, "lost.sqlite");
    let run = exported.run_of("cluster");
    assert_eq!(run["status"], "failed");
    let verdict = exported.document(run, "faults");
    assert_eq!(verdict["verdict"], "lost", "{verdict:#}\n{}", ended.stderr);
    assert_eq!(verdict["promise_exceeded_by"], "device h/group-1/disk0 is lost");
    assert!(exported.findings(run).contains(&"fault-lost-data"));
    // The other design was measured all the same.
    assert_eq!(exported.run_of("device")["status"], "finished");
}

/// Processes that wait for a stuck device cannot be killed; what is left must go all the same.
#[test]
fn a_run_that_is_killed_while_its_device_is_stuck_is_removed() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let faults = "[[fault]]\nkind = \"device-stuck\"\ndevice = \"ssd\"\nat = \"1s\"\ndesigns = [\"device\"]\n";
    bench.write("stuck.toml", &study(3, 1, faults));
    let log = std::fs::File::create(bench.path().join("log")).expect("a file");
    let mut child = bench
        .underlay()
        .args([
            "run",
            "stuck.toml",
            "--out",
            "stuck.sqlite",
            "--no-progress",
            "--designs",
            "device",
        ])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("the program starts");
    let said = || std::fs::read_to_string(bench.path().join("log")).unwrap_or_default();
    let deadline = Instant::now() + Duration::from_secs(90);
    while !said().contains("is stuck") {
        assert!(child.try_wait().expect("a child").is_none(), "ended early: {}", said());
        assert!(Instant::now() < deadline, "no fault: {}", said());
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(1_500));
    child.kill().expect("SIGKILL");
    child.wait().expect("a child");
    bench.run(&["clean"]).expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left after a kill");
}
