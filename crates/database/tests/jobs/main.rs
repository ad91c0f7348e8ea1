//! Jobs with an end on real servers of both engines: batch insertion, the data warehouse.

mod batch;
mod harness;
mod warehouse;
