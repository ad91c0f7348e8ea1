//! Why requests fail, and what errors mean.

use std::error::Error as _;

use mysql_async::{DriverError, Error};

use crate::error::{CommitState, ErrorClass, SessionError};
use crate::tls::plain;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The client library or the server reported it, or the connection broke.
    Mariadb(Error),
    /// The connection had ended before the request was sent.
    NotSent(Error),
}

impl From<Error> for RequestError {
    fn from(error: Error) -> RequestError {
        RequestError::Mariadb(error)
    }
}

impl RequestError {
    /// In the terms of all engines.
    pub(crate) fn into_session_error(self, commit: CommitState) -> SessionError {
        match self {
            RequestError::Mariadb(error) => SessionError::from_mariadb(&error, commit),
            RequestError::NotSent(error) => {
                SessionError::from_mariadb(&error, CommitState::NotSent)
            }
        }
    }
}

/// The class of a server's error number; the server's manual lists them.
pub(crate) fn class_of(number: u16) -> ErrorClass {
    match number {
        1213 => ErrorClass::Deadlock,
        // Record changed since last read: a snapshot that could not be kept.
        1020 => ErrorClass::Serialization,
        // Lock wait timeout; interrupted; max_statement_time (MariaDB) and max_execution_time (MySQL);
        // NOWAIT (MariaDB's is 1205 too).
        1205 | 1317 | 1969 | 3024 | 3572 => ErrorClass::Timeout,
        // Too many connections; shutting down, killed, aborted or unreadable ones; idle for too long.
        1040
        | 1203
        | 1053
        | 1077
        | 1079
        | 1080
        | 1152
        | 1158..=1161
        | 1184
        | 1226
        | 1927
        | 4031 => ErrorClass::ConnectionLost,
        1290 | 1792 | 1836 | 3100 => ErrorClass::ReadOnly,
        // Files that cannot be created, closed, opened, read, written; full disks and tables; damaged
        // tables, indexes and pages.
        1003 | 1004 | 1016 | 1017 | 1021 | 1023 | 1024 | 1026 | 1030 | 1034 | 1035 | 1114
        | 1194 | 1195 | 1712 | 1812 | 1814 | 1877 | 1932 => ErrorClass::Io,
        1022 | 1048 | 1062 | 1169 | 1216 | 1217 | 1264 | 1364 | 1406 | 1451 | 1452 | 1557
        | 1586 | 3819 | 4025 => ErrorClass::Constraint,
        _ => ErrorClass::Other,
    }
}

/// Numbers of what a user has no right to in a database: itself, a table, a column, a view, a routine. Not those of rights on the
/// whole server, whose messages name the right and which nothing here needs.
pub(crate) const DENIALS: [u16; 5] = [1044, 1142, 1143, 1345, 1370];

/// There is no such table; there is no such database.
pub(crate) const ABSENT: [u16; 2] = [1146, 1049];

/// Whether an error that a server reports for a statement proves that the statement committed nothing.
///
/// A procedure commits inside its call. A limit on the time of statements, or a kill, may strike after
/// its COMMIT and before its answer; a storage engine that could not write its log may still find the
/// commit in it after a restart.
fn proves_rollback(number: u16, class: ErrorClass) -> bool {
    !matches!(class, ErrorClass::ConnectionLost | ErrorClass::Io)
        && !matches!(number, 1317 | 1969 | 3024 | 1180 | 1105)
}

impl SessionError {
    /// Classifies an error of MariaDB's client library, in which our own client speaks too.
    ///
    /// With the commit in flight, only an error that the server reports for a statement proves that
    /// nothing was committed, and not every such error does.
    pub(crate) fn from_mariadb(error: &Error, commit: CommitState) -> SessionError {
        let (class, sqlstate, proven) = match error {
            Error::Server(server) => {
                let class = class_of(server.code);
                (class, Some(server.state.clone()), proves_rollback(server.code, class))
            }
            Error::Io(_) => (ErrorClass::ConnectionLost, None, false),
            Error::Driver(DriverError::ConnectionClosed | DriverError::PoolDisconnected) => {
                (ErrorClass::ConnectionLost, None, false)
            }
            // Raised before anything is sent or after the answer came: they cannot be told apart.
            Error::Driver(_) | Error::Other(_) | Error::Url(_) => (ErrorClass::Other, None, false),
        };
        SessionError {
            class,
            sqlstate,
            message: describe(error),
            commit_unknown: commit == CommitState::InFlight && !proven,
        }
    }
}

/// One line: what the server said with its number, or the chain of causes.
fn describe(error: &Error) -> String {
    if let Error::Server(server) = error {
        return format!("error {}: {}", server.code, server.message);
    }
    if let Error::Other(said) = error {
        return said.to_string();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
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
mod tests {
    use mysql_async::{Error, ServerError};

    use super::class_of;
    use crate::error::{CommitState, ErrorClass, SessionError};

    fn server(code: u16) -> Error {
        Error::Server(ServerError { code, message: "no".to_string(), state: "HY000".to_string() })
    }

    #[test]
    fn classifies_numbers() {
        let check = |number: u16, class| assert_eq!(class_of(number), class, "{number}");
        check(1213, ErrorClass::Deadlock);
        check(1205, ErrorClass::Timeout);
        check(1969, ErrorClass::Timeout);
        check(1040, ErrorClass::ConnectionLost);
        check(1053, ErrorClass::ConnectionLost);
        check(1927, ErrorClass::ConnectionLost);
        check(1290, ErrorClass::ReadOnly);
        check(1021, ErrorClass::Io);
        check(1114, ErrorClass::Io);
        check(1062, ErrorClass::Constraint);
        check(1146, ErrorClass::Other);
    }

    #[test]
    fn a_lacking_right_is_told_from_other_errors() {
        let denied =
            |code| SessionError::from_mariadb(&server(code), CommitState::NotSent).is_denial();
        for code in [1044, 1142, 1143, 1370] {
            assert!(denied(code), "{code}");
        }
        // No such table, a syntax error, a wrong password, a column of that number's beginning.
        for code in [1146, 1064, 1045, 114, 11420] {
            assert!(!denied(code), "{code}");
        }
    }

    #[test]
    fn only_some_errors_prove_that_nothing_was_committed() {
        let unknown = |error: &Error| {
            assert!(!SessionError::from_mariadb(error, CommitState::NotSent).commit_unknown);
            SessionError::from_mariadb(error, CommitState::InFlight).commit_unknown
        };
        for code in [1213, 1205, 1062, 1020] {
            assert!(!unknown(&server(code)), "{code}");
        }
        for code in [1053, 1927, 1317, 1969, 1021, 1030] {
            assert!(unknown(&server(code)), "{code}");
        }
        let lost = Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());
        assert!(unknown(&lost));
        let error = SessionError::from_mariadb(&lost, CommitState::NotSent);
        assert_eq!(error.class, ErrorClass::ConnectionLost);
    }
}
