//! The client of a run: where its load generator works, and the network before it.

mod child;
mod handshake;
mod path;
mod process;
mod workload_line;

pub use child::serve;
pub use path::ClientPath;
pub use process::{ClientProcess, LocalDriver};
