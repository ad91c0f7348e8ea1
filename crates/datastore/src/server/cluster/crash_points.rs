//! A server that is killed in the midst of a command, for tests: what it had stored until then stays, the rest does not happen.
//!
//! Of the thread, because a test's server lives in it alone.

use std::cell::Cell;

thread_local! {
    static CHANGES_LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// It is killed after so many more changes of components; with none it lives on.
pub(super) fn ends_after(changes: Option<u32>) {
    CHANGES_LEFT.set(changes);
}

/// Whether it was killed.
pub(super) fn is_over() -> bool {
    CHANGES_LEFT.get() == Some(0)
}

/// Whether a change of a component still happens.
pub(super) fn changes() -> bool {
    let left = CHANGES_LEFT.get();
    CHANGES_LEFT.set(left.map(|left| left.saturating_sub(1)));
    left != Some(0)
}
