//! sysbench's scripts as the engine carries them out: reads first, then each change with its lock.
//!
//! Changes are made in the order of their rows, so that they cannot deadlock; sysbench's own order
//! can, and the server then rolls one of two transactions back. All statements of a transaction are
//! on the server at once: the client's time between them is not modelled.

use crate::demand::{DemandProfile, TypeDemand};
use crate::draw::scatter_below;
use crate::layout::Relation;
use crate::layout::leaf_splits::LeafSplits;
use crate::layout::row_versions::RowVersions;
use crate::layout::sysbench::SysbenchPages;
use crate::page::PageId;
use crate::script::Script;
use crate::spec::EngineSpec;
use underlay_core::{Nanos, RootSeed};
use underlay_workload::sysbench::{Operation, Source as SysbenchUser, Sysbench, Transaction};
use underlay_workload::transactional::{Mix, User, Workload};

/// Rows of a range that cost as much as a statement, and rows of a bulk insert.
const ROWS_PER_UNIT: u32 = 25;
const BULK_ROWS_PER_UNIT: u32 = 10;
/// A leaf that is split logs the half that goes to the new one.
const SPLIT_LOG_BYTES: u64 = 8_192;

/// Users and database state.
#[derive(Clone)]
pub(crate) struct SysbenchSource {
    users: Vec<SysbenchUser>,
    drawn: Vec<Option<Transaction>>,
    pages: SysbenchPages,
    demands: Vec<TypeDemand>,
    /// Where PostgreSQL has the rows; `None` where they are changed in place.
    heap: Option<RowVersions>,
    /// Where InnoDB has the entries of the index.
    leaves: Option<LeafSplits>,
    /// Whether new versions are left out.
    is_frozen: bool,
    /// Rows that were inserted at the end.
    inserted: u64,
    /// Changes that were made: what moves index entries.
    changes: u64,
    /// Changes of the transaction in hand, by row.
    changing: Vec<(u64, Change)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// The row alone.
    Row,
    /// The row and its entry in the index.
    Indexed,
    /// The row is deleted and inserted again.
    Replaced,
}

impl SysbenchSource {
    pub(crate) fn new(
        sysbench: &Sysbench,
        engine: &EngineSpec,
        demands: &DemandProfile,
        users: u32,
        seed: RootSeed,
    ) -> SysbenchSource {
        let pages = Self::pages(sysbench, engine);
        SysbenchSource {
            heap: (!pages.is_clustered()).then(|| pages.row_versions()),
            leaves: pages.is_clustered().then(|| pages.leaf_splits()),
            is_frozen: false,
            users: (0..users).map(|user| sysbench.user(u64::from(user), seed)).collect(),
            drawn: (0..users).map(|_| None).collect(),
            pages,
            demands: demands.types.clone(),
            inserted: 0,
            changes: 0,
            changing: Vec::new(),
        }
    }

    /// The rows of `other`; users stay.
    pub(crate) fn restore(&mut self, other: &SysbenchSource) {
        let users = std::mem::take(&mut self.users);
        *self = SysbenchSource { users, ..other.clone() };
    }

    /// Whether changes of rows leave no new versions, and split no leaves, from now on.
    pub(crate) fn freeze(&mut self, is_frozen: bool) {
        self.is_frozen = is_frozen;
    }

    /// The leaf of a row's key, and the page where the row is.
    fn of_row(&self, row: u64) -> [PageId; 2] {
        let [key, loaded] = self.pages.of_row(row);
        [key, self.heap.as_ref().map_or(loaded, |heap| heap.page(row))]
    }

    fn pages(sysbench: &Sysbench, engine: &EngineSpec) -> SysbenchPages {
        let (tables, size) = (sysbench.parameters.tables, sysbench.parameters.table_size);
        match engine {
            EngineSpec::Postgresql(_) => SysbenchPages::postgresql(tables, size),
            EngineSpec::Mariadb(_) => SysbenchPages::innodb(tables, size),
        }
    }

    pub(crate) fn relations(sysbench: &Sysbench, engine: &EngineSpec) -> Vec<Relation> {
        Self::pages(sysbench, engine).relations()
    }

    pub(crate) fn draw(&mut self, user: u32, mix: &Mix) -> usize {
        let transaction = User::next(&mut self.users[user as usize], mix);
        let kind = transaction.script.index();
        self.drawn[user as usize] = Some(transaction);
        kind
    }

    pub(crate) fn has_drawn(&self, user: u32) -> bool {
        self.drawn[user as usize].is_some()
    }

    pub(crate) fn write_down(&mut self, user: u32, script: &mut Script) {
        let transaction = self.drawn[user as usize].take();
        let transaction = transaction.expect("a transaction is drawn before it begins");
        let kind = transaction.script.index();
        script.begin(kind);
        let demand = self.demands[kind].clone();
        self.changing.clear();
        let mut read_units = 0;
        let mut bulk = 0;
        for operation in &transaction.operations {
            match *operation {
                Operation::PointSelect { table, id } => {
                    script.read_all(self.of_row(self.pages.row(table, id)));
                    read_units += 1;
                }
                Operation::SimpleRange(range)
                | Operation::SumRange(range)
                | Operation::OrderRange(range)
                | Operation::DistinctRange(range) => {
                    let rows = range.last.saturating_sub(range.first) + 1;
                    let first = self.pages.row(range.table, range.first);
                    for row in 0..u64::from(rows) {
                        let row = (first + row).min(self.pages.rows() - 1);
                        let [key, page] = self.of_row(row);
                        if row == first {
                            script.read(key);
                        }
                        script.read(page);
                    }
                    read_units += 1 + rows / ROWS_PER_UNIT;
                }
                Operation::IndexUpdate { table, id } => {
                    self.changing.push((self.pages.row(table, id), Change::Indexed));
                }
                Operation::NonIndexUpdate { table, id, .. } | Operation::Delete { table, id } => {
                    self.changing.push((self.pages.row(table, id), Change::Row));
                }
                Operation::DeleteInsert { table, id, .. } => {
                    self.changing.push((self.pages.row(table, id), Change::Replaced));
                }
                Operation::Insert { .. } => bulk += 1,
                Operation::BulkInsert { rows, .. } => bulk += rows,
            }
        }
        script.end_step(demand.cpu(read_units), u64::from(demand.log_bytes_base));
        self.changing.sort_unstable();
        for place in 0..self.changing.len() {
            let (row, change) = self.changing[place];
            self.change(row, change, &demand, script);
        }
        if bulk > 0 {
            self.insert(bulk, &demand, script);
        }
        script.commits = transaction.script.writes();
        if script.commits && self.pages.is_clustered() {
            script.append_write(self.pages.undo(self.changes));
        }
        self.changes += 1;
    }

    fn change(&mut self, row: u64, change: Change, demand: &TypeDemand, script: &mut Script) {
        script.lock(row);
        let [key, page] = self.of_row(row);
        let per_unit = demand.cpu_per_unit.0;
        let log = u64::from(demand.log_bytes_per_unit);
        let units = if change == Change::Replaced { 2 } else { 1 };
        let moved = match &mut self.heap {
            Some(heap) if !self.is_frozen => heap.change(row).1,
            _ => None,
        };
        script.change_row([key], page, moved);
        let mut split = 0;
        if change != Change::Row || moved.is_some() {
            script.write(key);
            // Where the entry goes is a value of the row and of how often it was changed; on InnoDB also where it was,
            // because the old one is marked and purged.
            self.changes += 1;
            let rows = self.pages.rows();
            split = self.write_entry(scatter_below(row ^ self.changes << 40, rows), script);
            self.remove_entry(scatter_below(1 << 63 | row ^ self.changes << 40, rows), script);
        }
        script.end_step(Nanos(per_unit * units), log * units + split);
    }

    /// An entry comes to a place of the index: bytes of log of a split.
    fn write_entry(&mut self, place: u64, script: &mut Script) -> u64 {
        let Some(leaves) = &mut self.leaves else {
            script.write(self.pages.of_k(place));
            return 0;
        };
        let split = if self.is_frozen { None } else { leaves.insert(place) };
        script.write(leaves.page(place));
        split.map_or(0, |page| {
            script.write(page);
            SPLIT_LOG_BYTES
        })
    }

    fn remove_entry(&mut self, place: u64, script: &mut Script) {
        if let Some(leaves) = &mut self.leaves {
            script.write(leaves.page(place));
            if !self.is_frozen {
                leaves.remove(place);
            }
        }
    }

    /// Inserts rows at the end.
    fn insert(&mut self, rows: u32, demand: &TypeDemand, script: &mut Script) {
        let mut splits = 0;
        for _ in 0..rows {
            let row = self.pages.rows() + self.inserted;
            self.inserted += 1;
            script.write_all(self.pages.of_row(row));
            splits += self.write_entry(scatter_below(row, self.pages.rows()), script);
        }
        let units = rows.div_ceil(BULK_ROWS_PER_UNIT);
        let log = u64::from(demand.log_bytes_per_unit) * u64::from(rows) + splits;
        script.end_step(Nanos(demand.cpu_per_unit.0 * u64::from(units)), log);
    }
}
