//! Datastores for anyone: volumes that live in a directory of the user's choice, and outlive every program.
//!
//! ```text
//! DIRECTORY/
//!   datastore.json        what it is made of, and its volumes (see `description`)
//!   volumes/<name>        the bytes of each volume, sparse
//!   components/           instead: the bytes of a cluster's components, by device
//!   cluster.json          what the cluster must not forget: placement, what is stale
//!   keeper.log            what the keeper said
//!   lock                  held by whoever starts the datastore, then by its keeper
//!   run/                  only while it runs:
//!     k.sock              the keeper's socket: what `underlay volume` talks to
//!     nbd.sock            NBD clients
//!     dev/<name>          symbolic link to the block device
//!     mnt/<name>          where it is mounted, unless another place was chosen
//!     datastore/          the server's own files
//! ```
//!
//! The **keeper** is a process without terminal that starts the server process, attaches block devices, mounts, and answers
//! `underlay volume`. It owns a teardown stack, so that whatever remains after it was killed is removed by `underlay
//! clean` or by the next start; the directory itself is never on that stack.
//!
//! Data survives a stop, and the death of server, keeper or both. It is written through the page cache and
//! synchronised when the datastore stops, not at every flush of a client: a crash of the host itself may lose what
//! was written since the last start.

mod capacity;
mod chronicle;
mod client;
mod creation;
mod description;
#[cfg(test)]
pub(crate) mod fuzzing;
mod home;
mod keeper;
mod life;
mod lock;
mod orphan;
mod protocol;
mod punctuality;
mod server_config;
mod status;
mod timing;
mod volumes;

pub use client::{Connection, Forced};
pub use description::{Description, DeviceDescription, VolumeDescription};
pub use home::{Home, check_mount};
pub use keeper::keep;
pub use life::Presence;
pub use lock::Busy;
pub use protocol::{
    BackendLatencyStatus, ComponentStatus, DeviceStatus, Latency, NewPolicy, NewVolume,
    OperationStatus, RecentNotice, Status, TimingStatus, VolumeStatus,
};
