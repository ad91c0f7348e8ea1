//! The record as its users see it: written, killed, resumed, read, exported.

mod crash;
mod export;
mod format;
mod resume;
mod round_trip;
mod sample;
