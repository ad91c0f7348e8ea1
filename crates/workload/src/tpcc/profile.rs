//! Which rules a terminal follows: those of the specification, or those that HammerDB declares for itself.
//!
//! Many published results were made with HammerDB's TPROC-C. The profile `hammerdb-like` asks what its
//! virtual users ask, so that results can be compared with theirs; it copies none of its defects (wrong
//! balances, lost names, committed invalid orders, unbalanced population), so it is a similar load and not the same
//! benchmark. Every result made with it must say so: see [`Profile::deviations`].

use rand_pcg::Pcg64;
use underlay_core::Nanos;
use underlay_core::words;

use super::deck::{CARDS, CARDS_PER_TYPE};
use super::{TransactionType, pacing};
use crate::draw::{uniform, unit_interval};

words! {
    /// The rules of the terminals.
    #[derive(Default)]
    pub enum Profile: "profile" {
        /// Those of the specification.
        #[default]
        Specification = "specification",
        /// Those that HammerDB declares.
        HammerdbLike = "hammerdb-like",
    }
}

impl Profile {
    /// What deviates from the specification beyond what all of Underlay's results deviate in; one
    /// sentence each. Empty for the specification.
    pub const fn deviations(self) -> &'static [&'static str] {
        match self {
            Profile::Specification => &[],
            Profile::HammerdbLike => &[
                "hammerdb-like: customers and items are drawn uniformly, so there are no hot rows among them",
                "hammerdb-like: each user has one warehouse drawn at random, and several users may share it; \
                 districts are drawn per transaction",
                "hammerdb-like: the type of each transaction is drawn independently from 23 equally likely cards; \
                 there is no deck",
                "hammerdb-like: think times are whole seconds without an upper bound, their means 12 s, 12 s, \
                 5 s (order status), 10 s (delivery) and 5 s",
                "hammerdb-like: payments are whole amounts of money, 1 to 5,000",
                "hammerdb-like: the database draws the lines of an order and whether it rolls back, so they \
                 are not reproducible from the seed and cost the database's processor",
            ],
        }
    }
}

/// A card drawn with replacement.
pub(super) fn card(random: &mut Pcg64) -> TransactionType {
    let mut drawn = uniform(random, 0, CARDS as u32 - 1) as usize;
    for (kind, cards) in TransactionType::ALL.into_iter().zip(CARDS_PER_TYPE) {
        if drawn < cards {
            return kind;
        }
        drawn -= cards;
    }
    unreachable!("the cards per type add up to one deck")
}

/// A think time in whole seconds, without an upper bound.
pub(super) fn think_time(random: &mut Pcg64, kind: TransactionType) -> Nanos {
    let mean = match kind {
        // The two means that HammerDB has the other way round.
        TransactionType::OrderStatus => 5.0,
        TransactionType::Delivery => 10.0,
        other => pacing::think_time_mean(other).as_secs_f64(),
    };
    Nanos::from_secs((-unit_interval(random).ln() * mean) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use underlay_core::RootSeed;

    use super::Profile;
    use crate::tpcc::{
        CustomerSelector, Entropy, Parameters, Terminal, Tpcc, Transaction, TransactionType,
    };

    fn terminals(users: u64) -> impl Iterator<Item = Terminal> {
        let parameters = Parameters::new(50, RootSeed(7), Entropy::FULL).unwrap();
        let workload = Tpcc { profile: Profile::HammerdbLike, ..Tpcc::new(parameters) };
        (0..users).map(move |user| Terminal::of(&workload, user, RootSeed(7)))
    }

    #[test]
    fn words_are_read_back() {
        for profile in Profile::ALL {
            assert_eq!(profile.as_str().parse(), Ok(profile));
        }
        let error = "tproc-c".parse::<Profile>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`tproc-c` is not a known profile; use `specification` or `hammerdb-like`"
        );
        assert!(Profile::HammerdbLike.deviations().len() == 6);
        assert!(
            Profile::HammerdbLike
                .deviations()
                .iter()
                .all(|text| text.starts_with("hammerdb-like: "))
        );
    }

    /// Chi-square of counts against equal expectations, with a limit far beyond chance for the
    /// degrees of freedom used here (mean + 6 standard deviations).
    fn assert_uniform(counts: &[u64]) {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let chi: f64 = counts.iter().map(|c| (*c as f64 - expected).powi(2) / expected).sum();
        let freedom = counts.len() as f64 - 1.0;
        assert!(chi < freedom + 6.0 * (2.0 * freedom).sqrt(), "chi-square {chi} of {freedom}");
    }

    #[test]
    fn customers_types_and_warehouses_are_as_declared() {
        let (mut customers, mut homes) = (vec![0u64; 3_000], BTreeMap::new());
        let mut kinds = [0u64; 5];
        for mut terminal in terminals(400) {
            *homes.entry(terminal.warehouse()).or_insert(0u64) += 1;
            for _ in 0..230 {
                let transaction = terminal.next();
                kinds[transaction.transaction_type().index()] += 1;
                match transaction {
                    Transaction::NewOrder(order) => {
                        assert!(order.is_drawn_by_server() && !order.rolls_back());
                        assert!((5..=15).contains(&order.lines.len()));
                        customers[order.customer as usize - 1] += 1;
                    }
                    Transaction::Payment(payment) => {
                        assert_eq!(payment.amount_cents % 100, 0);
                        if let CustomerSelector::ById(id) = payment.customer {
                            customers[id as usize - 1] += 1;
                        }
                    }
                    _ => {}
                }
            }
        }
        assert_uniform(&customers);
        // 400 users on 50 warehouses: each has some, and not all have the same number.
        assert!(homes.len() == 50 && homes.values().any(|users| *users != 8));
        let cards = [kinds[0] / 10, kinds[1] / 10, kinds[2], kinds[3], kinds[4]];
        assert_uniform(&cards);
    }

    #[test]
    fn think_times_are_whole_seconds_of_the_declared_means() {
        let mut terminal = terminals(1).next().unwrap();
        let means = [12.0, 12.0, 5.0, 10.0, 5.0];
        for (kind, mean) in TransactionType::ALL.into_iter().zip(means) {
            let times: Vec<u64> = (0..20_000).map(|_| terminal.think_time(kind).0).collect();
            assert!(times.iter().all(|time| time % 1_000_000_000 == 0));
            assert!(times.iter().max().unwrap() / 1_000_000_000 >= 6 * mean as u64);
            let observed = times.iter().sum::<u64>() as f64 / 1e9 / times.len() as f64;
            // Truncation takes about half a second off the mean.
            assert!((observed - (mean - 0.5)).abs() < 0.05 * mean, "{observed} of {mean}");
        }
    }

    #[test]
    fn equal_numbers_give_equal_transactions() {
        let sequence = || {
            terminals(3)
                .flat_map(|mut terminal| (0..50).map(move |_| terminal.next()).collect::<Vec<_>>())
        };
        assert!(sequence().eq(sequence()));
    }
}
