//! The configuration of a managed server: what Underlay sets, what the study sets, what is in force.
//!
//! Three layers. *Identity* settings (paths, port, log form) make the server manageable and cannot be
//! set by a study. *Base* settings are Underlay's defaults, which a study may override. Everything
//! else is PostgreSQL's own. The whole configuration is one file outside the data directory, so that
//! a template or a backup carries none: the same files start with the settings of each run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use underlay_host::{HostError, ProgramSpec, Teardown, User, run_program_with};

use crate::managed::{ServerError, SettingInForce, SettingProblem, merged, own_checks, problem};
use crate::postgres::install::Install;

/// Settings that a study cannot set, with the reason.
const RESERVED: [(&str, &str); 22] = [
    ("data_directory", "it follows from the study's volumes"),
    ("config_file", "Underlay writes it"),
    ("hba_file", "Underlay writes it"),
    ("ident_file", "Underlay writes it"),
    ("external_pid_file", "Underlay follows the process itself"),
    ("port", "Underlay finds a free one"),
    ("listen_addresses", "the server is only reachable from this host"),
    ("unix_socket_directories", "Underlay creates one for each server"),
    ("unix_socket_group", "only the server's user and root may connect"),
    ("unix_socket_permissions", "only the server's user and root may connect"),
    ("cluster_name", "Underlay names its servers"),
    ("logging_collector", "Underlay reads the log as it is written"),
    ("log_destination", "Underlay reads the log as it is written"),
    ("log_line_prefix", "Underlay reads the log"),
    ("lc_messages", "Underlay reads the log"),
    ("log_timezone", "Underlay reads the log"),
    ("event_source", "it has no use here"),
    ("ssl", "encryption would be measured as the database's time"),
    ("include", "put the settings into the study"),
    ("include_if_exists", "put the settings into the study"),
    ("include_dir", "put the settings into the study"),
    ("update_process_title", "telemetry identifies the processes by their titles"),
];

/// Underlay's defaults. Values that initdb would choose by the host's size or language are written
/// down, so that every host and version starts from the same.
///
/// Dynamic shared memory stays what it is on any Linux server, `posix`, although a killed server leaves its
/// segments behind: they are registered and removed ([`underlay_host::Segment`]). With `mmap` they would be files
/// in the data directory, gone with it, but written back to the volume that is measured; `sysv` leaves its segments
/// just the same; `min_dynamic_shared_memory` takes memory from the server and still has a segment that
/// lists them.
const BASE: [(&str, &str); 13] = [
    ("shared_buffers", "128MB"),
    ("max_connections", "100"),
    ("max_wal_size", "1GB"),
    ("min_wal_size", "80MB"),
    ("dynamic_shared_memory_type", "posix"),
    ("fsync", "on"),
    ("log_checkpoints", "on"),
    ("track_io_timing", "on"),
    ("track_wal_io_timing", "on"),
    ("timezone", "UTC"),
    ("datestyle", "iso, mdy"),
    ("default_text_search_config", "pg_catalog.english"),
    ("password_encryption", "scram-sha-256"),
];

/// Settings under which what was acknowledged, or the data itself, may be lost.
const UNSAFE: [(&str, &str, &str); 4] = [
    (
        "fsync",
        "off",
        "the server never waits for the storage, and a crash may destroy the database",
    ),
    ("full_page_writes", "off", "a power cut may leave torn pages that recovery cannot repair"),
    ("synchronous_commit", "off", "acknowledged transactions may be lost in a crash"),
    ("autovacuum", "off", "dead rows pile up; a longer run would be slower"),
];

/// Asks the server programs about the study's settings, without a cluster; all problems at once.
///
/// Values that only contradict each other, or the host (too much shared memory), show at the start.
/// So do names with a dot: any of them is taken for an extension's.
pub fn check_settings(
    install: &Install,
    run_as: Option<&User>,
    teardown: &Teardown,
    scratch: &Path,
    settings: &BTreeMap<String, String>,
) -> Result<(), ServerError> {
    let mut problems = own_checks(settings, &RESERVED, str::to_ascii_lowercase);
    if problems.is_empty() && !settings.is_empty() {
        problems = server_checks(install, run_as, teardown, scratch, settings)?;
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ServerError::Settings { server: install.title(), problems })
    }
}

/// The base settings that this install has: not every version has every timing.
pub(crate) fn base_settings(install: &Install) -> Result<BTreeMap<String, String>, ServerError> {
    let known = install.setting_names()?;
    Ok(BASE
        .iter()
        .filter(|(name, _)| known.contains(*name))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect())
}

/// The text of a configuration file; later layers win.
pub(crate) fn render(layers: &[&BTreeMap<String, String>]) -> String {
    let mut text = String::from("# Written by Underlay at every start; changes are lost.\n");
    for (name, value) in merged(layers, str::to_ascii_lowercase) {
        let quoted = value.replace('\\', "\\\\").replace('\'', "''");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} = '{quoted}'");
    }
    text
}

/// Warnings about what is in force, in words.
pub(crate) fn warnings(in_force: &[SettingInForce]) -> Vec<String> {
    UNSAFE
        .iter()
        .filter(|(name, value, _)| {
            in_force.iter().any(|setting| setting.name == *name && setting.value == *value)
        })
        .map(|(name, value, why)| format!("{name} = {value}: {why}"))
        .collect()
}

/// Settings of the study that the running server does not know: names with a dot that no loaded
/// extension has claimed.
pub(crate) fn unclaimed(
    settings: &BTreeMap<String, String>,
    known: impl Fn(&str) -> bool,
) -> Vec<SettingProblem> {
    settings
        .iter()
        .filter(|(name, _)| !known(&name.to_ascii_lowercase()))
        .map(|(name, value)| {
            problem(
                name,
                value,
                "no loaded extension has such a setting; see shared_preload_libraries",
            )
        })
        .collect()
}

/// `postgres -C` reads the command line and ends: one call with all settings when all is well, and
/// one call each when not, because the server stops at the first.
fn server_checks(
    install: &Install,
    run_as: Option<&User>,
    teardown: &Teardown,
    scratch: &Path,
    settings: &BTreeMap<String, String>,
) -> Result<Vec<SettingProblem>, ServerError> {
    let dir = scratch.join("settings-check");
    let ticket = teardown.create_directory(&dir)?;
    let config = dir.join("empty.conf");
    fs::write(&config, "").map_err(ServerError::file("write", &config))?;
    // Both are empty; the server's user must be able to read them.
    for (path, mode) in [(&dir, 0o711), (&config, 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(ServerError::file("set the permissions of", path))?;
    }
    let ask = |settings: &[(&String, &String)]| ask_server(install, run_as, &dir, settings);
    let all: Vec<(&String, &String)> = settings.iter().collect();
    let mut problems = Vec::new();
    if ask(&all)?.is_some() {
        for setting in &all {
            if let Some(reason) = ask(std::slice::from_ref(setting))? {
                problems.push(problem(setting.0, setting.1, &reason));
            }
        }
    }
    teardown.release(ticket)?;
    Ok(problems)
}

/// Why the server refuses these settings, if it does.
fn ask_server(
    install: &Install,
    run_as: Option<&User>,
    dir: &Path,
    settings: &[(&String, &String)],
) -> Result<Option<String>, ServerError> {
    let mut args: Vec<std::ffi::OsString> =
        vec!["-C".into(), "port".into(), "-D".into(), dir.into()];
    args.extend(["-c".into(), format!("config_file={}", dir.join("empty.conf").display()).into()]);
    for (name, value) in settings {
        args.extend(["-c".into(), format!("{name}={value}").into()]);
    }
    let program = install.program("postgres");
    let outcome = run_program_with(&ProgramSpec {
        program: &program,
        args,
        env: Vec::new(),
        run_as,
        working_dir: Path::new("/"),
    });
    match outcome {
        Ok(_) => Ok(None),
        Err(HostError::ProgramFailed { stderr, .. }) => Ok(Some(refusal(&stderr))),
        Err(error) => Err(error.into()),
    }
}

/// `... FATAL:  <reason>` with the `HINT:  <hint>` that follows it.
fn refusal(stderr: &str) -> String {
    let after = |mark: &str| {
        stderr.lines().find_map(|line| line.split_once(mark)).map(|(_, text)| text.trim())
    };
    match (after("FATAL:"), after("HINT:")) {
        (Some(reason), Some(hint)) => format!("{reason} ({})", hint.trim_end_matches('.')),
        (Some(reason), None) => reason.to_string(),
        (None, _) => stderr.trim().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{RESERVED, refusal, render, warnings};
    use crate::managed::{SettingInForce, own_checks};

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn renders_later_layers_over_earlier_and_quotes() {
        let text = render(&[
            &settings(&[("a", "1"), ("b", "it's")]),
            &settings(&[("A", "2"), ("c", "back\\slash")]),
        ]);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines, ["a = '2'", "b = 'it''s'", "c = 'back\\\\slash'"]);
    }

    #[test]
    fn refuses_what_is_reserved_or_malformed_all_at_once() {
        let given = settings(&[
            ("Port", "5432"),
            ("work mem", "1MB"),
            ("work_mem", "1MB\nfsync = off"),
            ("fsync", "on"),
            ("FSYNC", "off"),
        ]);
        let problems = own_checks(&given, &RESERVED, str::to_ascii_lowercase);
        let reasons: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(reasons.len(), 4, "{reasons:?}");
        assert!(reasons.iter().any(|text| text.contains("finds a free one")), "{reasons:?}");
        assert!(reasons.iter().any(|text| text.contains("already set as `FSYNC`")), "{reasons:?}");
    }

    #[test]
    fn a_refusal_carries_the_hint() {
        let text = "2026-01-01 LOG:  x\n2026-01-01 FATAL:  invalid value\n2026-01-01 HINT:  Use on, off.\n";
        assert_eq!(refusal(text), "invalid value (Use on, off)");
        assert_eq!(refusal("nothing known\n"), "nothing known");
    }

    #[test]
    fn warns_of_unsafe_settings() {
        let setting = |name: &str, value: &str| SettingInForce {
            name: name.to_string(),
            value: value.to_string(),
            source: "configuration file".to_string(),
        };
        let found = warnings(&[setting("fsync", "off"), setting("autovacuum", "on")]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("fsync = off: "));
    }
}
