//! Managed servers with the real PostgreSQL of this host.

mod copies;
mod harness;
mod lifecycle;
mod limits;
