//! Asking a managed server from code that is not asynchronous.

use std::future::Future;
use std::io;
use std::thread;

use underlay_core::SystemError;

use crate::managed::ServerError;

/// Runs a future to its end on a thread and runtime of its own, so that it also works when the
/// caller is inside a runtime.
pub(crate) fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, ServerError> {
    let failed = |source: io::Error| ServerError::from(SystemError::of_call("run a query", source));
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
