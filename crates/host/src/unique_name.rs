//! Names that no other process on this host has or had.
//!
//! They deliberately carry no meaning beyond a readable beginning: whoever made a name keeps it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A value for `UNDERLAY_RESOURCE` that no other process on this host has or had.
pub(crate) fn new_marker(name: &str) -> String {
    format!("{}-{}-{:x}", file_name_part(name), std::process::id(), unique())
}

pub(crate) fn file_name_part(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '_' })
        .take(32)
        .collect()
}

/// Differs from call to call and from process to process, restarts of the host included.
pub(crate) fn unique() -> u128 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since_epoch.as_nanos() << 16 | u128::from(COUNTER.fetch_add(1, Ordering::Relaxed) & 0xffff)
}
