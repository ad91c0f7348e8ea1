//! Answers about orders: priorities, modes of shipping, large ones.

use std::collections::BTreeMap;
use std::ops::Range;

use super::tables::is_in_year;
use super::{Answer, Tables, Value, top};
use crate::warehouse::Day;

impl Tables {
    pub(super) fn shipping_priority(&self, segment: &str, date: Day) -> Answer {
        let mut rows = Vec::new();
        for order in self.orders.iter().filter(|order| order.date < date) {
            if self.customer(order.customer).segment != segment {
                continue;
            }
            let unshipped = order.lines.iter().filter(|line| line.shipped > date);
            let revenues: Vec<i128> = unshipped.map(|line| line.revenue()).collect();
            if !revenues.is_empty() {
                rows.push((revenues.iter().sum::<i128>(), order));
            }
        }
        top(rows, 10, |(revenue, order)| (-revenue, order.date, order.key))
            .into_iter()
            .map(|(revenue, order)| {
                vec![
                    Value::integer(order.key),
                    Value::Decimal { unscaled: revenue, scale: 4 },
                    Value::Day(order.date),
                    Value::integer(0),
                ]
            })
            .collect()
    }

    pub(super) fn order_priority(&self, days: Range<Day>) -> Answer {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for order in self.orders.iter().filter(|order| days.contains(&order.date)) {
            if order.lines.iter().any(|line| line.committed < line.received) {
                *counts.entry(order.priority).or_default() += 1;
            }
        }
        let row = |(priority, count)| vec![Value::text(priority), Value::integer(count)];
        counts.into_iter().map(row).collect()
    }

    pub(super) fn shipping_modes(&self, modes: [&str; 2], year: i32) -> Answer {
        let mut counts: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (order, line) in self.lines() {
            let is_meant = modes.contains(&line.mode)
                && line.shipped < line.committed
                && line.committed < line.received
                && is_in_year(line.received, year);
            if is_meant {
                let (high, low) = counts.entry(line.mode).or_default();
                let is_high = ["1-URGENT", "2-HIGH"].contains(&order.priority);
                *if is_high { high } else { low } += 1;
            }
        }
        let row = |(mode, (high, low)): (&str, (i64, i64))| {
            vec![Value::text(mode), Value::integer(high), Value::integer(low)]
        };
        counts.into_iter().map(row).collect()
    }

    pub(super) fn large_volume_customers(&self, quantity: i64) -> Answer {
        let sum = |order: &crate::warehouse::Order| {
            order.lines.iter().map(|line| line.quantity).sum::<i64>()
        };
        let rows: Vec<_> = self.orders.iter().filter(|order| sum(order) > quantity).collect();
        top(rows, 100, |order| (-order.total_cents, order.date, order.key))
            .into_iter()
            .map(|order| {
                vec![
                    Value::text(&self.customer(order.customer).name),
                    Value::integer(order.customer),
                    Value::integer(order.key),
                    Value::Day(order.date),
                    Value::cents(order.total_cents),
                    Value::integer(sum(order)),
                ]
            })
            .collect()
    }
}
