//! Paths as the kernel names them, also of what does not exist yet.
//!
//! It deliberately reports no error: a path of which nothing exists stays as it is.

use std::path::{Path, PathBuf};

/// The path with its existing part resolved.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|ancestor| {
            let real = ancestor.canonicalize().ok()?;
            let rest = path.strip_prefix(ancestor).ok()?;
            Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
        })
        .unwrap_or_else(|| path.to_path_buf())
}
