//! Timers of a cluster: events that happen by themselves at a known time.
//!
//! What is not here: their order (see the module `agenda`) and what they do (the cluster).

use super::ids::{ComponentId, DeviceId};
use super::slab::Key;

/// Something that happens by itself at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// A request's turn has come.
    Start { operation: Key },
    /// A request reaches a host.
    Arrive { sub: Key },
    /// An answer that is looked at by itself reaches the owner.
    Answer { sub: Key },
    /// The last of the answers that a part waits for reaches the owner.
    LastAnswer { part: Key },
    /// The silence of the hosts that changed together is noticed.
    Detect { epoch: u32 },
    /// A stuck device counts as failed.
    GiveUp { device: DeviceId, epoch: u32 },
    /// An absent component is rebuilt elsewhere.
    Repair { component: ComponentId, absence: u32 },
    /// Witnesses on hosts that are gone for long are moved.
    RepairWitnesses,
    /// Fullness is looked at.
    Rebalance,
    /// Copying that waits for something is tried again.
    RetryCopies,
}
