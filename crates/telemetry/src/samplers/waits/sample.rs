//! What one sample of all sessions found. Pure.
//!
//! It deliberately counts nothing: that is the tally's business.

use super::threads::Doing;
use crate::item::WaitKey;

/// One session in a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sampled {
    /// The kernel's number of the thread that serves it; 0 = unknown.
    pub(super) thread: i32,
    pub(super) key: WaitKey,
    pub(super) doing: Option<Doing>,
}

impl Sampled {
    pub(super) fn new(thread: i32, key: WaitKey, doing: Option<Doing>) -> Sampled {
        Sampled { thread, key, doing }
    }
}

/// What one sample of all sessions found.
pub(super) type Sample = Vec<Sampled>;

/// The key with what the thread is doing in its state: `active/R`.
pub(super) fn with_doing(mut key: WaitKey, doing: Option<Doing>) -> WaitKey {
    if let Some(doing) = doing {
        key.state.push('/');
        key.state.push(doing.letter());
    }
    key
}

/// Kinds of server processes that work for clients.
const CLIENTS: [&str; 2] = ["client backend", "parallel worker"];

/// Whether a session works for a client.
pub(super) fn is_client(key: &WaitKey) -> bool {
    CLIENTS.contains(&key.backend_type.as_str())
}
