//! Blocks on real files and in virtual time.

mod delivery;
mod gauge;
mod real_file;
