//! What the planner needs to know about a host, as values and look-ups, so that planning stays pure.

use std::collections::BTreeSet;
use std::path::Path;

use underlay_core::Bytes;

use crate::plan::EngineKind;

/// Looks for the servers of an engine in the given folder, or in the usual ones. `None` = not looked.
pub type ServerLookup = dyn Fn(EngineKind, Option<&Path>) -> Option<Vec<InstalledServer>>;

/// A host as the planner sees it.
pub struct HostView<'a> {
    /// Processors that Underlay and the database may use.
    pub cpus: u32,
    /// Memory of the host.
    pub memory: Bytes,
    /// Free space where Underlay keeps templates and backing files by default.
    pub free_space: Bytes,
    /// Whether a memory limit of the database server can be enforced here.
    pub memory_limits: Enforcement,
    /// Whether a processor limit of the database server can be enforced here.
    pub cpu_limits: Enforcement,
    /// Looks at a directory: `datastore.path.directory`, `backing`.
    pub directory: &'a dyn Fn(&Path) -> DirectoryState,
    /// The servers of an engine found in the given folder, or in the usual ones. `None` = not looked
    /// for, no check is made.
    pub servers: &'a ServerLookup,
}

/// Whether the host can enforce a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// It can.
    Enforced,
    /// It cannot; the study runs without the limit and the record says so.
    Unenforced {
        /// Why not, and what would make it possible.
        reason: String,
    },
}

/// What a look at a directory showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryState {
    /// A directory that can be written to.
    Usable {
        /// Free space in it.
        free: Bytes,
    },
    /// Nothing there.
    Missing,
    /// Something else than a directory.
    NotADirectory,
    /// A directory that cannot be written to.
    NotWritable,
}

/// A database server found on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledServer {
    /// Major version, for example 15.
    pub major: u32,
    /// The names of all its settings, when they were asked for; then unknown ones are refused.
    pub settings: Option<BTreeSet<String>>,
    /// Why no backup of it can be taken on this host, and what to install; `None` when one can.
    pub backup_problem: Option<String>,
}

impl HostView<'static> {
    /// The host that `[laptop]` tables are written for: two processors, 24 GiB, 40 GB free.
    pub fn laptop() -> HostView<'static> {
        HostView {
            cpus: 2,
            memory: Bytes::from_gib(24),
            free_space: Bytes(40_000_000_000),
            ..HostView::unlimited()
        }
    }

    /// A host without limits, on which every directory exists: what a study is checked against when
    /// it is not meant for any particular host.
    pub fn unlimited() -> HostView<'static> {
        HostView {
            cpus: u32::MAX,
            memory: Bytes(u64::MAX),
            free_space: Bytes(u64::MAX),
            memory_limits: Enforcement::Enforced,
            cpu_limits: Enforcement::Enforced,
            directory: &|_| DirectoryState::Usable { free: Bytes(u64::MAX) },
            servers: &|_, _| None,
        }
    }
}
