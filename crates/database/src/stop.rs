//! Cancels a long operation on a database: a load, a check, a removal.
//!
//! Such an operation waits for the server nearly all the time, so it is enough to check while waiting. A cancelled
//! operation is dropped with its connections, and the server rolls back what was not committed. A statement that it has
//! begun may still complete.

use std::fmt;
use std::time::Duration;

use crate::error::SessionError;

/// How often it is asked.
const INTERVAL: Duration = Duration::from_millis(50);

/// Says whether to stop. No part of where a database is: all are equal.
#[derive(Clone, Copy, Default)]
pub struct StopWhen(Option<fn() -> bool>);

impl StopWhen {
    /// When `asked` says so.
    pub const fn new(asked: fn() -> bool) -> StopWhen {
        StopWhen(Some(asked))
    }

    /// The result of `work`, or an error once it is asked to stop.
    pub(crate) async fn unless<T, E: From<SessionError>>(
        self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(asked) = self.0 else { return work.await };
        let stopped = || Err(E::from(SessionError::refusal("stopped as asked")));
        unless_stopped(&asked, work).await.unwrap_or_else(stopped)
    }
}

/// The result of `work`; `None` if `stop` ends it first.
pub(crate) async fn unless_stopped<T>(
    stop: &(dyn Fn() -> bool + Sync),
    work: impl Future<Output = T>,
) -> Option<T> {
    let until_asked = async {
        while !stop() {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    tokio::select! {
        biased;
        () = until_asked => None,
        done = work => Some(done),
    }
}

impl PartialEq for StopWhen {
    fn eq(&self, _: &StopWhen) -> bool {
        true
    }
}

impl Eq for StopWhen {}

impl fmt::Debug for StopWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "when asked" } else { "never" })
    }
}

#[cfg(test)]
mod tests {
    use super::unless_stopped;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn work_that_never_ends_is_given_up_when_asked() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime");
        let looks = AtomicU32::new(0);
        let third = || looks.fetch_add(1, Ordering::Relaxed) == 2;
        assert_eq!(runtime.block_on(unless_stopped(&third, std::future::pending::<()>())), None);
        assert_eq!(looks.load(Ordering::Relaxed), 3);
        assert_eq!(runtime.block_on(unless_stopped(&|| false, async { 7 })), Some(7));
    }
}
