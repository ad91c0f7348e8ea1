//! Malformed studies: each file of `malformed/` says in its second line which problems are to be
//! reported, in the order of the file, and the snapshot holds what people see.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use underlay_core::Bytes;
use underlay_study::{
    Colour, DirectoryState, Enforcement, EngineKind, HostView, InstalledServer, PlanOptions,
    Problems, Source, check,
};

fn directory(path: &Path) -> DirectoryState {
    match path.to_str() {
        Some("/mnt/missing") => DirectoryState::Missing,
        Some("/mnt/file") => DirectoryState::NotADirectory,
        Some("/mnt/read-only") => DirectoryState::NotWritable,
        Some("/mnt/nearly-full") => DirectoryState::Usable { free: Bytes::from_gib(5) },
        _ => DirectoryState::Usable { free: Bytes::from_gib(50) },
    }
}

fn servers(engine: EngineKind, _: Option<&Path>) -> Option<Vec<InstalledServer>> {
    let settings = [
        "shared_buffers",
        "max_wal_size",
        "max_connections",
        "work_mem",
        "wal_level",
        "max_wal_senders",
        "max_replication_slots",
    ];
    let settings: BTreeSet<String> = settings.iter().map(|name| name.to_string()).collect();
    let server = |major| InstalledServer {
        major,
        settings: Some(settings.clone()),
        backup_problem: (engine == EngineKind::Mariadb).then(|| {
            "`mariadb-backup` was not found; install the package mariadb-backup".to_string()
        }),
    };
    Some(vec![server(15), server(17)])
}

fn host() -> HostView<'static> {
    HostView {
        cpus: 4,
        memory: Bytes::from_gib(16),
        free_space: Bytes::from_gib(50),
        memory_limits: Enforcement::Enforced,
        cpu_limits: Enforcement::Enforced,
        directory: &directory,
        servers: &servers,
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/malformed");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of malformed studies")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

fn problems_of(file: &Path, text: &str) -> Problems {
    let name = file.file_name().expect("a file").to_string_lossy().into_owned();
    let source = Source { name, text: text.to_string() };
    match check(&source, &PlanOptions::default(), &host()) {
        Ok(_) => panic!("{} was accepted", file.display()),
        Err(problems) => problems,
    }
}

fn expected_codes(text: &str) -> Vec<&str> {
    let line = text.lines().nth(1).and_then(|line| line.strip_prefix("# expect: "));
    line.expect("the second line says what is expected").split(' ').collect()
}

#[test]
fn each_is_refused_for_its_own_reason() {
    let files = files();
    assert!(files.len() >= 40, "only {} malformed studies", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a readable file");
        let problems = problems_of(file, &text);
        let found: Vec<&str> = problems.as_slice().iter().map(|problem| problem.code).collect();
        if found != expected_codes(&text) {
            wrong.push(format!("{}: {found:?}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn messages_are_as_recorded() {
    for file in files() {
        let text = fs::read_to_string(&file).expect("a readable file");
        let rendered = problems_of(&file, &text).render(100, Colour::Plain);
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false,
            snapshot_path => "../malformed" }, {
            insta::assert_snapshot!(name, rendered);
        });
    }
}

#[test]
fn each_says_where_why_and_what_to_do() {
    for file in files() {
        let text = fs::read_to_string(&file).expect("a readable file");
        let problems = problems_of(&file, &text);
        for problem in problems.as_slice() {
            let at = format!("{}: {problem}", file.display());
            assert!(!problem.label.is_empty() && !problem.help.is_empty(), "{at}");
            assert!(problem.position().is_some(), "{at} has no place");
            let first = problem.message.chars().next().expect("a message");
            assert!(!first.is_uppercase() || problem.message.starts_with("PostgreSQL"), "{at}");
            assert!(!problem.message.ends_with('.') && !problem.help.ends_with('.'), "{at}");
        }
        let json = problems.to_json();
        let listed = json["problems"].as_array().expect("a list").len();
        assert_eq!(listed, problems.as_slice().len());
    }
}
