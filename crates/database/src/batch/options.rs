//! How to insert. What is inserted is the workload's.

use underlay_workload::batch::{Loop, Mode, Parameters};

/// How to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// What is inserted.
    pub parameters: Parameters,
    /// How.
    pub mode: Mode,
    /// Who goes from row to row. A stream has no loop inside the server.
    pub place: Loop,
    /// Sessions, each with a part of the rows. At least 1.
    pub sessions: u32,
    /// Undo at the end instead of committing. Only where there is a transaction to undo.
    pub rollback: bool,
}
