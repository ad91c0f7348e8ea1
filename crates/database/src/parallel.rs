//! Work divided among threads with a runtime each: what loading is made of.
//!
//! What is deliberately not here: connections. Each engine opens its own.

use std::sync::Mutex;

use crate::error::SessionError;
use crate::stop::StopWhen;

/// What a load can fail with: the server's refusal, or a thread that could not be started.
pub(crate) trait LoadError: From<SessionError> + From<std::io::Error> + Send {}

impl<E: From<SessionError> + From<std::io::Error> + Send> LoadError for E {}

/// Spreads `items` over `parallel` threads, each with a runtime of its own. `work` takes one after the
/// other, the last first, until there is none. Ends early at the first error, and when it is asked to.
pub(crate) fn spread<T: Send, E: LoadError>(
    (parallel, stop): (usize, StopWhen),
    items: Vec<T>,
    work: impl AsyncFn(&dyn Fn() -> Option<T>) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let threads = parallel.clamp(1, items.len().max(1));
    let items = Mutex::new(items);
    // A poisoned list belongs to a thread that panicked; joining that thread reports it.
    let take = || items.lock().map_or(None, |mut items| items.pop());
    let loader = || {
        let done = on_runtime(stop.unless(work(&take)));
        if done.is_err() {
            // The others find nothing left to do.
            while take().is_some() {}
        }
        done
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

/// Carries out `work` on this thread.
pub(crate) fn on_runtime<T, E: LoadError>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error: std::io::Error| E::from(error))?
        .block_on(work)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::spread;
    use crate::batch::BatchError;
    use crate::stop::StopWhen;

    static IS_ASKED: AtomicBool = AtomicBool::new(false);

    /// All threads give up what they wait for, and begin nothing more.
    #[test]
    fn work_ends_soon_after_it_is_asked_to() {
        let asked = StopWhen::new(|| IS_ASKED.load(Ordering::Relaxed));
        let begun = AtomicUsize::new(0);
        let began = Instant::now();
        let ended = spread::<_, BatchError>((2, asked), vec![(); 100], async |take| {
            while take().is_some() {
                if begun.fetch_add(1, Ordering::Relaxed) == 1 {
                    IS_ASKED.store(true, Ordering::Relaxed);
                }
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
            Ok(())
        });
        assert!(ended.unwrap_err().to_string().contains("stopped"));
        assert_eq!(begun.into_inner(), 2);
        assert!(began.elapsed() < Duration::from_secs(60));
        let never = spread::<_, BatchError>((2, StopWhen::default()), vec![1], async |take| {
            while take().is_some() {}
            Ok(())
        });
        never.unwrap();
    }
}
