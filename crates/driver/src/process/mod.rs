//! A load generator in a process of its own, so that it can be limited together with the server: what directs it
//! ([`DriverProcess`]), what serves it ([`serve`]), and the lines between them.
//!
//! One JSON line each over a Unix socket, one JSON line back. Both ends come from the same program, so the protocol has no
//! version. It starts no process and knows no control group; the caller that starts one connects both ends.

mod directing;
mod lost;
mod serving;
mod wire;

#[cfg(test)]
mod tests;

pub use directing::DriverProcess;
pub use lost::LostDriver;
pub use serving::serve;
pub use wire::SpecLine;
