//! Blocks that carry their last writer and version, and checks whether they still do.
//!
//! Every unit of a written request carries a [`stamp`]: which run wrote it, where, with which write, and a checksum
//! over all of it. A [`Verifier`] knows what each unit of a target must hold now; requests that would meet on a
//! unit wait for each other, so that there is one answer. A [`journal`] outside the target survives the
//! generator: it says which writes were begun, acknowledged, and covered by a flush, so that [`recovery`]
//! knows after a crash or power cut which writes may be missing and which must not.

pub mod journal;

pub mod recovery;

mod expectation;

mod stamp;

mod verifier;

pub use expectation::{Finding, Tolerance, Violation};
pub use journal::{Journal, JournalError, JournalTarget, read_journal};
pub use recovery::{RecoveryReport, check_target};
pub use verifier::{UNIT_BYTES_MAX, Verifier, unit_bytes};
