//! What the data plane noticed while carrying out commands.

use underlay_model::cluster::ComponentId;

/// Something about a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It did not verify and was restored from other members.
    Repaired {
        /// Where it was broken.
        component: ComponentId,
        /// The block, from the component's start.
        offset_bytes: u64,
    },
    /// No member has it: reads of it get an I/O error.
    Lost {
        /// Where it was wanted.
        component: ComponentId,
        /// The block, from the component's start.
        offset_bytes: u64,
    },
}
