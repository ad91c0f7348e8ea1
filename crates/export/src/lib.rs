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
//! other threads --errands--^
//! ```
//!
//! [`BackEnd`] is the line between the two sides. Above it nobody knows where bytes are, what decides how long a request
//! takes, or whether there is a cluster; below it nobody knows FUSE or NBD. The export passes on what it is asked, hands out
//! answers when the back end says that they are due, and keeps track of what the way through the host costs
//! ([`path_cost`]).
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
mod errands;
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
mod wakeful;

pub use back_end::{
    Answer, Asked, BackEnd, BlockRequest, Exchange, Extent, Force, Modelled, Zeroing,
};
pub use buffers::BufferPool;
pub use client::Client;
pub use clock::Clock;
pub use errands::{ErrandSender, Errands, errands};
pub use error::ExportError;
pub use fuse::device::FuseDevice;
pub use nbd::listener::NbdListener;
pub use realtime::prepare_process;
pub use server::{Exports, Server, Volume};
