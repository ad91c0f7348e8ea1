//! What an answer or an error of the server says of a condition. Which queries are asked is not decided here.

use mysql_async::Error;

use crate::error::{CommitState, SessionError};
use crate::tpcc::CheckOutcome;

/// The outcome of a query that counts violating rows and names one.
pub(super) fn outcome(answer: Result<Option<(u64, Option<String>)>, Error>) -> CheckOutcome {
    match answer {
        Ok(Some((0, _))) => CheckOutcome::Ok,
        Ok(Some((rows, example))) => CheckOutcome::Violated {
            rows,
            example: example.unwrap_or_else(|| "a row of nulls".to_string()),
        },
        Ok(None) => CheckOutcome::Failed { error: "the query has no answer".to_string() },
        Err(error) => CheckOutcome::Failed { error: describe(&error) },
    }
}

pub(super) fn describe(error: &Error) -> String {
    SessionError::from_mariadb(error, CommitState::NotSent).message
}
