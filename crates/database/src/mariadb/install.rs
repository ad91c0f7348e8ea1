//! The MariaDB and MySQL server programs that this host has.
//!
//! Found on `PATH` and in the usual folders (the program is in a folder that only root's `PATH` names),
//! symbolic links resolved; identified by what `mariadbd --version` says.

use std::collections::BTreeSet;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use underlay_host::{Capability, run_program};

use crate::managed::expand;

/// The names of the server program, the preferred first.
const PROGRAMS: [&str; 2] = ["mariadbd", "mysqld"];

/// Folders of Debian, Red Hat, SUSE, Alpine, Homebrew and of the vendors' archives.
const USUAL_FOLDERS: [&str; 10] = [
    "/usr/sbin",
    "/usr/libexec",
    "/usr/bin",
    "/usr/local/mysql/bin",
    "/usr/local/mariadb/bin",
    "/opt/mysql*/bin",
    "/opt/mariadb*/bin",
    "/opt/homebrew/opt/mariadb*/bin",
    "/usr/local/opt/mariadb*/bin",
    "/home/linuxbrew/.linuxbrew/opt/mariadb*/bin",
];

/// Where the scripts are that make the system tables, below the prefix of the program.
const SHARES: [&str; 4] = ["share/mysql", "share/mariadb", "share", "scripts"];
/// One of those scripts.
const SYSTEM_TABLES: &str = "mysql_system_tables.sql";

/// Who makes the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// MariaDB.
    Mariadb,
    /// MySQL, or what calls itself so.
    Mysql,
}

/// One set of server programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// Who makes it.
    pub flavour: Flavour,
    /// 10 of 10.11.19.
    pub major: u32,
    /// 11 of 10.11.19.
    pub minor: u32,
    /// As the server names it, without the distribution's remark: `10.11.19`.
    pub version: String,
    /// The real path of `mariadbd` or `mysqld`.
    pub program: PathBuf,
}

impl Flavour {
    /// The word used in files and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Flavour::Mariadb => "mariadb",
            Flavour::Mysql => "mysql",
        }
    }
}

impl fmt::Display for Flavour {
    /// Its name, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flavour::Mariadb => "MariaDB",
            Flavour::Mysql => "MySQL",
        })
    }
}

impl Install {
    /// Whether it is managed: MariaDB from 10.6 on (the oldest whose redo log is one file of any size),
    /// MySQL from 8.0 on.
    pub fn is_supported(&self) -> bool {
        match self.flavour {
            Flavour::Mariadb => (self.major, self.minor) >= (10, 6),
            Flavour::Mysql => self.major >= 8,
        }
    }

    /// `MariaDB 10.11`: servers of one series read each other's files.
    pub fn title(&self) -> String {
        format!("{} {}.{}", self.flavour, self.major, self.minor)
    }

    /// The folder of the program.
    pub fn bin_dir(&self) -> &Path {
        self.program.parent().unwrap_or(Path::new("/"))
    }

    /// The folder of the scripts that make MariaDB's system tables.
    pub(crate) fn share(&self) -> Option<PathBuf> {
        let prefix = self.bin_dir().parent().unwrap_or(Path::new("/usr"));
        SHARES
            .iter()
            .flat_map(|share| [prefix.join(share), Path::new("/usr").join(share)])
            .find(|folder| folder.join(SYSTEM_TABLES).is_file())
    }
}

/// All installs of supported versions of one flavour (or of both), newest first. With `server_bin` (a
/// directory, or the program itself) that one alone, of whatever version: the caller wants to hear what
/// is wrong with it.
pub fn find_installs(flavour: Option<Flavour>, server_bin: Option<&Path>) -> Vec<Install> {
    let wanted = |install: &Install| flavour.is_none_or(|wanted| install.flavour == wanted);
    if let Some(given) = server_bin {
        let found = if given.is_file() { inspect(given) } else { in_folder(given).next() };
        return found.into_iter().filter(wanted).collect();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        env::split_paths(&path).chain(USUAL_FOLDERS.iter().flat_map(|p| expand(p))).collect();
    let programs: BTreeSet<PathBuf> = folders
        .iter()
        .flat_map(|folder| PROGRAMS.map(|name| folder.join(name)))
        .filter_map(|program| program.canonicalize().ok())
        .collect();
    let mut installs: Vec<Install> = programs
        .iter()
        .filter_map(|program| inspect(program))
        .filter(|install| install.is_supported() && wanted(install))
        .collect();
    installs.sort_by_key(|install| {
        let version: Vec<u32> =
            install.version.split('.').filter_map(|part| part.parse().ok()).collect();
        (install.flavour, std::cmp::Reverse(version), install.program.clone())
    });
    installs
}

/// What `doctor` says about MariaDB and MySQL on this host.
pub fn capability(server_bin: Option<&Path>) -> Capability {
    let installs = find_installs(None, server_bin);
    let found: Vec<String> = installs
        .iter()
        .map(|install| {
            format!("{} {} as {}", install.flavour, install.version, install.program.display())
        })
        .collect();
    let available = installs.iter().any(Install::is_supported);
    let nothing = "no server programs of MariaDB (10.6 or newer) or MySQL (8 or newer) were found";
    Capability {
        name: "mariadb".to_string(),
        available,
        detail: if found.is_empty() { nothing.to_string() } else { found.join(", ") },
        remedy: if available {
            String::new()
        } else {
            "apt-get install mariadb-server-core, or give the program's directory with --server-bin"
                .to_string()
        },
    }
}

fn in_folder(folder: &Path) -> impl Iterator<Item = Install> {
    PROGRAMS.map(|name| folder.join(name)).into_iter().filter_map(|program| inspect(&program))
}

fn inspect(program: &Path) -> Option<Install> {
    let program = program.canonicalize().ok()?;
    let text = run_program(&program, &["--version"], None).ok()?;
    let (flavour, version) = parse_version(&text)?;
    let mut numbers = version.split('.').map(|part| part.parse().ok());
    let (major, minor) = (numbers.next()??, numbers.next()??);
    Some(Install { flavour, major, minor, version, program })
}

/// `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)`,
/// `/usr/sbin/mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)`.
fn parse_version(text: &str) -> Option<(Flavour, String)> {
    let (_, rest) = text.split_once("Ver ")?;
    let word = rest.split_ascii_whitespace().next()?;
    let flavour = if word.contains("MariaDB") { Flavour::Mariadb } else { Flavour::Mysql };
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    (end > 0).then(|| (flavour, word[..end].to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::{Flavour, capability, find_installs, parse_version};

    fn fake(path: &Path, version: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\necho '{version}'\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    const MARIADB: &str = "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64";
    const MYSQL: &str = "/usr/sbin/mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server)";

    #[test]
    fn reads_versions() {
        assert_eq!(parse_version(MARIADB), Some((Flavour::Mariadb, "10.11.19".to_string())));
        assert_eq!(parse_version(MYSQL), Some((Flavour::Mysql, "8.0.36".to_string())));
        assert_eq!(parse_version("postgres (PostgreSQL) 15.18\n"), None);
    }

    #[test]
    fn a_given_place_is_the_only_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fake(&root.join("new/mariadbd"), MARIADB);
        symlink(root.join("new/mariadbd"), root.join("new/mysqld")).unwrap();
        fake(&root.join("my/mysqld"), MYSQL);
        fake(&root.join("old/mysqld"), "mysqld  Ver 10.3.39-MariaDB for Linux");
        let found = find_installs(None, Some(&root.join("new")));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].title().as_str(), found[0].is_supported()), ("MariaDB 10.11", true));
        assert_eq!(found[0].program, root.join("new/mariadbd"));
        let found = find_installs(None, Some(&root.join("my/mysqld")));
        assert_eq!((found[0].flavour, found[0].major), (Flavour::Mysql, 8));
        assert!(find_installs(Some(Flavour::Mariadb), Some(&root.join("my"))).is_empty());
        let capability = capability(Some(&root.join("old")));
        assert!(!capability.available, "{}", capability.detail);
        assert!(capability.detail.starts_with("MariaDB 10.3.39 as "), "{}", capability.detail);
    }
}
