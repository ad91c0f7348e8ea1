//! Integration tests of the engine model: what holds of every simulation.

mod background;
mod closed_forms;
mod cluster;
mod conservation;
mod dvdstore;
mod jobs;
mod mariadb;
mod monotonicity;
mod pools;
mod sanity;
mod scenario;
mod skipped_time;
mod sysbench;
mod warehouse;
