//! Laws of queueing and published figures that the simulation must meet.

mod laws;
mod published;
