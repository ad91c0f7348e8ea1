//! Jobs, which run until they are done: merging, scaling and checking what only they have.

use underlay_core::{Bytes, Nanos};
use underlay_workload::batch::{Loop, Mode};
use underlay_workload::warehouse::Scale as Factor;

use crate::exact;
use crate::file::job::{Backup, Batch, Warehouse};
use crate::limits::{BACKUP_RATE, UNMEASURED};
use crate::plan::{BackupPlan, BatchPlan, Origin, Scale, Setting, WarehousePlan};
use crate::resolve::chosen::{Chosen, Layer};
use crate::resolve::resolver::Resolver;
use crate::resolve::time_range::check_time;
use crate::scale;

/// The paths of their sections.
pub(super) const BATCH_PATH: &str = "workload.batch";
pub(super) const WAREHOUSE_PATH: &str = "workload.warehouse";
pub(super) const BACKUP_PATH: &str = "workload.backup";

/// The decisions about a batch insertion.
#[derive(Clone, Debug)]
pub(super) struct BatchChoice {
    rows: Chosen<u32>,
    mode: Chosen<Mode>,
    place: Chosen<Loop>,
    sessions: Chosen<u32>,
}

/// The decisions about a warehouse.
#[derive(Clone, Debug)]
pub(super) struct WarehouseChoice {
    scale: Chosen<Factor>,
    /// `None`: as many as the specification wants for the scale.
    streams: Option<Chosen<u32>>,
}

/// The decisions about backup and restore cycles.
#[derive(Clone, Debug)]
pub(super) struct BackupChoice {
    warehouses: Chosen<u32>,
    cycles: Chosen<u32>,
    pause: Chosen<Nanos>,
    restore: Chosen<bool>,
    bytes_per_second: Option<Chosen<u64>>,
}

impl BackupChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> BackupPlan {
        BackupPlan {
            warehouses: self.warehouses.value,
            cycles: self.cycles.value,
            pause: self.pause.value,
            restore: self.restore.value,
            bytes_per_second: self.bytes_per_second.as_ref().map(|rate| rate.value),
        }
    }

    /// At the size of the plan: less data, in as many cycles that take as long.
    pub fn scale(&mut self, scale: Scale) {
        let full = self.warehouses.value;
        self.warehouses = self.warehouses.scaled(scale::count(full, scale), full.to_string());
        if let Some(rate) = &mut self.bytes_per_second {
            let least = *BACKUP_RATE.start();
            let scaled = (rate.value / u64::from(scale.divisor)).max(least.min(rate.value));
            *rate = rate.scaled(scaled, written(rate.value));
        }
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        let rate = self.bytes_per_second.as_ref();
        [
            self.warehouses.setting(self.warehouses.value.to_string()),
            self.cycles.setting(self.cycles.value.to_string()),
            self.pause.setting(exact::time(self.pause.value)),
            self.restore.setting(self.restore.value.to_string()),
        ]
        .into_iter()
        .chain(rate.map(|rate| rate.setting(written(rate.value))))
        .collect()
    }
}

fn written(bytes_per_second: u64) -> String {
    format!("{}/s", exact::size(Bytes(bytes_per_second)))
}

impl BatchChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> BatchPlan {
        BatchPlan {
            rows: self.rows.value,
            mode: self.mode.value,
            place: self.place.value,
            sessions: self.sessions.value,
        }
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
            self.place.setting(self.place.value.to_string()),
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

/// Decides about `[workload.batch]` at full size.
pub(super) fn batch(
    resolver: &mut Resolver<'_>,
    file: &Batch,
    default: &Batch,
) -> Option<BatchChoice> {
    let rows = resolver.pick(&format!("{BATCH_PATH}.rows"), &[(Layer::File, &file.rows)]);
    if rows.is_absent() {
        resolver.report.add(
            resolver.file.workload.batch.span.clone(),
            "missing-key",
            "`workload.batch` does not say how many rows are inserted",
            "`rows` is missing",
            "add for example rows = 1_000_000",
        );
    }
    let mode = [(Layer::File, &file.mode), (Layer::Default, &default.mode)];
    let mode = resolver.pick(&format!("{BATCH_PATH}.mode"), &mode).found();
    let place = [(Layer::File, &file.place), (Layer::Default, &default.place)];
    let place = resolver.pick(&format!("{BATCH_PATH}.loop"), &place).found()?;
    refuse_loop_of_stream(resolver, mode.as_ref(), &place);
    let sessions = [(Layer::File, &file.sessions), (Layer::Default, &default.sessions)];
    let sessions = resolver.pick(&format!("{BATCH_PATH}.sessions"), &sessions).found()?;
    let rows = rows.found()?;
    Some(BatchChoice {
        rows: rows.with(u32::try_from(rows.value).ok()?),
        mode: mode?,
        place,
        sessions: sessions.with(u32::try_from(sessions.value).ok()?),
    })
}

/// A stream has no rows to go through.
fn refuse_loop_of_stream(
    resolver: &mut Resolver<'_>,
    mode: Option<&Chosen<Mode>>,
    place: &Chosen<Loop>,
) {
    let is_stream = mode.is_some_and(|mode| mode.value == Mode::Bulk);
    if is_stream && place.value == Loop::Server {
        resolver.report.add(
            resolver.file.workload.batch.place.span(),
            "conflict",
            "a stream of rows has no loop inside the server",
            "`mode` is `bulk`",
            "remove `loop`, or choose mode = \"implicit\" or \"explicit\"",
        );
    }
}

/// Decides about `[workload.warehouse]` at full size.
pub(super) fn warehouse(resolver: &mut Resolver<'_>, file: &Warehouse) -> Option<WarehouseChoice> {
    let scale = resolver.pick(&format!("{WAREHOUSE_PATH}.scale"), &[(Layer::File, &file.scale)]);
    if scale.is_absent() {
        resolver.report.add(
            resolver.file.workload.warehouse.span.clone(),
            "missing-key",
            "`workload.warehouse` does not say how large it is",
            "`scale` is missing",
            "add for example scale = 0.1, which is about 100 MB of rows",
        );
    }
    let streams =
        resolver.pick(&format!("{WAREHOUSE_PATH}.streams"), &[(Layer::File, &file.streams)]);
    let scale = scale.found()?;
    let hundredths = (scale.value * 100.0).round();
    let is_whole = (scale.value * 100.0 - hundredths).abs() < 1e-6;
    let Some(factor) = is_whole.then(|| Factor::from_hundredths(hundredths as u32).ok()).flatten()
    else {
        scale.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} is not a scale factor of a warehouse", scale.value),
            "tables would have no whole number of rows",
            "write a multiple of 0.01",
        );
        return None;
    };
    let streams = streams.found();
    Some(WarehouseChoice {
        scale: scale.with(factor),
        streams: streams.map(|chosen| chosen.with(chosen.value as u32)),
    })
}

/// Decides about `[workload.backup]` at full size.
pub(super) fn backup(
    resolver: &mut Resolver<'_>,
    file: &Backup,
    default: &Backup,
) -> Option<BackupChoice> {
    let at = |key: &str| format!("{BACKUP_PATH}.{key}");
    let warehouses = resolver.pick(&at("warehouses"), &[(Layer::File, &file.warehouses)]);
    if warehouses.is_absent() {
        resolver.report.add(
            resolver.file.workload.backup.span.clone(),
            "missing-key",
            "`workload.backup` does not say how many warehouses are backed up",
            "`warehouses` is missing",
            "add for example warehouses = 8, about 105 MB each",
        );
    }
    let cycles = [(Layer::File, &file.cycles), (Layer::Default, &default.cycles)];
    let cycles = resolver.pick(&at("cycles"), &cycles).found();
    let pause = [(Layer::File, &file.pause), (Layer::Default, &default.pause)];
    let pause = resolver.pick(&at("pause"), &pause).found();
    if let Some(pause) = &pause {
        check_time(resolver, pause, &UNMEASURED);
    }
    let restore = [(Layer::File, &file.restore), (Layer::Default, &default.restore)];
    let restore = resolver.pick(&at("restore"), &restore).found();
    let rate = resolver.pick(&at("bytes-per-second"), &[(Layer::File, &file.bytes_per_second)]);
    let bytes_per_second = rate.found();
    if let Some(rate) = bytes_per_second.as_ref().filter(|it| !BACKUP_RATE.contains(&it.value)) {
        rate.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} cannot limit a backup", written(rate.value)),
            "no program of backups takes it",
            "write a rate of 1 MiB to 1 GiB per second",
        );
    }
    let (warehouses, cycles) = (warehouses.found()?, cycles?);
    Some(BackupChoice {
        warehouses: warehouses.with(u32::try_from(warehouses.value).ok()?),
        cycles: cycles.with(u32::try_from(cycles.value).ok()?),
        pause: pause?,
        restore: restore?,
        bytes_per_second,
    })
}
