//! Answers about suppliers and what they supply.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::tables::{is_in, is_in_year};
use super::{Answer, Tables, Value, top};
use crate::warehouse::Day;
use crate::warehouse::words::NATIONS;

impl Tables {
    pub(super) fn minimum_cost_supplier(&self, size: u32, kind_end: &str, region: usize) -> Answer {
        let mut rows = Vec::new();
        for part in
            self.parts.iter().filter(|part| part.size == size && part.kind.ends_with(kind_end))
        {
            let first = (part.key as usize - 1) * 4;
            let offers: Vec<_> = self.part_suppliers[first..first + 4]
                .iter()
                .map(|offer| (offer, self.supplier(offer.supplier)))
                .filter(|(_, supplier)| is_in(supplier.nation, region))
                .collect();
            let least = offers.iter().map(|(offer, _)| offer.cost_cents).min();
            for (offer, supplier) in offers {
                if Some(offer.cost_cents) == least {
                    rows.push((part, supplier));
                }
            }
        }
        top(rows, 100, |(part, supplier)| {
            let nation = NATIONS[supplier.nation as usize].0;
            (-supplier.balance_cents, nation, supplier.name.clone(), part.key)
        })
        .into_iter()
        .map(|(part, supplier)| {
            vec![
                Value::cents(supplier.balance_cents),
                Value::text(&supplier.name),
                Value::text(NATIONS[supplier.nation as usize].0),
                Value::integer(part.key),
                Value::text(format!("Manufacturer#{}", part.manufacturer)),
                Value::text(&supplier.address),
                Value::text(&supplier.phone),
                Value::text(&supplier.comment),
            ]
        })
        .collect()
    }

    pub(super) fn important_stock(&self, nation: usize) -> Answer {
        let mut values: BTreeMap<u32, i128> = BTreeMap::new();
        for offer in &self.part_suppliers {
            if self.supplier(offer.supplier).nation as usize == nation {
                *values.entry(offer.part).or_default() +=
                    i128::from(offer.cost_cents) * i128::from(offer.available);
            }
        }
        let total: i128 = values.values().sum();
        // More than 0.0001 / SF of all, with the scale factor in hundredths.
        let hundredths = i128::from(self.population.scale.hundredths());
        let rows: Vec<(u32, i128)> =
            values.into_iter().filter(|(_, value)| value * hundredths * 100 > total).collect();
        top(rows, usize::MAX, |(part, value)| (-value, *part))
            .into_iter()
            .map(|(part, value)| vec![Value::integer(part), Value::cents(value)])
            .collect()
    }

    pub(super) fn top_supplier(&self, days: Range<Day>) -> Answer {
        let mut sums: BTreeMap<u32, i128> = BTreeMap::new();
        for (_, line) in self.lines().filter(|(_, line)| days.contains(&line.shipped)) {
            *sums.entry(line.supplier).or_default() += line.revenue();
        }
        let most = sums.values().max().copied();
        sums.into_iter()
            .filter(|(_, sum)| Some(*sum) == most)
            .map(|(key, sum)| {
                let supplier = self.supplier(key);
                vec![
                    Value::integer(key),
                    Value::text(&supplier.name),
                    Value::text(&supplier.address),
                    Value::text(&supplier.phone),
                    Value::Decimal { unscaled: sum, scale: 4 },
                ]
            })
            .collect()
    }

    pub(super) fn part_supplier_relationship(
        &self,
        brand: u32,
        kind_start: &str,
        sizes: &[u32; 8],
    ) -> Answer {
        let has_complaints = |comment: &str| {
            comment.find("Customer").is_some_and(|at| comment[at..].contains("Complaints"))
        };
        let mut groups: BTreeMap<(u32, &str, u32), BTreeSet<u32>> = BTreeMap::new();
        for offer in &self.part_suppliers {
            let part = self.part(offer.part);
            let is_meant = part.brand != brand
                && !part.kind.starts_with(kind_start)
                && sizes.contains(&part.size)
                && !has_complaints(&self.supplier(offer.supplier).comment);
            if is_meant {
                let key = (part.brand, part.kind.as_str(), part.size);
                groups.entry(key).or_default().insert(offer.supplier);
            }
        }
        let rows: Vec<_> = groups.into_iter().collect();
        top(rows, usize::MAX, |(key, suppliers)| (std::cmp::Reverse(suppliers.len()), *key))
            .into_iter()
            .map(|((brand, kind, size), suppliers)| {
                vec![
                    Value::text(format!("Brand#{brand}")),
                    Value::text(kind),
                    Value::integer(size),
                    Value::integer(suppliers.len() as i64),
                ]
            })
            .collect()
    }

    pub(super) fn potential_promotion(&self, color: &str, year: i32, nation: usize) -> Answer {
        let mut shipped: HashMap<(u32, u32), i64> = HashMap::new();
        for (_, line) in self.lines().filter(|(_, line)| is_in_year(line.shipped, year)) {
            *shipped.entry((line.part, line.supplier)).or_default() += line.quantity;
        }
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for offer in &self.part_suppliers {
            let supplier = self.supplier(offer.supplier);
            if supplier.nation as usize != nation || !self.part(offer.part).name.starts_with(color)
            {
                continue;
            }
            // More than half of what was shipped, if anything was.
            let quantity = shipped.get(&(offer.part, offer.supplier));
            if quantity.is_some_and(|quantity| i64::from(offer.available) * 2 > *quantity) {
                names.insert(&supplier.name, &supplier.address);
            }
        }
        let row = |(name, address): (&str, &str)| vec![Value::text(name), Value::text(address)];
        names.into_iter().map(row).collect()
    }

    pub(super) fn suppliers_kept_waiting(&self, nation: usize) -> Answer {
        let mut counts: HashMap<u32, i64> = HashMap::new();
        for order in self.orders.iter().filter(|order| order.status == 'F') {
            let is_late = |line: &&crate::warehouse::Line| line.received > line.committed;
            for line in order.lines.iter().filter(is_late) {
                let is_other = |other: &&crate::warehouse::Line| other.supplier != line.supplier;
                let others = || order.lines.iter().filter(is_other);
                if self.supplier(line.supplier).nation as usize == nation
                    && others().next().is_some()
                    && !others().any(|other| is_late(&other))
                {
                    *counts.entry(line.supplier).or_default() += 1;
                }
            }
        }
        top(counts.into_iter().collect(), 100, |(key, count)| (-count, *key))
            .into_iter()
            .map(|(key, count)| vec![Value::text(&self.supplier(key).name), Value::integer(count)])
            .collect()
    }
}
