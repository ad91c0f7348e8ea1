//! MariaDB with the real programs of this host: managed servers and the workload on them.

mod other_plugin;
mod round_trips;
mod server;
mod sysbench;

mod tpcc;
mod tpcc_checks;
mod tpcc_errors;
