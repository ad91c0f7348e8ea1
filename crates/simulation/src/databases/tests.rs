//! What the tests of this module share: the plan of a small study on any design.

use underlay_study::{HostView, Plan, PlanOptions, Source, check};

/// TPC-C with four warehouses on PostgreSQL in 128 MiB, on a built-in design.
pub fn plan(design: &str) -> Plan {
    let text = format!(
        r#"
name = "small"
question = "None."
[engine]
cpus = 2
memory-limit = "128MiB"
[engine.settings]
shared_buffers = "32MB"
[volumes]
data = {{ capacity = "2GiB" }}
wal = {{ capacity = "2GiB" }}
backup = {{ capacity = "1GiB" }}
[[design]]
use = "{design}"
[workload.tpcc]
warehouses = 4
home-warehouse = "drawn"
[procedure]
users = [8]
warm-up = "1s"
ramp-up = "1s"
measure = "5s"
"#
    );
    let source = Source { name: design.to_string(), text };
    let checked = check(&source, &PlanOptions::default(), &HostView::unlimited());
    checked.map(|(_, plan)| plan).expect("a valid study")
}
