//! The database of the command: where it is, with which password, and how sessions with it are encrypted.
//!
//! A password is taken from where nobody else can read it, and goes nowhere but into the login.

use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::runtime::{Builder, Runtime};
use underlay_database::connection_limit::connection_limit;
use underlay_database::tls::{Encryption, TlsMode, Verification, encryption};
use underlay_database::{Address, Engine, Secret, SessionError, Target, password_file};

use super::{Arguments, URL_VARIABLE, Workload};
use crate::stop::Stop;

/// The database of the command.
pub(super) fn target(arguments: &Arguments) -> Result<Target, Stop> {
    let url = arguments.url.as_deref().unwrap_or_default();
    let mut target = Target::from_url(url).map_err(|error| Stop::bad_input(error.to_string()))?;
    if target.engine == Engine::Mariadb && target.database.is_empty() {
        target.database = default_database(arguments.workload).to_string();
    }
    let is_typed = std::env::var(URL_VARIABLE).ok().as_deref() != Some(url);
    if target.password.is_some() && is_typed {
        errln!(
            "warning: everybody on this host can read the password in --url: use {}, --password-file or {URL_VARIABLE}",
            variable(target.engine)
        );
    }
    if let Some(path) = &arguments.password_file {
        let text = std::fs::read_to_string(path).map_err(|error| {
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
    Ok(target.with_stop(super::shall_give_up))
}

/// Where MariaDB's tables go when the URL names no database: PostgreSQL has schemas of these names.
fn default_database(workload: Workload) -> &'static str {
    match workload {
        Workload::Tpcc => "tpcc",
        // As sysbench itself.
        Workload::Sysbench => "sbtest",
        Workload::Dvdstore => "dvdstore",
        Workload::Batch => "batch",
        Workload::Warehouse => "warehouse",
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
            "MariaDB says the same of a wrong password and where the server or the account demands TLS \
             (require_secure_transport, REQUIRE SSL), which `ssl-mode=disabled` rules out",
        )
    } else if tls.certificate.is_none() {
        stop.with_hint(
            "MariaDB says the same of a wrong password and where the account demands a certificate of the client (REQUIRE X509), \
             which `ssl-cert` and `ssl-key` would name",
        )
    } else {
        stop
    }
}

/// Refuses a run that needs more sessions than the server lets its user have.
pub(super) fn refuse_too_many(arguments: &Arguments, target: &Target) -> Result<(), Stop> {
    let anywhere = server_of(target);
    let limit = runtime()?.block_on(connection_limit(&anywhere));
    // Who does not say it says it in the run.
    let Ok(limit) = limit else { return Ok(()) };
    match too_many(arguments.users(), arguments.connections, limit) {
        Some(reason) => Err(Stop::bad_input(reason)),
        None => Ok(()),
    }
}

/// What is wrong with so many users, if anything.
fn too_many(users: u32, connections: Option<u32>, limit: u32) -> Option<String> {
    let needed = connections.map_or(users, |connections| connections.min(users));
    // One more reads the counts meanwhile.
    if needed < limit {
        return None;
    }
    // Others need some too.
    let fit = limit.saturating_sub(1 + limit / 16).max(1);
    let remedy = match connections {
        Some(_) => format!("ask for --connections {fit}"),
        None => format!("add --connections {fit}"),
    };
    Some(format!(
        "{users} users need {needed} connections and one to watch, the server allows {limit}: {remedy}, or raise its limit"
    ))
}

/// The server alone: the database may be made only now.
fn server_of(target: &Target) -> Target {
    match target.engine {
        Engine::Postgresql => target.clone(),
        Engine::Mariadb => target.with_database(""),
    }
}

pub(super) fn runtime() -> Result<Runtime, Stop> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Stop::host(format!("could not start threads: {error}")))
}

/// How the sessions of a command are encrypted: all are opened the same way.
pub(super) struct Sessions {
    encryption: Option<Encryption>,
    is_socket: bool,
}

impl Sessions {
    /// Opens one and looks; says it to people. What keeps sessions from being opened is an error here, before
    /// anything is touched.
    pub(super) fn look(arguments: &Arguments, target: &Target) -> Result<Sessions, Stop> {
        let encryption = runtime()?
            .block_on(encryption(&server_of(target)))
            .map_err(|error| not_connected(target, &error))?;
        let is_socket = matches!(target.address, Address::UnixSocket(_));
        let sessions = Sessions { encryption, is_socket };
        arguments.say(&sessions.in_words(target.tls.options().mode));
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
            None => {
                "sessions: not encrypted (the server offers no TLS that is accepted)".to_string()
            }
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
        let said = too_many(300, None, 97).unwrap();
        for part in ["300 users need 300 connections", "allows 97", "add --connections 90"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(too_many(300, Some(97), 97).unwrap().contains("ask for --connections 90"));
        assert_eq!(too_many(300, Some(90), 97), None);
        assert_eq!((too_many(96, None, 97), too_many(10, Some(200), 97)), (None, None));
        assert!(too_many(97, None, 97).is_some(), "no room for the counts");
        assert!(too_many(3, None, 1).unwrap().contains("--connections 1"));
    }
}
