//! The refresh functions of a warehouse as scripts: each is one transaction, whose statements insert
//! or delete a hundred orders with their lines.
//!
//! An order has four lines, their mean. New orders go to the ends of the tables; their keys lie
//! between those that were loaded, from the first one on, and other indexes get their entries
//! anywhere. Deletions begin with the first order, and leave indexes as they are. Not here: queries.

use crate::demand::{DemandProfile, TypeDemand};
use crate::draw::below;
use crate::layout::Relation;
use crate::layout::warehouse::{LINES_PER_ORDER, Table, relations};
use crate::page::PageId;
use crate::script::Script;
use crate::warehouse_job::INSERT;
use crate::warehouse_spec::WarehouseSpec;
use rand_pcg::Pcg64;
use underlay_core::{Nanos, RootSeed};
use underlay_workload::warehouse::Scale;

/// Orders of a statement, as those of a real run.
const STATEMENT_ORDERS: u64 = 100;
/// Orders that a refresh function inserts or deletes per hundredth of the scale factor, which is the
/// unit of its demands.
const UNIT_ORDERS: u64 = 15;

/// The session that carries out refresh functions.
pub(crate) struct WarehouseSource {
    scale: Scale,
    /// Of the two functions.
    demands: [TypeDemand; 2],
    kind: usize,
    /// Orders of the function that was begun.
    left: u64,
    /// Orders that were inserted and deleted.
    done: [u64; 2],
    random: Pcg64,
}

impl WarehouseSource {
    pub(crate) fn new(
        spec: &WarehouseSpec,
        demands: &DemandProfile,
        seed: RootSeed,
    ) -> WarehouseSource {
        WarehouseSource {
            scale: spec.scale,
            demands: [0, 1].map(|function| demands.types[INSERT + function].clone()),
            kind: INSERT,
            left: 0,
            done: [0; 2],
            random: seed.stream("engine.refresh", 0),
        }
    }

    pub(crate) fn relations(spec: &WarehouseSpec) -> Vec<Relation> {
        relations(spec.scale)
    }

    /// Begins a refresh function.
    pub(crate) fn begin(&mut self, kind: usize) {
        self.kind = kind;
        self.left = self.scale.refresh_orders();
    }

    pub(crate) fn draw(&mut self) -> Option<usize> {
        (self.left > 0).then_some(self.kind)
    }

    pub(crate) fn write_down(&mut self, script: &mut Script) {
        let orders = self.left.min(STATEMENT_ORDERS);
        self.left -= orders;
        script.begin(self.kind);
        // The function is counted when all of it is done.
        script.count = 0;
        script.commits = self.left == 0;
        let function = self.kind - INSERT;
        let first = self.done[function];
        self.done[function] += orders;
        match self.kind {
            INSERT => self.insert(first..first + orders, script),
            _ => self.delete(first..first + orders, script),
        }
        let demand = &self.demands[function];
        let cpu = demand.cpu_per_unit.0 * orders / UNIT_ORDERS;
        let log = u64::from(demand.log_bytes_per_unit) * orders / UNIT_ORDERS;
        script.end_step(Nanos(cpu), log);
    }

    fn insert(&mut self, orders: std::ops::Range<u64>, script: &mut Script) {
        for (table, key, per_order, others) in [
            (Table::Orders, Table::OrdersKey, 1, [Table::OrdersOfCustomer, Table::OrdersByDate]),
            (
                Table::Lines,
                Table::LinesKey,
                LINES_PER_ORDER,
                [Table::LinesOfPart, Table::LinesByShipDate],
            ),
        ] {
            let loaded = self.scale.orders() * per_order;
            let rows = orders.start * per_order..orders.end * per_order;
            for row in rows.clone() {
                script.write(self.page_of(table, loaded + row, loaded));
            }
            for row in rows.clone() {
                script.write(self.page_of(key, row, loaded));
            }
            for index in others {
                let blocks = u64::from(index.blocks(self.scale));
                for _ in rows.clone() {
                    let block = below(&mut self.random, blocks) as u32;
                    script.write(PageId::new(index as u16, block));
                }
            }
        }
    }

    fn delete(&self, orders: std::ops::Range<u64>, script: &mut Script) {
        for (table, key, per_order) in
            [(Table::Lines, Table::LinesKey, LINES_PER_ORDER), (Table::Orders, Table::OrdersKey, 1)]
        {
            let loaded = self.scale.orders() * per_order;
            let rows = orders.start * per_order..orders.end * per_order;
            for row in rows.clone() {
                script.read(self.page_of(key, row, loaded));
            }
            for row in rows {
                script.write(self.page_of(table, row, loaded));
            }
        }
    }

    /// The page of a row, where so many were loaded in the order of their numbers.
    fn page_of(&self, table: Table, row: u64, loaded: u64) -> PageId {
        let block = row * u64::from(table.blocks(self.scale)) / loaded;
        PageId::new(table as u16, block as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, WarehouseSource};
    use crate::demand::DemandProfile;
    use crate::script::Script;
    use crate::warehouse_job::{DELETE, INSERT};
    use crate::warehouse_spec::WarehouseSpec;
    use underlay_core::RootSeed;
    use underlay_workload::warehouse::Scale;

    #[test]
    fn a_refresh_function_is_one_transaction_of_many_statements() {
        let scale = Scale::from_hundredths(10).expect("a scale");
        let spec = WarehouseSpec { scale, streams: 1, workers_per_query: 0, workers: 0 };
        let demands = DemandProfile::warehouse_postgresql();
        let mut source = WarehouseSource::new(&spec, &demands, RootSeed(1));
        assert_eq!(source.draw(), None, "none was begun");
        let mut script = Script::default();
        for kind in [INSERT, DELETE] {
            source.begin(kind);
            let (mut commits, mut rows, mut log) = (Vec::new(), [0, 0], 0);
            while source.draw() == Some(kind) {
                source.write_down(&mut script);
                commits.push(script.commits);
                for touch in script.touches.iter().filter(|touch| touch.writes) {
                    let table = [Table::Orders as u16, Table::Lines as u16];
                    let table = table.iter().position(|it| *it == touch.page.relation());
                    table.into_iter().for_each(|table| rows[table] += u64::from(touch.rows));
                }
                log += u64::from(script.steps[0].log_bytes);
                assert_eq!((script.count, script.succeeds), (0, true));
            }
            // 150 orders.
            assert_eq!((commits, rows), (vec![false, true], [150, 600]));
            let of_all = u64::from(demands.types[kind].log_bytes_per_unit) * 10;
            assert!(log.abs_diff(of_all) <= 2, "{log} {of_all}");
        }
    }
}
