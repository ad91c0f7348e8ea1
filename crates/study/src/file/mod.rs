//! The study file as it is written: every key optional, every value with its place.
//!
//! Each key is declared once, with [`crate::section::section!`]: struct, reader and JSON schema follow from it. What a
//! missing key means is decided by `defaults.toml` and the resolver.

pub(crate) mod axis;
pub(crate) mod background;
pub(crate) mod block;
pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod database;
pub(crate) mod design;
pub(crate) mod engine;
pub(crate) mod fault;
pub(crate) mod group_device;
pub(crate) mod io_profile;
pub(crate) mod job;
pub(crate) mod laptop;
pub(crate) mod procedure;
pub(crate) mod profile;
pub(crate) mod published;
pub(crate) mod start;
pub(crate) mod study;
pub(crate) mod weights;
pub(crate) mod workload;

pub(crate) use axis::Axis;
pub(crate) use background::Background;
pub(crate) use client::Client;
pub(crate) use database::Database;
pub(crate) use design::{Design, Device, Volume, Volumes};
pub(crate) use engine::Engine;
pub(crate) use fault::Fault;
pub(crate) use io_profile::IoProfile;
pub(crate) use laptop::Laptop;
pub(crate) use procedure::Procedure;
pub(crate) use profile::Profile;
pub(crate) use published::Published;
pub(crate) use start::Start;
pub(crate) use study::Study;
pub(crate) use weights::Weights;
pub(crate) use workload::Workload;

#[cfg(test)]
mod tests;
