//! The names under which each workload keeps its tables.

use underlay_workload::{dvdstore, tpcc};

use crate::Engine;

/// A workload, as far as its tables go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadTables {
    /// TPC-C.
    Tpcc,
    /// Sysbench's, which are numbered and lie in the first schema of the search path.
    Sysbench,
    /// The web shop.
    Dvdstore,
    /// Batch insertion.
    Batch,
    /// The data warehouse.
    Warehouse,
}

impl WorkloadTables {
    /// All of them.
    pub const ALL: [WorkloadTables; 5] = [
        WorkloadTables::Tpcc,
        WorkloadTables::Sysbench,
        WorkloadTables::Dvdstore,
        WorkloadTables::Batch,
        WorkloadTables::Warehouse,
    ];

    /// Its schema on PostgreSQL; none where that is the session's.
    pub(crate) const fn schema(self) -> Option<&'static str> {
        match self {
            WorkloadTables::Tpcc => Some("tpcc"),
            WorkloadTables::Sysbench => None,
            WorkloadTables::Dvdstore => Some("dvdstore"),
            WorkloadTables::Batch => Some("batch"),
            WorkloadTables::Warehouse => Some("warehouse"),
        }
    }

    /// The table that says that Underlay made the others.
    pub(crate) const fn marker(self) -> &'static str {
        match self {
            WorkloadTables::Tpcc => "underlay_population",
            WorkloadTables::Sysbench => "underlay_sysbench",
            WorkloadTables::Dvdstore => "underlay_dvdstore",
            WorkloadTables::Batch => "underlay_batch",
            WorkloadTables::Warehouse => "underlay_warehouse",
        }
    }

    /// Whether a table of this name would be in its way. Of sysbench's all that are numbered: none can be loaded
    /// next to foreign ones.
    pub(crate) fn has_table(self, name: &str) -> bool {
        let is = |own: &str| own == name;
        match self {
            WorkloadTables::Tpcc => {
                tpcc::population::Table::ALL.into_iter().any(|table| is(tpcc_name(table)))
            }
            WorkloadTables::Sysbench => {
                is_numbered(name, "sbtest") || is_numbered(name, "sbtest_bulk")
            }
            WorkloadTables::Dvdstore => {
                let tables = dvdstore::population::Table::ALL.map(|table| table.as_str());
                tables.into_iter().any(is) || is("reorder")
            }
            WorkloadTables::Batch => is("test"),
            WorkloadTables::Warehouse => crate::warehouse::TABLE_NAMES.into_iter().any(is),
        }
    }

    /// Its functions and procedures.
    pub(crate) const fn routines(self, engine: Engine) -> &'static [&'static str] {
        match self {
            WorkloadTables::Tpcc => &[
                "new_order_transaction",
                "payment_transaction",
                "order_status_transaction",
                "delivery_transaction",
                "stock_level_transaction",
            ],
            WorkloadTables::Dvdstore => match engine {
                Engine::Postgresql => &["purchase", "restock"],
                Engine::Mariadb => &["purchase_transaction"],
            },
            WorkloadTables::Sysbench | WorkloadTables::Batch | WorkloadTables::Warehouse => &[],
        }
    }

    /// Its triggers. On PostgreSQL their names are their tables' own.
    pub(crate) const fn triggers(self, engine: Engine) -> &'static [&'static str] {
        match self {
            WorkloadTables::Dvdstore => match engine {
                Engine::Postgresql => &[],
                Engine::Mariadb => &["restock"],
            },
            WorkloadTables::Tpcc
            | WorkloadTables::Sysbench
            | WorkloadTables::Batch
            | WorkloadTables::Warehouse => &[],
        }
    }
}

/// The name of a table of TPC-C; `order` is a word of SQL.
pub(crate) fn tpcc_name(table: tpcc::population::Table) -> &'static str {
    if table == tpcc::population::Table::Order { "orders" } else { table.as_str() }
}

fn is_numbered(name: &str, stem: &str) -> bool {
    name.strip_prefix(stem)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::WorkloadTables;

    #[test]
    fn only_the_own_names_are_a_workloads() {
        let check = |workload: WorkloadTables, own: &[&str], others: &[&str]| {
            for name in own {
                assert!(workload.has_table(name), "{workload:?} {name}");
            }
            for name in others {
                assert!(!workload.has_table(name), "{workload:?} {name}");
            }
        };
        check(WorkloadTables::Tpcc, &["orders", "stock", "item"], &["order", "Stock", "stocks"]);
        check(
            WorkloadTables::Sysbench,
            &["sbtest1", "sbtest42", "sbtest_bulk7"],
            &["sbtest", "sbtest1b", "sbtest_bulk", "xsbtest1", "sbtest-1"],
        );
        check(WorkloadTables::Dvdstore, &["reorder", "cust_hist"], &["customer", "restock"]);
        check(WorkloadTables::Batch, &["test"], &["test1", "underlay_batch"]);
        check(WorkloadTables::Warehouse, &["lineitem", "region"], &["order_line", "customers"]);
        for workload in WorkloadTables::ALL {
            // The marker and the claim are removed by name, never as foreign tables.
            assert!(
                !workload.has_table(workload.marker())
                    && !workload.has_table(crate::schema_ownership::state::CLAIM)
            );
        }
    }
}
