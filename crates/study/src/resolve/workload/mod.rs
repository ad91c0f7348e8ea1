//! The workload: merging, scaling and checking. What only one kind has is in a file of its own.

mod block;
mod dvdstore;
mod job;
mod pacing;
mod sysbench;
mod tpcc;

use underlay_core::{Nanos, RootSeed};

use self::block::BlockChoice;
use self::dvdstore::DvdstoreChoice;
use self::job::{BackupChoice, BatchChoice, WarehouseChoice};
use self::pacing::PacingChoice;
use self::sysbench::SysbenchChoice;
use self::tpcc::TpccChoice;
use super::chosen::{Chosen, Layer};
use super::resolver::Resolver;
use super::time_range::check_time;
use crate::exact;
use crate::limits::STATEMENT_TIMEOUT;
use crate::plan::{Pacing, Scale, WorkloadKind, WorkloadPlan};

/// The decisions about the workload.
#[derive(Clone, Debug)]
pub(crate) struct WorkloadChoice {
    kind: KindChoice,
    pacing: PacingChoice,
    /// A job has none.
    statement_timeout: Option<Chosen<Nanos>>,
}

#[derive(Clone, Debug)]
enum KindChoice {
    Tpcc(TpccChoice),
    Sysbench(SysbenchChoice),
    Dvdstore(DvdstoreChoice),
    Batch(BatchChoice),
    Warehouse(WarehouseChoice),
    Block(Box<BlockChoice>),
    Backup(BackupChoice),
}

impl WorkloadChoice {
    /// Which workload, and its size.
    pub fn kind(&self) -> WorkloadKind {
        match &self.kind {
            KindChoice::Tpcc(tpcc) => WorkloadKind::Tpcc(tpcc.plan()),
            KindChoice::Sysbench(sysbench) => WorkloadKind::Sysbench(sysbench.plan()),
            KindChoice::Dvdstore(dvdstore) => WorkloadKind::Dvdstore(dvdstore.plan()),
            KindChoice::Batch(batch) => WorkloadKind::Batch(batch.plan()),
            KindChoice::Warehouse(warehouse) => WorkloadKind::Warehouse(warehouse.plan()),
            KindChoice::Backup(backup) => WorkloadKind::Backup(backup.plan()),
            KindChoice::Block(block) => WorkloadKind::Block(Box::new(block.plan())),
        }
    }

    /// Threads per volume of each rung of a block load, and the top of the ladder where it was decided.
    pub fn block_ladder(&self) -> Option<(Vec<u32>, Chosen<u32>)> {
        match &self.kind {
            KindChoice::Block(block) => Some((block.ladder(), block.top())),
            _ => None,
        }
    }

    /// Number of warehouses of TPC-C.
    pub fn warehouses(&self) -> Option<u32> {
        match self.kind() {
            WorkloadKind::Tpcc(tpcc) => Some(tpcc.warehouses),
            _ => None,
        }
    }

    /// Transactions per second of an open loop.
    pub fn first_rate(&self) -> Option<f64> {
        match self.pacing.plan() {
            Pacing::Open { rate_per_second, .. } => Some(rate_per_second),
            Pacing::Closed { .. } | Pacing::Job => None,
        }
    }

    /// What to write for a database of that population at most; `None` when there is none so small.
    pub fn smaller(&self, population: u64) -> Option<String> {
        let smaller = match self.kind() {
            WorkloadKind::Tpcc(_) | WorkloadKind::Backup(_) => ("warehouses", population),
            WorkloadKind::Sysbench(plan) => ("table-size", population / u64::from(plan.tables)),
            WorkloadKind::Batch(_) => ("rows", population),
            // Sizes of shops have names, not numbers of customers; those of warehouses are factors.
            WorkloadKind::Dvdstore(_) | WorkloadKind::Warehouse(_) | WorkloadKind::Block(_) => {
                return None;
            }
        };
        (smaller.1 > 0).then(|| format!("{} = {}", smaller.0, smaller.1))
    }

    /// The workload as the plan holds it.
    pub fn plan(&self, seed: u64) -> WorkloadPlan {
        let kind = self.kind();
        WorkloadPlan {
            pacing: match &kind {
                WorkloadKind::Block(block) => block.pacing(),
                _ => self.pacing.plan(),
            },
            kind,
            seed: RootSeed(seed),
            statement_timeout: self
                .statement_timeout
                .as_ref()
                .map_or(Nanos::ZERO, |timeout| timeout.value),
        }
    }
}

/// Decides about the workload at full size.
pub(super) fn resolve(resolver: &mut Resolver<'_>) -> Option<WorkloadChoice> {
    let (file, defaults) = (resolver.file, resolver.defaults);
    let (section, default) = (&file.workload, &defaults.workload);
    let (tpcc, sysbench, shop) = (&section.tpcc, &section.sysbench, &section.dvdstore);
    let present = [
        (tpcc.is_present(), tpcc.refused, &tpcc.span),
        (sysbench.is_present(), sysbench.refused, &sysbench.span),
        (shop.is_present(), shop.refused, &shop.span),
        (section.batch.is_present(), section.batch.refused, &section.batch.span),
        (section.warehouse.is_present(), section.warehouse.refused, &section.warehouse.span),
        (section.block.is_present(), section.block.refused, &section.block.span),
        (section.backup.is_present(), section.backup.refused, &section.backup.span),
    ];
    let mut named = present.iter().filter(|(is_present, _, _)| *is_present);
    let first = named.next();
    if let Some((_, _, span)) = named.next() {
        resolver.report.add(
            (*span).clone(),
            "conflict",
            "the study names two workloads",
            "users follow one of them",
            "keep one of [workload.tpcc], [workload.sysbench], [workload.dvdstore], [workload.batch], \
             [workload.warehouse], [workload.block] and [workload.backup]",
        );
        return None;
    }
    let Some((_, refused, _)) = first else {
        if !section.refused {
            resolver.report.add(
                Some(section.span.clone().unwrap_or(0..0)),
                "missing-key",
                "the study names no workload",
                "what the users do is missing",
                "add [workload.tpcc] with for example warehouses = 8",
            );
        }
        return None;
    };
    if *refused {
        return None;
    }
    let without_users = if section.batch.is_present() {
        Some(job::batch(resolver, &section.batch, &default.batch).map(KindChoice::Batch))
    } else if section.warehouse.is_present() {
        Some(job::warehouse(resolver, &section.warehouse).map(KindChoice::Warehouse))
    } else if section.block.is_present() {
        let block = block::resolve(resolver, &section.block, &default.block);
        Some(block.map(|block| KindChoice::Block(Box::new(block))))
    } else if section.backup.is_present() {
        Some(job::backup(resolver, &section.backup, &default.backup).map(KindChoice::Backup))
    } else {
        None
    };
    if let Some(kind) = without_users {
        return Some(WorkloadChoice {
            kind: kind?,
            pacing: PacingChoice::Job,
            statement_timeout: None,
        });
    }
    let (path, kind, pacing, timeout) = if tpcc.is_present() {
        let kind = tpcc::resolve(resolver, tpcc, &default.tpcc).map(KindChoice::Tpcc);
        let timeouts = (&tpcc.statement_timeout, &default.tpcc.statement_timeout);
        (tpcc::PATH, kind, (&tpcc.pacing, &default.tpcc.pacing), timeouts)
    } else if sysbench.is_present() {
        let kind =
            sysbench::resolve(resolver, sysbench, &default.sysbench).map(KindChoice::Sysbench);
        let timeouts = (&sysbench.statement_timeout, &default.sysbench.statement_timeout);
        (sysbench::PATH, kind, (&sysbench.pacing, &default.sysbench.pacing), timeouts)
    } else {
        let kind = dvdstore::resolve(resolver, shop, &default.dvdstore).map(KindChoice::Dvdstore);
        let timeouts = (&shop.statement_timeout, &default.dvdstore.statement_timeout);
        (dvdstore::PATH, kind, (&shop.pacing, &default.dvdstore.pacing), timeouts)
    };
    let timeout = [(Layer::File, timeout.0), (Layer::Default, timeout.1)];
    let statement_timeout = resolver.pick(&format!("{path}.statement-timeout"), &timeout).found();
    if let Some(timeout) = &statement_timeout {
        check_time(resolver, timeout, &STATEMENT_TIMEOUT);
    }
    let pacing = match pacing.0.refused {
        true => None,
        false => pacing::resolve(resolver, path, pacing.0, pacing.1),
    };
    if let Some(pacing) = &pacing
        && path == sysbench::PATH
    {
        sysbench::refuse_think_times(resolver, pacing);
    }
    Some(WorkloadChoice {
        kind: kind?,
        pacing: pacing?,
        statement_timeout: Some(statement_timeout?),
    })
}

/// The workload at the size of the plan, with its provenance recorded.
pub(super) fn scale(resolver: &mut Resolver<'_>, full: &WorkloadChoice) -> WorkloadChoice {
    let mut scaled = full.clone();
    if resolver.scale != Scale::FULL {
        match &mut scaled.kind {
            KindChoice::Tpcc(tpcc) => tpcc.scale(resolver.scale),
            KindChoice::Sysbench(sysbench) => sysbench.scale(resolver.scale),
            KindChoice::Dvdstore(dvdstore) => dvdstore.scale(resolver.scale),
            KindChoice::Batch(batch) => batch.scale(resolver.scale),
            KindChoice::Warehouse(warehouse) => warehouse.scale(resolver.scale),
            KindChoice::Block(block) => {
                resolver.volume_scale = block.scale(resolver.scale, block::equal_volumes(resolver));
            }
            KindChoice::Backup(backup) => backup.scale(resolver.scale),
        }
        scaled.pacing.scale(resolver.scale.divisor);
    }
    let mut rows = match &scaled.kind {
        KindChoice::Tpcc(tpcc) => tpcc.settings(),
        KindChoice::Sysbench(sysbench) => sysbench.settings(),
        KindChoice::Dvdstore(dvdstore) => dvdstore.settings(),
        KindChoice::Batch(batch) => batch.settings(),
        KindChoice::Warehouse(warehouse) => warehouse.settings(),
        KindChoice::Block(block) => block.settings(),
        KindChoice::Backup(backup) => backup.settings(),
    };
    rows.extend(scaled.pacing.settings());
    let timeout = scaled.statement_timeout.iter();
    rows.extend(timeout.map(|timeout| timeout.setting(exact::time(timeout.value))));
    resolver.provenance.extend(rows);
    scaled
}
