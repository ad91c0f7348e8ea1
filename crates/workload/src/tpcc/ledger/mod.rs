//! The commit ledger: what the database acknowledged to the clients.
//!
//! A database that answered "committed" must still have the order after a crash, a fail-over or a
//! power cut. Each client notes the order numbers acknowledged to it; checking them is the task of the
//! engine. Kept per district, as the order numbers of a district are dense: one bit per
//! acknowledged order and nothing for districts never used, so that a long run stays small.
//!
//! The ledger does not know orders that are answered with neither success nor failure (the
//! connection died during the commit): it counts them, since each may exist or not.

mod acknowledged;
mod encoding;
mod id_set;

pub use acknowledged::{Acknowledgement, DistrictKey, DistrictLedger, Ledger};
pub use encoding::LedgerError;
pub use id_set::IdSet;
