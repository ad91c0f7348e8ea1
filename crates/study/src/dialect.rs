//! What the planner knows about each engine's settings: names of what all engines have under different
//! names, sizes, defaults, and what belongs to Underlay.
//!
//! It deliberately knows no list of all settings: that list differs between versions and is asked from
//! the server (see [`crate::InstalledServer`]).

use std::ops::RangeInclusive;

use underlay_core::{Bytes, Nanos};

/// How one engine is spoken to.
pub(crate) struct Dialect {
    /// Its name, for people.
    pub title: &'static str,
    /// Major versions that are supported.
    pub majors: RangeInclusive<u64>,
    /// What to install, and what its folder holds.
    pub install: &'static str,
    pub programs: &'static str,
    /// Settings that Underlay sets itself, with what decides them instead.
    pub owned: &'static [(&'static str, &'static str)],
    /// Size settings with the number of bytes that a bare number counts.
    pub sizes: &'static [(&'static str, u64)],
    /// The size settings that similarity scaling divides.
    pub scaled: &'static [ScaledSetting],
    /// The server's own cache, and its size when the study says nothing.
    pub buffers: (&'static str, Bytes),
    /// What bounds the log, and its size when the study says nothing.
    pub log: (&'static str, Bytes),
    /// Whether the log may exceed that for a while.
    pub log_may_grow: bool,
    /// `max_connections` when the study says nothing.
    pub connections: u32,
    /// Connections that are not for users: the server's reserve for its administrator, and Underlay's own.
    pub reserved_connections: u32,
    /// What has a time of its own between checkpoints, and that time when the study says nothing.
    pub checkpoint_timeout: Option<(&'static str, Nanos)>,
    /// A size as the engine reads it, with the bytes of a bare number.
    pub size: fn(&str, u64) -> Option<Bytes>,
    /// A size as the engine writes it.
    pub size_text: fn(Bytes) -> String,
    /// Which units it knows, and an example.
    pub size_units: &'static str,
    pub size_example: &'static str,
    /// Settings under which a result is doubtful.
    pub doubtful: &'static [Doubtful],
}

/// A size setting that similarity scaling divides.
pub(crate) struct ScaledSetting {
    pub name: &'static str,
    /// The least value the server starts with.
    pub least: Bytes,
    /// What the server uses when the study says nothing.
    pub default: Bytes,
}

/// A setting with values that put a result in doubt.
pub(crate) struct Doubtful {
    pub name: &'static str,
    /// Whether a value does.
    pub is: fn(&str) -> bool,
    /// The value in words: `is off`.
    pub words: &'static str,
    /// The finding's code.
    pub code: &'static str,
    pub consequence: &'static str,
}

impl Dialect {
    /// The unit of a bare number of that setting, when it is a size.
    pub fn bare_unit(&self, setting: &str) -> Option<u64> {
        self.sizes.iter().find(|(name, _)| *name == setting).map(|(_, bare)| *bare)
    }

    /// A size setting in bytes, or what the server takes without it; `None` when it cannot be read.
    pub fn size_of(&self, (name, default): (&str, Bytes), value: Option<&str>) -> Option<Bytes> {
        match value {
            None => Some(default),
            Some(text) => (self.size)(text, self.bare_unit(name)?),
        }
    }
}
