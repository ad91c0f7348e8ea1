//! The command line as a script sees it: exit codes, standard output, and no trace of what was refused.

use crate::common::{Bench, Ended, SMALL_STUDY};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON on standard output")
}

#[test]
fn help_documents_every_exit_code() {
    let help = Bench::new().run(&["--help"]).expect(0);
    for (code, meaning) in underlay::exit_code::TABLE {
        assert!(
            help.contains(&format!("{code:>3}  {meaning}")),
            "exit code {code} is not documented"
        );
    }
}

#[test]
fn wrong_usage_exits_2() {
    let bench = Bench::new();
    assert_eq!(bench.run(&["walk"]).code, Some(2));
    assert_eq!(bench.run(&["run"]).code, Some(2));
    assert_eq!(bench.run(&["run", "quickstart", "--scale", "2/3"]).code, Some(2));
    assert_eq!(bench.run(&["run", "quickstart", "--measure", "10"]).code, Some(2));
}

#[test]
fn a_reader_that_leaves_ends_a_command_quietly() {
    let bench = Bench::new();
    let closed = || std::io::pipe().expect("a pipe").1;
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["schema"],
        &["show", "example"],
        &["check", "quickstart"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let ended = bench.underlay().args(arguments).stdout(closed()).output().expect("started");
        let ended = Ended::of(ended);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
    // A terminal that is closed takes no messages: the exit code still tells.
    for arguments in [&["run", "no-such-study"][..], &["walk"]] {
        let ended = bench.underlay().args(arguments).stderr(closed()).output().expect("started");
        assert_eq!(Ended::of(ended).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn output_that_does_not_fit_the_disk_is_an_error() {
    let full = std::fs::File::create("/dev/full").expect("Linux has it");
    let ended = Bench::new().underlay().arg("schema").stdout(full).output().expect("started");
    let ended = Ended::of(ended);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("could not write to standard output"), "{}", ended.stderr);
}

#[test]
fn a_bad_study_exits_2_names_all_problems_and_leaves_no_trace() {
    let bench = Bench::new();
    let text = SMALL_STUDY
        .replace("users = [1, 2]", "users = [0]\nbogus = 1")
        .replace("measure = \"5s\"", "measure = \"5 parsecs\"");
    bench.write("bad.toml", &text);
    for command in ["check", "run"] {
        let ended = bench.run(&[command, "bad.toml"]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        for part in ["bogus", "parsecs", "bad.toml"] {
            assert!(ended.stderr.contains(part), "`{part}` is not named:\n{}", ended.stderr);
        }
        assert!(ended.stderr.contains("users"), "{}", ended.stderr);
        assert_eq!(ended.stdout, "", "nothing on standard output");
    }
    assert!(!bench.path().join("underlay-records").exists(), "a refused study has no record");
    assert!(!bench.state().join("scratch").exists(), "a refused study creates nothing");
    assert_eq!(bench.left_on_host(), Vec::<String>::new());

    let problems = json(&bench.run(&["check", "bad.toml", "--json"]).expect(2));
    let problems = problems["problems"].as_array().expect("a list of problems").clone();
    assert!(problems.len() >= 3, "{problems:#?}");
    assert!(
        problems.iter().all(|problem| problem["line"].is_u64() && problem["remedy"].is_string())
    );
}

#[test]
fn a_record_that_exists_is_not_written_over() {
    let bench = Bench::new();
    let taken = bench.write("taken.sqlite", "precious");
    let ended = bench.run(&["run", "quickstart", "--out", &taken.to_string_lossy()]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("taken.sqlite"), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(&taken).expect("still there"), "precious");
    assert!(bench.left_on_host().is_empty());
}

#[test]
fn an_unknown_study_is_refused_with_a_suggestion() {
    let ended = Bench::new().run(&["run", "quickstrat"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("`quickstart`"), "{}", ended.stderr);
}

#[test]
fn lists_are_complete_and_machine_readable() {
    let bench = Bench::new();
    let listed = json(&bench.run(&["list", "--json"]).expect(0));
    for (kind, name) in [
        ("studies", "quickstart"),
        ("studies", "kingston/k2"),
        ("designs", "kingston-nvme"),
        ("devices", "dc500m-1920"),
        ("workloads", "tpcc"),
        ("engines", "postgresql"),
    ] {
        let entries = listed[kind].as_array().expect("a list");
        assert!(entries.iter().any(|entry| entry["name"] == name), "{kind} lacks {name}");
    }
    let studies = bench.run(&["list", "studies"]).expect(0);
    assert!(studies.contains("quickstart") && !studies.contains("tpcc"));
}

#[test]
fn what_is_shown_is_a_study_that_checks() {
    let bench = Bench::new();
    let text = bench.run(&["show", "example"]).expect(0);
    bench.write("example.toml", &text);
    if crate::common::cannot_run_servers().is_some() {
        eprintln!("skip: checking the example needs PostgreSQL's server programs");
        return;
    }
    let plan = bench.run(&["check", "example.toml"]).expect(0);
    assert!(plan.contains("duration"), "{plan}");
    let plan = json(&bench.run(&["check", "example.toml", "--json"]).expect(0));
    assert!(plan["designs"].as_array().is_some_and(|designs| designs.len() >= 2));
}

#[test]
fn schema_doctor_and_completions_print_what_programs_read() {
    let bench = Bench::new();
    let schema = json(&bench.run(&["schema"]).expect(0));
    assert!(schema["properties"]["design"].is_object(), "{schema:#}");
    let doctor = json(&bench.run(&["doctor", "--json"]).expect(0));
    assert!(doctor["capabilities"].as_array().is_some_and(|list| list.len() > 5));
    for shell in ["bash", "zsh", "fish"] {
        assert!(bench.run(&["completions", shell]).expect(0).contains("underlay"));
    }
}

#[test]
fn what_is_no_record_is_refused() {
    let bench = Bench::new();
    bench.write("text.sqlite", "this is not a database");
    for arguments in [
        &["show", "text.sqlite"][..],
        &["report", "text.sqlite"],
        &["report", "missing.sqlite"],
        &["export", "missing.sqlite", "--csv", "out"],
        &["compare", "missing.sqlite", "text.sqlite"],
    ] {
        let ended = bench.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(".sqlite"),
            "{arguments:?} does not name the file: {}",
            ended.stderr
        );
    }
    assert!(!bench.path().join("out").exists());
}

#[test]
fn drive_never_shows_a_password_and_names_what_is_wrong() {
    let bench = Bench::new();
    let ended = bench.run(&["drive", "tpcc", "--url", "postgres://ann:s3cret@127.0.0.1:1/x"]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains("PGPASSWORD"), "no warning: {}", ended.stderr);
    assert!(!ended.stderr.contains("s3cret") && !ended.stdout.contains("s3cret"));
    let ended = bench.run(&["drive", "tpcc", "--url", "mysql://ann:s3cret@127.0.0.1:1/x"]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    assert!(!ended.stderr.contains("s3cret") && !ended.stdout.contains("s3cret"));
    for (url, named) in [
        ("oracle://ann@h/x", "malformed"),
        ("mysql://h/x", "names no user"),
        ("mysql://ann:s3cret@h/x?ssl-mode=on", "verify_identity"),
        ("mysql://ann:s3cret@h/x?ssl-mode=verify_ca", "ssl-ca"),
        ("postgres://ann:s3cret@h/x?sslmode=on", "verify-full"),
        ("postgres://ann:s3cret@h/x?sslmode=verify-full", "sslrootcert=system"),
        ("postgres://ann:s3cret@h/x?sslrootcert=/none.pem", "/none.pem"),
        ("postgres://ann@%2Frun/x?sslmode=require", "Unix socket"),
    ] {
        let ended = Ended::of(
            bench
                .underlay()
                .args(["drive", "tpcc"])
                .env("UNDERLAY_URL", url)
                .env("HOME", bench.path())
                .output()
                .unwrap(),
        );
        assert_eq!(ended.code, Some(2), "{url}: {}", ended.stderr);
        assert!(ended.stderr.contains(named), "{url}: {}", ended.stderr);
        assert!(!ended.stderr.contains("s3cret"), "{url}: {}", ended.stderr);
    }
    assert_eq!(bench.run(&["drive", "tpcc"]).code, Some(2));
}

/// All that is wrong with the visitors of a shop is said at once, before anything is touched.
#[test]
fn a_shop_refuses_visitors_who_cannot_be() {
    let bench = Bench::new();
    let url = ["drive", "dvdstore", "--url", "postgres://ann@127.0.0.1:1/x"];
    let wrong = ["--pct-newmember", "101", "--n-line-items", "0"];
    let ended = bench.run(&[&url[..], &wrong[..]].concat());
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    for named in ["pct_newmember is 101", "n_line_items is 0"] {
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
    }
    let ended = bench.run(&[&url[..], &["--load", "--db-size", "10KB"]].concat());
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("MB, GB or TB"), "{}", ended.stderr);
}

/// Nothing listens at the port: who had connected would end with exit code 4.
#[test]
fn drive_refuses_bad_arguments_before_it_connects() {
    let bench = Bench::new();
    for (line, named) in [
        ("tpcc --rate 1e300", "--rate"),
        ("tpcc --users 0 --duration 0s", "--duration 0 s is not between 1 s"),
        ("sysbench --connections 0", "--connections 0 is not between 1 and"),
        ("sysbench --script read_only --range-size 0", "--range-size 0 is not between 1 and"),
        ("dvdstore --key-think=nan", "--key-think NaN is not between 0 and 100"),
        ("tpcc --run --warehouses 5", "--warehouses has no effect without --load"),
        ("tpcc --run --table-size 3", "unexpected argument '--table-size'"),
        (
            "tpcc --rate 5 --ramp 20s --duration 10s",
            "--ramp 20 s is longer than the measured load of 10 s",
        ),
        ("warehouse --run --scale 1", "--scale has no effect without --load"),
    ] {
        let url = ["--url", "postgres://ann@127.0.0.1:1/x"];
        let words: Vec<&str> = ["drive"].into_iter().chain(line.split(' ')).chain(url).collect();
        let ended = bench.run(&words);
        assert_eq!(ended.code, Some(2), "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(named), "{line}: {}", ended.stderr);
    }
}

/// A job with an end has neither users nor rates, and all that is wrong is said at once.
#[test]
fn jobs_with_an_end_refuse_what_has_no_meaning_for_them() {
    let bench = Bench::new();
    let url = "postgres://ann@127.0.0.1:1/x";
    for option in ["--users=4", "--rate=10", "--slo=p99=10ms", "--duration=5s", "--load"] {
        let ended = bench.run(&["drive", "batch", "--url", url, option]);
        assert_eq!(ended.code, Some(2), "{option}: {}", ended.stdout);
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        assert!(ended.stderr.contains(name), "{option}: {}", ended.stderr);
    }
    let ended = bench.run(&["drive", "batch", "--url", url, "--rows", "0", "--rollback"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    for named in ["--rows 0 is not between", "--rollback needs a transaction"] {
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
    }
    let ended =
        bench.run(&["drive", "warehouse", "--url", url, "--scale", "1", "--streams", "101"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    for named in ["--scale", "--streams 101"] {
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
    }
    let ended = bench.run(&["drive", "warehouse", "--url", url, "--scale", "0.001"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    assert!(ended.stderr.contains("multiple of 0.01"), "{}", ended.stderr);
    let ended = bench.run(&["drive", "batch", "--url", url, "--rows", "10"]);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
}

#[test]
fn the_generator_alone_has_a_ceiling() {
    let ended = Bench::new().run(&["drive", "tpcc", "--noop", "--duration", "1s", "--json"]);
    let ceiling = json(&ended.expect(0));
    assert!(
        ceiling["transactions_per_second"].as_f64().is_some_and(|rate| rate > 10_000.0),
        "{ceiling}"
    );
}

/// Before anything is touched, not when the server is started after an hour of loading.
#[test]
fn a_setting_that_the_installed_server_does_not_have_is_refused_with_its_line() {
    if underlay_database::postgres::find_installs(None).is_empty() {
        eprintln!("skip: needs PostgreSQL's server programs");
        return;
    }
    let bench = Bench::new();
    let line = "shared_buffers = \"48MB\"";
    let good =
        "shared_buffers = \"48MB\"\nzero_damaged_pages = \"off\"\n\"pg_stat_statements.max\" = 100";
    bench.write("good.toml", &SMALL_STUDY.replace(line, good));
    bench.run(&["check", "good.toml"]).expect(0);
    let bad = format!("{line}\nchekpoint_timeout = \"30s\"\nwork_memory = \"4MB\"");
    bench.write("bad.toml", &SMALL_STUDY.replace(line, &bad));
    let ended = bench.run(&["check", "bad.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for said in [
        "has no setting `chekpoint_timeout`",
        "did you mean `checkpoint_timeout`?",
        "has no setting `work_memory`",
        "bad.toml:11:",
        "bad.toml:12:",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}

/// What a terminal would act on is shown instead, whoever wrote it; a problem has a bounded length.
#[test]
fn nothing_that_a_terminal_would_act_on_is_printed() {
    let bench = Bench::new();
    let title = SMALL_STUDY.replace("A small study", "\\u001b]0;owned\\u0007 small\\u009b31m");
    bench.write("title.toml", &title);
    let ended = bench.run(&["check", "title.toml"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("control character U+001B"), "{}", ended.stderr);
    bench.write("raw.toml", &SMALL_STUDY.replace("A small study", "\u{1b}[2J raw"));
    let raw = bench.run(&["check", "raw.toml"]);
    assert_eq!(raw.code, Some(2), "{}", raw.stderr);
    let name = bench.run(&["check", "\u{1b}]0;name\u{7}"]);
    assert_eq!(name.code, Some(2));
    bench.write(
        "long.toml",
        &SMALL_STUDY
            .replace("A small study\"", &format!("{}\"", "x".repeat(100_000)))
            .replace("users = [1, 2]", "users = \"one\""),
    );
    bench.write(
        "long-line.toml",
        &SMALL_STUDY
            .replace("warehouses = 1", &format!("warehouses = \"{}\"", "9".repeat(100_000))),
    );
    let long = [bench.run(&["check", "long.toml"]), bench.run(&["check", "long-line.toml"])];
    for ended in long.iter().chain([&ended, &raw, &name]) {
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{shown:?}");
        let longest = shown.lines().map(str::len).max().unwrap_or(0);
        assert!(longest < 4_000, "a line of {longest} bytes");
    }
    assert!(long.iter().all(|ended| ended.code == Some(2)));
    assert!(long[1].stderr.contains("(line "), "the place is named: {}", long[1].stderr);
}

/// Files that never end are refused instead of read.
#[test]
fn endless_files_are_refused() {
    let bench = Bench::new();
    let volume = ["volume", "create", "v", "--device", "/dev/zero", "--capacity", "1GiB"];
    let drive = [
        "drive",
        "tpcc",
        "--url",
        "postgres://u@127.0.0.1:1/d",
        "--password-file",
        "/dev/zero",
        "--check",
    ];
    for arguments in [
        &["check", "/dev/zero"][..],
        &["io", "/dev/zero", "--profile", "/dev/zero"],
        &drive,
        &volume,
    ] {
        let mut command = bench.underlay();
        // Far more than a study needs, far less than what never ends.
        let limited = format!("ulimit -v 4000000; exec \"$0\" {}", arguments.join(" "));
        let ended = std::process::Command::new("sh")
            .args(["-c", &limited])
            .arg(command.get_program())
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(bench.path())
            .output();
        command.stdin(std::process::Stdio::null());
        let ended = Ended::of(ended.expect("a shell"));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
    }
}

/// A check looks, and leaves no trace; without root it says what this host cannot do, and so does a run before it loads.
#[test]
fn a_check_creates_nothing_and_names_what_the_host_lacks() {
    let bench = Bench::new();
    bench.run(&["check", "quickstart"]);
    assert!(!bench.state().exists(), "a check made the state directory");
    let mut relative = bench.underlay();
    relative.args(["check", "quickstart"]).env("UNDERLAY_STATE_DIR", "new");
    let ended = Ended::of(relative.current_dir(bench.path()).output().expect("the program"));
    assert_eq!(ended.code, Some(0), "a state directory by its name alone: {}", ended.stderr);
    let Some(user) = underlay_host::unprivileged_user().expect("a user") else {
        underlay_host::skip!("needs root to become another user");
    };
    let own = bench.path().join("own");
    std::fs::create_dir(&own).expect("a folder");
    user.own(&own).expect("it is ours to give");
    let program = own.join("underlay");
    std::fs::copy(env!("CARGO_BIN_EXE_underlay"), &program).expect("a copy");
    let as_user = |arguments: &[&str]| {
        let ended = std::process::Command::new("setpriv")
            .args([
                "--reuid",
                &user.uid.to_string(),
                "--regid",
                &user.gid.to_string(),
                "--clear-groups",
            ])
            .arg(&program)
            .args(arguments)
            .env("UNDERLAY_STATE_DIR", own.join("state"))
            .current_dir(&own)
            .output();
        Ended::of(ended.expect("util-linux is installed"))
    };
    for arguments in [&["check", "quickstart"][..], &["run", "quickstart", "--no-progress"]] {
        let ended = as_user(arguments);
        assert_eq!(ended.code, Some(3), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("root") && ended.stderr.contains("sudo"), "{}", ended.stderr);
        let made: Vec<_> = std::fs::read_dir(&own).expect("a folder").flatten().collect();
        assert_eq!(made.len(), 1, "{made:?}");
    }
    assert!(as_user(&["check", "quickstart"]).stdout.contains("warehouses"), "the plan is shown");
}

/// A record that is damaged ends every command in the same way; one that another process writes is not shown as an answer.
#[test]
fn damaged_and_busy_records_are_refused() {
    let bench = Bench::new();
    let mut bytes = std::fs::read(small_record(&bench)).expect("a file");
    // Behind the first page, which tells the format.
    bytes[4096..].fill(0x5a);
    std::fs::write(bench.path().join("damaged.sqlite"), bytes).expect("written");
    for arguments in [
        &["show", "damaged.sqlite"][..],
        &["show", "damaged.sqlite", "--json"],
        &["report", "damaged.sqlite"],
        &["compare", "damaged.sqlite", "damaged.sqlite"],
        &["export", "damaged.sqlite", "--csv", "csv"],
        &["export", "damaged.sqlite", "--jsonl", "lines"],
    ] {
        let ended = bench.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("damaged.sqlite"), "{}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
    }
    assert!(!bench.path().join("damaged.html").exists() && !bench.path().join("lines").exists());
}

/// Files are complete or not there: a full disk leaves no empty report, and is an error.
#[test]
fn a_full_disk_leaves_no_half_of_a_file() {
    let bench = Bench::new();
    let folder = bench.path().join("full");
    std::fs::create_dir(&folder).expect("a folder");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&folder)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        underlay_host::skip!("needs root to mount a small file system");
    }
    std::fs::write(folder.join("report.html"), "the earlier report").expect("it fits");
    let record = small_record(&bench);
    let out = folder.join("report.html");
    let ended = bench.run(&["report", &record, "--out", &out.to_string_lossy()]);
    let kept = std::fs::read_to_string(&out).expect("a file");
    let files = std::fs::read_dir(&folder).expect("a folder").count();
    let unmounted = std::process::Command::new("umount").arg(&folder).status();
    assert!(unmounted.is_ok_and(|status| status.success()), "not unmounted");
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    assert_eq!((kept.as_str(), files), ("the earlier report", 1));
}

/// A record without measurements; its page is larger than the small file system.
fn small_record(bench: &Bench) -> String {
    let path = bench.path().join("empty.sqlite");
    let manifest = underlay_record::Manifest {
        study_name: "small".to_string(),
        title: "small".to_string(),
        question: String::new(),
        evidence: underlay_core::Evidence::Emulated,
        seed: underlay_core::RootSeed(1),
        identity: "x".to_string(),
        started_wall_ns: 1,
        plan: serde_json::json!({}),
        host: serde_json::json!({}),
        software: serde_json::json!({}),
    };
    drop(underlay_record::Recorder::create(&path, &manifest).expect("a record"));
    path.to_string_lossy().into_owned()
}
