//! What this host lends: control groups, mounts, shared memory, and what a killed owner leaves.

mod killed_owner;
mod resources;
mod shared_memory;
