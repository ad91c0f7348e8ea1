//! The models in virtual time of this crate: calibration, behaviour of devices, sharing of a disk group.

mod calibration;
mod cluster_early;
mod common;
mod device_behaviour;
mod disk_group_buffer;
mod disk_group_faults;
mod disk_group_properties;
mod disk_group_sharing;
mod four_stages;
mod mirror;
