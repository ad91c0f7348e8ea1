//! Rows as text, and which rows a piece of a table has.
//!
//! The population's text has neither tabs nor newlines nor backslashes, so nothing is escaped. Columns are written in
//! the order of the schema.

use std::fmt::Write;
use std::ops::Range;

use underlay_workload::warehouse::words::{NATIONS, REGIONS};
use underlay_workload::warehouse::{Order, Population};

/// A row of text with tabs between the fields. Writing it cannot fail: what it is written to grows.
macro_rules! line {
    ($out:expr, $first:expr $(, $field:expr)* $(,)?) => {{
        let _ = write!($out, "{}", $first);
        $( let _ = write!($out, "\t{}", $field); )*
        let _ = $out.write_char('\n');
    }};
}

/// The tables, in the order in which they can be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Region,
    Nation,
    Supplier,
    Part,
    PartSupplier,
    Customer,
    Orders,
    Lines,
}

/// The names of all tables.
pub(crate) const TABLE_NAMES: [&str; 8] = {
    let mut names = [""; 8];
    let mut index = 0;
    while index < names.len() {
        names[index] = Table::ALL[index].name();
        index += 1;
    }
    names
};

impl Table {
    pub const ALL: [Table; 8] = [
        Table::Region,
        Table::Nation,
        Table::Supplier,
        Table::Part,
        Table::PartSupplier,
        Table::Customer,
        Table::Orders,
        Table::Lines,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Table::Region => "region",
            Table::Nation => "nation",
            Table::Supplier => "supplier",
            Table::Part => "part",
            Table::PartSupplier => "partsupp",
            Table::Customer => "customer",
            Table::Orders => "orders",
            Table::Lines => "lineitem",
        }
    }

    /// What the table is divided by: keys, parts or orders, numbered from 0.
    pub fn items(self, population: &Population) -> u64 {
        let scale = population.scale;
        match self {
            Table::Region => REGIONS.len() as u64,
            Table::Nation => NATIONS.len() as u64,
            Table::Supplier => u64::from(scale.suppliers()),
            Table::Part | Table::PartSupplier => u64::from(scale.parts()),
            Table::Customer => u64::from(scale.customers()),
            Table::Orders | Table::Lines => scale.orders(),
        }
    }

    /// Appends the rows of an item, and says how many.
    pub fn put(self, population: &Population, item: u64, out: &mut impl Write) -> u64 {
        let key = item as u32 + 1;
        match self {
            Table::Region => {
                let row = population.region(item as u32);
                line!(out, row.key, REGIONS[item as usize], row.comment);
                1
            }
            Table::Nation => {
                let row = population.nation(item as u32);
                let (name, region) = NATIONS[item as usize];
                line!(out, row.key, name, region, row.comment);
                1
            }
            Table::Supplier => {
                let row = population.supplier(key);
                let balance = Cents(row.balance_cents);
                line!(
                    out,
                    row.key,
                    row.name,
                    row.address,
                    row.nation,
                    row.phone,
                    balance,
                    row.comment
                );
                1
            }
            Table::Part => {
                let row = population.part(key);
                let manufacturer = format_args!("Manufacturer#{}", row.manufacturer);
                let brand = format_args!("Brand#{}", row.brand);
                let price = Cents(row.price_cents);
                line!(
                    out,
                    row.key,
                    row.name,
                    manufacturer,
                    brand,
                    row.kind,
                    row.size,
                    row.container,
                    price,
                    row.comment
                );
                1
            }
            Table::PartSupplier => {
                for which in 0..4 {
                    let row = population.part_supplier(key, which);
                    let cost = Cents(row.cost_cents);
                    line!(out, row.part, row.supplier, row.available, cost, row.comment);
                }
                4
            }
            Table::Customer => {
                let row = population.customer(key);
                let balance = Cents(row.balance_cents);
                line!(
                    out,
                    row.key,
                    row.name,
                    row.address,
                    row.nation,
                    row.phone,
                    balance,
                    row.segment,
                    row.comment
                );
                1
            }
            Table::Orders => {
                put_order(&population.order(item), out);
                1
            }
            Table::Lines => {
                let order = population.order(item);
                put_lines(&order, out);
                order.lines.len() as u64
            }
        }
    }
}

fn put_order(order: &Order, out: &mut impl Write) {
    let clerk = format_args!("Clerk#{:09}", order.clerk);
    let total = Cents(order.total_cents);
    line!(
        out,
        order.key,
        order.customer,
        order.status,
        total,
        order.date,
        order.priority,
        clerk,
        0,
        order.comment
    );
}

fn put_lines(order: &Order, out: &mut impl Write) {
    for (index, row) in order.lines.iter().enumerate() {
        line!(
            out,
            order.key,
            row.part,
            row.supplier,
            index + 1,
            row.quantity,
            Cents(row.price_cents),
            Cents(row.discount),
            Cents(row.tax),
            row.return_flag,
            row.status,
            row.shipped,
            row.committed,
            row.received,
            row.instruction,
            row.mode,
            row.comment,
        );
    }
}

/// Orders and lines as the values of an `INSERT`.
pub(super) fn values(orders: &[Order]) -> (String, String) {
    let (mut rows, mut lines) = (String::new(), String::new());
    for order in orders {
        put_order(order, &mut rows);
        put_lines(order, &mut lines);
    }
    (quoted(&rows), quoted(&lines))
}

/// Lines of fields as lists of literals. Both engines take a quoted number for a number.
fn quoted(lines: &str) -> String {
    let rows: Vec<String> =
        lines.lines().map(|line| format!("('{}')", line.replace('\t', "','"))).collect();
    rows.join(",\n")
}

/// An amount with two digits after the point.
struct Cents(i64);

impl std::fmt::Display for Cents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let cents = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", cents / 100, cents % 100)
    }
}

/// Part of a table.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub table: Table,
    pub items: Range<u64>,
}

/// The pieces of all tables, the small tables and the last rows first: work is taken from the end.
pub(super) fn pieces(population: &Population) -> Vec<Piece> {
    const ITEMS: u64 = 30_000;
    let mut pieces = Vec::new();
    for table in Table::ALL.into_iter().rev() {
        let items = table.items(population);
        let starts = (0..items).step_by(ITEMS as usize);
        pieces
            .extend(starts.map(|first| Piece { table, items: first..(first + ITEMS).min(items) }));
    }
    pieces.reverse();
    pieces
}

#[cfg(test)]
mod tests {
    use super::{Cents, Table, pieces, values};
    use underlay_core::RootSeed;
    use underlay_workload::warehouse::{Population, Scale};

    const POPULATION: Population = Population { scale: Scale::ONE, seed: RootSeed(1) };

    #[test]
    fn pieces_cover_every_item_once() {
        let pieces = pieces(&POPULATION);
        for table in Table::ALL {
            let mut next = 0;
            for piece in pieces.iter().rev().filter(|piece| piece.table == table) {
                assert_eq!(piece.items.start, next);
                next = piece.items.end;
            }
            assert_eq!(next, table.items(&POPULATION), "{table:?}");
        }
    }

    #[test]
    fn rows_have_their_columns() {
        let columns = [3, 4, 7, 9, 5, 8, 9, 16];
        for (table, columns) in Table::ALL.into_iter().zip(columns) {
            let mut out = String::new();
            let rows = table.put(&POPULATION, 2, &mut out);
            assert_eq!(out.lines().count() as u64, rows, "{table:?}");
            assert!(out.lines().all(|line| line.split('\t').count() == columns), "{out}");
        }
        let (orders, lines) = values(&[POPULATION.order(7)]);
        assert!(orders.starts_with("('8','") && lines.starts_with("('8','"), "{orders} {lines}");
        assert_eq!(
            (Cents(-5).to_string(), Cents(1234).to_string()),
            ("-0.05".into(), "12.34".into())
        );
    }
}
