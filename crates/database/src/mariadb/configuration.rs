//! The files that configure a managed MariaDB, in its runtime directory.
//!
//! Access: over the Unix socket the administrator without a password, because only the server's user
//! and root can reach it (through the permissions of its directory); over 127.0.0.1, if requested, a
//! second administrator with a random password. No access from other hosts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::managed::{Instance, Listen, ServerError, StartCommand, write_private};
use crate::mariadb::initial::{data_dir, temporary_dir};
use crate::mariadb::install::Install;
use crate::mariadb::settings::{base_settings, render};

/// The name of the socket in its directory.
pub(crate) const SOCKET: &str = "/mariadb.sock";
/// The administrator who may connect over 127.0.0.1.
pub(crate) const TCP_SUPERUSER: &str = "underlay";

/// Writes the files for the next start, and says how to start.
pub(crate) fn write(instance: &Instance<Install>) -> Result<StartCommand, ServerError> {
    let spec = instance.spec();
    let owner = spec.run_as.as_ref();
    let base = base_settings(&spec.install)?;
    let text = render(&[&base, &spec.settings, &identity_settings(instance)]);
    let config = spec.runtime_dir.join("my.cnf");
    write_private(&config, &text, owner)?;
    write_private(&init_path(instance), &init_sql(instance), owner)?;
    Ok(StartCommand {
        name: spec.install.flavour.as_str(),
        program: spec.install.program.clone(),
        args: vec![format!("--defaults-file={}", config.display()).into()],
    })
}

/// The path of its Unix socket.
pub(crate) fn socket(instance: &Instance<Install>) -> PathBuf {
    instance.socket_dir().join(&SOCKET[1..])
}

/// What the server carries out at each start: one statement per line.
fn init_sql(instance: &Instance<Install>) -> String {
    if instance.spec().listen == Listen::UnixSocket {
        return String::new();
    }
    let account = format!("'{TCP_SUPERUSER}'@'127.0.0.1'");
    let password = instance.password().reveal();
    format!(
        "CREATE USER IF NOT EXISTS {account};\n\
         ALTER USER {account} IDENTIFIED BY '{password}';\n\
         GRANT ALL PRIVILEGES ON *.* TO {account} WITH GRANT OPTION;\n"
    )
}

fn identity_settings(instance: &Instance<Install>) -> BTreeMap<String, String> {
    let path = |path: PathBuf| path.display().to_string();
    let mut settings = vec![
        ("datadir", path(data_dir(&instance.spec().data))),
        ("innodb_log_group_home_dir", path(instance.spec().wal.clone())),
        ("tmpdir", path(temporary_dir(&instance.spec().data))),
        ("socket", path(socket(instance))),
        ("pid_file", path(instance.socket_dir().join("pid"))),
        ("init_file", path(init_path(instance))),
        ("lc_messages", "en_US".to_string()),
        ("skip_name_resolve", "ON".to_string()),
        ("local_infile", "ON".to_string()),
    ];
    match instance.spec().listen {
        Listen::UnixSocket => settings.push(("skip_networking", "ON".to_string())),
        Listen::Loopback => {
            settings.push(("bind_address", "127.0.0.1".to_string()));
            settings.push(("port", instance.port().to_string()));
        }
    }
    settings.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

fn init_path(instance: &Instance<Install>) -> PathBuf {
    instance.spec().runtime_dir.join("init.sql")
}
