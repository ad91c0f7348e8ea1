//! Sysbench's OLTP scripts: merging, scaling and checking what only they have.

use underlay_workload::sysbench::{Distribution, Script};

use super::pacing::PacingChoice;
use crate::file::workload::Sysbench;
use crate::plan::{Scale, Setting, SysbenchPlan};
use crate::resolve::chosen::{Chosen, Layer};
use crate::resolve::resolver::Resolver;
use crate::scale;

/// The decisions about sysbench.
#[derive(Clone, Debug)]
pub(super) struct SysbenchChoice {
    script: Chosen<Script>,
    tables: Chosen<u64>,
    table_size: Chosen<u64>,
    distribution: Chosen<Distribution>,
    range_size: Chosen<u64>,
}

/// The path of its section.
pub(super) const PATH: &str = "workload.sysbench";

impl SysbenchChoice {
    /// As the plan holds it. The reader's ranges fit the types.
    pub fn plan(&self) -> SysbenchPlan {
        SysbenchPlan {
            script: self.script.value,
            tables: self.tables.value as u32,
            table_size: self.table_size.value as u32,
            distribution: self.distribution.value,
            range_size: self.range_size.value as u32,
        }
    }

    /// At the size of the plan: smaller tables, as many.
    pub fn scale(&mut self, scale: Scale) {
        let rows = scale::count(self.table_size.value as u32, scale);
        let full = self.table_size.value.to_string();
        self.table_size = self.table_size.scaled(u64::from(rows), full);
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        vec![
            self.script.setting(self.script.value.as_str().to_string()),
            self.tables.setting(self.tables.value.to_string()),
            self.table_size.setting(self.table_size.value.to_string()),
            self.distribution.setting(self.distribution.value.as_str().to_string()),
            self.range_size.setting(self.range_size.value.to_string()),
        ]
    }
}

/// Decides about `[workload.sysbench]` at full size.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    file: &Sysbench,
    default: &Sysbench,
) -> Option<SysbenchChoice> {
    let at = |key: &str| format!("{PATH}.{key}");
    let script = [(Layer::File, &file.script), (Layer::Default, &default.script)];
    let script = resolver.pick(&at("script"), &script).found();
    let tables = [(Layer::File, &file.tables), (Layer::Default, &default.tables)];
    let tables = resolver.pick(&at("tables"), &tables).found();
    let table_size = resolver.pick(&at("table-size"), &[(Layer::File, &file.table_size)]);
    if table_size.is_absent() {
        resolver.report.add(
            resolver.file.workload.sysbench.span.clone(),
            "missing-key",
            "`workload.sysbench` does not say how many rows a table has",
            "`table-size` is missing",
            "add for example table-size = 1000000, about 260 MB per table",
        );
    }
    let distribution = [(Layer::File, &file.rand_type), (Layer::Default, &default.rand_type)];
    let distribution = resolver.pick(&at("rand-type"), &distribution).found();
    let range_size = [(Layer::File, &file.range_size), (Layer::Default, &default.range_size)];
    let range_size = resolver.pick(&at("range-size"), &range_size).found();
    Some(SysbenchChoice {
        script: script?,
        tables: tables?,
        table_size: table_size.found()?,
        distribution: distribution?,
        range_size: range_size?,
    })
}

/// Sysbench's users do not think.
pub(super) fn refuse_think_times(resolver: &mut Resolver<'_>, pacing: &PacingChoice) {
    if let PacingChoice::Closed { key_think } = pacing
        && key_think.value != 0.0
    {
        key_think.problem(
            &mut resolver.report,
            "conflict",
            format!("{} multiplies think times that sysbench does not have", key_think.called()),
            "its users never wait",
            "leave it out, or use pacing.open for a rate",
        );
    }
}
