//! What a place in the queue of background work does next.
//!
//! Not here: who decides it ([`crate::copying`], [`crate::block_loads`]).

use underlay_core::Nanos;
use underlay_model::Request;

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextRequest {
    /// To ask for that, on one of the parts of volumes that the work uses. Latency counts from the
    /// intended start.
    Ask { part: usize, request: Request, intended: Nanos },
    /// Nothing until then.
    Wait { until: Nanos },
    /// Nothing any more.
    None,
}
