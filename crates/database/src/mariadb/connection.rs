//! Connections with any MariaDB or MySQL server.
//!
//! `tls` does TLS. Passwords are never sent in the clear: plugins that want that are refused.

use std::path::PathBuf;
use std::time::Duration;

use mysql_async::{Conn, OptsBuilder};
use tokio::time::timeout;

use super::tls;
use crate::Engine;
use crate::error::{CommitState, ErrorClass, SessionError};
use crate::target::{Address, Target};

/// The port when none is given.
pub const DEFAULT_PORT: u16 = 3306;
/// What a packet may hold. Asking the server would cost a round trip per connection; nothing that is
/// sent here comes near it.
const PACKET_BYTES: usize = 16 << 20;
/// Prepared statements of a connection; those beyond are closed, the oldest first.
const STATEMENTS: usize = 64;
/// Connections are replaced when they are lost, never because they were idle.
const WAIT_TIMEOUT: Duration = Duration::from_secs(28_800);

impl Target {
    /// The Unix socket of a MariaDB, no database, no password.
    pub fn mariadb_socket(socket: PathBuf, user: &str) -> Target {
        Target {
            engine: Engine::Mariadb,
            database: String::new(),
            ..Target::unix_socket(socket, DEFAULT_PORT, user)
        }
    }
}

/// Connects. The database may be empty: then none is chosen.
pub async fn connect(target: &Target) -> Result<Conn, SessionError> {
    connect_with_statements(target, STATEMENTS).await
}

/// Connects, with room for `statements` prepared statements: the library closes those that it has no room for.
pub(super) async fn connect_with_statements(
    target: &Target,
    statements: usize,
) -> Result<Conn, SessionError> {
    let connecting = tls::connect(target, options(target, statements));
    timeout(target.connect_timeout, connecting).await.map_err(|_| SessionError {
        class: ErrorClass::ConnectionLost,
        ..SessionError::client_timeout(
            "the connection",
            target.connect_timeout,
            CommitState::NotSent,
        )
    })?
}

fn options(target: &Target, statements: usize) -> OptsBuilder {
    let builder = OptsBuilder::default()
        .user(Some(&target.user))
        .pass(target.password.as_ref().map(|password| password.reveal()))
        .db_name(Some(&target.database).filter(|name| !name.is_empty()))
        // Otherwise the library asks a server on this host for its socket and connects again.
        .prefer_socket(false)
        .max_allowed_packet(Some(PACKET_BYTES))
        .wait_timeout(Some(WAIT_TIMEOUT.as_secs() as usize))
        .tcp_nodelay(true)
        // Rows found, not rows changed: an UPDATE that sets what was set has found its row.
        .client_found_rows(true)
        .stmt_cache_size(Some(statements.max(STATEMENTS)))
        .connect_attribute("program_name", &target.application_name)
        .setup(setup(target));
    match &target.address {
        Address::Tcp(host) => builder.ip_or_hostname(host).tcp_port(target.port),
        Address::UnixSocket(path) => builder.socket(Some(path.to_string_lossy())),
    }
}

/// An identifier in quotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The first statement of every session. MariaDB and MySQL skip each other's executable comments.
pub(super) fn setup(target: &Target) -> Vec<String> {
    let Some(limit) = target.statement_timeout else { return Vec::new() };
    // Zero would mean no limit; a lock is waited for at least a second.
    let seconds = limit.as_secs_f64().max(0.001);
    vec![format!(
        "SET SESSION innodb_lock_wait_timeout = {} /*M!100100 , max_statement_time = {seconds:.3} */ \
         /*!50708 , max_execution_time = {} */",
        limit.as_secs().max(1),
        limit.as_millis().max(1)
    )]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use mysql_async::Opts;

    use super::{options, quoted, setup};
    use crate::target::Target;

    #[test]
    fn reaches_sockets_and_hosts() {
        let target = Target::mariadb_socket(PathBuf::from("/run/u/s"), "root");
        let opts: Opts = options(&target, 1).into();
        assert_eq!((opts.socket(), opts.db_name()), (Some("/run/u/s"), None));
        let target = Target::from_url("mysql://ann:pw@db.example:3307/shop").unwrap();
        let opts: Opts = options(&target, 1).into();
        assert_eq!((opts.ip_or_hostname(), opts.tcp_port()), ("db.example", 3307));
        assert_eq!(
            (opts.user(), opts.pass(), opts.db_name()),
            (Some("ann"), Some("pw"), Some("shop"))
        );
        assert!(!opts.prefer_socket());
    }

    #[test]
    fn quotes_in_names_are_doubled() {
        assert_eq!(quoted("a`b"), "`a``b`");
    }

    #[test]
    fn a_limit_on_statements_reaches_both_flavours() {
        let target = Target::mariadb_socket(PathBuf::from("/s"), "root");
        assert!(setup(&target).is_empty());
        let text = setup(&target.with_statement_timeout(Duration::from_millis(1500))).concat();
        assert!(text.contains("max_statement_time = 1.500"), "{text}");
        assert!(text.contains("max_execution_time = 1500"), "{text}");
        assert!(text.contains("innodb_lock_wait_timeout = 1 "), "{text}");
    }
}
