//! The causal check with a real server: what was made the bottleneck is what throughput follows.
//!
//! Both bottlenecks are far stronger than anything that a busy machine adds, and each is judged against the others of the
//! same run; so the tests hold on a shared machine.

use crate::common::{Bench, cannot_run_servers};
use serde_json::Value;

const STUDY: &str = r#"
name = "causal"
question = "Is what was slowed found?"

[engine.settings]
shared_buffers = "256MB"
max_wal_size = "512MB"

[volumes.data]
capacity = "1GiB"

[volumes.wal]
capacity = "1GiB"

[volumes.backup]
capacity = "256MiB"

[[design]]
name = "slow-log"

[design.datastore.emulated]
devices = [
  { name = "data", profile = "dc1500m-960" },
  { name = "log", profile = "dc1500m-960", overrides = { flush = "8ms" } },
]

[design.volumes.wal]
device = "log"

[[design]]
name = "little-cpu"

[design.datastore.emulated]
devices = [{ name = "data", profile = "dc1500m-960" }]

[design.engine]
cpus = 0.15

[workload.tpcc]
warehouses = 1

[procedure]
users = [4]
settle = "0s"
warm-up = "2s"
ramp-up = "1s"
measure = "5s"
repeats = 1
causal-check = "48s"
what-if = true
null-twin = false
"#;

fn sensitivity<'a>(check: &'a Value, resource: &str) -> &'a Value {
    let resources = check["resources"].as_array().expect("a list");
    let found = resources.iter().find(|it| it["resource"] == resource);
    found.unwrap_or_else(|| panic!("no {resource} in {check:#}"))
}

/// How far the intervals of a prediction and of its measurement may be apart: a quarter of the largest gain. No prediction is above
/// 1.2, so one from an elasticity above 1 has an interval of no width, and what is measured scatters around it.
const APART_MAX: f64 = 0.05;

/// Throughput over the present one with a resource 20 % faster, and its 95 % interval.
#[derive(Debug)]
struct Gain {
    value: f64,
    low: f64,
    high: f64,
}

impl Gain {
    /// `None` where it was not measured.
    fn read(reaction: &Value) -> Option<Gain> {
        // A number that is not finite is null in JSON.
        let of = |key: &str| reaction[key].as_f64().unwrap_or(f64::NAN);
        reaction.is_object().then(|| Gain { value: of("value"), low: of("low"), high: of("high") })
    }

    fn has_interval(&self) -> bool {
        let is_ordered = self.low <= self.value && self.value <= self.high;
        is_ordered && self.low > 0.0 && self.high.is_finite()
    }

    /// Whether the intervals have a number in common, if they may be so far apart.
    fn overlaps(&self, other: &Gain, apart: f64) -> bool {
        self.low - apart <= other.high && other.low - apart <= self.high
    }
}

/// The what-if table for the resource that the design makes scarce: what the slower periods predict is what the faster ones
/// show. Returns what faster periods measured for it, and for the mean of all other resources.
fn check_what_if(check: &Value, class: &str) -> (f64, f64) {
    let resources = check["resources"].as_array().expect("a list");
    let what_if = |it: &Value, which: &str| Gain::read(&it["what_if"][which]);
    let of_class = sensitivity(check, class);
    let predicted = what_if(of_class, "predicted").expect("a prediction");
    let measured = what_if(of_class, "measured").expect("it was made faster");
    assert!(predicted.has_interval() && measured.has_interval(), "{check:#}");
    // A gain of 20 % at most is not told by an interval whose ends differ by a factor of two.
    assert!(measured.low < measured.high && measured.high < 2.0 * measured.low, "{check:#}");

    // What limits a design takes more than half of the time: without a sixth of it, throughput gains more than 9 %. All of the
    // time gains 20 %, and no prediction is above that.
    assert!(predicted.value > 1.09 && predicted.high < 1.2 + 1e-6, "{predicted:?} {check:#}");
    assert!(predicted.overlaps(&measured, APART_MAX), "{predicted:?} {measured:?} {check:#}");

    // What is plentiful has next to no effect. The mean of several scatters less than each.
    let others: Vec<f64> = resources
        .iter()
        .filter(|it| it["resource"] != class)
        .filter_map(|it| what_if(it, "measured"))
        .map(|gain| gain.value)
        .collect();
    assert!(others.len() >= 2, "reads and data writes can be made faster: {check:#}");
    (measured.value, others.iter().sum::<f64>() / others.len() as f64)
}

#[test]
fn a_slow_log_and_a_small_cpu_limit_are_found_by_experiment() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("causal.toml", STUDY);
    let ended =
        bench.run(&["run", "causal.toml", "--out", "causal.sqlite", "--no-progress", "--json"]);
    let stderr = ended.stderr.clone();
    let analysis: Value = serde_json::from_str(&ended.expect(0)).expect("JSON");
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    let checks = analysis["causal_checks"].as_array().expect("a list");
    assert_eq!(checks.len(), 2, "{stderr}");
    let mut faster = Vec::new();
    for (check, (design, class)) in checks.iter().zip([(0, "log"), (1, "cpu")]) {
        assert_eq!((&check["design"], &check["users"]), (&design.into(), &4.into()));
        assert_eq!(check["class"], class, "{check:#}");
        assert_eq!(check["tied"], Value::Array(Vec::new()), "{check:#}");
        // Near 1, but from few seconds: the interval tells, not the value.
        let follows = &sensitivity(check, class)["throughput"];
        let bound = |what: &str| follows[what].as_f64().expect("a number");
        assert!(bound("low") > 0.0 && bound("low") < 1.6 && bound("high") > 0.5, "{check:#}");
        faster.push(check_what_if(check, class));
        // Nobody can slow the network of a device.
        assert!(!check.to_string().contains("\"network\""), "{check:#}");
    }

    // About 15 % to 20 % is expected of what is scarce, nothing of the rest. A period has room for seven turns of the CPU
    // quota, of which each end may lose one: single means scatter by up to a tenth, and the two designs are judged together.
    let mean = |of: fn(&(f64, f64)) -> f64| faster.iter().map(of).sum::<f64>() / 2.0;
    assert!(mean(|gains| gains.0) > mean(|gains| gains.1).max(1.0), "{faster:?}");

    // Nothing of it is a measured window, and the time line shows what was done.
    assert_eq!(analysis["windows"].as_array().map(Vec::len), Some(2));
    let run = &analysis["runs"][0];
    let phases = run["phases"].as_array().expect("a list");
    let check = phases.iter().find(|phase| phase["kind"] == "causal-check").expect("a phase");
    let measure = phases.iter().find(|phase| phase["kind"] == "measure").expect("a phase");
    assert!(measure["end_s"].as_f64() <= check["begin_s"].as_f64(), "{run:#}");
    let events = run["events"].as_array().expect("a list");
    let changed = events.iter().filter(|event| event["kind"] == "perturbation").count();
    // On a crowded host the CPU of a server without a limit is left alone.
    assert!(changed >= 2 * 3 * 3, "{changed} changes");
}

/// Storage of this host cannot be slowed selectively, and the answer says so.
#[test]
fn what_cannot_be_slowed_is_only_observed() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    std::fs::create_dir(bench.path().join("here")).expect("a folder");
    let begin = STUDY.find("[[design]]").expect("designs");
    let workload = STUDY.find("[workload.tpcc]").expect("a workload");
    let here = bench.path().join("here");
    let design = format!(
        "[[design]]\nname = \"here\"\ndatastore.path.directory = {:?}\n\n",
        here.display().to_string()
    );
    let study = [&STUDY[..begin], &design, &STUDY[workload..]].concat();
    bench.write("here.toml", &study.replace("causal-check = \"48s\"", "causal-check = \"10s\""));
    let ended = bench.run(&["run", "here.toml", "--out", "here.sqlite", "--no-progress", "--json"]);
    let analysis: Value = serde_json::from_str(&ended.expect(0)).expect("JSON");
    let check = &analysis["causal_checks"][0];
    let fixed: Vec<&str> = check["not_perturbed"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["resource"].as_str())
        // On a crowded host the CPU is left alone as well.
        .filter(|resource| *resource != "cpu")
        .collect();
    assert_eq!(fixed, ["log", "data-read", "data-write"], "{check:#}");
    sensitivity(check, "client");
}
