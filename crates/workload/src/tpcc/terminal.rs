//! A virtual user's terminal: it decides what is asked next, of its home warehouse or of one drawn.
//!
//! The transaction number `n` of user `u` is a function of the seed, `u` and `n` alone. Each is
//! drawn from a stream of its own, so that it can be produced again without its predecessors, and
//! so that think times, retries and other users change nothing. No time passes in here: the
//! caller waits for [`Terminal::keying_time`] and [`Terminal::think_time`].

use rand_pcg::Pcg64;
use underlay_core::{Nanos, RootSeed};

use super::cardinality::{
    CARRIERS, CUSTOMERS_PER_DISTRICT, DISTRICTS_PER_WAREHOUSE, LINES_PER_ORDER_MAX,
    LINES_PER_ORDER_MIN,
};
use super::deck;
use super::profile::{self, Profile};
use super::{
    Constants, CustomerSelector, Delivery, NewOrder, OrderLineInput, OrderStatus, Parameters,
    Payment, StockLevel, Transaction, TransactionType, UNUSED_ITEM,
};
use super::{HomeWarehouse, Tpcc};
use super::{SERVER_DRAWN_ITEM, names, nurand, pacing};
use crate::draw::{percent, uniform};
use crate::transactional::Mix;

/// Orders that roll back, in percent (clause 2.4.1.4).
pub const ROLLBACK_PERCENT: u32 = 1;
/// Lines supplied by another warehouse, in percent (clause 2.4.1.5).
pub const REMOTE_LINE_PERCENT: u32 = 1;
/// Payments for a customer of another warehouse, in percent (clause 2.5.1.2).
pub const REMOTE_PAYMENT_PERCENT: u32 = 15;
/// Customers selected by last name, in percent (clauses 2.5.1.2 and 2.6.1.2).
pub const BY_NAME_PERCENT: u32 = 60;

/// Largest quantity of a line.
const QUANTITY_MAX: u32 = 10;
/// Smallest and largest payment in cents.
const AMOUNT_CENTS: (u32, u32) = (100, 500_000);
/// Smallest and largest threshold of Stock-Level.
const THRESHOLD: (u32, u32) = (10, 20);

/// The terminal of one virtual user.
#[derive(Clone, Debug)]
pub struct Terminal {
    profile: Profile,
    home: HomeWarehouse,
    warehouses: u32,
    constants: Constants,
    /// That of the transaction which is being made, if it is drawn.
    warehouse: u32,
    district: u32,
    /// The root of this user's streams.
    seed: RootSeed,
    think: Pcg64,
    deck: [TransactionType; deck::CARDS],
    /// The number of the deck in `deck`.
    deck_number: u64,
    /// The number of the next transaction, from 0.
    sequence: u64,
}

impl Terminal {
    /// The terminal of `user`, counted from 0.
    ///
    /// Users are spread over the warehouses first, then over their districts: home warehouse
    /// `user % W + 1`, home district `(user / W) % 10 + 1`. Users beyond ten per warehouse wrap around
    /// and share a home with an earlier user; their inputs still differ.
    pub fn new(parameters: &Parameters, user: u64) -> Terminal {
        Terminal::with_inputs(parameters, user, parameters.seed)
    }

    /// The terminal of `user` with inputs from a root of their own, on the same database.
    ///
    /// For repeats that should not replay the same inputs: pass `seed.child("repeat", n)`.
    pub fn with_inputs(parameters: &Parameters, user: u64, inputs: RootSeed) -> Terminal {
        Terminal::of(&Tpcc::new(*parameters), user, inputs)
    }

    /// The terminal of `user` that follows the rules of `workload`.
    pub fn of(workload: &Tpcc, user: u64, inputs: RootSeed) -> Terminal {
        let Tpcc { parameters, profile, home_warehouse, .. } = *workload;
        let warehouses = u64::from(parameters.warehouses);
        let district = user / warehouses % u64::from(DISTRICTS_PER_WAREHOUSE) + 1;
        let seed = inputs.child("tpcc/terminal", user);
        let warehouse = match profile {
            Profile::Specification => (user % warehouses) as u32 + 1,
            Profile::HammerdbLike => uniform(&mut seed.stream("home", 0), 1, parameters.warehouses),
        };
        Terminal {
            profile,
            home: home_warehouse,
            warehouses: parameters.warehouses,
            constants: parameters.constants,
            warehouse,
            district: district as u32,
            seed,
            think: seed.stream("think", 0),
            deck: deck::shuffled(&mut seed.stream("deck", 0)),
            deck_number: 0,
            sequence: 0,
        }
    }

    /// The home warehouse, from 1. Where each transaction draws its own, that of the one made last.
    pub fn warehouse(&self) -> u32 {
        self.warehouse
    }

    /// The home district, 1 to 10, of Stock-Level; the other transactions choose theirs.
    pub fn district(&self) -> u32 {
        self.district
    }

    /// The number of the transaction that [`Terminal::next`] returns next, from 0.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Continues at the transaction number `sequence`; think times go on as they are.
    pub fn seek(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// The next transaction of this user. There is always one.
    #[expect(
        clippy::should_implement_trait,
        reason = "the sequence never ends: an iterator's Option would burden every caller"
    )]
    pub fn next(&mut self) -> Transaction {
        self.next_of(&Mix::Prescribed)
    }

    /// The next transaction under a mix: cards of the deck, or types drawn by weight.
    pub fn next_of(&mut self, mix: &Mix) -> Transaction {
        let kind = match mix {
            Mix::Prescribed if self.profile == Profile::HammerdbLike => {
                profile::card(&mut self.seed.stream("mix", self.sequence))
            }
            Mix::Prescribed => self.card(self.sequence),
            Mix::Weighted(weights) => {
                TransactionType::ALL[weights.pick(&mut self.seed.stream("mix", self.sequence))]
            }
        };
        if self.home == HomeWarehouse::Drawn {
            let mut random = self.seed.stream("warehouse", self.sequence);
            self.warehouse = uniform(&mut random, 1, self.warehouses);
        }
        let mut random = self.seed.stream("transaction", self.sequence);
        self.sequence += 1;
        match kind {
            TransactionType::NewOrder => Transaction::NewOrder(self.new_order(&mut random)),
            TransactionType::Payment => Transaction::Payment(self.payment(&mut random)),
            TransactionType::OrderStatus => {
                Transaction::OrderStatus(self.order_status(&mut random))
            }
            TransactionType::Delivery => Transaction::Delivery(self.delivery(&mut random)),
            TransactionType::StockLevel => Transaction::StockLevel(self.stock_level(&mut random)),
        }
    }

    /// The time to wait before a transaction of this type is sent, unscaled.
    pub fn keying_time(&self, transaction: TransactionType) -> Nanos {
        pacing::keying_time(transaction)
    }

    /// The time to wait after a transaction of this type was answered, unscaled; drawn again at each
    /// call.
    pub fn think_time(&mut self, transaction: TransactionType) -> Nanos {
        match self.profile {
            Profile::Specification => pacing::think_time(&mut self.think, transaction),
            Profile::HammerdbLike => profile::think_time(&mut self.think, transaction),
        }
    }

    /// The card of the transaction number `sequence`.
    fn card(&mut self, sequence: u64) -> TransactionType {
        let deck_number = sequence / deck::CARDS as u64;
        if deck_number != self.deck_number {
            self.deck = deck::shuffled(&mut self.seed.stream("deck", deck_number));
            self.deck_number = deck_number;
        }
        self.deck[(sequence % deck::CARDS as u64) as usize]
    }

    fn new_order(&self, random: &mut Pcg64) -> NewOrder {
        let district = any_district(random);
        let customer = self.customer(random);
        let count = uniform(random, LINES_PER_ORDER_MIN, LINES_PER_ORDER_MAX);
        if self.profile == Profile::HammerdbLike {
            let line = OrderLineInput {
                item: SERVER_DRAWN_ITEM,
                supply_warehouse: self.warehouse,
                quantity: 0,
            };
            let lines = vec![line; count as usize];
            return NewOrder { warehouse: self.warehouse, district, customer, lines };
        }
        let rolls_back = percent(random, ROLLBACK_PERCENT);
        let mut lines: Vec<OrderLineInput> = (0..count).map(|_| self.order_line(random)).collect();
        if let Some(last) = lines.last_mut().filter(|_| rolls_back) {
            last.item = UNUSED_ITEM;
        }
        NewOrder { warehouse: self.warehouse, district, customer, lines }
    }

    fn order_line(&self, random: &mut Pcg64) -> OrderLineInput {
        let item = nurand::item(random, self.constants.c_item);
        let remote = percent(random, REMOTE_LINE_PERCENT);
        let supply_warehouse = self.home_or_other_warehouse(random, remote);
        OrderLineInput { item, supply_warehouse, quantity: uniform(random, 1, QUANTITY_MAX) }
    }

    fn payment(&self, random: &mut Pcg64) -> Payment {
        let district = any_district(random);
        let remote = percent(random, REMOTE_PAYMENT_PERCENT);
        let customer_warehouse = self.home_or_other_warehouse(random, remote);
        let customer_district =
            if customer_warehouse == self.warehouse { district } else { any_district(random) };
        Payment {
            warehouse: self.warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer: self.customer_selector(random),
            amount_cents: match self.profile {
                Profile::Specification => {
                    i64::from(uniform(random, AMOUNT_CENTS.0, AMOUNT_CENTS.1))
                }
                Profile::HammerdbLike => {
                    i64::from(uniform(random, AMOUNT_CENTS.0 / 100, AMOUNT_CENTS.1 / 100)) * 100
                }
            },
        }
    }

    fn order_status(&self, random: &mut Pcg64) -> OrderStatus {
        OrderStatus {
            warehouse: self.warehouse,
            district: any_district(random),
            customer: self.customer_selector(random),
        }
    }

    fn delivery(&self, random: &mut Pcg64) -> Delivery {
        Delivery { warehouse: self.warehouse, carrier: uniform(random, 1, CARRIERS) }
    }

    fn stock_level(&self, random: &mut Pcg64) -> StockLevel {
        StockLevel {
            warehouse: self.warehouse,
            district: match self.profile {
                Profile::Specification => self.district,
                Profile::HammerdbLike => any_district(random),
            },
            threshold: uniform(random, THRESHOLD.0, THRESHOLD.1),
        }
    }

    fn customer_selector(&self, random: &mut Pcg64) -> CustomerSelector {
        if percent(random, BY_NAME_PERCENT) {
            let number = nurand::last_name_number(random, self.constants.c_run_last);
            CustomerSelector::ByLastName(names::last_name(number))
        } else {
            CustomerSelector::ById(self.customer(random))
        }
    }

    fn customer(&self, random: &mut Pcg64) -> u32 {
        match self.profile {
            Profile::Specification => nurand::customer(random, self.constants.c_customer),
            Profile::HammerdbLike => uniform(random, 1, CUSTOMERS_PER_DISTRICT),
        }
    }

    /// Home, or when `remote` one of the other warehouses, all equally likely. A database of one
    /// warehouse has no other.
    fn home_or_other_warehouse(&self, random: &mut Pcg64, remote: bool) -> u32 {
        if !remote || self.warehouses == 1 {
            return self.warehouse;
        }
        let other = uniform(random, 1, self.warehouses - 1);
        if other < self.warehouse { other } else { other + 1 }
    }
}

fn any_district(random: &mut Pcg64) -> u32 {
    uniform(random, 1, DISTRICTS_PER_WAREHOUSE)
}
