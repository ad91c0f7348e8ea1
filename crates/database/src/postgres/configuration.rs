//! The files that configure a managed cluster, in its runtime directory and not in its data directory.
//!
//! Access: over the Unix socket the superuser without a password, because only the server's user and
//! root can reach it (through the permissions of directory and socket); over 127.0.0.1, which every
//! user of the host can reach, with a random password by SCRAM. No access from other hosts. So
//! authentication costs nothing on the socket, and the password cannot be guessed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::managed::{Instance, Listen, ServerError, StartCommand, write_private};
use crate::postgres::install::Install;
use crate::postgres::log::PREFIX;
use crate::postgres::settings::{base_settings, render};

/// PostgreSQL truncates longer names.
const CLUSTER_NAME_BYTES: usize = 63;

/// Writes the files for the next start, and says how to start.
pub(crate) fn write(instance: &Instance<Install>) -> Result<StartCommand, ServerError> {
    let spec = instance.spec();
    let owner = spec.run_as.as_ref();
    let base = base_settings(&spec.install)?;
    let text = render(&[&base, &spec.settings, &identity_settings(instance)]);
    let config = spec.runtime_dir.join("postgresql.conf");
    write_private(&config, &text, owner)?;
    write_private(&hba_path(instance), &access_rules(spec.listen), owner)?;
    write_private(&ident_path(instance), "", owner)?;
    let config = format!("config_file={}", config.display());
    Ok(StartCommand {
        name: "postgres",
        program: spec.install.program("postgres"),
        args: vec!["-D".into(), spec.data.clone().into(), "-c".into(), config.into()],
    })
}

fn identity_settings(instance: &Instance<Install>) -> BTreeMap<String, String> {
    let path = |path: PathBuf| path.display().to_string();
    let name: String = format!("underlay-{}", instance.spec().name)
        .chars()
        .map(|c| if c.is_ascii_graphic() { c } else { '_' })
        .take(CLUSTER_NAME_BYTES)
        .collect();
    let listen = match instance.spec().listen {
        Listen::UnixSocket => "",
        Listen::Loopback => "127.0.0.1",
    };
    [
        ("cluster_name", name),
        ("hba_file", path(hba_path(instance))),
        ("ident_file", path(ident_path(instance))),
        ("listen_addresses", listen.to_string()),
        ("port", instance.port().to_string()),
        ("unix_socket_directories", path(instance.socket_dir().to_path_buf())),
        ("unix_socket_permissions", "0700".to_string()),
        ("logging_collector", "off".to_string()),
        ("log_destination", "stderr".to_string()),
        ("log_line_prefix", PREFIX.to_string()),
        ("log_timezone", "UTC".to_string()),
        ("lc_messages", "C".to_string()),
        ("update_process_title", "on".to_string()),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into()
}

/// See the file's header. `replication` is for `pg_basebackup`.
fn access_rules(listen: Listen) -> String {
    let mut rules = String::from("local all all trust\nlocal replication all trust\n");
    if listen == Listen::Loopback {
        rules.push_str("host all all 127.0.0.1/32 scram-sha-256\n");
    }
    rules
}

fn hba_path(instance: &Instance<Install>) -> PathBuf {
    instance.spec().runtime_dir.join("pg_hba.conf")
}

fn ident_path(instance: &Instance<Install>) -> PathBuf {
    instance.spec().runtime_dir.join("pg_ident.conf")
}
