//! Jobs with an end on real servers of both engines: batch insertion.

mod batch;
mod harness;
