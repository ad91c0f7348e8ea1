//! Answers about lines: sums of revenue, by flags, years, nations and parts.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::tables::{is_in, is_in_year};
use super::{Answer, Tables, Value};
use crate::warehouse::Day;
use crate::warehouse::words::NATIONS;

/// Sum of products of a price in cents and a rate in hundredths.
fn revenue(sum: i128) -> Value {
    Value::Decimal { unscaled: sum, scale: 4 }
}

/// What shipping and market questions look at.
const TWO_YEARS: Range<Day> = Day::new(1995, 1, 1)..Day::new(1997, 1, 1);

#[derive(Default)]
struct Summary {
    quantity: i128,
    price: i128,
    discounted: i128,
    charged: i128,
    discount: i128,
    lines: i128,
}

impl Tables {
    pub(super) fn pricing_summary(&self, last_shipped: Day) -> Answer {
        let mut groups: BTreeMap<(char, char), Summary> = BTreeMap::new();
        for (_, line) in self.lines().filter(|(_, line)| line.shipped <= last_shipped) {
            let sum = groups.entry((line.return_flag, line.status)).or_default();
            sum.quantity += i128::from(line.quantity);
            sum.price += i128::from(line.price_cents);
            sum.discounted += line.revenue();
            sum.charged += line.revenue() * i128::from(100 + line.tax);
            sum.discount += i128::from(line.discount);
            sum.lines += 1;
        }
        let row = |((flag, status), sum): ((char, char), Summary)| {
            let average =
                |numerator, unit| Value::Ratio { numerator, denominator: sum.lines * unit };
            vec![
                Value::text(flag),
                Value::text(status),
                Value::integer(sum.quantity),
                Value::cents(sum.price),
                revenue(sum.discounted),
                Value::Decimal { unscaled: sum.charged, scale: 6 },
                average(sum.quantity, 1),
                average(sum.price, 100),
                average(sum.discount, 100),
                Value::integer(sum.lines),
            ]
        };
        groups.into_iter().map(row).collect()
    }

    pub(super) fn local_supplier_volume(&self, region: usize, year: i32) -> Answer {
        let mut sums: BTreeMap<u32, i128> = BTreeMap::new();
        for (order, line) in self.lines().filter(|(order, _)| is_in_year(order.date, year)) {
            let nation = self.customer(order.customer).nation;
            if is_in(nation, region) && self.supplier(line.supplier).nation == nation {
                *sums.entry(nation).or_default() += line.revenue();
            }
        }
        let mut rows: Vec<(u32, i128)> = sums.into_iter().collect();
        rows.sort_by_key(|(nation, sum)| (-sum, NATIONS[*nation as usize].0));
        rows.into_iter()
            .map(|(nation, sum)| vec![Value::text(NATIONS[nation as usize].0), revenue(sum)])
            .collect()
    }

    pub(super) fn forecast_revenue(&self, year: i32, discount: i64, quantity: i64) -> Answer {
        let is_meant = |line: &crate::warehouse::Line| {
            is_in_year(line.shipped, year)
                && (discount - 1..=discount + 1).contains(&line.discount)
                && line.quantity < quantity
        };
        let lines = self.lines().map(|(_, line)| line).filter(|line| is_meant(line));
        let products: Vec<i128> =
            lines.map(|line| i128::from(line.price_cents * line.discount)).collect();
        let sum = if products.is_empty() { Value::Null } else { revenue(products.iter().sum()) };
        vec![vec![sum]]
    }

    pub(super) fn volume_shipping(&self, nations: [usize; 2]) -> Answer {
        let mut sums: BTreeMap<(&str, &str, i32), i128> = BTreeMap::new();
        for (order, line) in self.lines().filter(|(_, line)| TWO_YEARS.contains(&line.shipped)) {
            let from = self.supplier(line.supplier).nation as usize;
            let to = self.customer(order.customer).nation as usize;
            if [from, to] == nations || [to, from] == nations {
                let key = (NATIONS[from].0, NATIONS[to].0, line.shipped.year());
                *sums.entry(key).or_default() += line.revenue();
            }
        }
        let row = |((from, to, year), sum): ((&str, &str, i32), i128)| {
            vec![Value::text(from), Value::text(to), Value::integer(year), revenue(sum)]
        };
        sums.into_iter().map(row).collect()
    }

    pub(super) fn market_share(&self, nation: usize, kind: &str) -> Answer {
        let region = NATIONS[nation].1;
        let mut sums: BTreeMap<i32, (i128, i128)> = BTreeMap::new();
        for (order, line) in self.lines().filter(|(order, _)| TWO_YEARS.contains(&order.date)) {
            if self.part(line.part).kind == kind
                && is_in(self.customer(order.customer).nation, region)
            {
                let (own, all) = sums.entry(order.date.year()).or_default();
                *all += line.revenue();
                if self.supplier(line.supplier).nation as usize == nation {
                    *own += line.revenue();
                }
            }
        }
        let row = |(year, (numerator, denominator))| {
            vec![Value::integer(year), Value::Ratio { numerator, denominator }]
        };
        sums.into_iter().map(row).collect()
    }

    pub(super) fn product_type_profit(&self, color: &str) -> Answer {
        // Years descend.
        let mut sums: BTreeMap<(&str, std::cmp::Reverse<i32>), i128> = BTreeMap::new();
        for (order, line) in self.lines() {
            if !self.part(line.part).name.contains(color) {
                continue;
            }
            let cost = self.part_supplier(line.part, line.supplier).cost_cents * line.quantity;
            let nation = NATIONS[self.supplier(line.supplier).nation as usize].0;
            let key = (nation, std::cmp::Reverse(order.date.year()));
            *sums.entry(key).or_default() += line.revenue() - 100 * i128::from(cost);
        }
        let row = |((nation, year), sum): ((&str, std::cmp::Reverse<i32>), i128)| {
            vec![Value::text(nation), Value::integer(year.0), revenue(sum)]
        };
        sums.into_iter().map(row).collect()
    }

    pub(super) fn promotion_effect(&self, days: Range<Day>) -> Answer {
        let (mut promoted, mut all) = (0, 0);
        for (_, line) in self.lines().filter(|(_, line)| days.contains(&line.shipped)) {
            all += line.revenue();
            if self.part(line.part).kind.starts_with("PROMO") {
                promoted += line.revenue();
            }
        }
        vec![vec![Value::Ratio { numerator: 100 * promoted, denominator: all }]]
    }

    pub(super) fn small_quantity_revenue(&self, brand: u32, container: &str) -> Answer {
        let mut of_part: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
        for (_, line) in self.lines() {
            let part = self.part(line.part);
            if part.brand == brand && part.container == container {
                of_part.entry(line.part).or_default().push((line.quantity, line.price_cents));
            }
        }
        let mut small: Vec<i128> = Vec::new();
        for lines in of_part.values() {
            let total: i64 = lines.iter().map(|(quantity, _)| quantity).sum();
            let count = lines.len() as i64;
            // Less than a fifth of the mean.
            let is_small = |quantity: i64| 5 * count * quantity < total;
            small.extend(
                lines
                    .iter()
                    .filter(|(quantity, _)| is_small(*quantity))
                    .map(|(_, cents)| i128::from(*cents)),
            );
        }
        let value = match small.len() {
            0 => Value::Null,
            _ => Value::Ratio { numerator: small.iter().sum(), denominator: 700 },
        };
        vec![vec![value]]
    }

    pub(super) fn discounted_revenue(&self, quantities: [i64; 3], brands: [u32; 3]) -> Answer {
        const SIZES: [(&str, [&str; 4], u32); 3] = [
            ("SM", ["CASE", "BOX", "PACK", "PKG"], 5),
            ("MED", ["BAG", "BOX", "PKG", "PACK"], 10),
            ("LG", ["CASE", "BOX", "PACK", "PKG"], 15),
        ];
        let mut sum = None;
        for (_, line) in self.lines() {
            // The specification asks for modes "AIR" and "AIR REG", of which there is only the first.
            if line.mode != "AIR" || line.instruction != "DELIVER IN PERSON" {
                continue;
            }
            let part = self.part(line.part);
            let is_meant = (0..3).any(|case| {
                let (size, kinds, largest) = SIZES[case];
                let fits = part
                    .container
                    .split_once(' ')
                    .is_some_and(|(of_size, kind)| of_size == size && kinds.contains(&kind));
                fits && part.brand == brands[case]
                    && (1..=largest).contains(&part.size)
                    && (quantities[case]..=quantities[case] + 10).contains(&line.quantity)
            });
            if is_meant {
                *sum.get_or_insert(0) += line.revenue();
            }
        }
        vec![vec![sum.map_or(Value::Null, revenue)]]
    }
}
