//! Answers about customers: returned items, distribution of orders, prospects.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::{Answer, Tables, Value, top};
use crate::warehouse::Day;
use crate::warehouse::words::NATIONS;

impl Tables {
    pub(super) fn returned_items(&self, days: Range<Day>) -> Answer {
        let mut sums: HashMap<u32, i128> = HashMap::new();
        for (order, line) in self.lines().filter(|(order, _)| days.contains(&order.date)) {
            if line.return_flag == 'R' {
                *sums.entry(order.customer).or_default() += line.revenue();
            }
        }
        top(sums.into_iter().collect(), 20, |(customer, sum)| (-sum, *customer))
            .into_iter()
            .map(|(key, sum)| {
                let customer = self.customer(key);
                vec![
                    Value::integer(key),
                    Value::text(&customer.name),
                    Value::Decimal { unscaled: sum, scale: 4 },
                    Value::cents(customer.balance_cents),
                    Value::text(NATIONS[customer.nation as usize].0),
                    Value::text(&customer.address),
                    Value::text(&customer.phone),
                    Value::text(&customer.comment),
                ]
            })
            .collect()
    }

    pub(super) fn customer_distribution(&self, [first, second]: [&str; 2]) -> Answer {
        let is_excluded = |comment: &str| {
            comment.find(first).is_some_and(|at| comment[at + first.len()..].contains(second))
        };
        let mut orders = vec![0u32; self.customers.len()];
        for order in self.orders.iter().filter(|order| !is_excluded(&order.comment)) {
            orders[order.customer as usize - 1] += 1;
        }
        let mut customers: BTreeMap<u32, i64> = BTreeMap::new();
        for count in orders {
            *customers.entry(count).or_default() += 1;
        }
        let mut rows: Vec<(u32, i64)> = customers.into_iter().collect();
        rows.sort_by_key(|(count, customers)| Reverse((*customers, *count)));
        rows.into_iter()
            .map(|(count, customers)| vec![Value::integer(count), Value::integer(customers)])
            .collect()
    }

    pub(super) fn global_sales(&self, codes: &[u32; 7]) -> Answer {
        let meant: Vec<_> = self
            .customers
            .iter()
            .filter(|customer| codes.contains(&(customer.nation + 10)))
            .collect();
        let positive =
            || meant.iter().map(|customer| customer.balance_cents).filter(|cents| *cents > 0);
        let (sum, count) = (positive().sum::<i64>(), positive().count() as i64);
        let mut has_orders = vec![false; self.customers.len()];
        for order in &self.orders {
            has_orders[order.customer as usize - 1] = true;
        }
        let mut groups: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
        for customer in meant {
            // Above the mean of the positive balances.
            let is_above = count > 0 && customer.balance_cents * count > sum;
            if is_above && !has_orders[customer.key as usize - 1] {
                let (customers, cents) = groups.entry(customer.nation + 10).or_default();
                *customers += 1;
                *cents += customer.balance_cents;
            }
        }
        let row = |(code, (customers, cents)): (u32, (i64, i64))| {
            vec![Value::text(code.to_string()), Value::integer(customers), Value::cents(cents)]
        };
        groups.into_iter().map(row).collect()
    }
}
