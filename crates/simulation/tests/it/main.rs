//! Laws of queueing and published figures that the simulation must meet.

mod databases;
mod laws;
mod published;
