//! The data warehouse: how large it is, and what its queries read.
//!
//! A query reads tables from their beginning to their end, and pages of others one by one, as an
//! index leads to them. Which, and how many, is what PostgreSQL's plans did at scale factor 1; they
//! grow with the scale. Not here: processor times ([`crate::DemandProfile`]), and MariaDB's plans,
//! which were not measured.

use crate::layout::warehouse::Table;
use underlay_workload::warehouse::Scale;

/// A power run, then a throughput run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarehouseSpec {
    /// The size of the database.
    pub scale: Scale,
    /// Query streams of the throughput run; 0 = there is none.
    pub streams: u32,
    /// Parallel workers of a query at most (`max_parallel_workers_per_gather`).
    pub workers_per_query: u32,
    /// Parallel workers of all queries at most (`max_parallel_workers`).
    pub workers: u32,
}

/// What a query reads of a table or an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// All of it, in the order of its pages.
    Scan(Table),
    /// So many pages at scale factor 1, anywhere.
    Pick(Table, u64),
}

use Access::{Pick, Scan};
use Table::{
    Customer, CustomerKey, Lines, LinesKey, LinesOfPart, Orders, OrdersKey, OrdersOfCustomer, Part,
    PartSupplier, PartSupplierKey, PartSuppliersOfSupplier, Supplier,
};

/// What each query reads, in its order: scans, lookups and pages of `EXPLAIN (ANALYZE, BUFFERS)` with
/// two parallel workers (2026-11-29, decision 0121). A lookup reads one leaf of its index. Tables of
/// a few pages are left out.
const QUERIES: [&[Access]; 22] = [
    &[Scan(Lines)],
    &[
        Scan(Part),
        Scan(Supplier),
        Pick(PartSuppliersOfSupplier, 1_933),
        Pick(PartSupplierKey, 1_248),
        Pick(PartSupplier, 156_054),
    ],
    &[Scan(Customer), Scan(Orders), Scan(Lines)],
    &[Scan(Lines), Scan(Orders)],
    &[Scan(Customer), Scan(Orders), Scan(Supplier), Scan(Lines)],
    &[Scan(Lines)],
    &[Scan(Customer), Scan(Orders), Scan(Supplier), Scan(Lines)],
    &[
        Scan(Part),
        Pick(LinesOfPart, 1_268),
        Pick(Lines, 38_202),
        Scan(Orders),
        Scan(Customer),
        Scan(Supplier),
    ],
    &[
        Scan(Part),
        Scan(PartSupplier),
        Pick(LinesOfPart, 43_612),
        Pick(Lines, 329_358),
        Pick(OrdersKey, 326_792),
        Pick(Orders, 326_792),
    ],
    &[Scan(Customer), Scan(Orders), Scan(Lines)],
    &[Scan(Supplier), Pick(PartSuppliersOfSupplier, 892), Pick(PartSupplier, 71_360)],
    &[Scan(Lines), Scan(Orders)],
    &[Scan(Orders), Scan(CustomerKey)],
    // A bitmap of the lines of a month, in the order of their pages.
    &[Scan(Part), Pick(Lines, 42_070)],
    &[Scan(Lines)],
    &[Scan(Part), Scan(Supplier), Scan(PartSupplierKey)],
    &[Scan(Part), Scan(Lines), Pick(LinesOfPart, 5_863), Pick(Lines, 183_832)],
    &[Scan(Lines), Scan(Orders), Scan(Customer), Scan(Lines)],
    &[Scan(Part), Pick(LinesOfPart, 494), Pick(Lines, 15_004)],
    &[
        Scan(Supplier),
        Scan(Part),
        Pick(PartSupplierKey, 2_187),
        Pick(PartSupplier, 2_454),
        Pick(LinesOfPart, 8_748),
        Pick(Lines, 65_743),
    ],
    &[
        Scan(Lines),
        Scan(Lines),
        Pick(LinesKey, 12_639),
        Pick(Lines, 12_639),
        Pick(OrdersKey, 7_577),
        Pick(Orders, 7_577),
    ],
    &[Scan(Customer), Scan(Customer), Pick(OrdersOfCustomer, 18_998)],
];

/// Pages that a table has where a first worker helps to scan it (`min_parallel_table_scan_size`);
/// each further one needs three times as many.
const PARALLEL_PAGES: u64 = 1024;

impl WarehouseSpec {
    /// What a query reads, and how many pages; its number counts from 0.
    pub(crate) fn reads_of(&self, query: usize) -> Vec<(Access, u64)> {
        QUERIES[query].iter().map(|access| (*access, self.pages(*access))).collect()
    }

    fn pages(&self, access: Access) -> u64 {
        match access {
            Scan(table) => u64::from(table.blocks(self.scale)),
            Pick(_, pages) => (pages * u64::from(self.scale.hundredths())).div_ceil(100),
        }
    }

    /// Parallel workers that a query would have; its number counts from 0.
    pub(crate) fn workers_of(&self, query: usize) -> u32 {
        let scans = QUERIES[query].iter().filter(|access| matches!(access, Scan(_)));
        let largest = scans.map(|access| self.pages(*access)).max().unwrap_or(0);
        let enough_for = |workers: &u32| largest >= PARALLEL_PAGES * 3_u64.pow(workers - 1);
        (1..=self.workers_per_query.min(16)).take_while(enough_for).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, QUERIES, WarehouseSpec};
    use crate::layout::warehouse::Table;
    use underlay_workload::warehouse::Scale;

    #[test]
    fn pages_and_workers_grow_with_the_scale() {
        let spec = |hundredths| WarehouseSpec {
            scale: Scale::from_hundredths(hundredths).expect("a scale"),
            streams: 2,
            workers_per_query: 2,
            workers: 8,
        };
        let (one, ten) = (spec(100), spec(1_000));
        for access in QUERIES.iter().flat_map(|accesses| accesses.iter().copied()) {
            let (small, large) = (one.pages(access), ten.pages(access));
            assert!(small > 0 && large == 10 * small, "{access:?}: {small}, {large}");
        }
        assert_eq!(one.pages(Access::Pick(Table::Lines, 7)), 7);
        let workers = |hundredths| spec(hundredths).workers_of(0);
        assert_eq!([workers(1), workers(100), workers(10_000)], [1, 2, 2]);
        let none = WarehouseSpec { workers_per_query: 0, ..ten };
        assert_eq!(none.workers_of(0), 0);
    }
}
