//! Queries of Underlay itself to a managed server, from code that is not asynchronous.

use crate::error::{CommitState, SessionError};
use crate::managed::{ServerError, block_on};
use crate::target::Target;

/// Rows of a query without parameters, all values as text; NULL is the empty string.
pub(crate) fn rows(
    target: &Target,
    action: &'static str,
    sql: &str,
) -> Result<Vec<Vec<String>>, ServerError> {
    block_on(async {
        let client = target.connect().await?;
        let messages = client
            .simple_query(sql)
            .await
            .map_err(|error| SessionError::from_postgres(&error, CommitState::NotSent))?;
        Ok(messages.iter().filter_map(texts).collect())
    })?
    .map_err(|source| ServerError::Query { action, source })
}

fn texts(message: &tokio_postgres::SimpleQueryMessage) -> Option<Vec<String>> {
    let tokio_postgres::SimpleQueryMessage::Row(row) = message else { return None };
    Some((0..row.len()).map(|index| row.get(index).unwrap_or_default().to_string()).collect())
}
