//! Datastores for anyone: volumes that live in a directory of the user's choice, and outlive every program.
//!
//! ```text
//! DIRECTORY/
//!   datastore.json        what it is made of, and its volumes (see `description`)
//!   volumes/<name>        the bytes of each volume, sparse
//!   components/           instead: the bytes of a cluster's components, by device
//!   cluster.json          what the cluster must not forget: placement, what is stale
//!   supervisor.log        what the supervisor said
//!   lock                  held by whoever starts the datastore, then by its supervisor
//!   run/                  only while it runs:
//!     k.sock              the supervisor's socket: what `underlay volume` talks to
//!     nbd.sock            NBD clients
//!     dev/<name>          symbolic link to the block device
//!     mnt/<name>          where it is mounted, unless another place was chosen
//!     datastore/          the server's own files
//! ```
//!
//! The **supervisor** is a process without terminal that starts the server process, attaches block devices, mounts, and answers
//! `underlay volume`. It owns a teardown stack, so that whatever remains after it was killed is removed by `underlay
//! clean` or by the next start; the directory itself is never on that stack.
//!
//! Data survives a stop, and the death of server, supervisor or both. It is written through the page cache and
//! synchronised when the datastore stops, not at every flush of a client: a crash of the host itself may lose what
//! was written since the last start.

mod capacity;
mod client;
mod creation;
mod data_directory;
mod description;
#[cfg(test)]
pub(crate) mod fuzzing;
mod lateness;
mod lifecycle;
mod lock;
mod orphan;
mod protocol;
mod recent_notices;
mod server_config;
mod status;
mod supervisor;
mod timing;
mod volumes;

pub use client::{Connection, Forced};
pub use data_directory::{DataDirectory, check_mount};
pub use description::{Description, DeviceDescription, VolumeDescription};
pub use lifecycle::Presence;
pub use lock::Busy;
pub use protocol::{
    BackendLatencyStatus, ComponentStatus, DeviceStatus, Latency, NewPolicy, NewVolume,
    OperationStatus, RecentNotice, Status, TimingStatus, VolumeStatus,
};
pub use supervisor::keep;
