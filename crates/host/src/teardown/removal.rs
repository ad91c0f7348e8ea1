//! What a removal found: shared by everything that removes.

/// Whether there was anything to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    Removed,
    WasGone,
}

pub(crate) fn counted(count: usize) -> Removal {
    if count == 0 { Removal::WasGone } else { Removal::Removed }
}
