//! TPC-C as the load generator drives it: users are terminals, new orders are the headline, and every
//! acknowledged order is booked.

use underlay_core::{Nanos, RootSeed};

use super::configuration::Tpcc;
use super::{Ledger, NewOrder, Terminal, Transaction, TransactionType, Variability};
use crate::transactional::{
    Headline, Mix, RunAccounting, Shape, User, Workload, decode_numbers, encode_numbers,
};

const TYPES: [&str; TransactionType::ALL.len()] = {
    let mut names = [""; TransactionType::ALL.len()];
    let mut kind = 0;
    while kind < names.len() {
        names[kind] = TransactionType::ALL[kind].as_str();
        kind += 1;
    }
    names
};

/// Names and headline of TPC-C.
pub static SHAPE: Shape = Shape {
    name: "tpcc",
    types: &TYPES,
    headline: Headline {
        types: &[TransactionType::NewOrder.index()],
        counted: "new orders",
        unit: "NOPM",
        period: Nanos::from_secs(60),
    },
    notice: "derived from TPC-C; not comparable with published TPC results",
};

/// What a transaction did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it was committed. `false` only for the intended rollback of 1 % of the new orders.
    pub committed: bool,
    /// The number of the order that a committed New-Order created.
    pub order_id: Option<u32>,
    /// Districts in which a Delivery found no order to deliver.
    pub skipped_deliveries: u32,
}

impl Outcome {
    /// Committed, with nothing more to say.
    pub const COMMITTED: Outcome =
        Outcome { committed: true, order_id: None, skipped_deliveries: 0 };
    /// Rolled back as intended.
    pub const ROLLED_BACK: Outcome =
        Outcome { committed: false, order_id: None, skipped_deliveries: 0 };
}

/// What is kept of a run of TPC-C.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TpccAccounting {
    /// The new orders that the database acknowledged, and those of unknown outcome. Empty if none was kept.
    pub ledger: Ledger,
    /// The achieved mix and its variability.
    pub variability: Variability,
    /// Districts in which a delivery found nothing to deliver.
    pub skipped_deliveries: u64,
}

impl From<TransactionType> for usize {
    fn from(kind: TransactionType) -> usize {
        kind.index()
    }
}

impl RunAccounting for TpccAccounting {
    fn merge(&mut self, other: &TpccAccounting) {
        self.ledger.merge(&other.ledger);
        self.variability.merge(&other.variability);
        self.skipped_deliveries += other.skipped_deliveries;
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = encode_numbers([self.skipped_deliveries]);
        bytes.extend(encode_numbers(self.variability.values()));
        bytes.extend(self.ledger.encode());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<TpccAccounting> {
        let ([skipped_deliveries], bytes) = decode_numbers(bytes)?;
        let (variability, bytes) = decode_numbers(bytes)?;
        Some(TpccAccounting {
            ledger: Ledger::decode(bytes).ok()?,
            variability: Variability::of(variability),
            skipped_deliveries,
        })
    }
}

impl Workload for Tpcc {
    type Transaction = Transaction;
    type Outcome = Outcome;
    type User = Terminal;
    type Accounting = TpccAccounting;

    fn shape(&self) -> &'static Shape {
        &SHAPE
    }

    fn user(&self, number: u64, inputs: RootSeed) -> Terminal {
        Terminal::of(self, number, inputs)
    }

    fn kind(transaction: &Transaction) -> usize {
        transaction.transaction_type().index()
    }

    fn may_commit(transaction: &Transaction) -> bool {
        match transaction {
            Transaction::NewOrder(order) => !order.rolls_back(),
            Transaction::Payment(_) | Transaction::Delivery(_) => true,
            Transaction::OrderStatus(_) | Transaction::StockLevel(_) => false,
        }
    }

    fn committed(outcome: &Outcome) -> bool {
        outcome.committed
    }

    fn imagined(transaction: &Transaction) -> Outcome {
        match transaction {
            Transaction::NewOrder(order) if NewOrder::rolls_back(order) => Outcome::ROLLED_BACK,
            _ => Outcome::COMMITTED,
        }
    }

    fn book(&self, accounting: &mut TpccAccounting, transaction: &Transaction, outcome: &Outcome) {
        accounting.variability.record(transaction);
        accounting.skipped_deliveries += u64::from(outcome.skipped_deliveries);
        if let (Transaction::NewOrder(order), Some(id)) = (transaction, outcome.order_id)
            && self.keeps_ledger
        {
            accounting.ledger.acknowledge(order.warehouse, order.district, id);
        }
    }

    fn book_unknown(&self, accounting: &mut TpccAccounting, transaction: &Transaction) {
        if let Transaction::NewOrder(order) = transaction
            && self.keeps_ledger
        {
            accounting.ledger.unknown(order.warehouse, order.district);
        }
    }
}

impl User for Terminal {
    type Transaction = Transaction;

    fn next(&mut self, mix: &Mix) -> Transaction {
        self.next_of(mix)
    }

    fn keying_time(&self, kind: usize) -> Nanos {
        Terminal::keying_time(self, TransactionType::ALL[kind])
    }

    fn think_time(&mut self, kind: usize) -> Nanos {
        Terminal::think_time(self, TransactionType::ALL[kind])
    }
}
