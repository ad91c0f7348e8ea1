//! The tables and indexes of the warehouse on PostgreSQL's pages.
//!
//! Tables lie in the order of their keys. Not here: the tables `region` and `nation` with their
//! indexes, which are a page each, and MariaDB's pages.

use super::Relation;
use underlay_workload::warehouse::Scale;

/// Lines of an order on average (1 to 7).
pub const LINES_PER_ORDER: u64 = 4;

/// The relations, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Table {
    /// The table `supplier`.
    Supplier,
    /// The table `part`.
    Part,
    /// The table `partsupp`.
    PartSupplier,
    /// The table `customer`.
    Customer,
    /// The table `orders`.
    Orders,
    /// The table `lineitem`.
    Lines,
    /// The primary key of `supplier`.
    SupplierKey,
    /// The primary key of `part`.
    PartKey,
    /// The primary key of `partsupp`.
    PartSupplierKey,
    /// The primary key of `customer`.
    CustomerKey,
    /// The primary key of `orders`.
    OrdersKey,
    /// The primary key of `lineitem`.
    LinesKey,
    /// The index of `lineitem` by part and supplier.
    LinesOfPart,
    /// The index of `lineitem` by the day of shipment.
    LinesByShipDate,
    /// The index of `orders` by customer.
    OrdersOfCustomer,
    /// The index of `orders` by day.
    OrdersByDate,
    /// The index of `partsupp` by supplier.
    PartSuppliersOfSupplier,
    /// The index of `customer` by nation.
    CustomersOfNation,
    /// The index of `supplier` by nation.
    SuppliersOfNation,
}

/// Name, pages at scale factor 1, and whether refresh functions add to it.
type Row = (&'static str, u64, bool);

/// `relpages` of a warehouse of scale factor 1 that was loaded on PostgreSQL 15 (2026-11-29).
const RELATIONS: [Row; 19] = [
    ("supplier", 223, false),
    ("part", 4_097, false),
    ("partsupp", 17_439, false),
    ("customer", 3_585, false),
    ("orders", 26_811, true),
    ("lineitem", 115_502, true),
    ("supplier_pkey", 30, false),
    ("part_pkey", 551, false),
    ("partsupp_pkey", 2_196, false),
    ("customer_pkey", 414, false),
    ("orders_pkey", 4_116, true),
    ("lineitem_pkey", 23_093, true),
    ("lineitem_partsupp", 7_433, true),
    ("lineitem_shipdate", 5_213, true),
    ("orders_customer", 1_543, true),
    ("orders_date", 1_330, true),
    ("partsupp_supplier", 672, false),
    ("customer_nation", 130, false),
    ("supplier_nation", 11, false),
];

/// Bytes of the images of a page of a table and of an index, without their unused middle.
const IMAGE_BYTES: [u32; 2] = [8_000, 7_400];

impl Table {
    /// Its pages at a scale factor.
    pub fn blocks(self, scale: Scale) -> u32 {
        blocks(RELATIONS[self as usize].1, scale)
    }
}

/// Of so many pages at scale factor 1, those at another one.
fn blocks(pages: u64, scale: Scale) -> u32 {
    (pages * u64::from(scale.hundredths())).div_ceil(100) as u32
}

/// The relations of a warehouse.
pub fn relations(scale: Scale) -> Vec<Relation> {
    let all = RELATIONS.iter().enumerate();
    let made = all.map(|(number, &(name, pages, grows))| {
        let rows = match number {
            0 => u64::from(scale.suppliers()),
            1 => u64::from(scale.parts()),
            2 => u64::from(scale.parts()) * 4,
            3 => u64::from(scale.customers()),
            4 => scale.orders(),
            5 => scale.orders() * LINES_PER_ORDER,
            _ => 0,
        };
        let is_heap = rows > 0;
        let image_bytes = IMAGE_BYTES[usize::from(!is_heap)];
        let blocks = blocks(pages, scale);
        Relation { name, blocks, rows, image_bytes, is_heap, grows }
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::{Table, relations};
    use underlay_workload::warehouse::Scale;

    #[test]
    fn relations_have_their_numbers_and_grow_with_the_scale() {
        let scale = Scale::from_hundredths(250).expect("a scale");
        let all = relations(scale);
        let of = |table: Table| &all[table as usize];
        assert_eq!((of(Table::Lines).name, of(Table::Lines).rows), ("lineitem", 15_000_000));
        assert_eq!(of(Table::SuppliersOfNation).name, "supplier_nation");
        assert_eq!(of(Table::Orders).blocks, Table::Orders.blocks(scale));
        let smallest = Scale::from_hundredths(1).expect("a scale");
        assert!(relations(smallest).iter().all(|relation| relation.blocks > 0));
    }
}
