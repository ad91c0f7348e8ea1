//! MariaDB with the real programs of this host: managed servers and the workload on them.

mod harness;
mod server;
