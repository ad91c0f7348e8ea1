//! Integration tests of the engine model: what holds of every simulation.

mod conservation;
mod sanity;
mod scenario;
