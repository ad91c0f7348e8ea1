//! The warehouse's population and questions: the specification's rules, and rows that never change.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sha2::{Digest, Sha256};
use underlay_core::RootSeed;
use underlay_workload::warehouse::answers::Tables;
use underlay_workload::warehouse::words::NATIONS;
use underlay_workload::warehouse::{
    Day, Population, Query, Refreshed, Scale, order_of_stream, retail_price_cents,
};

fn population(hundredths: u32, seed: u64) -> Population {
    Population { scale: Scale::from_hundredths(hundredths).unwrap(), seed: RootSeed(seed) }
}

fn hash(rows: impl Iterator<Item = String>) -> String {
    let mut hash = Sha256::new();
    rows.for_each(|row| hash.update(row));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What was loaded by a released version must be what a later one checks.
#[test]
fn rows_and_questions_are_those_of_released_versions() {
    let p = population(1, 42);
    let found = [
        hash((0..25).map(|key| format!("{:?}", (p.nation(key), p.region(key % 5))))),
        hash((1..=100).map(|key| format!("{:?}", p.supplier(key)))),
        hash((1..=2000).map(|key| format!("{:?}", p.part(key)))),
        hash((1..=2000).map(|key| format!("{:?}", p.part_supplier(key, key % 4)))),
        hash((1..=1500).map(|key| format!("{:?}", p.customer(key)))),
        hash((0..2000).map(|index| format!("{:?}", p.order(index)))),
        hash((0..100).map(|n| format!("{:?}", p.query(n / 22, (n % 22) as u8 + 1)))),
    ];
    assert_eq!(
        found,
        [
            "6adcf932080a3f27",
            "c7b2e8b57424ebe5",
            "08bc04fa187ca1a9",
            "8043ddbe28e58e0d",
            "59ff569da1d26019",
            "220f47ba80753108",
            "ff6657dea410f6c3"
        ]
    );
}

/// The evaluator is the judge of databases; this is the judge of the evaluator's changes.
#[test]
fn answers_are_those_of_released_versions() {
    let p = population(1, 42);
    let tables = Tables::generate(p, Refreshed { inserted: 1, deleted: 1 });
    let answers: Vec<_> = (1..=22).map(|number| tables.answer(&p.query(0, number))).collect();
    // Few orders are large enough for the 18th; all others have something to say.
    let silent = answers.iter().filter(|answer| answer.is_empty()).count();
    assert!(silent <= 3, "{silent} answers are empty");
    assert_eq!(hash(answers.iter().map(|answer| format!("{answer:?}"))), "3ffba042589ed7b7");
}

#[test]
fn every_part_has_four_suppliers_and_every_line_one_of_them() {
    for hundredths in [1, 2, 3, 4, 5, 7, 10, 100] {
        let p = population(hundredths, 1);
        for part in 1..=p.scale.parts() {
            let suppliers: BTreeSet<u32> = (0..4).map(|which| p.supplier_of(part, which)).collect();
            assert_eq!(suppliers.len(), 4, "part {part} at {}", p.scale);
            assert!(suppliers.range(..1).next().is_none());
            assert!(suppliers.last().is_some_and(|key| *key <= p.scale.suppliers()));
        }
    }
    assert_eq!(retail_price_cents(1), 90_100);
    assert_eq!(retail_price_cents(200_000), 90_000 + 20_000);
}

proptest! {
    #[test]
    fn orders_keep_the_rules(hundredths in 1u32..300, seed: u64, part in 0.0f64..1.0) {
        let p = population(hundredths, seed);
        let last = p.scale.orders() + 1000 * p.scale.refresh_orders();
        let index = (part * last as f64) as u64;
        let order = p.order(index);
        prop_assert_eq!(&order, &p.order(index));
        // Eight of 32 keys are loaded, eight are inserted.
        let inserted = index >= p.scale.orders();
        prop_assert_eq!((order.key - 1) % 32 / 8, u64::from(inserted));
        prop_assert!(!order.customer.is_multiple_of(3) && (1..=p.scale.customers()).contains(&order.customer));
        prop_assert!((1..=7).contains(&order.lines.len()));
        prop_assert!((Day::START..=Day::new(1998, 8, 2)).contains(&order.date));
        let mut total = 0;
        for line in &order.lines {
            prop_assert!((0..4).any(|which| p.supplier_of(line.part, which) == line.supplier));
            prop_assert!((1..=50).contains(&line.quantity));
            prop_assert!((0..=10).contains(&line.discount) && (0..=8).contains(&line.tax));
            prop_assert_eq!(line.price_cents, line.quantity * retail_price_cents(line.part));
            prop_assert!((1..=121).contains(&(line.shipped.0 - order.date.0)));
            prop_assert!((30..=90).contains(&(line.committed.0 - order.date.0)));
            prop_assert!((1..=30).contains(&(line.received.0 - line.shipped.0)));
            prop_assert_eq!(line.status == 'O', line.shipped > Day::CURRENT);
            prop_assert_eq!(line.return_flag == 'N', line.received > Day::CURRENT);
            prop_assert!((10..=43).contains(&line.comment.len()));
            total += line.price_cents * (100 + line.tax) * (100 - line.discount);
        }
        prop_assert!((order.total_cents * 10_000 - total).abs() <= 5_000);
        let open = order.lines.iter().filter(|line| line.status == 'O').count();
        let status = if open == 0 { 'F' } else if open == order.lines.len() { 'O' } else { 'P' };
        prop_assert_eq!(order.status, status);
    }

    #[test]
    fn questions_are_within_their_ranges(seed: u64, stream in 0u32..50) {
        let p = population(1, seed);
        for number in order_of_stream(stream) {
            let query = p.query(stream, *number);
            prop_assert_eq!(&query, &p.query(stream, *number));
            match query {
                Query::PricingSummary { last_shipped } => {
                    let days = Day::new(1998, 12, 1).0 - last_shipped.0;
                    prop_assert!((60..=120).contains(&days));
                }
                Query::VolumeShipping { nations: [a, b] } => prop_assert!(a != b && b < NATIONS.len()),
                Query::ShippingModes { modes: [a, b], .. } => prop_assert_ne!(a, b),
                Query::OrderPriority { from, to } | Query::TopSupplier { from, to } => {
                    prop_assert!(from >= Day::new(1993, 1, 1) && from <= Day::new(1997, 10, 1));
                    prop_assert!((89..=92).contains(&(to.0 - from.0)));
                }
                Query::ReturnedItems { from, .. } => {
                    prop_assert!(from >= Day::new(1993, 2, 1) && from <= Day::new(1995, 1, 1));
                }
                Query::PromotionEffect { from, to } => {
                    prop_assert!(from >= Day::new(1993, 1, 1) && to <= Day::new(1998, 1, 1));
                    prop_assert!((28..=31).contains(&(to.0 - from.0)));
                }
                Query::PartSupplierRelationship { sizes, .. } => {
                    prop_assert_eq!(BTreeSet::from(sizes).len(), 8);
                    prop_assert!(sizes.iter().all(|size| (1..=50).contains(size)));
                }
                Query::GlobalSales { codes } => {
                    prop_assert_eq!(BTreeSet::from(codes).len(), 7);
                    prop_assert!(codes.iter().all(|code| (10..=34).contains(code)));
                }
                Query::ForecastRevenue { year, discount, quantity } => {
                    prop_assert!((1993..=1997).contains(&year) && (2..=9).contains(&discount));
                    prop_assert!((24..=25).contains(&quantity));
                }
                Query::LargeVolumeCustomers { quantity } => prop_assert!((312..=315).contains(&quantity)),
                _ => {}
            }
        }
    }
}

#[test]
fn the_population_has_the_shares_of_the_specification() {
    let p = population(10, 7);
    let mut lines = 0usize;
    let mut customers = BTreeSet::new();
    let mut priorities: BTreeMap<&str, f64> = BTreeMap::new();
    let mut modes: BTreeMap<&str, f64> = BTreeMap::new();
    let orders = 20_000;
    for index in 0..orders {
        let order = p.order(index);
        lines += order.lines.len();
        customers.insert(order.customer);
        *priorities.entry(order.priority).or_default() += 1.0;
        for line in &order.lines {
            *modes.entry(line.mode).or_default() += 1.0;
        }
    }
    assert!((lines as f64 / orders as f64 - 4.0).abs() < 0.05, "{lines}");
    // Chi-square at 0.001: 18.47 for 4 degrees of freedom, 22.46 for 6.
    let chi_square = |counts: &BTreeMap<&str, f64>| {
        let mean = counts.values().sum::<f64>() / counts.len() as f64;
        counts.values().map(|count| (count - mean) * (count - mean) / mean).sum::<f64>()
    };
    assert!(priorities.len() == 5 && chi_square(&priorities) < 18.47, "{priorities:?}");
    assert!(modes.len() == 7 && chi_square(&modes) < 22.46, "{modes:?}");
    assert!(customers.len() > 8_000);

    let remarks = |word: &str| {
        (1..=p.scale.suppliers())
            .filter(|key| {
                let comment = p.supplier(*key).comment;
                comment.find("Customer").is_some_and(|at| comment[at..].contains(word))
            })
            .count()
    };
    assert_eq!((remarks("Complaints"), remarks("Recommends")), (1, 1));
    let p = population(100, 7);
    let remarks =
        (1..=p.scale.suppliers()).filter(|key| p.supplier(*key).comment.contains("Complaints"));
    assert_eq!(remarks.count(), 5);
}

#[test]
fn refreshes_replace_a_thousandth_and_keep_keys_apart() {
    let p = population(2, 3);
    let keys = |refreshed| p.orders(refreshed).map(|order| order.key).collect::<BTreeSet<u64>>();
    let before = keys(Refreshed::default());
    let after = keys(Refreshed { inserted: 2, deleted: 2 });
    assert_eq!((before.len(), after.len()), (30_000, 30_000));
    assert_eq!(before.difference(&after).count(), 60);
    assert_eq!(p.inserted_orders(1).start, p.inserted_orders(0).end);
    let gone: BTreeSet<u64> = p.deleted_orders(1).map(|index| p.order(index).key).collect();
    assert!(gone.is_subset(&before) && gone.is_disjoint(&after));
}
