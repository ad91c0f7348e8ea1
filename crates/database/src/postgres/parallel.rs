//! Work divided among connections with a thread each.

use tokio_postgres::Client;

use crate::error::{CommitState, SessionError};
use crate::parallel::{LoadError, on_runtime, spread};
use crate::target::Target;

pub(crate) fn refused(error: tokio_postgres::Error) -> SessionError {
    SessionError::from_postgres(&error, CommitState::NotSent)
}

/// Carries out `work` on each of `items`, the last first, on `parallel` threads with a connection each.
/// Ends early at the first error.
pub(crate) fn in_parallel<T: Send, E: LoadError>(
    target: &Target,
    (parallel, settings): (usize, &str),
    items: Vec<T>,
    work: impl AsyncFn(&Client, &T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    spread((parallel, target.stop), items, async |take| {
        let client = target.connect().await?;
        client.batch_execute(settings).await.map_err(refused)?;
        while let Some(item) = take() {
            work(&client, &item).await?;
        }
        Ok(())
    })
}

/// Carries out `work` on a connection of its own, on this thread.
pub(crate) fn on_connection<T, E: LoadError>(
    target: &Target,
    work: impl AsyncFnOnce(&Client) -> Result<T, E>,
) -> Result<T, E> {
    on_runtime(target.stop.unless(async {
        let client = target.connect().await?;
        work(&client).await
    }))
}
