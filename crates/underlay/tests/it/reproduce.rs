//! `underlay reproduce`, end to end: a block study, which virtual time has as well, and a database study at its laptop
//! size. Their numbers stand beside the published ones, and nothing is run twice.

use crate::common::{Bench, SMALL_STUDY, cannot_run_servers};
use serde_json::Value;

/// Two parts of drives that this host outruns, and a ratio that someone printed.
const BLOCKS: &str = r#"
name = "blocks"
title = "Two small drives"
question = "How many times the I/Os of the slow drive does the fast one do?"
deviations = ["Both are small parts of a drive."]

[volumes.data]
capacity = "64MiB"

[[design]]
name = "fast"
[[design.datastore.emulated.devices]]
name = "fast"
profile = "dc1500m-960"
overrides = { divisor = 128 }

[[design]]
name = "slow"
[[design.datastore.emulated.devices]]
name = "slow"
profile = "5200eco-1920"
overrides = { divisor = 512 }

[workload.block]
profile = "4k-random-70-30"
threads = 2
working-set = "16MiB"

[procedure]
settle = "0s"
warm-up = "0s"
ramp-up = "1s"
measure = "5s"
repeats = 3
null-twin = false

[[published]]
design = "fast"
experiment = "X1"
metric = "result"
users = [2]
values = [6000.0]
source = "a paper, figure 1"

[[published]]
design = "slow"
experiment = "X1"
metric = "result"
users = [2]
values = [1000.0]
source = "a paper, figure 1"
"#;

/// What the small study of a database becomes: eight times as large, and as small as before on a laptop.
const DATABASE: &str = r#"
[laptop]
procedure.measure = "5s"
procedure.ramp-up = "1s"
procedure.users = [2]

[[published]]
design = "a"
metric = "nopm"
users = [2]
values = [3000.0]
source = "another paper"

[[published]]
design = "b"
metric = "nopm"
users = [2]
values = [2000.0]
source = "another paper"
"#;

fn reproduce(bench: &Bench, options: &[&str]) -> (Value, String) {
    let studies = ["reproduce", "blocks.toml", "small.toml", "--no-progress", "--json"];
    let studies = [&studies[..], &["--repeats", "1"]].concat();
    let ended = bench.run(&[&studies[..], options].concat());
    let told = ended.stderr.clone();
    let atlas = ended.expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    (serde_json::from_str(&atlas).expect("JSON on standard output"), told)
}

fn records(bench: &Bench) -> Vec<String> {
    let folder = std::fs::read_dir(bench.path().join("underlay-records")).expect("records");
    let names = folder.map(|it| it.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".sqlite")).collect();
    names.sort();
    names
}

#[test]
fn published_ratios_stand_beside_ours_and_nothing_runs_twice() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("blocks.toml", BLOCKS);
    let long = SMALL_STUDY.replace("measure = \"5s\"", "measure = \"1h\"");
    assert_ne!(long, SMALL_STUDY);
    bench.write("small.toml", &format!("{long}{DATABASE}"));
    let (atlas, told) = reproduce(&bench, &[]);
    assert!(told.contains("2 studies, 0 of them finished"), "{told}");

    let blocks = &atlas["experiments"][0];
    assert_eq!((&blocks["name"], &blocks["problem"]), (&"blocks.toml".into(), &Value::Null));
    assert_eq!(blocks["deviations"][0], "Both are small parts of a drive.");
    let ratio = &blocks["ratios"][0];
    assert_eq!(
        (&ratio["text"], &ratio["published"]),
        (&"fast over slow at 2 threads".into(), &6.0.into())
    );
    assert_eq!(ratio["is_headline"], true);
    let number = |ratio: &Value, key: &str| {
        ratio[key].as_f64().unwrap_or_else(|| panic!("{key} of {ratio:#}"))
    };
    let (ours, simulated) = (number(ratio, "ours"), number(ratio, "simulated"));
    assert!(ours > 1.5 && simulated > 1.5, "{ratio:#}");
    assert!((number(ratio, "error") - (ours / 6.0 - 1.0)).abs() < 1e-9, "{ratio:#}");
    assert!((number(ratio, "simulated_error") - (simulated / 6.0 - 1.0)).abs() < 1e-9);
    // The same model in real and in virtual time.
    assert!(
        (0.4..2.5).contains(&(ours / simulated)),
        "{ours} in real time, {simulated} in virtual"
    );
    // One place is 1 for everyone.
    let lines = blocks["figures"][0]["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 6, "{lines:#?}");
    assert!(lines[..3].iter().all(|line| line["shape"][0] == 1.0), "{lines:#?}");

    let small = &atlas["experiments"][1];
    assert_eq!(small["problem"], Value::Null, "{small:#}");
    let ratio = &small["ratios"][0];
    assert_eq!(ratio["text"], "No delay over NVMe DC1500M at 2 users");
    assert!(number(ratio, "ours") > 0.0 && ratio["simulated"] == Value::Null, "{ratio:#}");
    assert!(atlas["median_error"].is_number() && atlas["simulated_median_error"].is_number());

    let page = bench.path().join("underlay-records/atlas.html");
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("id=\"atlas\"") && html.contains("fast over slow"), "no atlas");
    let before = records(&bench);
    assert_eq!(before.len(), 2, "{before:?}");
    // One run of each of two designs; the study asks for three.
    let record = format!("underlay-records/{}", before[0]);
    let shown = bench.run(&["show", &record, "--json"]).expect(0);
    let shown: Value = serde_json::from_str(&shown).expect("JSON on standard output");
    assert_eq!(shown["runs"].as_array().map(Vec::len), Some(2));

    let (again, told) = reproduce(&bench, &["--page", "again.html"]);
    assert!(told.contains("2 studies, 2 of them finished"), "{told}");
    assert_eq!((records(&bench), again), (before, atlas));
    assert!(bench.path().join("again.html").is_file());
    let table = bench.run(&["reproduce", "blocks.toml", "--repeats", "1"]).expect(0);
    assert!(table.contains("published") && table.contains("6.0x"), "{table}");

    // What was simulated at the size of the study is the other column.
    bench.run(&["reproduce", "small.toml", "--simulate", "--no-progress"]).expect(0);
    let (both, told) = reproduce(&bench, &[]);
    assert!(told.contains("2 studies, 2 of them finished"), "{told}");
    let ratio = &both["experiments"][1]["ratios"][0];
    assert!(number(ratio, "ours") > 0.0 && number(ratio, "simulated") > 0.0, "{ratio:#}");
}

#[test]
fn databases_are_reproduced_in_virtual_time_and_block_loads_are_not() {
    let bench = Bench::new();
    bench.write("blocks.toml", BLOCKS);
    bench.write("small.toml", &format!("{SMALL_STUDY}{DATABASE}"));
    let command = ["reproduce", "small.toml", "--simulate", "--no-progress", "--json"];
    let ended = bench.run(&command);
    assert!(ended.stderr.contains("1 study in virtual time"), "{}", ended.stderr);
    let atlas: Value = serde_json::from_str(&ended.expect(0)).expect("JSON on standard output");
    let small = &atlas["experiments"][0];
    assert_eq!((&small["evidence"], &small["problem"]), (&"simulated".into(), &Value::Null));
    let ratio = &small["ratios"][0];
    // What is simulated is no run, and is judged all the same.
    assert_eq!((&ratio["ours"], &ratio["error"]), (&Value::Null, &Value::Null), "{ratio:#}");
    let (simulated, published) = (ratio["simulated"].as_f64(), ratio["published"].as_f64());
    let error = simulated.expect("a ratio") / published.expect("a ratio") - 1.0;
    assert!((ratio["simulated_error"].as_f64().expect("an error") - error).abs() < 1e-9);
    assert_ne!(ratio["agreement"], "unknown", "{ratio:#}");
    assert!(atlas["median_error"].is_null() && atlas["simulated_median_error"].is_number());
    let lines = small["figures"][0]["lines"].as_array().expect("lines");
    let origins: Vec<&Value> = lines.iter().map(|line| &line["origin"]).collect();
    assert_eq!(origins, ["published", "simulated", "published", "simulated"]);

    // An earlier atlas fills the page with what is not run now, and is refused before anything runs.
    bench.write("earlier.json", &atlas.to_string());
    bench.write("other.toml", &format!("{SMALL_STUDY}{DATABASE}"));
    let command = ["reproduce", "other.toml", "--simulate", "--no-progress", "--json"];
    let ended = bench.run(&[&command[..], &["--with", "earlier.json"]].concat());
    let both: Value = serde_json::from_str(&ended.expect(0)).expect("JSON on standard output");
    let names: Vec<&Value> = (0..2).map(|at| &both["experiments"][at]["name"]).collect();
    assert_eq!(names, ["small.toml", "other.toml"]);
    assert_eq!(both["experiments"][0]["ratios"][0]["text"], ratio["text"]);
    let alone = ["reproduce", "--with", "earlier.json", "--page", "alone.html"];
    let table = bench.run(&alone).expect(0);
    assert!(table.contains("small.toml"), "{table}");
    assert!(bench.path().join("alone.html").is_file());
    bench.write("earlier.json", &atlas.to_string().replace("\"format\":1", "\"format\":99"));
    let refused = bench.run(&[&command[..], &["--with", "earlier.json"]].concat());
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("its format is 99"), "{}", refused.stderr);

    assert_eq!(bench.left_on_host(), Vec::<String>::new());
}

#[test]
fn a_study_that_cannot_be_run_is_refused_before_any_runs() {
    let bench = Bench::with_shared_templates();
    bench.write("blocks.toml", BLOCKS);
    bench.write("wrong.toml", &BLOCKS.replace("threads = 2", "threads = 0"));
    let ended = bench.run(&["reproduce", "blocks.toml", "wrong.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("threads"), "{}", ended.stderr);
    assert!(!bench.path().join("underlay-records").exists());
    let ended = bench.run(&["reproduce"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
}
