//! Where transactions come from: the users of a workload, and what each transaction means to the
//! engine.
//!
//! A source draws the next transaction of a user from the workload's own state machine and writes
//! it down as a [`Script`]. It keeps what a database would know: which order comes next, where
//! inserted rows went.

mod sysbench;
mod tpcc;

use crate::demand::DemandProfile;
use crate::layout::Relation;
use crate::script::Script;
use crate::spec::{EngineSpec, WorkloadSpec};
use sysbench::SysbenchSource;
use tpcc::TpccSource;
use underlay_core::{Nanos, RootSeed};
use underlay_workload::transactional::Mix;

/// The users of a database.
pub(crate) enum Source {
    Tpcc(Box<TpccSource>),
    Sysbench(Box<SysbenchSource>),
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
        }
    }

    /// Tables and indexes.
    pub(crate) fn relations(workload: &WorkloadSpec, engine: &EngineSpec) -> Vec<Relation> {
        match workload {
            WorkloadSpec::Tpcc(tpcc) => TpccSource::relations(tpcc, engine),
            WorkloadSpec::Sysbench(sysbench) => SysbenchSource::relations(sysbench, engine),
        }
    }

    /// Whether changes of rows leave no new versions from now on: for transactions that only fill
    /// caches.
    pub(crate) fn freeze(&mut self, is_frozen: bool) {
        match self {
            Source::Tpcc(source) => source.freeze(is_frozen),
            Source::Sysbench(source) => source.freeze(is_frozen),
        }
    }

    /// Draws the next transaction of a user; returns its type.
    pub(crate) fn draw(&mut self, user: u32, mix: &Mix) -> usize {
        match self {
            Source::Tpcc(source) => source.draw(user, mix),
            Source::Sysbench(source) => source.draw(user, mix),
        }
    }

    /// Writes the transaction down that was drawn for a user, at the moment when it begins.
    pub(crate) fn write_down(&mut self, user: u32, script: &mut Script) {
        match self {
            Source::Tpcc(source) => source.write_down(user, script),
            Source::Sysbench(source) => source.write_down(user, script),
        }
    }

    /// Time before a transaction of a type is sent, unscaled.
    pub(crate) fn keying_time(&self, user: u32, kind: usize) -> Nanos {
        match self {
            Source::Tpcc(source) => source.keying_time(user, kind),
            Source::Sysbench(_) => Nanos::ZERO,
        }
    }

    /// Time after the answer, unscaled.
    pub(crate) fn think_time(&mut self, user: u32, kind: usize) -> Nanos {
        match self {
            Source::Tpcc(source) => source.think_time(user, kind),
            Source::Sysbench(_) => Nanos::ZERO,
        }
    }
}
