//! Why a fault does not happen, and which faults destroy bytes.
//!
//! What is not here: faults by name.

use underlay_model::cluster::{Fault, FaultProblem, ReturnedContent};

/// Why a fault does not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FaultRefusal {
    /// It cannot.
    #[error(transparent)]
    Problem(FaultProblem),
    /// It would destroy what the last state that could be stored counts on.
    #[error(
        "the cluster's state cannot be stored, and this fault destroys data that the stored state relies on: make the \
         datastore's directory writable, with space for a file, then try again"
    )]
    NotStored,
}

/// Whether bytes are gone when the fault has happened: of a replaced device, or those that hosts without power had not
/// made durable.
pub(super) fn destroys_bytes(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::DeviceReturned { content: ReturnedContent::Blank, .. }
            | Fault::HostLost { .. }
            | Fault::PowerCut
    )
}
