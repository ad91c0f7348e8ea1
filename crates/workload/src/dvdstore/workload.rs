//! The shop as the load generator drives it: users are visitors, orders are the headline, and every acknowledged
//! change is booked.

use underlay_core::{Nanos, RootSeed};

use super::transaction::{Outcome, Step, Transaction};
use super::{Changes, DvdStoreAccounting, Parameters, Visitor};
use crate::transactional::{Headline, Mix, Shape, User, Workload};

const TYPES: [&str; Step::ALL.len()] = {
    let mut names = [""; Step::ALL.len()];
    let mut kind = 0;
    while kind < names.len() {
        names[kind] = Step::ALL[kind].as_str();
        kind += 1;
    }
    names
};

/// Names and headline. OPM counts committed orders; the kit's also counts purchases that were rolled back for
/// lack of stock, which are counted apart here.
pub static SHAPE: Shape = Shape {
    name: "dvdstore",
    types: &TYPES,
    headline: Headline {
        types: &[Step::Purchase.index()],
        counted: "orders",
        unit: "OPM",
        period: Nanos::from_secs(60),
    },
    notice: "a web shop after DVD Store 3, made by Underlay from its published description",
};

/// The shop of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DvdStore {
    /// Size, seed, behaviour.
    pub parameters: Parameters,
    /// The number that the next new customer will be given when the run begins: names of new customers are made from
    /// it, so that runs with equal seeds do not wish for each other's names.
    pub first_new_customer: u32,
}

impl DvdStore {
    /// The shop as it was loaded.
    pub fn new(parameters: Parameters) -> DvdStore {
        DvdStore { parameters, first_new_customer: parameters.size.customers() + 1 }
    }
}

impl Workload for DvdStore {
    type Transaction = Transaction;
    type Outcome = Outcome;
    type User = Visitor;
    type Accounting = DvdStoreAccounting;

    fn shape(&self) -> &'static Shape {
        &SHAPE
    }

    fn user(&self, number: u64, inputs: RootSeed) -> Visitor {
        Visitor::new(&self.parameters, self.first_new_customer, number, inputs)
    }

    fn kind(transaction: &Transaction) -> usize {
        transaction.step().index()
    }

    fn may_commit(transaction: &Transaction) -> bool {
        transaction.step().writes()
    }

    fn committed(outcome: &Outcome) -> bool {
        outcome.committed
    }

    fn imagined(transaction: &Transaction) -> Outcome {
        match transaction {
            Transaction::Login { customer } => Outcome::wrote(*customer),
            Transaction::Prices { .. } => Outcome { net_cents: 10_000, ..Outcome::read(1) },
            other if other.step().writes() => Outcome::wrote(1),
            _ => Outcome::read(0),
        }
    }

    fn on_outcome(user: &mut Visitor, transaction: &Transaction, outcome: Option<&Outcome>) {
        user.on_outcome(transaction, outcome);
    }

    fn book(
        &self,
        accounting: &mut DvdStoreAccounting,
        transaction: &Transaction,
        outcome: &Outcome,
    ) {
        if outcome.committed {
            accounting.acknowledged.add(&changes(transaction));
            return;
        }
        match transaction.step() {
            Step::Purchase => accounting.shortages += 1,
            Step::NewCustomer => accounting.names_taken += 1,
            Step::NewMember => accounting.members_already += 1,
            _ => {}
        }
    }

    fn book_unknown(&self, accounting: &mut DvdStoreAccounting, transaction: &Transaction) {
        accounting.perhaps.add(&changes(transaction));
    }
}

/// What a transaction changes when it is committed.
fn changes(transaction: &Transaction) -> Changes {
    let none = Changes::default();
    match transaction {
        Transaction::NewCustomer { .. } => Changes { customers: 1, ..none },
        Transaction::NewMember { .. } => Changes { members: 1, ..none },
        Transaction::NewReview { .. } => Changes { reviews: 1, ..none },
        Transaction::RateReview { .. } => Changes { ratings: 1, ..none },
        Transaction::Purchase { lines, net_cents, .. } => Changes {
            orders: 1,
            lines: lines.len() as u64,
            pieces: lines.iter().map(|line| u64::from(line.quantity)).sum(),
            net_cents: net_cents.unsigned_abs(),
            ..none
        },
        _ => none,
    }
}

impl User for Visitor {
    type Transaction = Transaction;

    fn next(&mut self, mix: &Mix) -> Transaction {
        self.next_of(mix)
    }

    fn keying_time(&self, _: usize) -> Nanos {
        Nanos::ZERO
    }

    fn think_time(&mut self, kind: usize) -> Nanos {
        Visitor::think_time(self, Step::ALL[kind])
    }
}
