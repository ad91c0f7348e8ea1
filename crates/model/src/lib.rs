//! How storage behaves: device service times without I/O and without a clock.
//!
//! Time is a value that callers pass in: nanoseconds since the start of a run, which may be wall time (the
//! emulator), virtual time (simulation) or a test's own numbers. Randomness comes from a seed. Equal
//! inputs give equal outputs, always.
//!
//! What is here, in reading order: what is asked ([`request`]), the description of a device
//! ([`profile`]) and the built-in ones ([`builtin`]).
//!
//! What is deliberately not here: data (only addresses and lengths), threads, sleeping, files. The
//! `datastore` crate moves real bytes and waits for real deadlines.

pub mod request;

pub mod profile;

pub mod builtin;

pub use profile::{
    Basis, DeviceProfile, Disk, Duplex, Flash, FlashDatasheet, Link, Medium, ProfileProblem,
    WriteBuffer,
};
pub use request::{Operation, Request};
