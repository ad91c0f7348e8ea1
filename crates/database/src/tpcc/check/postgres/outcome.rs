//! What an answer or an error of the server says of a condition. Which queries are asked is not decided here.

use tokio_postgres::Error;

use crate::error::{CommitState, SessionError};
use crate::tpcc::CheckOutcome;

/// The outcome of a query that counts violating rows and names one.
pub(super) fn outcome(answer: Result<(i64, Option<String>), Error>) -> CheckOutcome {
    match answer {
        Ok((0, _)) => CheckOutcome::Ok,
        Ok((rows, example)) => CheckOutcome::Violated {
            rows: rows.unsigned_abs(),
            example: example.unwrap_or_else(|| "a row of nulls".to_string()),
        },
        Err(error) => CheckOutcome::Failed { error: describe(&error) },
    }
}

pub(super) fn describe(error: &Error) -> String {
    SessionError::from_postgres(error, CommitState::NotSent).message
}
