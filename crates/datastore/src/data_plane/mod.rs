//! The data plane: what a cluster's data commands do to real bytes.
//!
//! In reading order: where bytes are ([`BlockStore`]), checksums and parity, one component ([`held`]), all of them
//! ([`components`]), one row of a set ([`row`], [`row_writing`], [`row_filling`], [`row_rollback`], [`behind`]), the intents
//! that complete a command after a kill ([`intent`]), the lost blocks that a full medium could not record ([`unmarked`]),
//! and the [`DataPlane`] that carries out [`underlay_model::cluster::DataCommand`]s.
//!
//! Everything here is a value: memory is one kind of store, files are another (`server::cluster::file_store`). What is
//! deliberately not here: time, policy, placement. The cluster decides these.

mod block_store;

mod checksum;

mod parity;

mod held;

mod finding;

mod intent;

mod components;

mod row;

mod row_writing;

mod row_filling;

mod row_rollback;

mod behind;

mod unmarked;

mod plane;

pub use block_store::{BLOCK_BYTES, BlockStore, MemoryStore, MemoryStores, StoreError, StoreMaker};
pub(crate) use checksum::is_zero;
pub use finding::Finding;
pub use intent::{Intent, IntentLog};
pub use plane::{DataPlane, Delivered};
pub use unmarked::MarkLog;
