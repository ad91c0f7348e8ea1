//! Several databases under test at once, on one emulated cluster: each has its own size, limits and results, which add up to
//! the total; a run that is killed leaves nothing of any of them.

use crate::common::{Bench, SMALL_STUDY, cannot_run_servers, control_groups_of};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use underlay_record::{Record, TransactionTick};

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON on standard output")
}

/// Two equal databases and one of another size with a narrower limit, on one design.
fn study() -> String {
    let designs = SMALL_STUDY.find("[[design]]").expect("designs");
    let workload = SMALL_STUDY.find("[workload.tpcc]").expect("a workload");
    let (head, tail) = (&SMALL_STUDY[..designs], &SMALL_STUDY[workload..]);
    format!(
        "{head}[[database]]\nname = \"oltp\"\ncount = 2\n\n\
         [[database]]\nname = \"large\"\nengine = {{ cpus = 1, memory-limit = \"256MiB\" }}\n\
         workload.tpcc.warehouses = 2\n\n\
         [[design]]\nuse = \"kingston-nvme-vsan\"\nname = \"bed\"\n\n{tail}"
    )
}

/// Server processes of this bench that are the root of their tree.
fn servers(bench: &Bench) -> usize {
    let left = bench.left_on_host();
    left.iter().filter(|line| line.contains("bin/postgres")).count()
}

#[test]
fn databases_are_measured_together_and_add_up() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    bench.write("three.toml", &study());
    let plan = bench.run(&["check", "three.toml"]).expect(0);
    assert!(plan.contains("oltp-1 to oltp-2: ") && plan.contains("large: "), "{plan}");
    let arguments = ["run", "three.toml", "--out", "three.sqlite", "--no-progress"];

    // Killed once the servers are there: nothing of any database stays, and the same command resumes.
    let mut killed = bench
        .underlay()
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(180);
    while control_groups_of(killed.id()).len() < 3 || servers(&bench) < 3 {
        assert!(Instant::now() < deadline, "three servers: {:?}", bench.left_on_host());
        assert!(killed.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = killed.id();
    killed.kill().expect("SIGKILL");
    killed.wait().expect("its end");
    bench.run(&["clean"]).expect(0);
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    assert_eq!(control_groups_of(pid), Vec::<PathBuf>::new());

    let ended = bench.run(&[&arguments[..], &["--json"]].concat());
    let analysis = json(&ended.expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");
    assert_eq!(analysis["study"]["sessions"], 2, "it was resumed");

    // Every database has its checks, its rungs and its part of the record.
    let checks = analysis["checks"].as_array().expect("checks");
    let databases = analysis["databases"].as_array().expect("databases");
    let names: Vec<&str> = databases.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["oltp-1", "oltp-2", "large"]);
    for name in names {
        let own = |check: &&Value| {
            check["id"].as_str().is_some_and(|id| id.starts_with(&format!("{name}/")))
        };
        let own: Vec<&Value> = checks.iter().filter(own).collect();
        assert!(own.len() > 10, "{name}: {checks:#?}");
        assert!(own.iter().all(|check| check["outcome"] == "ok"), "{name}: {own:#?}");
    }
    let headline = |rung: &Value| rung["metrics"]["headline"]["value"].as_f64().expect("a rate");
    for (position, total) in analysis["rungs"].as_array().expect("rungs").iter().enumerate() {
        let parts: Vec<f64> =
            databases.iter().map(|database| headline(&database["rungs"][position])).collect();
        let sum: f64 = parts.iter().sum();
        assert!(parts.iter().all(|part| *part > 0.0), "{parts:?}");
        assert!((sum / headline(total) - 1.0).abs() < 1e-6, "{parts:?} of {}", headline(total));
    }
    adds_up(&Record::open_read_only(&bench.path().join("three.sqlite")).expect("a record"));
    let summary = bench.run(&["show", "three.sqlite"]).expect(0);
    for shown in ["oltp-1", "oltp-2", "large", "total"] {
        assert!(summary.contains(shown), "{summary}");
    }
}

#[test]
fn backups_of_one_database_run_alongside_the_users_of_another() {
    if let Some(reason) = cannot_run_servers() {
        eprintln!("skip: {reason}");
        return;
    }
    let bench = Bench::with_shared_templates();
    let text = SMALL_STUDY
        .replace("[[design]]\nuse = \"null\"\nname = \"a\"\n\n", "")
        .replace("users = [1, 2]", "users = [2]")
        .replace("capacity = \"256MiB\"", "capacity = \"512MiB\"")
        .replace(
            "[[design]]",
            "[[database]]\nname = \"other\"\nworkload.backup = { warehouses = 1, cycles = 2 }\n\n\
             [[database]]\nname = \"oltp\"\n\n[[design]]",
        );
    bench.write("beside.toml", &text);
    let arguments = ["run", "beside.toml", "--out", "beside.sqlite", "--no-progress", "--json"];
    let analysis = json(&bench.run(&arguments).expect(0));
    assert_eq!(bench.left_on_host(), Vec::<String>::new(), "left behind");

    // The total is that of the users, and each database was checked, the one with backups on its restored copy.
    let databases = analysis["databases"].as_array().expect("databases");
    let [other, oltp] = &databases[..] else { panic!("{databases:#?}") };
    let headline = |rung: &Value| rung["metrics"]["headline"]["value"].as_f64().expect("a rate");
    assert_eq!(
        (&oltp["workload"]["unit"], headline(&analysis["rungs"][0])),
        (&Value::from("NOPM"), headline(&oltp["rungs"][0]))
    );
    assert_eq!(
        (&other["workload"]["is_job"], &other["workload"]["unit"]),
        (&Value::from(true), &Value::from("MB/s"))
    );
    let checks = analysis["checks"].as_array().expect("checks");
    for name in ["other/", "oltp/"] {
        let own = |check: &&Value| check["id"].as_str().is_some_and(|id| id.starts_with(name));
        let own: Vec<&Value> = checks.iter().filter(own).collect();
        assert!(own.len() > 10 && own.iter().all(|check| check["outcome"] == "ok"), "{own:#?}");
    }
    // How far it came before the users left depends on the host; one of the findings or its end says so.
    let findings = analysis["findings"].as_array().expect("findings");
    let is_stopped = findings.iter().any(|finding| finding["code"] == "job-stopped");
    let record = Record::open_read_only(&bench.path().join("beside.sqlite")).expect("a record");
    let run = record.runs().expect("runs")[0].id;
    let events = record.events(Some(run)).expect("events");
    let is_done = events.iter().any(|event| event.kind == "job-done");
    assert!(is_stopped != is_done, "{findings:#?}");
    if is_done {
        assert!(headline(&other["rungs"][0]) > 0.0);
        let cycles = analysis["operations"].as_array().expect("operations");
        assert_eq!(cycles.len(), 4, "two backups and two restores: {cycles:#?}");
        let shown = analysis["runs"][0]["events"].as_array().expect("events");
        let texts: Vec<&str> = shown.iter().filter_map(|event| event["text"].as_str()).collect();
        assert!(texts.iter().any(|text| text.starts_with("other: restore 2: ")), "{texts:#?}");
    }
    let summary = bench.run(&["show", "beside.sqlite"]).expect(0);
    assert!(summary.contains("jobs run alongside the users"), "{summary}");
}

/// In every tick the counts and the response times of all databases are those of the total.
fn adds_up(record: &Record) {
    let run =
        record.runs().expect("runs").into_iter().find(|run| run.is_evidence()).expect("a run");
    let ticks = record.transactions(run.id).expect("ticks");
    let (parts, totals): (Vec<&TransactionTick>, Vec<&TransactionTick>) =
        ticks.iter().partition(|tick| tick.transaction.contains('/'));
    assert!(!totals.is_empty() && parts.len() == 3 * totals.len(), "{} parts", parts.len());
    for total in totals {
        let own: Vec<&&TransactionTick> = parts
            .iter()
            .filter(|part| part.interval == total.interval)
            .filter(|part| part.transaction.rsplit('/').next() == Some(&*total.transaction))
            .collect();
        let committed: u64 = own.iter().map(|part| part.committed).sum();
        let counted: u64 = own.iter().map(|part| part.response.decoded().count()).sum();
        assert_eq!((own.len(), committed), (3, total.committed), "{}", total.transaction);
        assert_eq!(counted, total.response.decoded().count(), "{}", total.transaction);
    }
}
