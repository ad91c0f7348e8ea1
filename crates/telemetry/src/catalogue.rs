//! All declarations in one place, and the reference page made from them. Pure.

use crate::declare::SamplerDoc;
use crate::samplers::{
    block, cgroup, host_cpu, mariadb, memory, network, postgres, pressure, process, underlay, waits,
};

/// The declarations of all samplers of this crate, from the user down.
pub const CATALOGUE: [SamplerDoc; 11] = [
    waits::DOC,
    postgres::DOC,
    mariadb::DOC,
    process::DOC,
    cgroup::DOC,
    host_cpu::DOC,
    pressure::DOC,
    memory::DOC,
    network::DOC,
    block::DOC,
    underlay::DOC,
];

/// The reference page `docs/telemetry.md`.
pub fn reference_page() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n| source | layer | reads | cost per tick | needs |\n|---|---|---|---|---|\n");
    for doc in &CATALOGUE {
        page.push_str(&format!(
            "| [{name}](#{name}) | {layer} | {reads} | {costs} | {needs} |\n",
            name = doc.name,
            layer = doc.layer.as_str(),
            reads = cell(doc.reads),
            costs = cell(doc.costs),
            needs = cell(doc.needs),
        ));
    }
    for doc in &CATALOGUE {
        page.push_str(&section(doc));
    }
    page
}

const INTRODUCTION: &str = "\
# What is recorded

<!-- Written from the declarations in crates/telemetry by its test `reference`. Do not edit;
     run `UPDATE=1 cargo test -p underlay-telemetry --test it reference`. -->

Every source is read once per second, on whole seconds since the origin of the run.
A reading carries the window `[begin, end]` in which it was taken. So a rate over two readings is
known between two bounds, not exactly (module `derive` of the crate).
Counters are cumulative as the kernel or the server keeps them, and only their differences mean
something.
Gauges are values at an instant.
A value that could not be read is missing; a tick that was missed is not made up.
Sources that cannot work are recorded as `degraded` or `absent` with the reason.
Names in angle brackets stand for what a host has: `cpu<n>.<state>` is `cpu0.user` and so on.

The driver and the emulated datastore add sources of their own; the latter's are described in
[volumes](volumes.md#what-is-measured). Terms are defined in the [glossary](glossary.md).

Besides its series, source `waits` emits counts of sessions once per second. Their key is (state,
wait class, wait event, kind of process):

- `counts` are samples of client sessions. Divided by `samples` they are mean numbers of sessions, and
  their sum is the number of sessions.
- `holders` has, for each session that waited on a lock, the state of the session at the root of its
  chain of blockers.
- `background` counts other server processes that were active.
";

fn section(doc: &SamplerDoc) -> String {
    let mut text = format!(
        "\n## {}\n\n| series | kind | unit | counted in steps of | meaning |\n|---|---|---|---|---|\n",
        doc.name
    );
    for series in doc.series {
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            series.name,
            series.kind.as_str(),
            cell(series.unit),
            cell(series.quantum),
            cell(series.meaning),
        ));
    }
    text.push_str("\nTraps:\n\n");
    for trap in doc.traps {
        text.push_str(&format!("- {}.\n", cell(trap)));
    }
    text
}

/// Text that does not break a table: angle brackets and bars are taken literally.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<").replace('>', "\\>").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use super::{CATALOGUE, reference_page};

    #[test]
    fn names_are_unique_and_everything_is_explained() {
        for doc in &CATALOGUE {
            let same_name = CATALOGUE.iter().filter(|other| other.name == doc.name).count();
            assert_eq!(same_name, 1, "{}", doc.name);
            assert!(!doc.traps.is_empty(), "{}: every source misleads somehow", doc.name);
            for series in doc.series {
                let same = doc
                    .series
                    .iter()
                    .filter(|other| (other.name, other.kind) == (series.name, series.kind));
                assert_eq!(same.count(), 1, "{}.{}", doc.name, series.name);
                assert!(!series.meaning.is_empty(), "{}.{}", doc.name, series.name);
            }
        }
        assert!(reference_page().contains("| `cpu<n>.<state>` | counter | ns |"));
    }
}
