//! Terminals: reproducible, bound to their homes, exact in their mix, bounded in their pacing.

use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use sha2::{Digest, Sha256};
use underlay_core::{Nanos, RootSeed};
use underlay_workload::tpcc::{
    Entropy, HomeWarehouse, Parameters, Terminal, Tpcc, Transaction, TransactionType, Variability,
    deck,
};

fn parameters(warehouses: u32, seed: u64) -> Parameters {
    Parameters::new(warehouses, RootSeed(seed), Entropy::FULL).unwrap()
}

fn take(terminal: &mut Terminal, count: usize) -> Vec<Transaction> {
    (0..count).map(|_| terminal.next()).collect()
}

fn first(parameters: &Parameters, user: u64, count: usize) -> Vec<Transaction> {
    take(&mut Terminal::new(parameters, user), count)
}

#[test]
fn transactions_of_seed_42_never_change() {
    // When this hash changes on purpose, raise `INPUTS_GENERATION` in `identity.rs`.
    let mut hash = Sha256::new();
    for user in [0, 1, 49, 50, 12_345] {
        for transaction in first(&parameters(5, 42), user, 230) {
            hash.update(format!("{transaction:?}\n"));
        }
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, "207aec1fa27ce9de633caa8f257a1f445ed2c53616d9e5dbfa3ccdc937da0314");
}

#[test]
fn users_spread_over_warehouses_first_then_over_districts() {
    let parameters = parameters(3, 1);
    let home = |user| {
        let terminal = Terminal::new(&parameters, user);
        (terminal.warehouse(), terminal.district())
    };
    let homes: Vec<(u32, u32)> = (0..5).map(home).collect();
    assert_eq!(homes, [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)]);
    assert_eq!(home(29), (3, 10));
    // The eleventh user of a warehouse shares a home with the first, not its inputs.
    assert_eq!(home(30), (1, 1));
    assert_ne!(first(&parameters, 0, 23), first(&parameters, 30, 23));
    let mut homes: Vec<(u32, u32)> = (0..30).map(home).collect();
    homes.sort_unstable();
    homes.dedup();
    assert_eq!(homes.len(), 30);
    assert_eq!(home(u64::MAX).0, (u64::MAX % 3) as u32 + 1);
}

#[test]
fn repeats_may_have_inputs_of_their_own() {
    let parameters = parameters(3, 1);
    let repeat = |number| {
        let inputs = parameters.seed.child("repeat", number);
        let mut terminal = Terminal::with_inputs(&parameters, 4, inputs);
        assert_eq!((terminal.warehouse(), terminal.district()), (2, 2));
        take(&mut terminal, 46)
    };
    assert_eq!(repeat(1), repeat(1));
    assert_ne!(repeat(1), repeat(2));
}

fn drawn(warehouses: u32, seed: u64) -> Tpcc {
    let workload = Tpcc::new(parameters(warehouses, seed));
    Tpcc { home_warehouse: HomeWarehouse::Drawn, ..workload }
}

/// The home warehouse that a transaction was made for.
fn home_of(transaction: &Transaction) -> u32 {
    match transaction {
        Transaction::NewOrder(order) => order.warehouse,
        Transaction::Payment(payment) => payment.warehouse,
        Transaction::OrderStatus(status) => status.warehouse,
        Transaction::Delivery(delivery) => delivery.warehouse,
        Transaction::StockLevel(level) => level.warehouse,
    }
}

#[test]
fn one_user_with_drawn_homes_reaches_all_warehouses_alike() {
    let mut terminal = Terminal::of(&drawn(8, 42), 0, RootSeed(42));
    let mut counts = [0u64; 8];
    for transaction in take(&mut terminal, 8_000) {
        counts[home_of(&transaction) as usize - 1] += 1;
    }
    // 1,000 each; six standard deviations of a binomial count are 178.
    assert!(counts.iter().all(|count| (822..1_178).contains(count)), "{counts:?}");
    let fixed = first(&parameters(8, 42), 0, 8_000);
    assert!(fixed.iter().all(|transaction| home_of(transaction) == 1));
}

#[test]
fn a_drawn_home_changes_nothing_else_of_the_rules() {
    let (workload, plain) = (drawn(8, 42), parameters(8, 42));
    let mut terminal = Terminal::of(&workload, 3, RootSeed(42));
    let (mut lines, mut remote) = (0, 0);
    for (transaction, fixed) in take(&mut terminal, 4_600).iter().zip(first(&plain, 3, 4_600)) {
        assert_eq!(transaction.transaction_type(), fixed.transaction_type());
        assert_eq!(terminal.district(), 1);
        match transaction {
            Transaction::NewOrder(order) => {
                let home = order.warehouse;
                lines += order.lines.len();
                remote += order.lines.iter().filter(|line| line.supply_warehouse != home).count();
            }
            Transaction::StockLevel(level) => assert_eq!(level.district, 1),
            _ => {}
        }
    }
    // 1 % of about 20,000 lines.
    assert!((100..300).contains(&(remote * 20_000 / lines)), "{remote} of {lines}");
}

#[test]
fn reachable_warehouses_follow_the_users_unless_homes_are_drawn() {
    let reachable = |home: HomeWarehouse, users| home.reachable(8, users);
    assert_eq!([1, 8, 16].map(|users| reachable(HomeWarehouse::Fixed, users)), [1, 8, 8]);
    assert_eq!([1, 8, 16].map(|users| reachable(HomeWarehouse::Drawn, users)), [8, 8, 8]);
    assert!(HomeWarehouse::Fixed.deviations().is_empty());
    assert_eq!(drawn(8, 1).deviations().count(), 1);
}

#[test]
fn a_single_warehouse_has_nothing_remote() {
    let mut variability = Variability::default();
    for user in 0..10 {
        for transaction in first(&parameters(1, 42), user, 2_300) {
            variability.record(&transaction);
            match transaction {
                Transaction::NewOrder(order) => assert!(order.all_local()),
                Transaction::Payment(payment) => {
                    assert_eq!(payment.customer_warehouse, 1);
                    assert_eq!(payment.customer_district, payment.district);
                }
                _ => {}
            }
        }
    }
    assert_eq!((variability.remote_lines, variability.remote_payments), (0, 0));
}

#[test]
fn keying_and_think_times_are_those_of_the_specification() {
    let terminal = Terminal::new(&parameters(1, 1), 0);
    let keying = TransactionType::ALL.map(|kind| terminal.keying_time(kind));
    assert_eq!(keying, [18, 3, 2, 2, 2].map(Nanos::from_secs));
    let think = TransactionType::ALL.map(underlay_workload::tpcc::pacing::think_time_mean);
    assert_eq!(think, [12, 12, 10, 5, 5].map(Nanos::from_secs));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_deck_has_the_exact_mix(seed in any::<u64>(), user in any::<u64>(), decks in 1usize..20) {
        let transactions = first(&parameters(7, seed), user, decks * deck::CARDS);
        for cards in transactions.chunks(deck::CARDS) {
            let count = |kind| cards.iter().filter(|card| card.transaction_type() == kind).count();
            prop_assert_eq!(TransactionType::ALL.map(count), deck::CARDS_PER_TYPE);
        }
    }

    #[test]
    fn inputs_depend_on_user_and_number_alone(
        seed in any::<u64>(),
        user in any::<u64>(),
        start in 0u64..100_000,
        thinks in 0usize..5,
    ) {
        let parameters = parameters(11, seed);
        let mut straight = Terminal::new(&parameters, user);
        straight.seek(start);
        let expected = take(&mut straight, 50);
        // The same from the end, with think times in between.
        let mut other = Terminal::new(&parameters, user);
        for (number, expected) in expected.iter().enumerate().rev() {
            other.seek(start + number as u64);
            for _ in 0..thinks {
                other.think_time(TransactionType::Payment);
            }
            prop_assert_eq!(&other.next(), expected);
            prop_assert_eq!(other.sequence(), start + number as u64 + 1);
        }
    }

    #[test]
    fn drawn_homes_depend_on_user_and_number_alone(
        warehouses in 1u32..=1_000,
        seed in any::<u64>(),
        user in any::<u64>(),
        start in 0u64..100_000,
    ) {
        let workload = drawn(warehouses, seed);
        let terminal = || Terminal::of(&workload, user, RootSeed(seed));
        let mut straight = terminal();
        straight.seek(start);
        let expected = take(&mut straight, 50);
        prop_assert!(expected.iter().all(|one| (1..=warehouses).contains(&home_of(one))));
        for (number, expected) in expected.iter().enumerate().rev() {
            let mut alone = terminal();
            alone.seek(start + number as u64);
            prop_assert_eq!(&alone.next(), expected);
            prop_assert_eq!(alone.warehouse(), home_of(expected));
        }
    }

    #[test]
    fn inputs_are_always_in_range(
        warehouses in 1u32..=1_000,
        seed in any::<u64>(),
        user in any::<u64>(),
    ) {
        let parameters = parameters(warehouses, seed);
        let mut terminal = Terminal::new(&parameters, user);
        let (home, district) = (terminal.warehouse(), terminal.district());
        prop_assert!((1..=warehouses).contains(&home) && (1..=10).contains(&district));
        for transaction in take(&mut terminal, 69) {
            match transaction {
                Transaction::NewOrder(order) => {
                    prop_assert_eq!(order.warehouse, home);
                    prop_assert!((1..=10).contains(&order.district));
                    prop_assert!((1..=3_000).contains(&order.customer));
                    prop_assert!((5..=15).contains(&order.lines.len()));
                    for line in &order.lines {
                        prop_assert!((1..=100_001).contains(&line.item));
                        prop_assert!((1..=warehouses).contains(&line.supply_warehouse));
                        prop_assert!((1..=10).contains(&line.quantity));
                    }
                }
                Transaction::Payment(payment) => {
                    prop_assert_eq!(payment.warehouse, home);
                    prop_assert!((1..=10).contains(&payment.district));
                    prop_assert!((1..=10).contains(&payment.customer_district));
                    prop_assert!((1..=warehouses).contains(&payment.customer_warehouse));
                    prop_assert!((100..=500_000).contains(&payment.amount_cents));
                }
                Transaction::OrderStatus(order_status) => {
                    prop_assert_eq!(order_status.warehouse, home);
                    prop_assert!((1..=10).contains(&order_status.district));
                }
                Transaction::Delivery(delivery) => {
                    prop_assert_eq!(delivery.warehouse, home);
                    prop_assert!((1..=10).contains(&delivery.carrier));
                }
                Transaction::StockLevel(stock_level) => {
                    prop_assert_eq!((stock_level.warehouse, stock_level.district), (home, district));
                    prop_assert!((10..=20).contains(&stock_level.threshold));
                }
            }
        }
    }

    #[test]
    fn think_times_are_bounded(seed in any::<u64>(), user in any::<u64>()) {
        let mut terminal = Terminal::new(&parameters(1, seed), user);
        for kind in TransactionType::ALL {
            let mean = underlay_workload::tpcc::pacing::think_time_mean(kind);
            for _ in 0..200 {
                prop_assert!(terminal.think_time(kind).0 <= 10 * mean.0);
            }
        }
    }
}
