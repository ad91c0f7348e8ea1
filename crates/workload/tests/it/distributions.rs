//! Every random choice has the distribution of the specification: chi-square tests on fixed seeds.
//!
//! A statistic is turned into standard deviations by the approximation of Wilson and Hilferty (1931):
//! the cube root of chi-square over its degrees of freedom is nearly normal. More than four of them
//! in either direction fails: too far from the expectation, or suspiciously close to it. Seeds
//! are fixed, so a test that passes once passes always. That the test can fail is a test, too.

use std::sync::OnceLock;

use rand::Rng;
use underlay_core::RootSeed;
use underlay_workload::tpcc::population::{CustomerRows, OrderLineRows, OrderRows, StockRows};
use underlay_workload::tpcc::{
    CustomerSelector, Entropy, NewOrder, Parameters, Payment, Terminal, Transaction,
    TransactionType, UNUSED_ITEM, names, nurand, pacing,
};

const WAREHOUSES: u32 = 20;
/// Standard deviations that are still chance.
const SIGMAS: f64 = 4.0;

/// How far `observed` is from the expected `weights`, in standard deviations. Neighbouring bins are
/// joined until each expects at least ten; a last bin that expects less is left out.
fn deviation(observed: &[u64], weights: &[u64]) -> f64 {
    assert_eq!(observed.len(), weights.len());
    let scale = observed.iter().sum::<u64>() as f64 / weights.iter().sum::<u64>() as f64;
    let (mut chi_square, mut bins) = (0.0, 0u32);
    let (mut seen, mut expected) = (0.0, 0.0);
    for (count, weight) in observed.iter().zip(weights) {
        seen += *count as f64;
        expected += *weight as f64 * scale;
        if expected >= 10.0 {
            chi_square += (seen - expected).powi(2) / expected;
            bins += 1;
            (seen, expected) = (0.0, 0.0);
        }
    }
    let degrees = f64::from(bins - 1);
    let spread = 2.0 / (9.0 * degrees);
    ((chi_square / degrees).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[track_caller]
fn assert_distribution(observed: &[u64], weights: &[u64]) {
    let deviation = deviation(observed, weights);
    assert!(deviation.abs() < SIGMAS, "{deviation} standard deviations");
}

#[track_caller]
fn assert_uniform(observed: &[u64]) {
    assert_distribution(observed, &vec![1; observed.len()]);
}

/// A share of `percent` among `count` draws; one degree of freedom is too few for the cube root.
#[track_caller]
fn assert_share(hits: u64, count: u64, percent: f64) {
    let share = percent / 100.0;
    let expected = count as f64 * share;
    let sigmas = (hits as f64 - expected) / (expected * (1.0 - share)).sqrt();
    assert!(sigmas.abs() < SIGMAS, "{hits} of {count} are {sigmas} standard deviations off");
}

/// How often each of `low..=high` occurs.
fn histogram(values: impl Iterator<Item = u32>, low: u32, high: u32) -> Vec<u64> {
    let mut counts = vec![0; (high - low + 1) as usize];
    values.for_each(|value| counts[(value - low) as usize] += 1);
    counts
}

/// The exact weights of NURand(`a`, `low`, `high`): how many pairs give each value.
///
/// The number of pairs with `skew | value` inside a set of bits is a product, so the counts of
/// the OR come from sums over subsets and their inverse.
fn nurand_weights(a: u32, c: u32, low: u32, high: u32) -> Vec<u64> {
    let size = (a.max(high) + 1).next_power_of_two() as usize;
    let indicator = |range: std::ops::RangeInclusive<u32>| {
        let mut sums: Vec<i64> =
            (0..size as u32).map(|value| i64::from(range.contains(&value))).collect();
        subset_sums(&mut sums, 1);
        sums
    };
    let mut pairs: Vec<i64> =
        indicator(0..=a).iter().zip(indicator(low..=high)).map(|(x, y)| x * y).collect();
    subset_sums(&mut pairs, -1);
    let values = (high - low + 1) as usize;
    let mut weights = vec![0; values];
    for (or, count) in pairs.iter().enumerate() {
        weights[(or + c as usize) % values] += u64::try_from(*count).unwrap();
    }
    assert_eq!(weights.iter().sum::<u64>(), u64::from(a + 1) * u64::from(high - low + 1));
    weights
}

/// Replaces each value by the sum over all subsets of its index, or with `sign` -1 undoes it.
fn subset_sums(values: &mut [i64], sign: i64) {
    let mut bit = 1;
    while bit < values.len() {
        for index in (0..values.len()).filter(|index| index & bit != 0) {
            values[index] += sign * values[index ^ bit];
        }
        bit <<= 1;
    }
}

fn parameters() -> Parameters {
    Parameters::new(WAREHOUSES, RootSeed(42), Entropy::FULL).unwrap()
}

/// 460,000 transactions of 200 users, 100 decks each.
fn transactions() -> &'static [Transaction] {
    static TRANSACTIONS: OnceLock<Vec<Transaction>> = OnceLock::new();
    TRANSACTIONS.get_or_init(|| {
        let of_user = |user| {
            let mut terminal = Terminal::new(&parameters(), user);
            (0..2_300).map(move |_| terminal.next())
        };
        (0..u64::from(10 * WAREHOUSES)).flat_map(of_user).collect()
    })
}

fn new_orders() -> impl Iterator<Item = &'static NewOrder> {
    transactions().iter().filter_map(|transaction| match transaction {
        Transaction::NewOrder(order) => Some(order),
        _ => None,
    })
}

fn payments() -> impl Iterator<Item = &'static Payment> {
    transactions().iter().filter_map(|transaction| match transaction {
        Transaction::Payment(payment) => Some(payment),
        _ => None,
    })
}

/// The customers of one kind of transaction.
fn selectors(kind: TransactionType) -> impl Iterator<Item = &'static CustomerSelector> {
    transactions()
        .iter()
        .filter(move |transaction| transaction.transaction_type() == kind)
        .filter_map(|transaction| match transaction {
            Transaction::Payment(payment) => Some(&payment.customer),
            Transaction::OrderStatus(order_status) => Some(&order_status.customer),
            _ => None,
        })
}

fn name_number(name: &str) -> u32 {
    static NAMES: OnceLock<std::collections::HashMap<String, u32>> = OnceLock::new();
    let all = || (0..1_000).map(|number| (names::last_name(number), number)).collect();
    NAMES.get_or_init(all)[name]
}

#[test]
fn the_test_itself_accepts_chance_and_rejects_defects() {
    let mut random = RootSeed(5).stream("test", 0);
    let draws: Vec<u32> = (0..100_000).map(|_| (random.next_u64() >> 32) as u32 % 100).collect();
    assert_uniform(&histogram(draws.iter().copied(), 0, 99));
    // One value of a hundred comes three tenths too often.
    let mut skewed = histogram(draws.iter().copied(), 0, 99);
    skewed[7] += 300;
    assert!(deviation(&skewed, &[1; 100]) > SIGMAS);
    // Too regular to be random.
    assert!(deviation(&[1_000; 100], &[1; 100]) < -SIGMAS);
}

#[test]
fn nurand_weights_agree_with_counting_all_pairs() {
    let (a, c, low, high) = (255, 77, 0, 999);
    let mut counted = vec![0u64; 1_000];
    for skew in 0..=a {
        for value in low..=high {
            counted[((((skew | value) + c) % (high - low + 1)) + low) as usize] += 1;
        }
    }
    assert_eq!(nurand_weights(a, c, low, high), counted);
}

#[test]
fn nurand_has_its_exact_distribution() {
    let mut random = RootSeed(6).stream("test", 0);
    let mut draw = |function: fn(&mut _, u32) -> u32, c: u32, count: usize| -> Vec<u32> {
        (0..count).map(|_| function(&mut random, c)).collect()
    };
    let names = histogram(draw(nurand::last_name_number, 123, 300_000).into_iter(), 0, 999);
    assert_distribution(&names, &nurand_weights(255, 123, 0, 999));
    let customers = histogram(draw(nurand::customer, 987, 600_000).into_iter(), 1, 3_000);
    assert_distribution(&customers, &nurand_weights(1_023, 987, 1, 3_000));
    let items = histogram(draw(nurand::item, 5_000, 2_000_000).into_iter(), 1, 100_000);
    assert_distribution(&items, &nurand_weights(8_191, 5_000, 1, 100_000));
    // Neither a flat distribution nor another constant would pass.
    assert!(deviation(&items, &[1; 100_000]) > 100.0);
    assert!(deviation(&items, &nurand_weights(8_191, 5_001, 1, 100_000)) > 100.0);
    assert!(deviation(&customers, &nurand_weights(1_023, 988, 1, 3_000)) > 100.0);
    assert!(deviation(&names, &nurand_weights(255, 124, 0, 999)) > 100.0);
}

#[test]
fn order_customers_and_items_are_nurand_with_the_run_constants() {
    let constants = parameters().constants;
    let customers = histogram(new_orders().map(|order| order.customer), 1, 3_000);
    assert_distribution(&customers, &nurand_weights(1_023, constants.c_customer, 1, 3_000));
    let items = new_orders().flat_map(|order| &order.lines).map(|line| line.item);
    let items = histogram(items.filter(|item| *item != UNUSED_ITEM), 1, 100_000);
    assert_distribution(&items, &nurand_weights(8_191, constants.c_item, 1, 100_000));
}

#[test]
fn selected_customers_are_nurand_with_the_run_constants() {
    let constants = parameters().constants;
    for kind in [TransactionType::Payment, TransactionType::OrderStatus] {
        let names = selectors(kind).filter_map(|selector| match selector {
            CustomerSelector::ByLastName(name) => Some(name_number(name)),
            CustomerSelector::ById(_) => None,
        });
        let names = histogram(names, 0, 999);
        assert_distribution(&names, &nurand_weights(255, constants.c_run_last, 0, 999));
        let customers = selectors(kind).filter_map(|selector| match selector {
            CustomerSelector::ById(customer) => Some(*customer),
            CustomerSelector::ByLastName(_) => None,
        });
        let customers = histogram(customers, 1, 3_000);
        assert_distribution(&customers, &nurand_weights(1_023, constants.c_customer, 1, 3_000));
    }
}

#[test]
fn sixty_percent_select_by_name() {
    for kind in [TransactionType::Payment, TransactionType::OrderStatus] {
        let by_name =
            |selector: &&CustomerSelector| matches!(selector, CustomerSelector::ByLastName(_));
        let hits = selectors(kind).filter(by_name).count() as u64;
        assert_share(hits, selectors(kind).count() as u64, 60.0);
    }
}

#[test]
fn one_percent_roll_back_with_the_last_item() {
    let count = new_orders().count() as u64;
    assert_share(new_orders().filter(|order| order.rolls_back()).count() as u64, count, 1.0);
    for order in new_orders() {
        let (_, others) = order.lines.split_last().unwrap();
        assert!(others.iter().all(|line| line.item <= 100_000));
    }
}

#[test]
fn one_percent_of_the_lines_are_remote_from_any_other_warehouse() {
    let lines = || new_orders().flat_map(|order| order.lines.iter().map(move |line| (order, line)));
    let remote = || lines().filter(|(order, line)| line.supply_warehouse != order.warehouse);
    assert_share(remote().count() as u64, lines().count() as u64, 1.0);
    assert_uniform(&distances(
        remote().map(|(order, line)| (order.warehouse, line.supply_warehouse)),
    ));
}

#[test]
fn fifteen_percent_of_the_payments_are_remote_from_any_other_warehouse() {
    let remote = || payments().filter(|payment| payment.is_remote());
    assert_share(remote().count() as u64, payments().count() as u64, 15.0);
    assert_uniform(&distances(
        remote().map(|payment| (payment.warehouse, payment.customer_warehouse)),
    ));
    assert_uniform(&histogram(remote().map(|payment| payment.customer_district), 1, 10));
    let at_home = payments().filter(|payment| !payment.is_remote());
    for payment in at_home {
        assert_eq!(payment.customer_district, payment.district);
    }
}

/// How often each distance from home to another warehouse occurs, going round.
fn distances(pairs: impl Iterator<Item = (u32, u32)>) -> Vec<u64> {
    let distance = |(home, other): (u32, u32)| (other + WAREHOUSES - home) % WAREHOUSES;
    histogram(pairs.map(distance), 1, WAREHOUSES - 1)
}

#[test]
fn uniform_inputs_are_uniform() {
    assert_uniform(&histogram(new_orders().map(|order| order.district), 1, 10));
    assert_uniform(&histogram(new_orders().map(|order| order.lines.len() as u32), 5, 15));
    let lines = new_orders().flat_map(|order| &order.lines);
    assert_uniform(&histogram(lines.map(|line| line.quantity), 1, 10));
    assert_uniform(&histogram(payments().map(|payment| payment.district), 1, 10));
    let amounts: Vec<u32> = payments().map(|payment| payment.amount_cents as u32).collect();
    assert_uniform(&histogram(amounts.into_iter(), 100, 500_000));
    let carriers = transactions().iter().filter_map(|transaction| match transaction {
        Transaction::Delivery(delivery) => Some(delivery.carrier),
        _ => None,
    });
    assert_uniform(&histogram(carriers, 1, 10));
    let thresholds = transactions().iter().filter_map(|transaction| match transaction {
        Transaction::StockLevel(stock_level) => Some(stock_level.threshold),
        _ => None,
    });
    assert_uniform(&histogram(thresholds, 10, 20));
}

#[test]
fn every_card_is_equally_likely_at_every_place_of_the_deck() {
    for (kind, cards) in [
        (TransactionType::NewOrder, 10),
        (TransactionType::OrderStatus, 1),
        (TransactionType::Delivery, 1),
        (TransactionType::StockLevel, 1),
    ] {
        let mut places = vec![0u64; 23];
        for (place, transaction) in (0..23).cycle().zip(transactions()) {
            places[place] += u64::from(transaction.transaction_type() == kind);
        }
        assert_eq!(places.iter().sum::<u64>(), cards * 20_000);
        if cards == 1 {
            assert_uniform(&places);
        } else {
            // Places of one deck exclude each other: judge them one by one.
            places.iter().for_each(|hits| assert_share(*hits, 20_000, 1_000.0 / 23.0));
        }
    }
}

#[test]
fn one_transaction_says_nothing_about_the_next() {
    // Pairs of districts of successive new orders of the same user.
    let mut pairs = vec![0u64; 100];
    for user in transactions().chunks(2_300) {
        let districts: Vec<usize> = user
            .iter()
            .filter_map(|transaction| match transaction {
                Transaction::NewOrder(order) => Some(order.district as usize - 1),
                _ => None,
            })
            .collect();
        districts.chunks_exact(2).for_each(|pair| pairs[pair[0] * 10 + pair[1]] += 1);
    }
    assert_uniform(&pairs);
}

#[test]
fn users_are_independent() {
    // Pairs of customers' halves of two users with neighbouring numbers, at the same place.
    let mut pairs = vec![0u64; 100];
    let decks: Vec<&[Transaction]> = transactions().chunks(2_300).collect();
    for users in decks.chunks_exact(2) {
        let district = |transaction: &Transaction| match transaction {
            Transaction::NewOrder(order) => Some(order.district as usize - 1),
            Transaction::Payment(payment) => Some(payment.district as usize - 1),
            _ => None,
        };
        for (one, other) in users[0].iter().zip(users[1]) {
            if let (Some(one), Some(other)) = (district(one), district(other)) {
                pairs[one * 10 + other] += 1;
            }
        }
    }
    assert_uniform(&pairs);
}

#[test]
fn think_times_are_exponential_and_cut_at_ten_means() {
    let mut terminal = Terminal::new(&parameters(), 0);
    for kind in TransactionType::ALL {
        let mean = pacing::think_time_mean(kind).0 as f64;
        let times: Vec<f64> =
            (0..100_000).map(|_| terminal.think_time(kind).0 as f64 / mean).collect();
        assert!(times.iter().all(|time| (0.0..=10.0).contains(time)));
        // Twenty bins, equally likely under the exponential distribution; the cut moves 5 in 100,000.
        let bin = |time: f64| ((1.0 - (-time).exp()) * 20.0) as u32;
        assert_uniform(&histogram(times.iter().map(|time| bin(*time).min(19)), 0, 19));
    }
}

#[test]
fn the_population_is_distributed_as_specified() {
    let parameters = parameters();
    let mut last_names = vec![0u64; 1_000];
    let mut rows = CustomerRows::new(&parameters, 3);
    while let Some(row) = rows.next_row() {
        if row.customer > 1_000 {
            last_names[name_number(row.last.as_str()) as usize] += 1;
        }
    }
    let weights = nurand_weights(255, parameters.constants.c_load_last, 0, 999);
    assert_distribution(&last_names, &weights);

    let mut rows = StockRows::new(&parameters, 3);
    let mut quantities = vec![0u64; 91];
    while let Some(row) = rows.next_row() {
        quantities[row.quantity as usize - 10] += 1;
    }
    assert_uniform(&quantities);

    let (mut counts, mut carriers) = (vec![0u64; 11], vec![0u64; 10]);
    let mut rows = OrderRows::new(&parameters, 3);
    while let Some(row) = rows.next_row() {
        counts[row.line_count as usize - 5] += 1;
        if let Some(carrier) = row.carrier {
            carriers[carrier as usize - 1] += 1;
        }
    }
    assert_uniform(&counts);
    assert_uniform(&carriers);

    let (mut items, mut amounts) = (vec![0u64; 100_000], vec![0u64; 100]);
    let mut rows = OrderLineRows::new(&parameters, 3);
    while let Some(row) = rows.next_row() {
        items[row.item as usize - 1] += 1;
        if row.delivery_date.is_none() {
            amounts[row.amount_cents as usize / 10_000] += 1;
        }
    }
    assert_uniform(&items);
    assert_uniform(&amounts);
}
