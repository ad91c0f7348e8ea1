//! What a block device looks like to the host: volumes over FUSE and NBD, served by one thread.
//!
//! ```text
//!                    +------------------ one thread (event_loop) -------------------+
//! kernel --FUSE-->   |  FuseRequest --+                                             |
//! (fuse)             |                +-> BlockRequest --> back end                 |
//! client --NBD-->    |  NbdRequest  --+                       |                     |
//! (nbd)              |                                        |                     |
//! both <-----------  |  bytes <-- Answer, at the moment that the back end says      |
//!                    +--------------------------------------------------------------+
//! other threads --tasks----^
//! ```
//!
//! [`BackEnd`] is the line between the two sides. Above it no code knows where bytes are, what determines the time of a
//! request, or whether there is a cluster; below it no code knows FUSE or NBD. The export passes requests on, sends replies
//! when the back end says that they are due, and tracks the cost of the path through the host ([`path_cost`]).
//!
//! A single thread serves, so there are no locks: see [`Server::run`]. FUSE's protocol is spoken directly. The crate for it
//! (fuser) owns the thread that reads requests, and this server must read requests and keep deadlines on the same one.
//!
//! What is deliberately not here: loop devices, mounts and processes (`underlay-host`), and everything about devices,
//! clusters and their bytes (`underlay-datastore`).

mod alarm;
mod back_end;
mod buffers;
mod client;
mod clock;
mod completions;
mod error;
mod event_loop;
mod fuse;
#[cfg(test)]
mod fuzz_tests;
mod nbd;
pub mod path_cost;
mod probes;
mod realtime;
mod scheduling;
mod server;
#[cfg(test)]
mod server_tests;
pub mod statistics;
mod task_queue;
mod wakeful;

pub use back_end::{
    Answer, Asked, BackEnd, BlockRequest, Exchange, Extent, Force, Modelled, Zeroing,
};
pub use buffers::BufferPool;
pub use client::Client;
pub use clock::Clock;
pub use error::ExportError;
pub use fuse::device::FuseDevice;
pub use nbd::listener::NbdListener;
pub use realtime::prepare_process;
pub use server::{Exports, Server, Volume};
pub use task_queue::{TaskQueue, TaskSender, task_queue};
