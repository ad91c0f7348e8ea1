//! The datastore as its clients see it, with real files, mounts and connections.

mod cluster;
mod cluster_durability;
mod cluster_simulation;
mod common;
mod conformance;
mod dense_requests;
mod emulated;
mod nbd;
mod nbd_fuzz;
mod power_cut;
mod reduction;
