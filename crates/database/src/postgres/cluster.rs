//! The directories of a cluster: creating them, filling them, and recognising their owner.
//!
//! ```text
//! <data>/                    PGDATA, 0700, owned by the server's user
//!   underlay.cluster         says that Underlay made this cluster and may replace it
//!   pg_wal -> <wal>
//! <wal>/                     the write-ahead log, on its own volume
//! <backup>/                  backups, on their own volume
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use underlay_host::{ProgramSpec, Teardown, run_program_tree};

use crate::Engine;
use crate::managed::{
    CLAIM, ServerError, check_places, claim, is_empty, make_private, require_reachable,
    sync_file_systems, write_private,
};
use crate::postgres::install::SUPPORTED_MAJORS;
use crate::postgres::spec::ServerSpec;
use crate::target::Secret;

/// The role that owns the cluster.
pub(crate) const SUPERUSER: &str = "underlay";
/// The link in the data directory.
const WAL_LINK: &str = "pg_wal";

/// Refuses what cannot become a server, before anything is touched.
pub(crate) fn check_spec(spec: &ServerSpec) -> Result<(), ServerError> {
    let install = &spec.install;
    if !SUPPORTED_MAJORS.contains(&install.major) {
        return Err(ServerError::UnsupportedVersion {
            engine: Engine::Postgresql,
            version: install.version.clone(),
            supported: "13 to 18 are",
            bin_dir: install.bin_dir.clone(),
        });
    }
    check_places(Engine::Postgresql, spec)
}

/// Makes the directories that are missing, for the server's user alone.
pub(crate) fn make_directories(spec: &ServerSpec) -> Result<(), ServerError> {
    for dir in [&spec.data, &spec.wal, &spec.backup] {
        make_private(dir, spec.run_as.as_ref())?;
    }
    let programs = spec.install.program("postgres");
    for path in [&spec.data, &spec.wal, &spec.backup, &programs] {
        require_reachable(path, spec.run_as.as_ref())?;
    }
    Ok(())
}

/// Runs initdb in empty directories.
///
/// The locale is C, whose sort order is the same on every host, with UTF-8 text. Data checksums are
/// on: damage by the storage must be seen. initdb's own thousand fsyncs are replaced by one sync of
/// each file system, which is as durable and takes no minute on a slow volume.
pub(crate) fn initialise(
    teardown: &Teardown,
    spec: &ServerSpec,
    password: &Secret,
) -> Result<(), ServerError> {
    for dir in [&spec.data, &spec.wal] {
        if !is_empty(dir)? {
            return Err(ServerError::NotEmpty(dir.clone()));
        }
    }
    let owner = spec.run_as.as_ref();
    let password_file = spec.runtime_dir.join("initdb.password");
    write_private(&password_file, password.reveal(), owner)?;
    let initialised = run_initdb(teardown, spec, &password_file);
    fs::remove_file(&password_file).map_err(ServerError::file("remove", &password_file))?;
    initialised?;
    claim(&spec.data, &spec.name, owner)?;
    sync_file_systems([spec.data.as_path(), spec.wal.as_path()].into_iter())
}

/// Points `pg_wal` to the WAL directory.
pub(crate) fn link_wal(spec: &ServerSpec) -> Result<(), ServerError> {
    let link = spec.data.join(WAL_LINK);
    symlink(&spec.wal, &link).map_err(ServerError::file("create link", &link))?;
    let Some(user) = &spec.run_as else { return Ok(()) };
    std::os::unix::fs::lchown(&link, Some(user.uid), Some(user.gid))
        .map_err(ServerError::file("change owner of", &link))
}

/// Whether a path relative to the data directory belongs into a copy of a stopped cluster.
pub(crate) fn is_copied(relative: &Path) -> bool {
    // The WAL is copied on its own; the others describe the running server.
    ![WAL_LINK, "postmaster.pid", "postmaster.opts", CLAIM]
        .iter()
        .any(|name| relative == Path::new(name))
}

/// Refuses tablespaces, which would be outside the volumes.
pub(crate) fn refuse_tablespaces(data: &Path) -> Result<(), ServerError> {
    let dir = data.join("pg_tblspc");
    if is_empty(&dir)? { Ok(()) } else { Err(ServerError::Tablespaces(data.to_path_buf())) }
}

/// initdb starts servers, which go on when it is killed, and have shared memory.
fn run_initdb(
    teardown: &Teardown,
    spec: &ServerSpec,
    password_file: &Path,
) -> Result<(), ServerError> {
    let mut args: Vec<std::ffi::OsString> = vec!["--pgdata".into(), spec.data.clone().into()];
    args.extend(["--waldir".into(), spec.wal.clone().into()]);
    args.extend(["--username".into(), SUPERUSER.into()]);
    args.extend(["--pwfile".into(), password_file.into()]);
    args.extend(
        ["--auth=scram-sha-256", "--no-locale", "--encoding=UTF8", "--data-checksums", "--no-sync"]
            .map(Into::into),
    );
    let program = spec.install.program("initdb");
    run_program_tree(
        teardown,
        &ProgramSpec {
            program: &program,
            args,
            env: Vec::new(),
            run_as: spec.run_as.as_ref(),
            working_dir: Path::new("/"),
        },
    )?;
    Ok(())
}
