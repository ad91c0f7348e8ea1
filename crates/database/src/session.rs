//! Sessions: one connection that runs the transactions of a workload.
