//! The tables in memory: about 1.5 GB at scale factor 1.

use crate::warehouse::rows::{Customer, Line, Order, Part, PartSupplier, Population, Supplier};
use crate::warehouse::words::NATIONS;
use crate::warehouse::{Day, Refreshed};

/// All rows that there are after some refreshes.
pub struct Tables {
    pub(super) population: Population,
    pub(super) suppliers: Vec<Supplier>,
    pub(super) parts: Vec<Part>,
    /// Four per part, in the order of the parts.
    pub(super) part_suppliers: Vec<PartSupplier>,
    pub(super) customers: Vec<Customer>,
    pub(super) orders: Vec<Order>,
}

impl Tables {
    /// Generates them. Comments of lines, which no question looks at, are left out.
    pub fn generate(population: Population, refreshed: Refreshed) -> Tables {
        let scale = population.scale;
        let without_comments = |mut order: Order| {
            for line in &mut order.lines {
                line.comment = String::new();
            }
            order
        };
        Tables {
            population,
            suppliers: (1..=scale.suppliers()).map(|key| population.supplier(key)).collect(),
            parts: (1..=scale.parts()).map(|key| population.part(key)).collect(),
            part_suppliers: (1..=scale.parts())
                .flat_map(|part| (0..4).map(move |which| population.part_supplier(part, which)))
                .collect(),
            customers: (1..=scale.customers()).map(|key| population.customer(key)).collect(),
            orders: population.orders(refreshed).map(without_comments).collect(),
        }
    }

    /// Rows of ORDERS and of LINEITEM.
    pub fn sales(&self) -> (u64, u64) {
        let lines = self.orders.iter().map(|order| order.lines.len() as u64).sum();
        (self.orders.len() as u64, lines)
    }

    pub(super) fn supplier(&self, key: u32) -> &Supplier {
        &self.suppliers[key as usize - 1]
    }

    pub(super) fn part(&self, key: u32) -> &Part {
        &self.parts[key as usize - 1]
    }

    pub(super) fn customer(&self, key: u32) -> &Customer {
        &self.customers[key as usize - 1]
    }

    pub(super) fn part_supplier(&self, part: u32, supplier: u32) -> &PartSupplier {
        let first = (part as usize - 1) * 4;
        let four = &self.part_suppliers[first..first + 4];
        four.iter()
            .find(|row| row.supplier == supplier)
            .expect("a line's supplier supplies its part")
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (&Order, &Line)> {
        self.orders.iter().flat_map(|order| order.lines.iter().map(move |line| (order, line)))
    }
}

impl Line {
    /// Price after the discount, in hundredths of cents.
    pub(super) fn revenue(&self) -> i128 {
        i128::from(self.price_cents * (100 - self.discount))
    }
}

/// Whether a nation is in a region.
pub(super) fn is_in(nation: u32, region: usize) -> bool {
    NATIONS[nation as usize].1 == region
}

pub(super) fn is_in_year(day: Day, year: i32) -> bool {
    (Day::new(year, 1, 1)..Day::new(year + 1, 1, 1)).contains(&day)
}
