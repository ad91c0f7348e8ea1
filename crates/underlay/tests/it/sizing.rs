//! Rates within a latency target (`predict --slo`) and the smallest cluster of a family (`size`), in
//! virtual time.

use crate::common::{Bench, Ended};
use serde_json::Value;

/// Two designs of one device each, NVMe and SATA.
const STUDY: &str = r#"
name = "small"
title = "NVMe and SATA"
question = "How much faster is NVMe?"

# Few transactions per second are soon simulated.
[engine]
cpus = 0.5
memory-limit = "96MiB"

[engine.settings]
shared_buffers = "24MB"

[volumes]
data = { capacity = "2GiB" }
wal = { capacity = "2GiB" }
backup = { capacity = "1GiB" }

[[design]]
use = "kingston-nvme"
name = "nvme"

[[design]]
use = "kingston-sata-5200eco"
name = "sata"

[workload.tpcc]
warehouses = 4
home-warehouse = "drawn"

[procedure]
users = [8]
warm-up = "2s"
ramp-up = "1s"
measure = "5s"
repeats = 1
"#;

fn json(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// Sizes a family of two clusters for as many warehouses, with windows that are short enough for a
/// test.
fn sized(bench: &Bench, warehouses: &str, more: &[&str]) -> Ended {
    let family = [
        "size",
        "--workload",
        "tpcc",
        "--warehouses",
        warehouses,
        "--memory",
        "512MiB",
        "--cores",
        "1",
        "--design",
        "kingston-nvme-vsan",
        "--vary",
        "hosts=3,4",
        "--measure",
        "10s",
        "--settle",
        "1s",
        "--resolution",
        "20%",
    ];
    bench.run(&family.iter().chain(more).copied().collect::<Vec<_>>())
}

#[test]
fn the_highest_rate_of_each_design_is_found_and_its_bottleneck_named() {
    let bench = Bench::new();
    bench.write("small.toml", STUDY);
    let run = ["run", "small.toml", "--simulate", "--no-progress", "--out", "a.sqlite"];
    assert_eq!(bench.run(&run).code, Some(0));
    let predict = |more: &[&str]| {
        let fixed = [
            "predict",
            "a.sqlite",
            "--design",
            "sata",
            "--design",
            "six-hosts",
            "--slo",
            "p99=10ms",
            "--measure",
            "10s",
            "--settle",
            "1s",
            "--resolution",
            "20%",
            "--sessions",
            "32",
        ];
        bench.run(&fixed.iter().chain(more).copied().collect::<Vec<_>>())
    };
    let briefly = ["predict", "a.sqlite", "--design", "six-hosts", "--slo", "p99=10ms"];
    let windows = ["--measure", "10s", "--settle", "1s", "--resolution", "50%"];
    let text = bench.run(&[&briefly[..], &windows].concat()).expect(0);
    for said in [
        "What if, at the most users, with full caches (simulated):",
        "a neighbour's backup",
        "Its p95 is up to 1.",
        "Storage software takes no time here on six-hosts",
    ] {
        assert!(text.contains(said), "`{said}` is missing: {text}");
    }
    let predicted = json(&predict(&["--json"]));
    let slo = &predicted["slo"];
    assert_eq!((&slo["transactions"], &slo["sessions"]), (&"new_order".into(), &32.into()));
    let designs = slo["designs"].as_array().expect("a table");
    let names: Vec<_> = designs.iter().map(|it| it["design"].as_str().expect("a name")).collect();
    assert_eq!(names, ["nvme", "sata", "six-hosts"], "the recorded design comes first");
    for it in designs {
        let of = |key: &str| it[key].as_f64().expect(key);
        let (holds, fails) = (of("holds_per_second"), of("fails_per_second"));
        assert!(holds < fails && fails <= 1.2 * holds, "{it}");
        assert!(of("observed_ns") <= 10.5e6, "{it}");
        assert!(it["bottleneck"].as_str().is_some_and(|name| !name.is_empty()), "{it}");
        let rate = &it["predicted_rate_per_second"];
        let end = |key: &str| rate[key].as_f64().expect(key);
        // Where the recorded design was simulated too slow or too fast, one end is what is simulated, but for rounding.
        let (low, high) = (end("low") * (1.0 - 1e-9), end("high") * (1.0 + 1e-9));
        assert!((low..=high).contains(&holds), "{it}");
    }
    let holds = |at: usize| designs[at]["holds_per_second"].as_f64().expect("a rate");
    assert!(holds(0) > holds(1), "NVMe {} SATA {}", holds(0), holds(1));
    // The row of a policy has a meaning only on a cluster that tolerates less.
    let rows = predicted["what_if"].as_array().expect("a table");
    let row = |design: &str| {
        let is_it = |it: &&Value| it["design"] == design && it["change"] == "FTT=2";
        rows.iter().find(is_it).expect("a row")
    };
    assert!(row("six-hosts")["throughput_ratio"].is_null());
    assert!(row("six-hosts")["no_meaning"].as_str().is_some_and(|why| why.contains("already")));
    assert!(row("nvme")["throughput_ratio"].is_null());
    assert!(row("nvme")["no_meaning"].as_str().is_some_and(|why| why.contains("no policy")));

    // A family for the recorded load says how far the model is off on the recorded design.
    let record = ["size", "--record", "a.sqlite", "--measured", "nvme", "--rate", "20"];
    let family = ["--slo", "p99=1s", "--design", "six-hosts", "--vary", "hosts=6"];
    let windows = ["--measure", "10s", "--settle", "1s"];
    let sized = bench.run(&[&record[..], &family, &windows].concat()).expect(0);
    for said in
        ["Demands from the record", "the model is off by a factor of up to 1.0", "(no `stack`)"]
    {
        assert!(sized.contains(said), "`{said}` is missing: {sized}");
    }

    let refused = bench.run(&["predict", "a.sqlite", "--design", "sata", "--sessions", "3"]);
    assert_eq!(refused.code, Some(2), "of no use without --slo: {}", refused.stderr);
    let refused = predict(&["--sessions=0", "--measure=1s"]);
    assert_eq!(refused.code, Some(2), "given twice: {}", refused.stderr);
}

#[test]
fn the_smallest_cluster_is_found_and_larger_ones_are_not_simulated() {
    let bench = Bench::new();
    let answer = json(&sized(&bench, "4", &["--rate", "50", "--slo", "p99=1s", "--json"]));
    assert_eq!(answer["evidence"], "simulated");
    let designs = answer["designs"].as_array().expect("a table");
    let of = |key: &str| designs.iter().map(|it| it[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("devices"), [9, 12]);
    assert_eq!(of("outcome"), ["met", "not-simulated"]);
    assert_eq!(of("evidence"), ["simulated"; 2]);
    assert!(designs[0]["margin"].as_f64().is_some_and(|margin| margin > 0.0), "{}", designs[0]);
    assert!(designs[0]["bottleneck"].is_string());
    let smallest = &answer["smallest"];
    assert_eq!(smallest["design"], 0);
    assert!(smallest["rate_margin"].as_f64().is_some_and(|ratio| ratio >= 1.0), "{smallest}");
    let shown = sized(&bench, "4", &["--rate", "50", "--slo", "p99=1s"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    for text in ["(simulated)", "Smallest: 9 devices", "contains a design of 9 devices"] {
        assert!(shown.stdout.contains(text), "{text}: {}", shown.stdout);
    }
    assert_eq!(bench.left_on_host(), Vec::<String>::new());
}

#[test]
fn a_family_without_a_sufficient_design_has_a_table_and_an_exit_code() {
    let bench = Bench::new();
    let none = sized(&bench, "4", &["--rate", "50", "--slo", "p99=50us", "--json"]);
    assert_eq!(none.code, Some(11), "{}", none.stderr);
    let answer: Value = serde_json::from_str(&none.stdout).expect("JSON");
    assert_eq!(answer["smallest"], Value::Null);
    for it in answer["designs"].as_array().expect("a table") {
        assert_eq!(it["outcome"], "missed");
        assert!(it["margin"].as_f64().is_some_and(|margin| margin < 0.0), "{it}");
    }
    // 60,000 warehouses take 8 TB, on 5.8 or 7.7 TB.
    let full = sized(&bench, "60000", &["--rate", "50", "--slo", "p99=1s", "--json"]);
    assert_eq!(full.code, Some(11), "{}", full.stderr);
    let answer: Value = serde_json::from_str(&full.stdout).expect("JSON");
    let first = &answer["designs"][0];
    assert_eq!(first["outcome"], "no-room");
    assert!(first["reason"].as_str().is_some_and(|why| why.contains("with their copies")));
}

#[test]
fn a_study_brings_its_workload_and_bad_requests_are_refused_with_all_reasons() {
    let bench = Bench::new();
    bench.write("small.toml", STUDY);
    let of_study = [
        "size",
        "--study",
        "small.toml",
        "--design",
        "kingston-nvme-vsan",
        "--vary",
        "hosts=3",
        "--rate",
        "50",
        "--slo",
        "p99=1s",
        "--measure",
        "10s",
        "--settle",
        "1s",
        "--json",
    ];
    let answer = json(&bench.run(&of_study));
    assert_eq!(answer["sessions"], 8, "the users of the study");
    assert_eq!(answer["designs"][0]["outcome"], "met");

    let refused = |arguments: &[&str], reasons: &[&str]| {
        let ended = bench.run(arguments);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        for reason in reasons {
            assert!(ended.stderr.contains(reason), "{reason}: {}", ended.stderr);
        }
        assert_eq!(ended.stdout, "");
    };
    refused(
        &["size", "--rate", "-1", "--slo", "p99=1s", "--warehouses", "0", "--measure", "1s"],
        &["5 problems", "the workload is missing", "--rate must lie", "--warehouses", "--measure"],
    );
    refused(
        &[
            "size",
            "--study",
            "small.toml",
            "--rate",
            "1",
            "--slo",
            "p99=1s",
            "--design",
            "six-hosts",
            "--vary",
            "hosts=3",
            "--vary",
            "hosts=4",
            "--vary",
            "cache-device=none",
        ],
        &["2 problems", "hosts is varied twice", "there is no device `none`"],
    );
    refused(
        &["size", "--study", "small.toml", "--rate", "1", "--slo", "p99=1s"],
        &["is not a cluster"],
    );
    refused(&["size", "--study", "small.toml", "--rate", "1", "--slo", "p99"], &["p99=10ms"]);
    refused(
        &["size", "--study", "small.toml", "--rate", "1", "--slo", "p99=1s", "--vary", "hosts=0"],
        &["hosts takes 1 to 64"],
    );
}
