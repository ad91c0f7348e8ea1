//! The commands `simulate` and `calibrate` as programs see them: JSON, exit codes, refusals, and that a folder is left as it was.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn underlay(arguments: &[&str], state: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_underlay"))
        .args(arguments)
        .env("UNDERLAY_STATE_DIR", state)
        .output()
        .expect("the program starts")
}

fn json(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}\n{text}\n{}", String::from_utf8_lossy(&output.stderr))
    })
}

#[test]
fn a_workload_on_a_design_gives_distributions_and_the_same_ones_again() {
    let state = tempfile::tempdir().expect("a folder");
    let arguments = [
        "simulate",
        "--design",
        "vmware-pm1725a",
        "--workload",
        "8k-random-70-30",
        "--volumes",
        "4",
        "--size",
        "1GiB",
        "--queue-depth",
        "8",
        "--requests",
        "3000",
        "--json",
    ];
    let first = json(&underlay(&arguments, state.path()));
    assert_eq!(first["evidence"], "simulated");
    let run = &first["outcome"]["run"];
    assert!(run["iops"].as_f64().is_some_and(|iops| iops > 1000.0), "{run}");
    let read = &run["streams"][0]["read"]["response_ns"];
    let value = |name: &str| read[name].as_u64().expect("a percentile");
    assert!(value("p50") <= value("p99") && value("p99") <= value("max"), "{read}");
    assert_eq!(first, json(&underlay(&arguments, state.path())), "the same seed, the same output");
    // All that is needed to repeat it, and what had no part.
    let setup = &first["setup"];
    for (key, value) in [
        ("workload", Value::from("8k-random-70-30")),
        ("volumes", Value::from(4)),
        ("size_bytes", Value::from(1u64 << 30)),
        ("threads", Value::from(1)),
        ("queue_depth", Value::from(8)),
        ("rate_per_second", Value::Null),
        ("requests_at_most", Value::from(3000)),
        ("warm_up_seconds", Value::from(0.5)),
        ("seed", Value::from(1)),
    ] {
        assert_eq!(setup[key], value, "{key} of {setup}");
    }
    assert_eq!(setup["stack"]["ns_per_io"], 13_300, "that of the design: {setup}");
    assert_eq!(setup["write_buffers_at_end"]["destaged_bytes"], 0, "{setup}");
    let notes = first["notes"].to_string();
    assert!(notes.contains("nothing was destaged"), "{notes}");
    assert_eq!(run["seconds"][0]["begins_seconds"], -0.5, "the warm-up is told apart: {run}");
}

#[test]
fn a_small_write_buffer_shows_destaging_and_a_stack_its_cost() {
    let state = tempfile::tempdir().expect("a folder");
    let simulated = |more: &[&str]| {
        let mut arguments = vec!["simulate", "--design", "storagereview-optane-reduced"];
        arguments.extend(["--workload", "64k-sequential-write", "--volumes", "8"]);
        arguments.extend(["--requests", "20000", "--json"]);
        arguments.extend(more);
        let outcome = json(&underlay(&arguments, state.path()));
        (outcome["outcome"]["run"]["iops"].as_f64().expect("a rate"), outcome)
    };
    let (buffered, _) = simulated(&[]);
    let (destaged, outcome) = simulated(&["--write-buffer", "16MiB"]);
    let buffers = &outcome["setup"]["write_buffers_at_end"];
    assert!(buffers["destaged_bytes"].as_u64() > Some(0), "{outcome}");
    assert!(destaged < 0.9 * buffered, "{destaged} {buffered}");
    let (slower, outcome) = simulated(&["--stack", "500"]);
    assert!(slower < 0.9 * buffered, "{slower} {buffered}");
    assert_eq!(outcome["setup"]["stack"]["ns_per_io"], 500_000, "{outcome}");
    assert!(outcome["setup"]["stack"]["ps_per_byte"].as_u64() > Some(0), "{outcome}");
}

#[test]
fn the_summary_of_a_curve_takes_no_overloaded_point() {
    let state = tempfile::tempdir().expect("a folder");
    let arguments = ["simulate", "--design", "kingston-nvme", "--curve", "--seed", "4"];
    let arguments =
        [&arguments[..], &["--requests", "30000", "--warm-up", "0.05", "--json"]].concat();
    let curve = &json(&underlay(&arguments, state.path()))["outcome"];
    let points = curve["points"].as_array().expect("points");
    let last = points.last().expect("a point at 120 %");
    assert_eq!(last["saturated"], true, "{last}");
    for kept in [&curve["highest_kept"], &curve["highest_kept_below_1_ms"]] {
        let point = points.iter().find(|point| point["percent"] == kept["percent"]);
        assert_eq!(point.expect("one of the points")["saturated"], false, "{kept}");
        assert!(kept["mean_response_ms"].as_f64() < Some(5.0), "{kept}");
    }
}

#[test]
fn a_design_may_be_a_file() {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("mine.toml");
    let name = file.to_str().expect("a path").to_string();
    let arguments =
        ["simulate", "--design", &name, "--size", "64MiB", "--requests", "500", "--json"];
    std::fs::write(
        &file,
        "use = \"hdd\"\nname = \"mine\"\n\n[datastore.emulated]\ndevices = [{ name = \"disk\", profile = \"dc500m-1920\", \
         members = 2 }]\n",
    )
    .expect("written");
    let run = &json(&underlay(&arguments, state.path()))["outcome"]["run"];
    assert!(
        run["iops"].as_f64() > Some(1000.0),
        "no longer the disk of the built-in design: {run}"
    );
    std::fs::write(&file, "name = \"mine\"\n\n[datastore]\nspeed = 7\n").expect("written");
    let output = underlay(&arguments, state.path());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("mine.toml:4") && text.contains("`speed`"), "{text}");
}

#[test]
fn a_device_is_a_design_of_its_own() {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("mine.toml");
    let shown = underlay(&["show", "dc500m-1920"], state.path());
    std::fs::write(&file, shown.stdout).expect("written");
    let simulated = |design: &str| {
        let arguments =
            ["simulate", "--design", design, "--size", "64MiB", "--requests", "500", "--json"];
        json(&underlay(&arguments, state.path()))["outcome"]["run"].clone()
    };
    let by_name = simulated("dc500m-1920");
    assert!(by_name["iops"].as_f64() > Some(1000.0), "{by_name}");
    assert_eq!(by_name, simulated(file.to_str().expect("a path")));
}

#[test]
fn an_open_loop_beyond_the_storage_is_called_overload() {
    let state = tempfile::tempdir().expect("a folder");
    let arguments = [
        "simulate",
        "--design",
        "hdd",
        "--workload",
        "4k-random-read",
        "--rate",
        "1000",
        "--seconds",
        "5",
        "--queue-depth",
        "8",
    ];
    let output = underlay(&arguments, state.path());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("overload"), "{text}");
}

#[test]
fn a_rate_that_nothing_can_keep_ends_soon_and_says_so() {
    let state = tempfile::tempdir().expect("a folder");
    let output = underlay(&["simulate", "--design", "hdd", "--rate", "1e9"], state.path());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(6), "{text}");
    assert!(text.contains("cannot sustain 1000000000 requests per second"), "{text}");
}

#[test]
fn published_experiments_become_rows_and_a_page() {
    let state = tempfile::tempdir().expect("a folder");
    let page = state.path().join("page.html");
    let arguments = [
        "simulate",
        "--study",
        "kingston-drives",
        "--requests",
        "4000",
        "--json",
        "--html",
        page.to_str().expect("a path"),
    ];
    let outcome = json(&underlay(&arguments, state.path()));
    assert_eq!(outcome["testbeds"][0]["rows"].as_array().map(Vec::len), Some(3));
    assert!(outcome["median_error_percent"].as_f64().is_some());
    let page = std::fs::read_to_string(page).expect("written");
    assert!(page.starts_with("<!doctype html>") && page.contains("KFa"));
}

#[test]
fn wrong_names_are_refused_with_the_right_ones() {
    let state = tempfile::tempdir().expect("a folder");
    for (arguments, wanted) in [
        (vec!["simulate", "--design", "kingston"], "kingston-nvme"),
        (
            vec!["simulate", "--design", "/nonexistent/design.toml"],
            "there is no design, device or file",
        ),
        (vec!["simulate", "--study", "nobody"], "storagereview"),
        (vec!["simulate", "--design", "null", "--workload", "5k"], "4k-random-read"),
        (vec!["simulate", "--design", "null", "--size", "64KiB", "--threads", "99"], "--size"),
        (vec!["simulate"], "--design"),
        // Virtual time would not pass.
        (vec!["simulate", "--design", "null", "--warm-up", "0", "--seconds", "1"], "--rate"),
        (vec!["simulate", "--design", "null", "--curve"], "--rate"),
        // What would be ignored.
        (vec!["simulate", "--design", "hdd", "--html", "page.html"], "--html"),
        (vec!["simulate", "--design", "hdd", "--stack", "5"], "--stack"),
        (vec!["simulate", "--design", "hdd", "--write-buffer", "1GiB"], "--write-buffer"),
        (vec!["simulate", "--design", "six-hosts", "--stack", "-1"], "0 to 10000"),
        (vec!["simulate", "--design", "hdd", "--rate", "-5"], "must lie above 0"),
        (vec!["simulate", "--design", "hdd", "--seconds", "-1"], "--seconds must lie"),
        (vec!["simulate", "--design", "hdd", "--seed", "-1"], "use a whole number from 0"),
        (vec!["simulate", "--design", "hdd", "--requests", "-1"], "use a whole number from 0"),
        (vec!["simulate", "--design", "hdd", "--volumes", "-1"], "-1 is not in 0"),
        (vec!["calibrate", "/tmp", "--seed", "-1"], "use a whole number from 0"),
        (vec!["drive", "tpcc", "--seed", "-1"], "use a whole number from 0"),
        (vec!["run", "quickstart", "--seed", "-1"], "use a whole number from 0"),
        (vec!["simulate", "--study", "kingston", "--rate", "5"], "--rate"),
        (vec!["simulate", "--study", "kingston", "--queue-depth", "5"], "--queue-depth"),
        (vec!["simulate", "--design", "hdd", "--seconds", "0"], "--seconds"),
        // Before minutes of simulation.
        (vec!["simulate", "--study", "kingston", "--html", "/nonexistent/x"], "/nonexistent/x"),
        // Before anything is measured.
        (vec!["calibrate", "/tmp", "--name", "Bad_Name"], "lower case letters"),
        (vec!["calibrate", "/tmp", "--name", "\u{dc}ber"], "lower case letters"),
        (vec!["calibrate", "/tmp", "--name", ""], "lower case letters"),
        (vec!["calibrate", "/tmp", "--size", "1KiB"], "16 MiB"),
    ] {
        let output = underlay(&arguments, state.path());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(wanted), "{arguments:?}: {text}");
    }
}

#[test]
fn a_folder_is_calibrated_and_left_as_it_was() {
    let state = tempfile::tempdir().expect("a folder");
    // Memory-backed folders may refuse direct I/O: the build folder lies on storage.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().to_str().expect("a path");
    let out = state.path().join("profile.toml");
    let arguments = [
        "calibrate",
        path,
        "--name",
        "here",
        "--size",
        "64MiB",
        "--seconds",
        "0.2",
        "--json",
        "--out",
        out.to_str().expect("a path"),
    ];
    let output = underlay(&arguments, state.path());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let entries = std::fs::read_dir(folder.path()).expect("readable").count();
    assert_eq!(entries, 0, "nothing is left behind: {text}");
    if output.status.code() == Some(3) {
        eprintln!("skip: {text}");
        return;
    }
    assert!(output.status.success(), "{text}");
    let outcome = json(&output);
    assert!(outcome["points"].as_array().is_some_and(|points| points.len() > 20));
    let profile = std::fs::read_to_string(&out).expect("written");
    assert!(profile.starts_with("name = \"here\"") && profile.contains("basis = \"fitted\""));
    // The second time the output exists, which is found out before anything is measured.
    let again = underlay(&arguments, state.path());
    assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
    let teardown = state.path().join("teardown");
    let left = std::fs::read_dir(teardown).map(Iterator::count).unwrap_or(0);
    assert_eq!(left, 0, "the teardown stack is gone");
}

#[test]
fn a_device_is_not_overwritten_by_the_word_for_files() {
    let state = tempfile::tempdir().expect("a folder");
    let file = state.path().join("file");
    std::fs::write(&file, vec![7u8; 17 << 20]).expect("a file");
    let path = file.to_str().expect("a path");
    let output = underlay(&["calibrate", path, "--overwrite-device"], state.path());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--overwrite-file"), "{text}");
    assert!(text.contains("is a regular file, not a block device"), "{text}");
    assert_eq!(std::fs::read(&file).expect("readable"), vec![7u8; 17 << 20]);
}

#[test]
fn a_refused_calibration_leaves_no_profile() {
    let state = tempfile::tempdir().expect("a folder");
    let out = state.path().join("profile.toml");
    let (out, folder) = (out.to_str().expect("a path"), state.path().to_str().expect("a path"));
    for (target, size, code) in [("/nonexistent/target", "64MiB", 2), (folder, "1000TiB", 3)] {
        let arguments = ["calibrate", target, "--size", size, "--out", out];
        let output = underlay(&arguments, state.path());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(!Path::new(out).exists(), "{target}: an empty profile stays: {text}");
    }
}
