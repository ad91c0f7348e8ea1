//! Creates a new database: the system tables, one administrator, nothing else.
//!
//! ```text
//! <data>/                    0700, owned by the server's user
//!   underlay.cluster         says that Underlay made this database and may replace it
//!   db/                      datadir
//!   tmp/                     tmpdir: what sorts and temporary tables spill
//! <wal>/                     innodb_log_group_home_dir: the redo log, on its own volume
//! <backup>/                  backups, on their own volume
//! ```
//!
//! MariaDB's own script for this needs programs of the client's package; the server itself runs the SQL
//! files that the script passes to it, so they are passed here. MySQL's server contains its system
//! tables.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use underlay_host::{ProgramSpec, run_program_with};

use crate::Engine;
use crate::managed::{
    CLAIM, ServerError, check_places, claim, is_empty, make_private, require_reachable,
    sync_file_systems, write_private,
};
use crate::mariadb::install::{Flavour, Install};
use crate::mariadb::spec::ServerSpec;

/// The administrator, who has no password: only the server's user and root get to the socket.
pub(crate) const SUPERUSER: &str = "root";

/// MariaDB's own scripts, in the order in which its installer runs them; the last are optional.
const SCRIPTS: [(&str, bool); 5] = [
    ("mysql_system_tables.sql", true),
    ("mysql_performance_tables.sql", true),
    ("mysql_system_tables_data.sql", true),
    ("maria_add_gis_sp_bootstrap.sql", false),
    ("mysql_sys_schema.sql", false),
];

/// Accounts of the installer that would be reachable from elsewhere, or without a name.
const REMOVE_ACCOUNTS: &str = "DELETE FROM mysql.global_priv WHERE host <> 'localhost' OR user NOT IN ('root', 'mariadb.sys');\n\
    DELETE FROM mysql.proxies_priv WHERE host <> 'localhost';\n";

/// Where the data directory is within the server's folder on the data volume.
pub(crate) fn data_dir(data: &Path) -> PathBuf {
    data.join("db")
}

/// Where temporary files are.
pub(crate) fn temporary_dir(data: &Path) -> PathBuf {
    data.join("tmp")
}

/// Refuses what cannot become a server, before anything is touched.
pub(crate) fn check_spec(spec: &ServerSpec) -> Result<(), ServerError> {
    let install = &spec.install;
    if !install.is_supported() {
        return Err(ServerError::UnsupportedVersion {
            engine: Engine::Mariadb,
            version: install.version.clone(),
            supported: "MariaDB from 10.6 and MySQL from 8.0 on are",
            bin_dir: install.bin_dir().to_path_buf(),
        });
    }
    check_places(Engine::Mariadb, spec)
}

/// Makes the directories that are missing, for the server's user alone.
pub(crate) fn make_directories(spec: &ServerSpec) -> Result<(), ServerError> {
    let owner = spec.run_as.as_ref();
    for dir in [&spec.data, &spec.wal, &spec.backup] {
        make_private(dir, owner)?;
    }
    for path in [&spec.data, &spec.wal, &spec.backup, &spec.install.program] {
        require_reachable(path, owner)?;
    }
    Ok(())
}

/// Makes the system tables in empty directories.
pub(crate) fn initialise(spec: &ServerSpec) -> Result<(), ServerError> {
    for dir in [&spec.data, &spec.wal] {
        if !is_empty(dir)? {
            return Err(ServerError::NotEmpty(dir.clone()));
        }
    }
    let owner = spec.run_as.as_ref();
    make_private(&data_dir(&spec.data), owner)?;
    make_private(&temporary_dir(&spec.data), owner)?;
    match spec.install.flavour {
        Flavour::Mariadb => bootstrap(spec)?,
        Flavour::Mysql => run(spec, &["--initialize-insecure"], Path::new("/dev/null"))?,
    }
    claim(&spec.data, &spec.name, owner)?;
    sync_file_systems([spec.data.as_path(), spec.wal.as_path()].into_iter())
}

/// Whether a path relative to the server's folder belongs into a copy of a stopped database.
pub(crate) fn is_copied(relative: &Path) -> bool {
    let is = |name: &str| relative == Path::new(name);
    // Temporary files, files that a start recreates, and MySQL's identity, which two servers must not
    // share.
    !(relative.starts_with("tmp/")
        || is(CLAIM)
        || is("db/ibtmp1")
        || is("db/ib_buffer_pool")
        || is("db/auto.cnf")
        || relative.starts_with("db/#innodb_temp"))
        || is("tmp")
}

fn bootstrap(spec: &ServerSpec) -> Result<(), ServerError> {
    let sql = system_tables(&spec.install)?;
    let path = spec.runtime_dir.join("bootstrap.sql");
    write_private(&path, &sql, spec.run_as.as_ref())?;
    // Without name resolution, without asking for a plugin's package, and without waiting for a slow
    // volume at each of some hundred statements: one sync at the end is as durable.
    let options = ["--bootstrap", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"];
    let made = run(spec, &options, &path);
    fs::remove_file(&path).map_err(ServerError::file("remove", &path))?;
    made
}

/// The text that makes the system tables. The server reads a statement to the end of its line.
fn system_tables(install: &Install) -> Result<String, ServerError> {
    let share = install.share().ok_or_else(|| ServerError::Unparsable {
        program: "mariadbd",
        text: format!("no mysql_system_tables.sql belongs to {}", install.program.display()),
    })?;
    let mut sql = String::from(
        "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\nSET @skip_auth_anonymous = 1;\n",
    );
    for (name, is_required) in SCRIPTS {
        let path = share.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => {
                sql.push_str(&text);
                sql.push('\n');
            }
            Err(_) if !is_required => {}
            Err(error) => return Err(ServerError::file("read", &path)(error)),
        }
    }
    sql.push_str(REMOVE_ACCOUNTS);
    Ok(sql)
}

/// Runs the server once on the spec's directories, with the statements of a file.
fn run(spec: &ServerSpec, options: &[&str], statements: &Path) -> Result<(), ServerError> {
    let path = |name: &str, path: &Path| {
        let mut option = OsString::from(format!("--{name}="));
        option.push(path);
        option
    };
    // The statements on standard input; `$0` is the file.
    let mut args: Vec<OsString> = vec!["-c".into(), "exec \"$@\" < \"$0\"".into()];
    args.extend([statements.into(), spec.install.program.clone().into(), "--no-defaults".into()]);
    args.push(path("datadir", &data_dir(&spec.data)));
    args.push(path("innodb-log-group-home-dir", &spec.wal));
    args.push(path("tmpdir", &temporary_dir(&spec.data)));
    args.extend(options.iter().map(OsString::from));
    run_program_with(&ProgramSpec {
        program: Path::new("/bin/sh"),
        args,
        env: Vec::new(),
        run_as: spec.run_as.as_ref(),
        working_dir: Path::new("/"),
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::is_copied;

    #[test]
    fn copies_the_database_and_nothing_that_a_start_makes() {
        for wanted in ["db", "db/ibdata1", "db/tpcc/stock.ibd", "db/mysql", "tmp"] {
            assert!(is_copied(Path::new(wanted)), "{wanted}");
        }
        for unwanted in ["tmp/ML1", "underlay.cluster", "db/ibtmp1", "db/#innodb_temp/temp_1.ibt"] {
            assert!(!is_copied(Path::new(unwanted)), "{unwanted}");
        }
    }
}
