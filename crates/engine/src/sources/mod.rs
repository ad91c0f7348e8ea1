//! Where transactions come from: the users of a workload, and what each transaction means to the
//! engine.
//!
//! A source draws the next transaction of a user from the workload's own state machine and converts
//! it to a [`Script`]. It keeps what a database would know: which order comes next, where inserted
//! rows went.

mod batch;
mod dvdstore;
mod sysbench;
mod tpcc;
mod warehouse;

use crate::demand::DemandProfile;
use crate::layout::Relation;
use crate::script::Script;
use crate::spec::{EngineSpec, WorkloadSpec};
use batch::BatchSource;
use dvdstore::DvdStoreSource;
use sysbench::SysbenchSource;
use tpcc::TpccSource;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_workload::transactional::Mix;
use warehouse::WarehouseSource;

impl WorkloadSpec {
    /// Tables and indexes.
    pub(crate) fn relations(&self, engine: &EngineSpec) -> Vec<Relation> {
        match self {
            WorkloadSpec::Tpcc(tpcc) => TpccSource::relations(tpcc, engine),
            WorkloadSpec::Sysbench(sysbench) => SysbenchSource::relations(sysbench, engine),
            WorkloadSpec::DvdStore(shop) => DvdStoreSource::relations(shop, engine),
            WorkloadSpec::Batch(batch) => BatchSource::relations(batch, engine),
            WorkloadSpec::Warehouse(warehouse) => WarehouseSource::relations(warehouse),
            // It is never changed, so nothing grows.
            WorkloadSpec::Backup(backup) => TpccSource::relations(&backup.tpcc, engine)
                .into_iter()
                .map(|relation| Relation { grows: false, ..relation })
                .collect(),
        }
    }

    /// Bytes of tables and indexes when they are loaded.
    pub(crate) fn loaded_bytes(&self, engine: &EngineSpec) -> Bytes {
        let blocks = |relation: &Relation| u64::from(relation.blocks.max(1));
        let blocks: u64 = self.relations(engine).iter().map(blocks).sum();
        Bytes(blocks * u64::from(engine.page_bytes()))
    }
}

/// The users of a database.
pub(crate) enum Source {
    Tpcc(Box<TpccSource>),
    Sysbench(Box<SysbenchSource>),
    DvdStore(Box<DvdStoreSource>),
    Batch(Box<BatchSource>),
    Warehouse(Box<WarehouseSource>),
    /// A job that asks for no transactions.
    NoTransactions,
}

impl Source {
    /// So many users of a workload.
    pub(crate) fn new(
        workload: &WorkloadSpec,
        engine: &EngineSpec,
        demands: &DemandProfile,
        users: u32,
        seed: RootSeed,
    ) -> Source {
        match workload {
            WorkloadSpec::Tpcc(tpcc) => {
                Source::Tpcc(Box::new(TpccSource::new(*tpcc, engine, demands, users, seed)))
            }
            WorkloadSpec::Sysbench(sysbench) => Source::Sysbench(Box::new(SysbenchSource::new(
                sysbench, engine, demands, users, seed,
            ))),
            WorkloadSpec::DvdStore(shop) => {
                Source::DvdStore(Box::new(DvdStoreSource::new(shop, engine, demands, users, seed)))
            }
            WorkloadSpec::Batch(batch) => {
                Source::Batch(Box::new(BatchSource::new(batch, engine, demands, users)))
            }
            WorkloadSpec::Warehouse(warehouse) => {
                Source::Warehouse(Box::new(WarehouseSource::new(warehouse, demands, seed)))
            }
            WorkloadSpec::Backup(_) => Source::NoTransactions,
        }
    }

    /// Whether changes of rows leave no new versions from now on: for transactions that only fill
    /// caches.
    pub(crate) fn freeze(&mut self, is_frozen: bool) {
        match self {
            Source::Tpcc(source) => source.freeze(is_frozen),
            Source::Sysbench(source) => source.freeze(is_frozen),
            // Their rows stay where they are.
            Source::DvdStore(_)
            | Source::Batch(_)
            | Source::Warehouse(_)
            | Source::NoTransactions => {}
        }
    }

    /// The rows of `other`, a database of the same workload; users stay.
    pub(crate) fn restore(&mut self, other: &Source) {
        match (self, other) {
            (Source::Tpcc(own), Source::Tpcc(other)) => own.restore(other),
            (Source::Sysbench(own), Source::Sysbench(other)) => own.restore(other),
            (Source::DvdStore(own), Source::DvdStore(other)) => own.restore(other),
            // Jobs fill no caches.
            _ => {}
        }
    }

    /// Draws the next transaction of a user; returns its type. `None`: a session of a job is done.
    pub(crate) fn draw(&mut self, user: u32, mix: &Mix) -> Option<usize> {
        match self {
            Source::Tpcc(source) => Some(source.draw(user, mix)),
            Source::Sysbench(source) => Some(source.draw(user, mix)),
            Source::DvdStore(source) => Some(source.draw(user, mix)),
            Source::Batch(source) => source.draw(user),
            Source::Warehouse(source) => source.draw(),
            Source::NoTransactions => None,
        }
    }

    /// Whether a user has drawn a transaction that has not begun.
    pub(crate) fn has_drawn(&self, user: u32) -> bool {
        match self {
            Source::Tpcc(source) => source.has_drawn(user),
            Source::Sysbench(source) => source.has_drawn(user),
            Source::DvdStore(source) => source.has_drawn(user),
            // Sessions of jobs do not draw ahead.
            Source::Batch(_) | Source::Warehouse(_) | Source::NoTransactions => false,
        }
    }

    /// Writes the transaction down that was drawn for a user, at the moment when it begins.
    pub(crate) fn write_down(&mut self, user: u32, script: &mut Script) {
        match self {
            Source::Tpcc(source) => source.write_down(user, script),
            Source::Sysbench(source) => source.write_down(user, script),
            Source::DvdStore(source) => source.write_down(user, script),
            Source::Batch(source) => source.write_down(user, script),
            Source::Warehouse(source) => source.write_down(script),
            Source::NoTransactions => unreachable!("no transaction was drawn"),
        }
    }

    /// The session of a warehouse has a refresh function to carry out.
    pub(crate) fn begin_refresh(&mut self, kind: usize) {
        if let Source::Warehouse(source) = self {
            source.begin(kind);
        }
    }

    /// Whether the server has the next transaction of a user without its client: rows of a loop inside the server.
    pub(crate) fn has_been_sent(&self, user: u32) -> bool {
        match self {
            Source::Batch(source) => source.has_been_sent(user),
            _ => false,
        }
    }

    /// Time before a transaction of a type is sent, unscaled.
    pub(crate) fn keying_time(&self, user: u32, kind: usize) -> Nanos {
        match self {
            Source::Tpcc(source) => source.keying_time(user, kind),
            _ => Nanos::ZERO,
        }
    }

    /// Time after the answer, unscaled.
    pub(crate) fn think_time(&mut self, user: u32, kind: usize) -> Nanos {
        match self {
            Source::Tpcc(source) => source.think_time(user, kind),
            Source::DvdStore(source) => source.think_time(user, kind),
            _ => Nanos::ZERO,
        }
    }
}
