//! Work divided among connections with a thread each: what loading is made of.

use std::sync::Mutex;

use tokio_postgres::Client;

use crate::error::{CommitState, SessionError};
use crate::target::Target;

/// What a load can fail with.
pub(super) trait LoadError: From<SessionError> + From<std::io::Error> + Send {}

impl<E: From<SessionError> + From<std::io::Error> + Send> LoadError for E {}

fn refused(error: tokio_postgres::Error) -> SessionError {
    SessionError::from_postgres(&error, CommitState::NotSent)
}

/// Carries out `work` on each of `items`, the last first, on `parallel` threads with a connection each.
/// Ends early at the first error.
pub(super) fn in_parallel<T: Send, E: LoadError>(
    target: &Target,
    (parallel, settings): (usize, &str),
    items: Vec<T>,
    work: impl AsyncFn(&Client, &T) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = parallel.clamp(1, items.len().max(1));
    let items = Mutex::new(items);
    // A poisoned list belongs to a thread that panicked; joining that thread reports it.
    let take = || items.lock().map_or(None, |mut items| items.pop());
    let loader = || {
        on_connection(target, async |client| {
            client.batch_execute(settings).await.map_err(refused)?;
            while let Some(item) = take() {
                let done = work(client, &item).await;
                if done.is_err() {
                    // The others find nothing left to do.
                    while take().is_some() {}
                    return done;
                }
            }
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        let handles: Vec<Result<_, E>> = (0..threads)
            .map(|index| {
                std::thread::Builder::new()
                    .name(format!("load-{index}"))
                    .spawn_scoped(scope, loader)
                    .map_err(|error: std::io::Error| E::from(error))
            })
            .collect();
        let mut result = Ok(());
        for handle in handles {
            let done = handle.and_then(|handle| {
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            result = result.and(done);
        }
        result
    })
}

/// Carries out `work` on a connection of its own, on this thread.
pub(super) fn on_connection<T, E: LoadError>(
    target: &Target,
    work: impl AsyncFnOnce(&Client) -> Result<T, E>,
) -> Result<T, E> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error: std::io::Error| E::from(error))?;
    runtime.block_on(async {
        let client = target.connect().await?;
        work(&client).await
    })
}
