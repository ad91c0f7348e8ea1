//! The database server against its ladder and its host: memory, processors, connections, programs.

use std::collections::BTreeSet;
use std::path::Path;

use underlay_core::Bytes;

use super::chosen::Chosen;
use super::client::ClientChoice;
use super::engine::EngineChoice;
use super::procedure_choice::ProcedureChoice;
use super::resolver::Resolver;
use crate::finding::Severity;
use crate::host_view::{DirectoryState, Enforcement, InstalledServer};
use crate::limits::MEMORY_LIMIT_MIN;
use crate::plan::{EngineKind, Scale};
use crate::suggest::nearest;

/// The sessions that the server must accept.
struct Sessions {
    most: Chosen<u32>,
    /// What decides how many: `users` or `connections`.
    of: &'static str,
}

impl Sessions {
    fn of(client: &ClientChoice, procedure: &ProcedureChoice) -> Option<Sessions> {
        let users = procedure.users_at_once()?.clone();
        match &client.connections {
            Some(shared) if shared.value < users.value => {
                Some(Sessions { most: shared.clone(), of: "connections" })
            }
            _ => Some(Sessions { most: users, of: "users" }),
        }
    }
}

/// Checks an engine with all its overrides against the ladder and the host.
pub(super) fn check_engine(
    resolver: &mut Resolver<'_>,
    engine: &EngineChoice,
    client: &ClientChoice,
    procedure: &ProcedureChoice,
) {
    if resolver.is_block_load() {
        return;
    }
    let sessions = Sessions::of(client, procedure);
    check_memory(resolver, engine, sessions.as_ref());
    check_processors(resolver, engine);
    check_connections(resolver, engine, sessions.as_ref());
    check_server(resolver, engine);
    check_backup_settings(resolver, engine);
    doubt_settings(resolver, engine);
}

/// Settings under which PostgreSQL takes no backups, and an engine that has none.
fn check_backup_settings(resolver: &mut Resolver<'_>, engine: &EngineChoice) {
    let workload = &resolver.file.workload.backup;
    if !workload.is_present() {
        return;
    }
    match engine.of {
        EngineKind::Postgresql => {}
        EngineKind::Mariadb => return,
        EngineKind::Mysql => {
            let span = engine.kind.as_ref().and_then(|kind| kind.span.clone());
            resolver.report.add(
                span.or_else(|| workload.span.clone()),
                "conflict",
                "no backups of MySQL can be taken",
                "mariadb-backup reads MariaDB's files only, and MySQL has no program like it",
                "study backups of PostgreSQL or MariaDB",
            );
            return;
        }
    }
    if let Some(level) = engine.setting("wal_level")
        && level.value.trim().eq_ignore_ascii_case("minimal")
    {
        level.problem(
            &mut resolver.report,
            "conflict",
            "a backup needs a higher wal_level",
            "with minimal logging there is no log that a backup could be restored with",
            "remove the line, or write wal_level = \"replica\"",
        );
    }
    // One for the files and one for the log, which a temporary slot keeps until it is sent.
    for (name, least, what) in [
        ("max_wal_senders", 2, "a backup needs two WAL senders"),
        ("max_replication_slots", 1, "a backup needs a replication slot"),
    ] {
        let Some(chosen) = engine.setting(name) else { continue };
        if chosen.value.trim().parse::<u64>().is_ok_and(|number| number < least) {
            chosen.problem(
                &mut resolver.report,
                "conflict",
                what,
                format!("{name} is {}", chosen.value),
                format!("remove the line, or write {least} or more"),
            );
        }
    }
}

/// The engine's program for backups may be missing, or be of another version.
fn check_backup_program(resolver: &mut Resolver<'_>, server: &InstalledServer) {
    let workload = &resolver.file.workload.backup;
    let Some(problem) = server.backup_problem.as_ref().filter(|_| workload.is_present()) else {
        return;
    };
    resolver.report.add(
        workload.span.clone(),
        "backup-program-missing",
        format!("no backups can be taken on this host: {problem}"),
        "this workload takes them",
        "install the package, then check again",
    );
}

fn check_memory(resolver: &mut Resolver<'_>, engine: &EngineChoice, sessions: Option<&Sessions>) {
    let Some(limit) = &engine.memory_limit else { return };
    if limit.value < MEMORY_LIMIT_MIN {
        let help = too_small_help(resolver, "give the server at least 64MiB");
        limit.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} is too small for a database server", limit.called()),
            format!("{} is below {MEMORY_LIMIT_MIN}", limit.value),
            help,
        );
    } else if let Some(buffers) = engine.buffers()
        && limit.value < buffers
    {
        let name = engine.dialect().buffers.0;
        let place = match engine.setting(name) {
            Some(chosen) => chosen.origin.to_string(),
            None => "the server's default".to_string(),
        };
        let fitting = (engine.dialect().size_text)(Bytes((limit.value.0 / 4) >> 20 << 20));
        limit.problem(
            &mut resolver.report,
            "memory-below-buffers",
            format!("{} is smaller than {name}", limit.called()),
            format!("{} is below {name} = {buffers} ({place})", limit.value),
            format!("set {name} to a quarter of the limit or less: \"{fitting}\""),
        );
    } else if let (Some(buffers), Some(sessions)) = (engine.buffers(), sessions) {
        doubt_memory(resolver, limit, (engine.dialect().buffers.0, buffers), sessions);
    }
    if limit.value > resolver.host.memory {
        let help =
            scale_help(resolver, limit.value.0 as f64 / resolver.host.memory.0.max(1) as f64);
        limit.problem(
            &mut resolver.report,
            "larger-than-host",
            format!("{} is more than the host has", limit.called()),
            format!("the host has {}", resolver.host.memory),
            format!("lower it{help}"),
        );
    }
    if let Enforcement::Unenforced { reason } = &resolver.host.memory_limits {
        let text = format!("the memory limit of {} cannot be enforced on this host", limit.value);
        resolver.finding(
            Severity::Warning,
            "memory-limit-unenforced",
            text,
            reason.clone(),
            limit.line(resolver.text),
        );
    }
}

/// A server that is killed for lack of memory ends a run in its middle.
fn doubt_memory(
    resolver: &mut Resolver<'_>,
    limit: &Chosen<Bytes>,
    (name, buffers): (&str, Bytes),
    sessions: &Sessions,
) {
    let Sessions { most, of } = sessions;
    /// Private memory of a session that runs short transactions: assumed, within the 5 to 8 MiB that small sessions show.
    const PER_SESSION: Bytes = Bytes::from_mib(6);
    let wanted = buffers + Bytes(PER_SESSION.0 * u64::from(most.value));
    if wanted > limit.value {
        resolver.finding(
            Severity::Warning,
            "memory-tight",
            format!(
                "{} {of} and {name} of {buffers} want about {wanted} of the {} \
                 that the server may use; it may be killed for lack of memory",
                most.value, limit.value
            ),
            format!("raise engine.memory-limit, or lower {name} or the top of the ladder"),
            limit.line(resolver.text),
        );
    }
}

fn check_processors(resolver: &mut Resolver<'_>, engine: &EngineChoice) {
    let Some(cpus) = &engine.cpus else {
        if let Some(speed) = engine.core_speed.as_ref().filter(|speed| speed.value != 1.0) {
            speed.problem(
                &mut resolver.report,
                "conflict",
                format!("{} has no number of processors to apply to", speed.called()),
                "without a limit a server uses the host's processors at their own speed",
                "set engine.cpus, or remove it",
            );
        }
        return;
    };
    let (whole, speed) = (cpus.value * engine.core_speed(), engine.core_speed());
    if whole > f64::from(resolver.host.cpus) {
        let help = scale_help(resolver, whole / f64::from(resolver.host.cpus.max(1)));
        let of_speed = if speed == 1.0 { String::new() } else { format!(" of speed {speed}") };
        cpus.problem(
            &mut resolver.report,
            "larger-than-host",
            format!("{} is more than the host has", cpus.called()),
            format!("{}{of_speed} asked for, the host has {}", cpus.value, resolver.host.cpus),
            format!("lower it{help}"),
        );
    } else if cpus.value < 0.1 {
        let help = too_small_help(resolver, "give the server at least a tenth of a processor");
        cpus.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} is too small for a database server", cpus.called()),
            format!("{} is below 0.1", cpus.value),
            help,
        );
    }
    if let Enforcement::Unenforced { reason } = &resolver.host.cpu_limits {
        resolver.finding(
            Severity::Warning,
            "cpu-limit-unenforced",
            format!("the limit of {} processors cannot be enforced on this host", cpus.value),
            reason.clone(),
            cpus.line(resolver.text),
        );
    }
}

fn check_connections(
    resolver: &mut Resolver<'_>,
    engine: &EngineChoice,
    sessions: Option<&Sessions>,
) {
    let Some(Sessions { most, of }) = sessions else { return };
    let chosen = engine.setting("max_connections");
    let allowed = match chosen {
        None => engine.dialect().connections,
        Some(chosen) => match chosen.value.trim().parse() {
            Ok(allowed) => allowed,
            Err(_) => return,
        },
    };
    let reserve = engine.dialect().reserved_connections;
    if most.value > allowed.saturating_sub(reserve) {
        let wanted = most.value.saturating_add(reserve);
        let who = if chosen.is_some() { "set in the study" } else { "the server's default" };
        most.problem(
            &mut resolver.report,
            "too-many-users",
            format!("{} {of} are more than the server accepts", most.value),
            format!("max_connections is {allowed} ({who}), {reserve} of them are reserved"),
            format!("set max_connections = {wanted} or more under [engine.settings]"),
        );
    }
}

fn check_server(resolver: &mut Resolver<'_>, engine: &EngineChoice) {
    let Some(kind) = &engine.kind else { return };
    let folder = engine.server_bin.as_ref();
    if folder.is_some_and(|folder| !is_folder(resolver, folder, engine.dialect().programs)) {
        return;
    }
    let path = folder.map(|folder| Path::new(&folder.value));
    let Some(servers) = (resolver.host.servers)(kind.value, path) else { return };
    let asked = engine.version.as_ref().map(|version| version.value);
    let found = servers
        .iter()
        .filter(|server| asked.is_none_or(|asked| u64::from(server.major) == asked))
        .max_by_key(|server| server.major);
    match found {
        None => no_server(resolver, kind, engine, &servers),
        Some(server) => {
            if let Some(known) = &server.settings {
                check_known_settings(resolver, engine, known, server.major);
            }
            check_backup_program(resolver, server);
        }
    }
}

/// Whether the folder of the server programs is one; reports it otherwise.
fn is_folder(resolver: &mut Resolver<'_>, folder: &Chosen<String>, programs: &str) -> bool {
    let wrong = match (resolver.host.directory)(Path::new(&folder.value)) {
        DirectoryState::Missing => "does not exist",
        DirectoryState::NotADirectory => "is not a directory",
        // Reading is enough.
        DirectoryState::Usable { .. } | DirectoryState::NotWritable => return true,
    };
    folder.problem(
        &mut resolver.report,
        "no-directory",
        format!("the folder of the server programs, \"{}\", cannot be used", folder.value),
        wrong,
        format!("name the folder that holds {programs}, or leave the key out"),
    );
    false
}

fn no_server(
    resolver: &mut Resolver<'_>,
    kind: &Chosen<EngineKind>,
    engine: &EngineChoice,
    servers: &[InstalledServer],
) {
    let place = match &engine.server_bin {
        Some(folder) => format!("in \"{}\"", folder.value),
        None => "on this host".to_string(),
    };
    let what = match &engine.version {
        Some(version) => format!("{} {}", kind.value, version.value),
        None => kind.value.to_string(),
    };
    let versions: Vec<String> = servers.iter().map(|server| server.major.to_string()).collect();
    let (label, first) = if versions.is_empty() {
        ("none was found".to_string(), engine.dialect().install)
    } else {
        let other = "ask for a version that was found, leave `version` out";
        (format!("found: {}", versions.join(", ")), other)
    };
    let asked = engine.version.as_ref().and_then(|version| version.span.clone());
    resolver.report.add(
        asked.or_else(|| kind.span.clone()),
        "engine-missing",
        format!("no server programs of {what} {place}"),
        label,
        format!("{first}, or name the folder of its programs with --server-bin"),
    );
}

fn check_known_settings(
    resolver: &mut Resolver<'_>,
    engine: &EngineChoice,
    known: &BTreeSet<String>,
    major: u32,
) {
    for (name, chosen) in &engine.settings {
        // A name with a dot belongs to an extension that may be loaded later.
        if known.contains(&name.to_ascii_lowercase()) || name.contains('.') {
            continue;
        }
        let label = match nearest(name, known.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "not a setting of this server".to_string(),
        };
        chosen.problem(
            &mut resolver.report,
            "unknown-setting",
            format!("{} {major} has no setting `{name}`", engine.dialect().title),
            label,
            "correct the name or remove the line",
        );
    }
}

fn doubt_settings(resolver: &mut Resolver<'_>, engine: &EngineChoice) {
    for doubtful in engine.dialect().doubtful {
        let Some(chosen) = engine.setting(doubtful.name) else { continue };
        if !(doubtful.is)(&chosen.value) {
            continue;
        }
        let line = chosen.line(resolver.text);
        resolver.finding(
            Severity::Warning,
            doubtful.code,
            format!("{} {}: {}", doubtful.name, doubtful.words, doubtful.consequence),
            format!("remove `{}` unless it is what the study asks about", doubtful.name),
            line,
        );
    }
}

/// The end of a remedy: the scale at which a too large study fits.
pub(super) fn scale_help(resolver: &Resolver<'_>, ratio: f64) -> String {
    let divisor = f64::from(resolver.scale.divisor) * ratio;
    if !divisor.is_finite() || divisor > 1024.0 {
        return String::new();
    }
    let k = (divisor.ceil() as u32).next_power_of_two();
    format!(", or run the study at this host's size: --scale 1/{k}")
}

fn too_small_help(resolver: &Resolver<'_>, otherwise: &str) -> String {
    if resolver.scale == Scale::FULL {
        otherwise.to_string()
    } else {
        format!("{otherwise}; the scale {} is too small for this study", resolver.scale)
    }
}
