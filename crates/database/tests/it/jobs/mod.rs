//! Jobs with an end on real servers of both engines: backups, batch insertion, the data
//! warehouse.

mod backup;
mod batch;
mod harness;
mod warehouse;
