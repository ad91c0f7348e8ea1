//! The vocabulary of Underlay: the types that every other crate speaks in.
//!
//! Pure: no I/O, no clock, no thread, no global source of randomness. Everything here is a value.
//!
//! What is here: quantities ([`Nanos`], [`Bytes`]), named random streams from one root seed
//! ([`random`]), the latency [`Histogram`], time dilation ([`Dilation`]), the kind of evidence a number is ([`Evidence`]), the
//! declaration of measured series ([`series`]), choices that several layers know by the same words ([`shared`]), the
//! form of a failed system call ([`SystemError`]), and text of others made safe to print ([`printable`]).
//!
//! What is deliberately not here: anything that knows a database, a device, a file format or a
//! workload; serialisation (formats own their serialisable types, at the boundary).

// Pure: clippy.toml lists what is denied, and why.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod calendar;
pub mod dilation;
pub mod evidence;
pub mod histogram;
pub mod operation;
pub mod printable;
pub mod random;
pub mod series;
pub mod shared;
pub mod system_error;
pub mod units;
pub mod words;

pub use calendar::utc_timestamp;
pub use dilation::Dilation;
pub use evidence::Evidence;
pub use histogram::Histogram;
pub use operation::Operation;
pub use random::RootSeed;
pub use shared::{Arrivals, CallMode, CheckOutcome, Durability, FileSystem, IoClass, Resource};
pub use system_error::SystemError;
pub use units::{Bytes, Nanos};
pub use words::Words;
