//! Managed servers with the real PostgreSQL of this host.

mod copies;
mod harness;
mod life;
mod limits;
