//! Questions that Underlay itself asks a managed server, from code that is not asynchronous.

use std::future::Future;
use std::io;
use std::thread;

use crate::error::{CommitState, SessionError};
use crate::postgres::error::ServerError;
use crate::target::Target;

/// Runs a future to its end on a thread and runtime of its own, so that it also works when the
/// caller is inside a runtime.
pub(crate) fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, ServerError> {
    let failed = |source: io::Error| ServerError::System { action: "run a query", source };
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("server-query".to_string())
            .spawn_scoped(scope, || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                Ok(runtime.block_on(work))
            })
            .map_err(failed)?;
        // A panic in the query is a bug of ours; it goes on in the caller.
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(failed)
    })
}

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
