//! The PostgreSQL server programs that this host has.
//!
//! Found on `PATH` (symbolic links resolved, since distributions link single programs there) and in
//! the usual folders; identified by what `postgres --version` says, never by a folder's name.

use std::collections::BTreeSet;
use std::env;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use underlay_host::{Capability, HostError, run_program};

use crate::Engine;
use crate::managed::expand;

/// The versions that are managed.
pub const SUPPORTED_MAJORS: RangeInclusive<u32> = 13..=18;

/// What every install must have.
const PROGRAMS: [&str; 4] = ["postgres", "initdb", "pg_basebackup", "pg_controldata"];

/// Folders of Debian, Red Hat's PGDG packages, SUSE, Gentoo, Alpine, Homebrew and source builds; one
/// `*` stands for any text within a name.
const USUAL_FOLDERS: [&str; 9] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/lib/postgresql*/bin",
    "/usr/lib64/postgresql-*/bin",
    "/usr/libexec/postgresql*",
    "/usr/local/pgsql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
];

/// One set of server programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// 15 of 15.18.
    pub major: u32,
    /// As the server names it, without the distribution's remark: `15.18`.
    pub version: String,
    /// The real directory of `postgres`, `initdb`, `pg_basebackup`, ...
    pub bin_dir: PathBuf,
}

/// All installs of supported versions, newest first. With `server_bin` (a directory, or the program
/// `postgres` itself) that one alone, of whatever version: the caller wants to hear what is wrong
/// with it.
pub fn find_installs(server_bin: Option<&Path>) -> Vec<Install> {
    if let Some(given) = server_bin {
        let dir = if given.is_file() { given.parent().unwrap_or(given) } else { given };
        return inspect(dir).into_iter().collect();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(USUAL_FOLDERS.iter().flat_map(|p| expand(p)));
    let mut installs = inspect_all(folders);
    installs.retain(|install| SUPPORTED_MAJORS.contains(&install.major));
    installs
}

/// What `doctor` says about PostgreSQL on this host.
pub fn capability(server_bin: Option<&Path>) -> Capability {
    let installs = find_installs(server_bin);
    let found: Vec<String> = installs
        .iter()
        .map(|install| format!("{} in {}", install.version, install.bin_dir.display()))
        .collect();
    let available = installs.iter().any(|install| SUPPORTED_MAJORS.contains(&install.major));
    let nothing = "no server programs of PostgreSQL 13 to 18 were found".to_string();
    Capability {
        name: "postgresql".to_string(),
        available,
        detail: if found.is_empty() { nothing } else { found.join(", ") },
        remedy: if available {
            String::new()
        } else {
            "apt-get install postgresql, or give their directory with --server-bin".to_string()
        },
    }
}

/// What `--describe-config` does not list and a configuration file may set all the same: the manual's chapter on developer
/// options, PostgreSQL 13 to 18, and the directives of the file itself.
const DEVELOPER_SETTINGS: [&str; 47] = [
    "allow_in_place_tablespaces",
    "allow_system_table_mods",
    "backtrace_functions",
    "debug_copy_parse_plan_trees",
    "debug_deadlocks",
    "debug_discard_caches",
    "debug_io_direct",
    "debug_logical_replication_streaming",
    "debug_parallel_query",
    "debug_raw_expression_coverage_test",
    "debug_write_read_parse_plan_trees",
    "force_parallel_mode",
    "ignore_checksum_failure",
    "ignore_invalid_pages",
    "ignore_system_indexes",
    "include",
    "include_dir",
    "include_if_exists",
    "jit_debugging_support",
    "jit_dump_bitcode",
    "jit_expressions",
    "jit_profiling_support",
    "jit_tuple_deforming",
    "log_btree_build_stats",
    "optimize_bounded_sort",
    "post_auth_delay",
    "pre_auth_delay",
    "recovery_prefetch",
    "remove_temp_files_after_crash",
    "restrict_nonsystem_relation_kind",
    "role",
    "seed",
    "send_abort_for_crash",
    "send_abort_for_kill",
    "session_authorization",
    "ssl_renegotiation_limit",
    "trace_connection_negotiation",
    "trace_lock_oidmin",
    "trace_lock_table",
    "trace_locks",
    "trace_lwlocks",
    "trace_notify",
    "trace_recovery_messages",
    "trace_sort",
    "trace_userlocks",
    "wal_consistency_checking",
    "zero_damaged_pages",
];

impl Install {
    /// The names of everything that a configuration file may set, in lower case. Of developers' options those that the
    /// manual of any version has.
    ///
    /// # Errors
    /// When its `postgres` cannot be asked.
    pub fn settings_known(&self) -> Result<BTreeSet<String>, HostError> {
        let mut names = self.setting_names()?;
        names.extend(DEVELOPER_SETTINGS.iter().map(ToString::to_string));
        Ok(names)
    }

    /// The names of its settings, as far as it lists them: developers' options are left out.
    pub(crate) fn setting_names(&self) -> Result<BTreeSet<String>, HostError> {
        let text = run_program(self.program("postgres"), &["--describe-config"], None)?;
        let names = text.lines().filter_map(|line| line.split('\t').next());
        Ok(names.map(str::to_ascii_lowercase).collect())
    }

    /// `PostgreSQL 15`.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", Engine::Postgresql, self.major)
    }

    /// One of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }
}

fn inspect_all(folders: impl Iterator<Item = PathBuf>) -> Vec<Install> {
    let dirs: BTreeSet<PathBuf> = folders.filter_map(|folder| bin_dir(&folder)).collect();
    let mut installs: Vec<Install> = dirs.iter().filter_map(|dir| inspect(dir)).collect();
    installs.sort_by_key(|install| {
        (std::cmp::Reverse((install.major, minor(&install.version))), install.bin_dir.clone())
    });
    installs
}

/// The directory in which the `postgres` of a folder really is.
fn bin_dir(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("postgres").canonicalize().ok()?;
    program.parent().map(Path::to_path_buf)
}

fn inspect(folder: &Path) -> Option<Install> {
    let bin_dir = bin_dir(folder)?;
    if !PROGRAMS.iter().all(|name| bin_dir.join(name).is_file()) {
        return None;
    }
    let text = run_program(bin_dir.join("postgres"), &["--version"], None).ok()?;
    let (major, version) = parse_version(&text)?;
    Some(Install { major, version, bin_dir })
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, `postgres (PostgreSQL) 18beta1`.
fn parse_version(text: &str) -> Option<(u32, String)> {
    let (_, rest) = text.split_once("(PostgreSQL) ")?;
    let version = rest.split_ascii_whitespace().next()?;
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    Some((version[..digits].parse().ok()?, version.to_string()))
}

fn minor(version: &str) -> u32 {
    version.split_once('.').and_then(|(_, minor)| minor.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::{Path, PathBuf};

    use super::{PROGRAMS, capability, find_installs, inspect_all, parse_version};
    use crate::managed::expand;

    fn fake_install(dir: &Path, version: &str) {
        fs::create_dir_all(dir).unwrap();
        for program in PROGRAMS {
            let path = dir.join(program);
            fs::write(&path, format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n"))
                .unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn reads_versions() {
        let check = |text: &str, major: u32, version: &str| {
            assert_eq!(parse_version(text), Some((major, version.to_string())));
        };
        check("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", 15, "15.18");
        check("postgres (PostgreSQL) 18beta1\n", 18, "18beta1");
        check("postgres (PostgreSQL) 13.22\n", 13, "13.22");
        assert_eq!(parse_version("mysqld 8.0\n"), None);
    }

    #[test]
    fn finds_newest_first_once_each_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fake_install(&root.join("lib/13/bin"), "13.9");
        fake_install(&root.join("lib/17/bin"), "17.2");
        fake_install(&root.join("lib/17x/bin"), "17.10");
        // Without initdb it is a client package.
        fake_install(&root.join("lib/16/bin"), "16.1");
        fs::remove_file(root.join("lib/16/bin/initdb")).unwrap();
        let links = root.join("links");
        fs::create_dir(&links).unwrap();
        symlink(root.join("lib/17/bin/postgres"), links.join("postgres")).unwrap();

        let pattern = format!("{}/lib/*/bin", root.display());
        let folders = expand(&pattern).into_iter().chain([links, PathBuf::from("/no/such")]);
        let found = inspect_all(folders);
        let versions: Vec<&str> = found.iter().map(|install| install.version.as_str()).collect();
        assert_eq!(versions, ["17.10", "17.2", "13.9"]);
        assert_eq!(found[1].bin_dir, root.join("lib/17/bin"));
    }

    #[test]
    fn a_given_place_is_the_only_one() {
        let dir = tempfile::tempdir().unwrap();
        fake_install(dir.path(), "12.1");
        for given in [dir.path().to_path_buf(), dir.path().join("postgres")] {
            let found = find_installs(Some(&given));
            assert_eq!((found.len(), found[0].major), (1, 12));
        }
        assert!(find_installs(Some(Path::new("/no/such"))).is_empty());
        let capability = capability(Some(dir.path()));
        assert!(!capability.available && capability.detail.starts_with("12.1 in "));
    }
}
