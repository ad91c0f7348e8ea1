//! What the marker of a table says. How it is written and read is in `schema`.

use underlay_core::RootSeed;
use underlay_workload::batch::{Claim, Loop, Parameters, slices};

use super::error::BatchError;
use super::marker::{MARKER_FORMAT, Marker};
use super::options::BatchOptions;

/// What the marker of a table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// What was to be inserted, and how.
    pub options: BatchOptions,
    /// Whether the insertion completed.
    pub complete: bool,
}

impl Described {
    /// What may be in the table, as far as the marker tells.
    pub fn claims(&self) -> Vec<Claim> {
        let BatchOptions { parameters, mode, sessions, rollback, .. } = self.options;
        let slices = slices(parameters.rows, sessions).into_iter();
        slices
            .map(|slice| match (self.complete, rollback) {
                (_, true) => Claim::none(slice),
                (true, false) => Claim::all(slice),
                (false, false) => Claim::unknown(slice, mode.is_all_or_nothing()),
            })
            .collect()
    }
}

impl Marker {
    /// What its columns say.
    pub(super) fn described(&self) -> Result<Described, BatchError> {
        if self.format != MARKER_FORMAT {
            return Err(BatchError::OtherFormat { found: self.format });
        }
        let damaged = |what: &str| BatchError::Damaged(what.to_string());
        let rows = u32::try_from(self.rows).ok().filter(|rows| *rows > 0);
        let sessions = u32::try_from(self.sessions).ok().filter(|sessions| *sessions > 0);
        let options = BatchOptions {
            parameters: Parameters {
                rows: rows.ok_or_else(|| damaged("no number of rows"))?,
                seed: RootSeed(self.seed.cast_unsigned()),
            },
            mode: self.mode.parse().map_err(|error: underlay_core::words::UnknownWord| {
                BatchError::Damaged(error.to_string())
            })?,
            // Nothing that is in the table depends on it.
            place: Loop::Client,
            sessions: sessions.ok_or_else(|| damaged("no number of sessions"))?,
            rollback: self.is_rollback,
        };
        Ok(Described { options, complete: self.is_complete })
    }
}
