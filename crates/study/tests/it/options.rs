//! Options of the command line and doubts about a plan.

use std::path::Path;

use underlay_core::{Bytes, Evidence, Nanos};
use underlay_study::{
    ClientPlace, ClientPlan, Colour, DatastoreKind, DirectoryState, Enforcement, HostView,
    NetworkPlan, Origin, Pacing, Plan, PlanOptions, Problems, Repeats, Scale, Severity, Source,
    WorkloadKind, check, find_study, plan_json,
};

fn host() -> HostView<'static> {
    HostView {
        cpus: 4,
        memory: Bytes::from_gib(8),
        free_space: Bytes::from_gib(60),
        memory_limits: Enforcement::Enforced,
        cpu_limits: Enforcement::Enforced,
        directory: &|path: &Path| match path.to_str() {
            Some("/mnt/nvme") => DirectoryState::Usable { free: Bytes::from_gib(60) },
            _ => DirectoryState::Missing,
        },
        servers: &|_, _| None,
    }
}

fn quickstart(options: &PlanOptions) -> Result<Plan, Problems> {
    let source = find_study("quickstart").expect("built in").source();
    check(&source, options, &host()).map(|(_, plan)| plan)
}

/// A study of two designs, with `engine`, `second` design, `workload` and `procedure` lines to vary.
fn study(engine: &str, second: &str, workload: &str, procedure: &str) -> Source {
    let text = format!(
        r#"
name = "varied"
question = "What does it change?"
[engine]
memory-limit = "256MiB"
[engine.settings]
shared_buffers = "64MB"
checkpoint_timeout = "60s"
{engine}
[volumes]
data = {{ capacity = "4GiB" }}
wal = {{ capacity = "2GiB" }}
backup = {{ capacity = "2GiB" }}
[[design]]
use = "kingston-nvme"
[[design]]
{second}
[workload.tpcc]
warehouses = 8
home-warehouse = "drawn"
{workload}
[procedure]
users = [1, 4]
{procedure}
"#
    );
    Source { name: "varied.toml".to_string(), text }
}

fn planned(source: &Source, options: &PlanOptions) -> Plan {
    match check(source, options, &host()) {
        Ok((_, plan)) => plan,
        Err(problems) => panic!("{}", problems.render(100, Colour::Plain)),
    }
}

fn codes(plan: &Plan) -> Vec<&'static str> {
    plan.findings.iter().map(|finding| finding.code).collect()
}

const SATA: &str = r#"use = "kingston-sata-5200eco""#;

#[test]
fn options_take_precedence_and_say_so() {
    let options = PlanOptions {
        repeats: Some(Repeats::Exactly(5)),
        users: Some(vec![2, 3]),
        warm_up: Some(Nanos::from_secs(1)),
        ramp_up: Some(Nanos::ZERO),
        measure: Some(Nanos::from_secs(20)),
        seed: Some(77),
        out: Some("there.record".into()),
        ..PlanOptions::default()
    };
    let plan = quickstart(&options).expect("in range");
    assert_eq!(plan.procedure.users, [2, 3]);
    assert_eq!(plan.procedure.measure, Nanos::from_secs(20));
    assert_eq!(plan.schedule.len(), 10);
    assert_eq!((plan.seed.0, plan.workload.seed.0), (77, 77));
    assert_eq!(plan.out.as_deref(), Some(Path::new("there.record")));
    let decided_by_options = plan
        .provenance
        .iter()
        .filter(|row| matches!(row.origin, Origin::CommandLine { .. }))
        .count();
    assert_eq!(decided_by_options, 6);
}

#[test]
fn wrong_options_are_problems_without_a_place() {
    let options = PlanOptions {
        repeats: Some(Repeats::Exactly(0)),
        users: Some(vec![4, 0]),
        measure: Some(Nanos::from_secs(1)),
        designs: Some(vec!["nmve".to_string()]),
        server_bin: Some("/opt/nothing".into()),
        ..PlanOptions::default()
    };
    let problems = quickstart(&options).expect_err("all wrong");
    assert!(problems.as_slice().iter().all(|problem| problem.position().is_none()));
    insta::assert_snapshot!(problems.render(100, Colour::Plain));
}

#[test]
fn a_choice_of_designs_keeps_the_others_out_of_the_checks() {
    let source = study("", "name = \"gone\"\ndatastore.path.directory = \"/mnt/gone\"", "", "");
    assert!(check(&source, &PlanOptions::default(), &host()).is_err());
    let options =
        PlanOptions { designs: Some(vec!["kingston-nvme".to_string()]), ..PlanOptions::default() };
    let plan = planned(&source, &options);
    assert_eq!(plan.designs.len(), 1);
    assert!(codes(&plan).contains(&"single-design"));
}

#[test]
fn a_design_overrides_the_engine_and_volumes_for_itself_alone() {
    let second = "use = \"kingston-nvme\"\nname = \"compressed\"\n\
                  engine = { memory-limit = \"512MiB\", settings = { wal_compression = true } }\n\
                  volumes = { data = { file-system = \"xfs\" }, temp = { capacity = \"1GiB\" } }";
    let plan = planned(&study("", second, "", ""), &PlanOptions::default());
    let [first, second] = plan.designs.as_slice() else { panic!("two designs") };
    assert_eq!(first.engine, plan.engine);
    assert!(first.engine_overrides.is_empty());
    assert_eq!(second.engine.memory_limit, Some(Bytes::from_mib(512)));
    assert_eq!(second.engine.settings["wal_compression"], "on");
    assert_eq!(second.engine.settings["shared_buffers"], "64MB");
    assert_eq!(second.engine_overrides, ["memory-limit", "settings.wal_compression"]);
    assert_eq!(first.volumes.len(), 3);
    let names: Vec<_> = second.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["data", "wal", "backup", "temp"]);
    assert_eq!(second.volumes[0].capacity, Bytes::from_gib(4));
    assert_eq!(second.volumes[0].file_system.as_str(), "xfs");
    assert_eq!(first.volumes[0].file_system.as_str(), "ext4");
}

const CLIENT: &str = "[client]\nplace = \"remote\"\nround-trip = \"2ms\"\nbytes-per-second = \"80MB\"\n\
                      connections = 2";

#[test]
fn a_design_overrides_the_client_for_itself_alone() {
    let second = "use = \"kingston-nvme\"\nname = \"near\"\nclient = { place = \"local\" }";
    let plan = planned(&study(CLIENT, second, "", ""), &PlanOptions::default());
    let [far, near] = plan.designs.as_slice() else { panic!("two designs") };
    let network =
        NetworkPlan { round_trip: Nanos::from_millis(2), bytes_per_second: Some(80_000_000) };
    assert_eq!((far.client.place, far.client.network), (ClientPlace::Remote, Some(network)));
    assert_eq!((near.client.place, near.client.network), (ClientPlace::Local, None));
    assert_eq!(near.client.connections, Some(2), "the study's");
    let details = plan_json(&plan);
    assert_eq!(details["designs"][0]["client"]["round_trip_ns"], 2_000_000);
    assert_eq!(details["designs"][1]["client"]["place"], "local");
    let text = underlay_study::render_plan(&plan, 100);
    assert!(text.contains("client local, 2 connections shared by the users"), "{text}");
    assert!(text.contains("client.round-trip"), "{text}");
}

#[test]
fn a_study_without_a_word_about_its_client_says_nothing_of_it() {
    let plan = planned(&study("", SATA, "", ""), &PlanOptions::default());
    assert!(plan.designs.iter().all(|design| design.client == ClientPlan::default()));
    assert!(plan_json(&plan)["designs"][0]["client"].is_null());
    let text = underlay_study::render_plan(&plan, 100);
    assert!(!text.contains("    client ") && !text.contains("client."), "{text}");
}

#[test]
fn a_client_is_scaled_with_its_users_and_keeps_its_latency() {
    let procedure = "warm-up-users = 12";
    let options = PlanOptions { scale: Some(Scale { divisor: 4 }), ..PlanOptions::default() };
    let users = PlanOptions { users: Some(vec![40]), ..options.clone() };
    let plan = planned(&study(&CLIENT.replace("= 2", "= 16"), SATA, "", procedure), &users);
    let client = plan.designs[0].client;
    assert_eq!(client.connections, Some(4));
    let network = client.network.expect("a network");
    assert_eq!(network.round_trip, Nanos::from_millis(2));
    assert_eq!(network.bytes_per_second, Some(20_000_000));
    assert_eq!((plan.procedure.warm_up_users(), plan.procedure.users_at_once()), (3, 40));
    // At a scale at which nobody has to share any more that is no mistake of the study.
    let plan = planned(&study(CLIENT, SATA, "", ""), &options);
    assert!(codes(&plan).contains(&"connections-not-shared"), "{:?}", codes(&plan));
}

#[test]
fn the_server_must_accept_connections_not_users() {
    let users = PlanOptions { users: Some(vec![1_000]), ..PlanOptions::default() };
    assert!(check(&study("", SATA, "", ""), &users, &host()).is_err());
    let plan = planned(&study(CLIENT, SATA, "", ""), &users);
    assert!(!codes(&plan).contains(&"memory-tight"), "{:?}", codes(&plan));
}

#[test]
fn a_local_client_without_limits_is_doubted() {
    let local = "[client]\nplace = \"local\"";
    let plan = planned(&study(local, SATA, "", ""), &PlanOptions::default());
    assert!(!codes(&plan).contains(&"client-without-limits"), "it has a memory limit");
    let source = study(local, SATA, "", "");
    let text = source.text.replace("memory-limit = \"256MiB\"\n", "");
    let plan = planned(&Source { text, ..source }, &PlanOptions::default());
    assert!(codes(&plan).contains(&"client-without-limits"), "{:?}", codes(&plan));
}

#[test]
fn devices_of_the_file_replace_those_of_the_built_in() {
    let second = "use = \"kingston-nvme\"\nname = \"two\"\n\
                  datastore.emulated.devices = [{ name = \"a\", profile = \"null\" }, \
                  { name = \"b\", profile = \"dc1500m-960\", overrides = { flush = \"1ms\" } }]\n\
                  volumes.wal.device = \"b\"";
    let plan = planned(&study("", second, "", ""), &PlanOptions::default());
    let DatastoreKind::Emulated { devices, .. } = &plan.designs[1].kind else { panic!("emulated") };
    assert_eq!(devices.len(), 2);
    assert_eq!(devices[1].1.flush, Nanos::from_millis(1));
    assert_eq!(devices[1].1.basis.as_str(), "assumed");
    let places: Vec<_> = plan.designs[1].volumes.iter().map(|v| v.device.as_deref()).collect();
    assert_eq!(places, [Some("a"), Some("b"), Some("a")]);
}

#[test]
fn evidence_is_the_weakest_and_mixing_is_doubted() {
    let path = "name = \"here\"\ndatastore.path.directory = \"/mnt/nvme\"";
    let plan = planned(&study("", path, "", ""), &PlanOptions::default());
    assert_eq!(plan.evidence, Evidence::Emulated);
    assert_eq!(plan.designs[1].evidence, Evidence::Measured);
    assert!(codes(&plan).contains(&"mixed-evidence"));
    assert_eq!(plan.designs[1].volumes[0].device, None);
}

#[test]
fn each_doubt_is_raised_by_its_cause_alone() {
    let cases: [(&str, Source); 12] = [
        ("fsync-off", study("fsync = false", SATA, "", "")),
        ("synchronous-commit-off", study("synchronous_commit = \"off\"", SATA, "", "")),
        ("full-page-writes-off", study("full_page_writes = \"no\"", SATA, "", "")),
        ("autovacuum-off", study("autovacuum = 0", SATA, "", "")),
        ("no-interval", study("", SATA, "", "repeats = 1")),
        ("wide-interval", study("", SATA, "", "repeats = 2")),
        (
            "no-checkpoint",
            study("", SATA, "", "measure = \"10s\"\nwarm-up = \"1s\"\nramp-up = \"1s\""),
        ),
        ("checkpoint-in-some-windows", study("", SATA, "", "measure = \"30s\"")),
        (
            "lying-device",
            study("", &format!("{SATA}\ndatastore.emulated.durability = \"lying\""), "", ""),
        ),
        ("identical-designs", study("", "use = \"kingston-nvme\"\nname = \"again\"", "", "")),
        (
            "backup-volume-small",
            study("", &format!("{SATA}\nvolumes.backup.capacity = \"512MiB\""), "", ""),
        ),
        ("log-volume-tight", study("max_wal_size = \"1900MB\"", SATA, "", "").smaller_log()),
    ];
    let quiet = planned(&study("", SATA, "", ""), &PlanOptions::default());
    assert_eq!(codes(&quiet), Vec::<&str>::new());
    for (code, source) in cases {
        assert_eq!(codes(&planned(&source, &PlanOptions::default())), [code]);
    }
}

trait SmallerLog {
    fn smaller_log(self) -> Source;
}

impl SmallerLog for Source {
    fn smaller_log(self) -> Source {
        let text =
            self.text.replace("wal = { capacity = \"2GiB\" }", "wal = { capacity = \"2100MiB\" }");
        Source { name: self.name, text }
    }
}

#[test]
fn data_that_fits_the_cache_is_doubted() {
    let mut source = study("", SATA, "", "");
    source.text = source.text.replace("\"256MiB\"", "\"2GiB\"");
    let plan = planned(&source, &PlanOptions::default());
    assert_eq!(codes(&plan), ["fits-cache"]);
    assert!(plan.estimates.working_set_ratio.is_some_and(|ratio| ratio < 1.0));
    // Without any limit it is the host's memory that caches.
    source.text = source.text.replace("memory-limit = \"2GiB\"", "");
    let plan = planned(&source, &PlanOptions::default());
    assert_eq!(codes(&plan), ["fits-cache"]);
}

#[test]
fn the_remedy_for_data_that_fits_the_cache_is_a_key_of_the_workload() {
    let written = |workload: &str| {
        let mut source = study("", SATA, "", "");
        source.text = source
            .text
            .replace("\"256MiB\"", "\"2GiB\"")
            .replace("[workload.tpcc]\nwarehouses = 8\nhome-warehouse = \"drawn\"\n", workload);
        source
    };
    let sysbench = "[workload.sysbench]\ntables = 4\ntable-size = 100_000\n";
    for (workload, key) in [
        ("[workload.tpcc]\nwarehouses = 8\nhome-warehouse = \"drawn\"\n", "raise warehouses,"),
        (sysbench, "raise tables or table-size,"),
        ("[workload.dvdstore]\ndb-size = \"50MB\"\n", "raise db-size,"),
    ] {
        let plan = planned(&written(workload), &PlanOptions::default());
        assert_eq!(codes(&plan), ["fits-cache"], "{workload}");
        assert!(plan.findings[0].remedy.starts_with(key), "{:?}", plan.findings);
    }
    let job = |workload: &str| {
        let mut source = written(workload);
        source.text = source.text.replace("users = [1, 4]\n", "repeats = 3\n");
        planned(&source, &PlanOptions::default())
    };
    let warehouse = job("[workload.warehouse]\nscale = 0.01\n");
    assert_eq!(codes(&warehouse), ["fits-cache", "no-checkpoint"]);
    assert!(warehouse.findings[0].remedy.starts_with("raise scale,"), "{:?}", warehouse.findings);
    // An insertion reads nothing back, so that no size would be right.
    let batch = job("[workload.batch]\nrows = 10_000\n");
    assert_eq!(codes(&batch), ["no-checkpoint"]);
    assert_eq!(batch.estimates.working_set_ratio, None);
}

#[test]
fn a_ladder_whose_working_set_grows_is_doubted() {
    let mut source = study("", SATA, "", "");
    source.text = source.text.replace("\"drawn\"", "\"fixed\"");
    let plan = planned(&source, &PlanOptions::default());
    assert_eq!(codes(&plan), ["working-set-grows"]);
    let text = &plan.findings[0].text;
    assert!(text.contains("1 reach 1 of 8 warehouses, 4 reach 4"), "{text}");
    // One rung, or rungs that all reach every warehouse, vary one thing.
    for users in [vec![4], vec![8, 16]] {
        let options = PlanOptions { users: Some(users), ..PlanOptions::default() };
        assert_eq!(codes(&planned(&source, &options)), Vec::<&str>::new());
    }
    // A database that memory holds is not read from storage by anybody.
    source.text = source.text.replace("\"256MiB\"", "\"2GiB\"");
    assert_eq!(codes(&planned(&source, &PlanOptions::default())), ["fits-cache"]);
}

#[test]
fn users_beyond_terminals_and_memory_are_doubted() {
    let options = PlanOptions { users: Some(vec![1, 85]), ..PlanOptions::default() };
    let plan = planned(&study("", SATA, "", ""), &options);
    assert_eq!(codes(&plan), ["users-beyond-terminals", "memory-tight"]);
    assert!(plan.findings.iter().all(|finding| finding.severity == Severity::Warning));
}

#[test]
fn limits_that_cannot_be_enforced_are_doubted() {
    let source = study("", SATA, "", "");
    let reason = "no control groups here".to_string();
    let host = HostView { memory_limits: Enforcement::Unenforced { reason }, ..host() };
    let (_, plan) = check(&source, &PlanOptions::default(), &host).expect("only a doubt");
    assert_eq!(codes(&plan), ["memory-limit-unenforced"]);
    assert_eq!(plan.findings[0].line, Some(5));
}

#[test]
fn an_open_loop_is_scaled_like_the_rest() {
    let source = study("", SATA, "pacing.open = { rate-per-second = 80.0 }", "");
    let scale = Some(Scale { divisor: 2 });
    let plan = planned(&source, &PlanOptions { scale, ..PlanOptions::default() });
    assert_eq!(
        plan.workload.pacing,
        underlay_study::Pacing::Open {
            rate_per_second: 40.0,
            arrivals: underlay_study::Arrivals::Poisson
        }
    );
    assert_eq!(plan.workload.kind.population().count, 4);
}

#[test]
fn a_scale_that_leaves_nothing_is_refused() {
    let options = PlanOptions { scale: Some(Scale { divisor: 64 }), ..PlanOptions::default() };
    let problems = quickstart(&options).expect_err("4 MiB for a server");
    let text = problems.render(100, Colour::Plain);
    assert!(text.contains("the scale 1/64 is too small for this study"), "{text}");
}

#[test]
fn sysbench_is_a_workload_and_is_scaled_by_its_rows() {
    let source = study("", SATA, "", "");
    let text = source.text.replace(
        "[workload.tpcc]\nwarehouses = 8\nhome-warehouse = \"drawn\"\n",
        "[workload.sysbench]\nscript = \"read_only\"\ntables = 4\ntable-size = 500_000\n\
         pacing.open = { rate-per-second = 80.0 }\n",
    );
    let source = Source { text, ..source };
    let scale = Some(Scale { divisor: 2 });
    let plan = planned(&source, &PlanOptions { scale, ..PlanOptions::default() });
    let WorkloadKind::Sysbench(sysbench) = &plan.workload.kind else { panic!("{plan:?}") };
    assert_eq!((sysbench.tables, sysbench.table_size), (4, 250_000));
    assert_eq!(plan.full_size.population.to_string(), "2000000 rows");
    let Pacing::Open { rate_per_second, .. } = plan.workload.pacing else { panic!("{plan:?}") };
    assert_eq!(rate_per_second, 40.0);
    let written = plan_json(&plan);
    let content = &written["workload"]["sysbench"];
    assert_eq!(content["script"], "read_only");
    assert_eq!(content["shape"]["headline"]["unit"], "TPS");
    assert_eq!(content["shape"]["headline"]["types"][1], "read_only");
}

#[test]
fn a_script_is_spelt_as_on_the_command_line_of_drive() {
    let spelt = |script: &str| {
        let source = study("", SATA, "", "");
        let sysbench =
            format!("[workload.sysbench]\nscript = \"{script}\"\ntable-size = 500_000\n");
        let text = source
            .text
            .replace("[workload.tpcc]\nwarehouses = 8\nhome-warehouse = \"drawn\"\n", &sysbench);
        assert!(text.contains(&sysbench));
        let plan = planned(&Source { text, ..source }, &PlanOptions::default());
        plan_json(&plan)["workload"]["sysbench"]["script"].clone()
    };
    for script in ["update_non_index", "update-non-index", "oltp_update_non_index"] {
        assert_eq!(spelt(script), "update_non_index");
    }
}

#[test]
fn designs_of_the_same_built_in_have_titles_of_their_own() {
    let titles = |second: &str| -> Vec<String> {
        let plan = planned(&study("", second, "", ""), &PlanOptions::default());
        plan.designs.iter().map(|design| design.title.clone()).collect()
    };
    let same = titles("use = \"kingston-nvme\"\nname = \"again\"");
    assert_eq!(same, ["NVMe DC1500M (kingston-nvme)", "NVMe DC1500M (again)"]);
    // What somebody wrote stays as it is.
    let named = titles("use = \"kingston-nvme\"\nname = \"again\"\ntitle = \"Mine\"");
    assert_eq!(named, ["NVMe DC1500M", "Mine"]);
    let other = titles("use = \"kingston-sata-5200eco\"\nname = \"again\"");
    assert_eq!(other, ["NVMe DC1500M", "SATA 5200 ECO"]);
}

#[test]
fn links_mirrors_and_devices_of_disk_groups_are_resolved_and_scaled() {
    let second = "name = \"two\"\n[design.datastore.emulated]\nlink = \"1600MB\"\nlink-latency = \"4us\"\n\
                  devices = [{ name = \"ssd\", profile = \"dc1500m-960\", layout = \"mirror\" }]";
    let quarter = PlanOptions { scale: Some(Scale { divisor: 4 }), ..PlanOptions::default() };
    let plan = planned(&study("", second, "", ""), &quarter);
    let DatastoreKind::Emulated { devices, link: Some(link), .. } = &plan.designs[1].kind else {
        panic!("devices behind a link")
    };
    assert_eq!((devices[0].1.copies, devices[0].1.divisor), (2, 4));
    assert_eq!((link.bytes_per_second, link.divisor), (1_600_000_000, 4));
    assert_eq!(link.latency, Nanos::from_micros(4));
    let json = plan_json(&plan).to_string();
    assert!(json.contains("\"copies\":2") && json.contains("\"link\":{"), "{json}");
    let page = underlay_study::render_plan(&plan, 100);
    assert!(page.contains("1600MB/s in each direction, 4us per request, 1/4 of it"), "{page}");
    let row = |path: &str| {
        let rows = plan.provenance.iter().find(|row| row.path.ends_with(path));
        rows.map(|row| row.value.clone()).expect("it was decided")
    };
    assert_eq!(row("two.datastore.emulated.link"), "1600MB/s");
    assert_eq!(row("two.datastore.emulated.devices.ssd.profile"), "2 x dc1500m-960, mirrored");

    let second = "name = \"two\"\n[design.datastore.cluster]\nnetwork = { latency = \"20us\", bytes-per-second = \"1250MB\" }\n\
                  hosts = [{ name = \"h\", count = 3, disk-groups = [{ cache = { profile = \"p4800x-375\", overrides = { \
                  flush = \"20us\" } }, capacity = [\"p4500-2000\", { profile = \"p4500-2000\", overrides = { capacity = \"1TB\" } }] }] }]";
    let plan = planned(&study("", second, "", ""), &PlanOptions::default());
    let DatastoreKind::Cluster(cluster) = &plan.designs[1].kind else { panic!("a cluster") };
    let group = &cluster.spec.hosts[2].groups[0];
    assert_eq!(group.cache.flush, Nanos::from_micros(20));
    let capacities: Vec<u64> = group.capacity.iter().map(|device| device.capacity.0).collect();
    assert_eq!(capacities, [2_000_000_000_000, 1_000_000_000_000]);
    let flush = plan.provenance.iter().find(|row| row.path.ends_with("cache.overrides.flush"));
    assert_eq!(flush.map(|row| row.value.as_str()), Some("20us"));
}
