//! The configuration of a managed MariaDB: what Underlay sets, what the study sets, what is in force.
//!
//! The same three layers as PostgreSQL's. *Identity* settings (paths, socket, log) make the server
//! manageable and cannot be set by a study. *Base* settings are Underlay's defaults, which a study may
//! override. Everything else is the server's own. The whole configuration is one file outside the data
//! directory, and no other is read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use underlay_host::{HostError, Teardown, User};

use super::help_text::{ask, canonical, setting_names};
use crate::managed::{ServerError, SettingInForce, merged, own_checks, problem};
use crate::mariadb::install::Install;

/// Settings that a study cannot set, with the reason.
const RESERVED: [(&str, &str); 30] = [
    ("datadir", "it follows from the study's volumes"),
    ("innodb_data_home_dir", "it follows from the study's volumes"),
    ("innodb_log_group_home_dir", "it follows from the study's volumes"),
    ("innodb_undo_directory", "it follows from the study's volumes"),
    ("tmpdir", "it follows from the study's volumes"),
    ("socket", "Underlay creates one for each server"),
    ("port", "Underlay finds a free one"),
    ("bind_address", "the server is only reachable from this host"),
    ("skip_networking", "the server is only reachable from this host"),
    ("skip_name_resolve", "only the server's user and root may connect"),
    ("skip_grant_tables", "only the server's user and root may connect"),
    ("pid_file", "Underlay follows the process itself"),
    ("log_error", "Underlay reads the log as it is written"),
    ("lc_messages", "Underlay reads the log"),
    ("lc_messages_dir", "Underlay reads the log"),
    ("log_warnings", "Underlay reads the log"),
    ("log_error_verbosity", "Underlay reads the log"),
    ("basedir", "it follows from the server's programs"),
    ("user", "Underlay decides which user runs the server"),
    ("init_file", "Underlay writes it"),
    ("defaults_file", "Underlay writes it"),
    ("local_infile", "the load needs it"),
    ("secure_file_priv", "only this host's client sends files"),
    ("bootstrap", "Underlay makes the system tables"),
    ("initialize", "Underlay makes the system tables"),
    ("ssl", "encryption would be measured as the database's time"),
    ("ssl_cert", "encryption would be measured as the database's time"),
    ("ssl_key", "encryption would be measured as the database's time"),
    ("require_secure_transport", "encryption would be measured as the database's time"),
    ("innodb_force_recovery", "results of a partly disabled server would not be valid"),
];

/// Underlay's defaults. Values that versions or flavours choose differently, or by the host's size, are
/// written down, so that every host and version starts from the same.
const BASE: [(&str, &str); 15] = [
    ("innodb_buffer_pool_size", "128M"),
    // A study's first minutes must not depend on what another server had in memory.
    ("innodb_buffer_pool_dump_at_shutdown", "OFF"),
    ("innodb_buffer_pool_load_at_startup", "OFF"),
    ("innodb_log_file_size", "96M"),
    ("innodb_flush_log_at_trx_commit", "1"),
    ("innodb_flush_method", "O_DIRECT"),
    ("innodb_doublewrite", "ON"),
    ("innodb_file_per_table", "ON"),
    // MySQL's choice; under MariaDB's, inserts of many rows keep each other out of tables that number them.
    ("innodb_autoinc_lock_mode", "2"),
    ("max_connections", "151"),
    ("default_storage_engine", "InnoDB"),
    ("default_time_zone", "+00:00"),
    // MySQL logs a second time for replicas that a study has not; MariaDB does not by default.
    ("skip_log_bin", "ON"),
    ("event_scheduler", "OFF"),
    // MySQL's second protocol.
    ("mysqlx", "OFF"),
];

/// Base settings that are written although the server's list of variables does not name them so.
const ALWAYS_KNOWN: [&str; 1] = ["skip_log_bin"];

/// Settings under which what was acknowledged, or the data itself, may be lost.
const UNSAFE: [(&str, &str, &str); 6] = [
    (
        "innodb_flush_log_at_trx_commit",
        "0",
        "acknowledged transactions of the last second may be lost in a crash of the server",
    ),
    (
        "innodb_flush_log_at_trx_commit",
        "2",
        "acknowledged transactions of the last second may be lost in a power cut",
    ),
    ("innodb_doublewrite", "OFF", "a power cut may leave torn pages that recovery cannot repair"),
    ("innodb_flush_method", "nosync", "the server never waits for the storage"),
    (
        "innodb_flush_method",
        "O_DIRECT_NO_FSYNC",
        "a power cut may lose data written to the data files",
    ),
    ("sync_binlog", "0", "if the binary log is on, it may lack acknowledged transactions"),
];

/// Settings that explain a result, listed even if they were not set.
const EXPLAINING: [&str; 14] = [
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_log_file_size",
    "innodb_page_size",
    "innodb_read_io_threads",
    "innodb_write_io_threads",
    "log_bin",
    "max_connections",
    "performance_schema",
    "sync_binlog",
];

/// Asks the server program about the study's settings, without a database; all problems at once. A value
/// that the server would replace by another is a problem too.
pub fn check_settings(
    install: &Install,
    run_as: Option<&User>,
    _teardown: &Teardown,
    settings: &BTreeMap<String, String>,
) -> Result<(), ServerError> {
    let plain: BTreeMap<String, String> = settings
        .iter()
        // Dashes are no part of other engines' names, but of this one's.
        .map(|(name, value)| (name.replace('-', "_"), value.clone()))
        .collect();
    let mut problems = own_checks(&plain, &RESERVED, canonical);
    if problems.is_empty() && !settings.is_empty() {
        let all: Vec<(&String, &String)> = settings.iter().collect();
        if refusals(install, run_as, &all)?.is_some() {
            for setting in &all {
                if let Some(reason) = refusals(install, run_as, std::slice::from_ref(setting))? {
                    problems.push(problem(setting.0, setting.1, &reason));
                }
            }
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(ServerError::Settings { server: install.title(), problems })
    }
}

/// The base settings that this install has.
pub(crate) fn base_settings(install: &Install) -> Result<BTreeMap<String, String>, ServerError> {
    let known = setting_names(install)?;
    Ok(BASE
        .iter()
        .filter(|(name, _)| known.contains(*name) || ALWAYS_KNOWN.contains(name))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect())
}

/// The text of a configuration file; later layers win.
pub(crate) fn render(layers: &[&BTreeMap<String, String>]) -> String {
    let mut text =
        String::from("# Written by Underlay at every start; changes are lost.\n[mysqld]\n");
    for (name, value) in merged(layers, canonical) {
        // In double quotes the parser takes a backslash for an escape.
        let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}=\"{quoted}\"");
    }
    text
}

/// The query for what is in force and who set it: name, value, origin. MySQL keeps the origins elsewhere.
pub(crate) fn in_force_sql(is_mysql: bool) -> String {
    let listed = EXPLAINING.map(|name| format!("'{name}'")).join(", ");
    if is_mysql {
        format!(
            "SELECT lower(v.variable_name), v.variable_value, lower(i.variable_source) \
               FROM performance_schema.global_variables AS v \
               JOIN performance_schema.variables_info AS i USING (variable_name) \
              WHERE i.variable_source <> 'COMPILED' OR lower(v.variable_name) IN ({listed}) ORDER BY 1"
        )
    } else {
        format!(
            "SELECT lower(variable_name), global_value, lower(global_value_origin) \
               FROM information_schema.system_variables \
              WHERE global_value IS NOT NULL AND (global_value_origin NOT IN ('COMPILE-TIME', 'AUTO') \
                 OR lower(variable_name) IN ({listed})) ORDER BY 1"
        )
    }
}

/// Warnings about what is in force, in words.
pub(crate) fn warnings(in_force: &[SettingInForce]) -> Vec<String> {
    let has = |name: &str, value: &str| {
        in_force
            .iter()
            .any(|setting| setting.name == name && setting.value.eq_ignore_ascii_case(value))
    };
    UNSAFE
        .iter()
        .filter(|(name, value, _)| has(name, value))
        // Without the binary log its settings mean nothing.
        .filter(|(name, ..)| *name != "sync_binlog" || has("log_bin", "ON"))
        .map(|(name, value, why)| format!("{name} = {value}: {why}"))
        .collect()
}

/// Why the server refuses these settings, if it does.
fn refusals(
    install: &Install,
    run_as: Option<&User>,
    settings: &[(&String, &String)],
) -> Result<Option<String>, ServerError> {
    // It succeeds in spite of many errors, and tells them on standard error.
    match ask(install, run_as, settings, "exec \"$0\" \"$@\" 2>&1 >/dev/null") {
        Ok(text) => Ok(refusal(&text, settings)),
        Err(HostError::ProgramFailed { stderr, .. }) => {
            Ok(Some(refusal(&stderr, settings).unwrap_or(stderr)))
        }
        Err(error) => Err(error.into()),
    }
}

/// The first error, or the first value that would be replaced.
fn refusal(text: &str, settings: &[(&String, &String)]) -> Option<String> {
    let after = |line: &str, mark: &str| line.split_once(mark).map(|(_, rest)| rest.to_string());
    let error = text
        .lines()
        .find_map(|line| after(line, "[ERROR] "))
        .map(|reason| reason.trim_start_matches("Buffered error: ").to_string());
    error.or_else(|| {
        text.lines().filter(|line| line.contains(" adjusted to ")).find_map(|line| {
            let rest = after(line, "[Warning] option '")?;
            let (name, what) = rest.split_once("': ")?;
            let is_asked = settings.iter().any(|(asked, _)| canonical(asked) == canonical(name));
            is_asked.then(|| format!("out of range: {what}"))
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{RESERVED, canonical, refusal, render, warnings};
    use crate::managed::{SettingInForce, own_checks};

    fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn renders_later_layers_over_earlier_and_quotes() {
        let text = render(&[
            &settings(&[("max_connections", "1"), ("b", "say \"hi\"")]),
            &settings(&[("Max-Connections", "2"), ("c", "back\\slash")]),
        ]);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines, ["b=\"say \\\"hi\\\"\"", "c=\"back\\\\slash\"", "max_connections=\"2\""]);
    }

    #[test]
    fn refuses_what_is_reserved_however_it_is_spelled() {
        assert_eq!(canonical("Loose-InnoDB-Log_file"), "innodb_log_file");
        let problems = own_checks(
            &settings(&[("Datadir", "/x"), ("skip_networking", "1")]),
            &RESERVED,
            canonical,
        );
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn finds_the_reason_of_a_refusal() {
        let (name, value) = ("innodb_buffer_pool_size".to_string(), "1000".to_string());
        let asked = [(&name, &value)];
        let warning = "2026 0 [Warning] option 'innodb-buffer-pool-size': unsigned value 1000 adjusted to 2097152\n";
        assert_eq!(
            refusal(warning, &asked).as_deref(),
            Some("out of range: unsigned value 1000 adjusted to 2097152")
        );
        let other = "2026 0 [Warning] option 'table_open_cache': unsigned value 1 adjusted to 10\n";
        assert_eq!(refusal(other, &asked), None);
        let error = "2026 0 [ERROR] mariadbd: unknown variable 'foo=1'\n";
        assert_eq!(
            refusal(&format!("{warning}{error}"), &asked).as_deref(),
            Some("mariadbd: unknown variable 'foo=1'")
        );
    }

    #[test]
    fn warns_of_unsafe_settings() {
        let setting = |name: &str, value: &str| SettingInForce {
            name: name.to_string(),
            value: value.to_string(),
            source: "config".to_string(),
        };
        let found = warnings(&[
            setting("innodb_flush_log_at_trx_commit", "2"),
            setting("sync_binlog", "0"),
            setting("log_bin", "OFF"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("innodb_flush_log_at_trx_commit = 2: "));
    }
}
