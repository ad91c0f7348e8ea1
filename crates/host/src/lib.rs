//! What Underlay creates on a host, and its removal: teardown stack, processes, cgroups, mounts, loop devices.
//!
//! Everything acquired is first written, durably, to a [`Teardown`] stack in the [`StateDir`], so
//! that a later process can remove it: by [`Teardown::unwind`] at the end of a run, or by [`clean`]
//! after the owner was killed. The one exception is shared memory, whose names servers draw
//! themselves: it is registered as soon as it is seen, and until then its server is.
//!
//! What is deliberately not here: anything that knows a database, a device model or a study; the
//! FUSE export (the `datastore` crate); sampling over time (the `telemetry` crate). Linux only.
//!
//! **Invariant:** nothing is removed that was not registered, and nothing can be registered that
//! was there before.

pub mod error;
pub mod state_dir;
pub mod teardown;

pub mod user;

pub mod cgroup;
pub mod process;
pub mod program;

pub mod file_system;
pub mod loop_device;
pub mod mount;
pub mod page_cache;

pub mod capability;
pub mod facts;

mod bounded_file;
mod child_setup;
mod heap;
mod mount_point;
mod mount_table;
mod process_table;
mod program_tree;
mod real_path;
mod shared_memory;
mod skip;
mod unique_name;

pub use bounded_file::{SMALL_FILE_BYTES_MAX, read_small_file, read_small_text};
pub use capability::{Capability, capabilities};
pub use cgroup::{Cgroup, CgroupLimits, CgroupPaths, CgroupVersion, Unenforced};
pub use error::HostError;
pub use facts::{HostFacts, available_memory_bytes, host_facts};
pub use file_system::{free_space, make_file_system, minimum_size};
pub use heap::return_large_blocks;
pub use loop_device::{LoopDevice, loop_devices};
pub use mount::Mount;
pub use mount_point::{is_in_use, is_mount_point};
pub use mount_table::mounted_below;
pub use process::{Process, ProcessExit, ProcessSpec, Signal};
pub use program::{ProgramSpec, find_program, run_program, run_program_with};
pub use program_tree::run_program_tree;
pub use shared_memory::Segment;
pub use state_dir::{ExclusiveLock, StateDir};
pub use teardown::{CleanReport, Leftover, Orphan, Resource, Teardown, Ticket, clean};
pub use underlay_core::FileSystem;
pub use user::{User, own_directory, unprivileged_user};
