//! What this host can do, probed by trying.

/// One thing that Underlay can use, and whether it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Short and stable: `root`, `fuse`, `loop`, ...
    pub name: String,
    /// Whether it works.
    pub available: bool,
    /// What was found.
    pub detail: String,
    /// What to do when it does not work and is wanted; empty when it works.
    pub remedy: String,
}

/// Everything that is asked by `doctor`, except what the engines add.
pub fn capabilities() -> Vec<Capability> {
    Vec::new()
}
