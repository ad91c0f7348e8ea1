//! Names of the process trees that a run is sampled by.

use std::collections::BTreeMap;

/// Names of the server's process tree, one per engine.
const SERVERS: [&str; 2] = ["postgres", "mariadb"];

/// Name of the load generator's process tree.
pub(crate) const DRIVER: &str = "driver";

/// The figure of the server's process tree.
pub(crate) fn of_server(figures: &BTreeMap<String, f64>) -> Option<f64> {
    SERVERS.iter().find_map(|name| figures.get(*name).copied())
}
