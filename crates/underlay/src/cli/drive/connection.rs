//! The database of the command: where it is, with which password, and how sessions with it are encrypted.
//!
//! A password is read only from places that no other user can read, and is used only for the login.

use serde_json::{Value, json};
use std::path::PathBuf;
use underlay_database::connection_limit::connection_limit;
use underlay_database::tls::{Encryption, TlsMode, Verification, encryption};
use underlay_database::{Address, Engine, Secret, SessionError, Target, password_file};

use super::command::Command;
use super::options::URL_VARIABLE;
use crate::lab::interrupt;
use crate::lab::workload::Access;
use crate::stop::Stop;

/// The database of the command.
pub(super) fn target(command: &Command<'_>) -> Result<Target, Stop> {
    let url = command.common.url.as_deref().ok_or_else(|| {
        Stop::bad_input(format!("which database? give --url, or set {URL_VARIABLE}"))
    })?;
    let mut target = Target::from_url(url).map_err(|error| Stop::bad_input(error.to_string()))?;
    if target.engine == Engine::Mariadb && target.database.is_empty() {
        target.database = default_database(command).to_string();
    }
    let is_typed = std::env::var(URL_VARIABLE).ok().as_deref() != Some(url);
    if target.password.is_some() && is_typed {
        errln!(
            "warning: every user of this host can read the password in --url: use {}, --password-file or \
             {URL_VARIABLE}",
            variable(target.engine)
        );
    }
    if let Some(path) = &command.common.password_file {
        let text = underlay_host::read_small_text(path).map_err(|error| {
            Stop::bad_input(format!("could not read {}: {error}", path.display()))
        })?;
        target.password = Some(Secret::new(text.lines().next().unwrap_or_default()));
    } else if target.password.is_none() {
        target.password = std::env::var(variable(target.engine))
            .ok()
            .filter(|password| !password.is_empty())
            .map(Secret::new)
            .or_else(|| listed(&target));
    }
    Ok(target.with_stop(interrupt::gives_up))
}

/// Sessions in addition to those of the users: one reads the counts, one says that a run is in progress.
const OTHER_SESSIONS: u32 = 2;
/// Sessions that sample a recorded run.
const SAMPLING_SESSIONS: u32 = 2;

/// Where MariaDB's tables go when the URL names no database: PostgreSQL has schemas of these names.
fn default_database(command: &Command<'_>) -> &'static str {
    match command.name {
        // As sysbench itself.
        "sysbench" => "sbtest",
        name => name,
    }
}

fn variable(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgresql => "PGPASSWORD",
        Engine::Mariadb => "MYSQL_PWD",
    }
}

/// From libpq's file of passwords: the URL's, `PGPASSFILE`, or the one at home.
fn listed(target: &Target) -> Option<Secret> {
    if target.engine != Engine::Postgresql {
        return None;
    }
    let path = target
        .password_file
        .clone()
        .or_else(|| std::env::var_os("PGPASSFILE").map(PathBuf::from))
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pgpass")))?;
    match password_file::look_up(&path, target) {
        Ok(found) => found,
        Err(reason) => {
            errln!("warning: {reason}");
            None
        }
    }
}

/// Why there is no session, and what else it may mean.
fn not_connected(target: &Target, error: &SessionError) -> Stop {
    let stop = Stop::run_failed(format!("could not connect to {target}: {error}"));
    // The same words for all that is wrong with a login.
    let is_login = target.engine == Engine::Mariadb && error.message.starts_with("error 1045:");
    if !is_login {
        return stop;
    }
    let tls = target.tls.options();
    if tls.mode == TlsMode::Disable {
        stop.with_hint(
            "MariaDB reports this error for a wrong password, and also if the server or the account demands TLS \
             (require_secure_transport, REQUIRE SSL), which `ssl-mode=disabled` rules out",
        )
    } else if tls.certificate.is_none() {
        stop.with_hint(
            "MariaDB reports this error for a wrong password, and also if the account demands a client certificate \
             (REQUIRE X509): name it with `ssl-cert` and `ssl-key`",
        )
    } else {
        stop
    }
}

/// Refuses a run that needs more sessions than the server lets its user have.
pub(super) fn refuse_too_many(command: &Command<'_>, access: Access<'_>) -> Result<(), Stop> {
    let Some(users) = command.users else { return Ok(()) };
    let limit = access.runtime.block_on(connection_limit(&server_of(access.target)));
    // A server that does not tell its limit enforces it in the run.
    let Ok(limit) = limit else { return Ok(()) };
    let others =
        OTHER_SESSIONS + if command.common.record.is_some() { SAMPLING_SESSIONS } else { 0 };
    match too_many(users.users(), users.connections, limit, others) {
        Some(reason) => Err(Stop::bad_input(reason)),
        None => Ok(()),
    }
}

/// What is wrong with so many users, if anything.
fn too_many(users: u32, connections: Option<u32>, limit: u32, others: u32) -> Option<String> {
    let needed = connections.map_or(users, |connections| connections.min(users));
    if needed.saturating_add(others) <= limit {
        return None;
    }
    // Other programs need some too.
    let fit = limit.saturating_sub(others + limit / 16).max(1);
    let remedy = match connections {
        Some(_) => format!("use --connections {fit}"),
        None => format!("add --connections {fit}"),
    };
    Some(format!(
        "{users} users need {needed} connections, and monitoring needs {others} more, but the server allows {limit}: \
         {remedy}, or raise its limit"
    ))
}

/// The server alone: the database may be made only now.
fn server_of(target: &Target) -> Target {
    match target.engine {
        Engine::Postgresql => target.clone(),
        Engine::Mariadb => target.with_database(""),
    }
}

/// How the sessions of a command are encrypted: all are opened the same way.
pub(super) struct Sessions {
    encryption: Option<Encryption>,
    is_socket: bool,
}

impl Sessions {
    /// Opens one and looks; says it to people. What keeps sessions from being opened is an error here, before
    /// anything is touched.
    pub(super) fn look(command: &Command<'_>, access: Access<'_>) -> Result<Sessions, Stop> {
        let target = access.target;
        let encryption = access
            .runtime
            .block_on(encryption(&server_of(target)))
            .map_err(|error| not_connected(target, &error))?;
        let is_socket = matches!(target.address, Address::UnixSocket(_));
        let sessions = Sessions { encryption, is_socket };
        command.say(&sessions.in_words(target.tls.options().mode));
        Ok(sessions)
    }

    fn in_words(&self, mode: TlsMode) -> String {
        match &self.encryption {
            Some(Encryption { protocol, cipher, verified }) => format!(
                "sessions: encrypted, {protocol} with {cipher}; the server's certificate: {}",
                match verified {
                    Verification::Nothing => "not verified",
                    Verification::Issuer => "issuer verified",
                    Verification::Name => "issuer and name verified",
                }
            ),
            None if self.is_socket => "sessions: not encrypted (Unix socket)".to_string(),
            None if mode == TlsMode::Disable => {
                "sessions: not encrypted (as asked for)".to_string()
            }
            None if mode == TlsMode::Allow => {
                "sessions: not encrypted (the server does not demand it)".to_string()
            }
            None => "sessions: not encrypted (the server offers no usable TLS)".to_string(),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "encrypted": self.encryption.is_some(),
            "protocol": self.encryption.as_ref().map(|encryption| &encryption.protocol),
            "cipher": self.encryption.as_ref().map(|encryption| &encryption.cipher),
            "certificate_verified":
                self.encryption.as_ref().map(|encryption| encryption.verified.as_str()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::too_many;

    #[test]
    fn users_whom_the_server_has_no_room_for_are_refused_with_what_fits() {
        let said = too_many(300, None, 97, 2).unwrap();
        for part in ["300 users need 300 connections", "allows 97", "add --connections 89"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(too_many(300, Some(97), 97, 2).unwrap().contains("use --connections 89"));
        assert_eq!(too_many(300, Some(89), 97, 2), None);
        assert_eq!((too_many(95, None, 97, 2), too_many(10, Some(200), 97, 2)), (None, None));
        assert!(too_many(96, None, 97, 2).is_some(), "no room for the counts");
        assert!(too_many(3, None, 1, 2).unwrap().contains("--connections 1"));
    }
}
