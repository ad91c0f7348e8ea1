//! Errors between a client and a database, in the few classes that decide how to react.

use std::error::Error;

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::tls::{self, plain, refusal};

/// What an error means for the one who met it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// Chosen as the victim of a deadlock: retry.
    Deadlock,
    /// Could not be serialised with others: retry.
    Serialization,
    /// The server or the connection went away, or there are too many of them: reconnect.
    ConnectionLost,
    /// Took too long, or waited too long for a lock.
    Timeout,
    /// The server accepts no writes.
    ReadOnly,
    /// The server could not read or write its files, or has no room for them.
    Io,
    /// A constraint refused the data: a bug, or damaged data.
    Constraint,
    /// Everything else: a bug, usually.
    Other,
}

/// What the client knew about the transaction's commit when the error came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitState {
    /// Nothing that commits had been sent: the transaction cannot have been committed.
    NotSent,
    /// A commit, or a call that commits by itself, had been sent and not been answered.
    InFlight,
}

/// An error of one transaction or connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SessionError {
    /// What it means.
    pub class: ErrorClass,
    /// The five characters of the server's code, when the server said something.
    pub sqlstate: Option<String>,
    /// What the server or the system said.
    pub message: String,
    /// Whether the transaction may have been committed nevertheless.
    pub commit_unknown: bool,
}

/// Why a target's text was refused. No variant quotes the text: it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL of an engine.
    #[error(
        "the database URL is malformed: {reason}; write `postgres://user:password@host:port/database` \
         or `mysql://user:password@host:port/database`"
    )]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// No host.
    #[error("the database URL names no host; write `postgres://user@host/database`")]
    NoHost,
    /// More than one.
    #[error("the database URL names several hosts; name the one to measure")]
    SeveralHosts,
    /// No role.
    #[error("the database URL names no user; write `postgres://user@host/database`")]
    NoUser,
    /// Passwords are text here.
    #[error("the password in the database URL is not UTF-8")]
    PasswordNotText,
    /// It would have no effect.
    #[error(
        "the database URL has an option{} that would have no effect; supported are {}",
        .name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default(),
        .known.join(", ")
    )]
    UnknownOption {
        /// What it is called, where it cannot be part of a password.
        name: Option<String>,
        /// Those that have one.
        known: Vec<&'static str>,
    },
    /// One of them would have no effect.
    #[error(
        "the database URL has the option `{name}` twice, perhaps under two names; write it once"
    )]
    RepeatedOption {
        /// What it is called.
        name: &'static str,
    },
    /// What it asks of TLS is not known or cannot be had.
    #[error("the TLS options of the database URL cannot be used: {reason}")]
    Tls {
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl ErrorClass {
    /// All classes, in the order in which they are counted.
    pub const ALL: [ErrorClass; 8] = [
        ErrorClass::Deadlock,
        ErrorClass::Serialization,
        ErrorClass::ConnectionLost,
        ErrorClass::Timeout,
        ErrorClass::ReadOnly,
        ErrorClass::Io,
        ErrorClass::Constraint,
        ErrorClass::Other,
    ];

    /// The word used in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorClass::Deadlock => "deadlock",
            ErrorClass::Serialization => "serialization",
            ErrorClass::ConnectionLost => "connection_lost",
            ErrorClass::Timeout => "timeout",
            ErrorClass::ReadOnly => "read_only",
            ErrorClass::Io => "io",
            ErrorClass::Constraint => "constraint",
            ErrorClass::Other => "other",
        }
    }

    /// The position in [`ErrorClass::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The class of a server's code; appendix A of the PostgreSQL manual lists them.
    pub fn of_sqlstate(code: &str) -> ErrorClass {
        match code {
            "40P01" => ErrorClass::Deadlock,
            // 55P03 is a lock timeout or NOWAIT; 57014 is what statement_timeout raises.
            "55P03" | "57014" | "25P03" | "25P04" => ErrorClass::Timeout,
            "25006" => ErrorClass::ReadOnly,
            // Shutdown, crash of another backend, starting up or recovering, dropped database.
            "57P01" | "57P02" | "57P03" | "57P04" | "57P05" => ErrorClass::ConnectionLost,
            "53300" => ErrorClass::ConnectionLost,
            // Disk full; I/O error; files missing or duplicated; damaged data or index.
            "53100" | "58030" | "58P01" | "58P02" | "XX001" | "XX002" => ErrorClass::Io,
            _ => match code.get(..2) {
                Some("08") => ErrorClass::ConnectionLost,
                Some("40") => ErrorClass::Serialization,
                Some("23") => ErrorClass::Constraint,
                _ => ErrorClass::Other,
            },
        }
    }
}

impl SessionError {
    /// Classifies an error of the client library.
    ///
    /// With the commit in flight, only an error that the server reports for a statement proves that
    /// nothing was committed. A lost connection, and the messages with which a server ends sessions,
    /// prove nothing: they may come after the commit record was written. The same holds for an error that ends the session or
    /// the whole server (FATAL, PANIC): a log that could be written but not flushed may still be replayed.
    pub fn from_postgres(error: &tokio_postgres::Error, commit: CommitState) -> SessionError {
        if let Some(code) = error.code() {
            return SessionError::of_report(
                code.code(),
                ends_session(error),
                describe(error),
                commit,
            );
        }
        // Errors of encoding and decoding are raised before anything is sent or after the answer came; only the
        // former are certain, and they cannot be told apart.
        let lost = lost_connection(error);
        SessionError {
            class: if lost { ErrorClass::ConnectionLost } else { ErrorClass::Other },
            sqlstate: None,
            message: describe(error),
            commit_unknown: commit == CommitState::InFlight,
        }
    }

    /// Classifies what a PostgreSQL reported: its code, whether it ends the session with it, and its words.
    pub(crate) fn of_report(
        code: &str,
        ends_session: bool,
        message: String,
        commit: CommitState,
    ) -> SessionError {
        let class = ErrorClass::of_sqlstate(code);
        let proven_rolled_back = class != ErrorClass::ConnectionLost
            && !ends_session
            && code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN.code();
        SessionError {
            class,
            sqlstate: Some(code.to_string()),
            message,
            commit_unknown: commit == CommitState::InFlight && !proven_rolled_back,
        }
    }

    /// A right that is known to be lacking before anything was asked for that needs it.
    pub(crate) fn denial(message: String) -> SessionError {
        SessionError {
            sqlstate: Some(SqlState::INSUFFICIENT_PRIVILEGE.code().to_string()),
            message,
            ..SessionError::refusal("")
        }
    }

    /// An error that neither a server nor a client library raised. Nothing was committed, and trying again is of no use.
    pub(crate) fn refusal(message: &str) -> SessionError {
        SessionError {
            class: ErrorClass::Other,
            sqlstate: None,
            message: message.to_string(),
            commit_unknown: false,
        }
    }

    /// A statement found no row where a workload's tables have one.
    pub(crate) fn no_row() -> SessionError {
        SessionError::refusal(
            "a statement found no row where the population has one; check and load it again",
        )
    }

    /// The session was used again after it had lost its connection.
    pub(crate) fn lost_before() -> SessionError {
        let message = "the session has already lost its connection; open another one";
        SessionError { class: ErrorClass::ConnectionLost, ..SessionError::refusal(message) }
    }

    /// The client gave up waiting for an answer after its own limit.
    pub fn client_timeout(what: &str, limit: std::time::Duration, commit: CommitState) -> Self {
        SessionError {
            class: ErrorClass::Timeout,
            sqlstate: None,
            message: format!("{what} was not answered within {} ms", limit.as_millis()),
            commit_unknown: commit == CommitState::InFlight,
        }
    }
}

/// Whether the server said that it ends the session, or itself, with this error.
fn ends_session(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    matches!(severity, Some(Severity::Fatal | Severity::Panic))
}

fn lost_connection(error: &tokio_postgres::Error) -> bool {
    if error.is_closed() {
        return true;
    }
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    // The library's connect timeout has neither code nor source.
    error.to_string().starts_with("error connecting") || error.to_string().contains("timeout")
}

/// One line: what the server said, or the chain of causes.
fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(server) = error.as_db_error() {
        let detail = server.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return format!("{}: {}{detail}", server.severity().to_lowercase(), server.message());
    }
    if let Some(cause) = error.source()
        && cause.to_string() == "server does not support TLS"
    {
        return "the server does not offer TLS, which the URL demands: enable it on the server (ssl = on), or write \
                `sslmode=prefer` or `disable`"
            .to_string();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // TLS 1.3 judges the client's certificate only after its handshake is over.
        if let Some(refused) = cause.downcast_ref().and_then(refusal) {
            return tls::describe(refused, "");
        }
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    plain(&text).to_string()
}

#[cfg(test)]
#[path = "error_commit_tests.rs"]
mod commit_tests;

#[cfg(test)]
mod tests {
    use super::ErrorClass;

    #[test]
    fn classifies_codes() {
        let check = |code: &str, class| assert_eq!(ErrorClass::of_sqlstate(code), class, "{code}");
        check("40P01", ErrorClass::Deadlock);
        check("40001", ErrorClass::Serialization);
        check("08006", ErrorClass::ConnectionLost);
        check("57P01", ErrorClass::ConnectionLost);
        check("57P03", ErrorClass::ConnectionLost);
        check("53300", ErrorClass::ConnectionLost);
        check("57014", ErrorClass::Timeout);
        check("55P03", ErrorClass::Timeout);
        check("25006", ErrorClass::ReadOnly);
        check("53100", ErrorClass::Io);
        check("58030", ErrorClass::Io);
        check("XX001", ErrorClass::Io);
        check("23505", ErrorClass::Constraint);
        check("42P01", ErrorClass::Other);
        check("", ErrorClass::Other);
        check("é", ErrorClass::Other);
    }

    #[test]
    fn indexes_follow_the_order() {
        for (index, class) in ErrorClass::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), index);
        }
    }
}
