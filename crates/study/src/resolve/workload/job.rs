//! Jobs, which run until they are done: merging, scaling and checking what only they have.

use underlay_workload::batch::Mode;
use underlay_workload::warehouse::Scale as Factor;

use super::KindChoice;
use crate::file::job::{Batch, Warehouse};
use crate::plan::{BatchPlan, Origin, Scale, Setting, WarehousePlan};
use crate::resolve::Resolver;
use crate::resolve::chosen::{Chosen, Layer};
use crate::scale;

/// The paths of their sections.
pub(super) const BATCH_PATH: &str = "workload.batch";
pub(super) const WAREHOUSE_PATH: &str = "workload.warehouse";

/// The decisions about a batch insertion.
#[derive(Clone, Debug)]
pub(super) struct BatchChoice {
    rows: Chosen<u32>,
    mode: Chosen<Mode>,
    sessions: Chosen<u32>,
}

/// The decisions about a warehouse.
#[derive(Clone, Debug)]
pub(super) struct WarehouseChoice {
    scale: Chosen<Factor>,
    /// `None`: as many as the specification wants for the scale.
    streams: Option<Chosen<u32>>,
}

impl BatchChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> BatchPlan {
        let (rows, mode, sessions) = (self.rows.value, self.mode.value, self.sessions.value);
        BatchPlan { rows, mode, sessions }
    }

    /// At the size of the plan.
    pub fn scale(&mut self, scale: Scale) {
        for count in [&mut self.rows, &mut self.sessions] {
            *count = count.scaled(scale::count(count.value, scale), count.value.to_string());
        }
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        vec![
            self.rows.setting(self.rows.value.to_string()),
            self.mode.setting(self.mode.value.to_string()),
            self.sessions.setting(self.sessions.value.to_string()),
        ]
    }
}

impl WarehouseChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> WarehousePlan {
        let scale = self.scale.value;
        let streams = self.streams.as_ref().map_or(scale.least_streams(), |chosen| chosen.value);
        WarehousePlan { scale, streams }
    }

    /// At the size of the plan; a warehouse has a smallest size.
    pub fn scale(&mut self, scale: Scale) {
        let full = self.scale.value;
        let hundredths = scale::count(full.hundredths(), scale);
        let scaled = Factor::from_hundredths(hundredths).unwrap_or(full);
        self.scale = self.scale.scaled(scaled, full.to_string());
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        let scale = self.scale.setting(self.scale.value.to_string());
        let streams = match &self.streams {
            Some(chosen) => chosen.setting(chosen.value.to_string()),
            None => Setting {
                path: format!("{WAREHOUSE_PATH}.streams"),
                value: format!("{} (of this scale)", self.scale.value.least_streams()),
                origin: Origin::Default,
            },
        };
        vec![scale, streams]
    }
}

impl Resolver<'_> {
    /// Decides about `[workload.batch]` at full size.
    pub(super) fn batch(&mut self, file: &Batch, default: &Batch) -> Option<KindChoice> {
        let rows = self.pick(&format!("{BATCH_PATH}.rows"), &[(Layer::File, &file.rows)]);
        if rows.is_absent() {
            self.report.add(
                self.file.workload.batch.span.clone(),
                "missing-key",
                "`workload.batch` does not say how many rows are inserted",
                "`rows` is missing",
                "add for example rows = 1_000_000",
            );
        }
        let mode = [(Layer::File, &file.mode), (Layer::Default, &default.mode)];
        let mode = self.pick(&format!("{BATCH_PATH}.mode"), &mode).found();
        let sessions = [(Layer::File, &file.sessions), (Layer::Default, &default.sessions)];
        let sessions = self.pick(&format!("{BATCH_PATH}.sessions"), &sessions).found()?;
        let rows = rows.found()?;
        Some(KindChoice::Batch(BatchChoice {
            rows: rows.with(u32::try_from(rows.value).ok()?),
            mode: mode?,
            sessions: sessions.with(u32::try_from(sessions.value).ok()?),
        }))
    }

    /// Decides about `[workload.warehouse]` at full size.
    pub(super) fn warehouse(&mut self, file: &Warehouse) -> Option<KindChoice> {
        let scale = self.pick(&format!("{WAREHOUSE_PATH}.scale"), &[(Layer::File, &file.scale)]);
        if scale.is_absent() {
            self.report.add(
                self.file.workload.warehouse.span.clone(),
                "missing-key",
                "`workload.warehouse` does not say how large it is",
                "`scale` is missing",
                "add for example scale = 0.1, which is about 100 MB of rows",
            );
        }
        let streams =
            self.pick(&format!("{WAREHOUSE_PATH}.streams"), &[(Layer::File, &file.streams)]);
        let scale = scale.found()?;
        let hundredths = (scale.value * 100.0).round();
        let is_whole = (scale.value * 100.0 - hundredths).abs() < 1e-6;
        let Some(factor) =
            is_whole.then(|| Factor::from_hundredths(hundredths as u32).ok()).flatten()
        else {
            scale.problem(
                &mut self.report,
                "out-of-range",
                format!("{} is no scale factor of a warehouse", scale.value),
                "tables would have no whole number of rows",
                "write a multiple of 0.01",
            );
            return None;
        };
        let streams = streams.found();
        Some(KindChoice::Warehouse(WarehouseChoice {
            scale: scale.with(factor),
            streams: streams.map(|chosen| chosen.with(chosen.value as u32)),
        }))
    }
}
