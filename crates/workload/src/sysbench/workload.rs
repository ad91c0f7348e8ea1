//! Sysbench's OLTP scripts as the load generator drives them.

use std::sync::Arc;
use underlay_core::{Nanos, RootSeed};

use super::transaction::{Operation, Transaction};
use super::{Parameters, Sampler, Script, Source, SysbenchAccounting};
use crate::transactional::{Headline, Mix, Shape, User, Workload};

const TYPES: [&str; Script::ALL.len()] = {
    let mut names = [""; Script::ALL.len()];
    let mut kind = 0;
    while kind < names.len() {
        names[kind] = Script::ALL[kind].as_str();
        kind += 1;
    }
    names
};

/// Names and headline.
pub static SHAPE: Shape = Shape {
    name: "sysbench",
    types: &TYPES,
    headline: Headline {
        types: &[0, 1, 2, 3, 4, 5, 6, 7, 8],
        counted: "transactions",
        unit: "TPS",
        period: Nanos::from_secs(1),
    },
    notice: "transactions compatible with sysbench's OLTP scripts, made by Underlay",
};

/// The scripts on tables of some size.
#[derive(Clone, Debug, PartialEq)]
pub struct Sysbench {
    /// Size, seed, skew, script.
    pub parameters: Parameters,
    sampler: Arc<Sampler>,
}

/// What a transaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows inserted.
    pub inserted: u32,
    /// Rows deleted.
    pub deleted: u32,
    /// Rows whose `k` was raised.
    pub index_updates: u32,
    /// Rows that its selects returned.
    pub rows_read: u32,
}

impl Sysbench {
    /// The workload of `parameters`.
    pub fn new(parameters: Parameters) -> Sysbench {
        let sampler = Arc::new(parameters.distribution.sampler(parameters.table_size));
        Sysbench { parameters, sampler }
    }
}

impl Workload for Sysbench {
    type Transaction = Transaction;
    type Outcome = Outcome;
    type User = Source;
    type Accounting = SysbenchAccounting;

    fn shape(&self) -> &'static Shape {
        &SHAPE
    }

    fn user(&self, number: u64, inputs: RootSeed) -> Source {
        Source::new(&self.parameters, Arc::clone(&self.sampler), number, inputs)
    }

    fn kind(transaction: &Transaction) -> usize {
        transaction.script.index()
    }

    fn may_commit(transaction: &Transaction) -> bool {
        transaction.script.writes()
    }

    fn committed(_: &Outcome) -> bool {
        true
    }

    fn imagined(transaction: &Transaction) -> Outcome {
        let (inserted, deleted, index_updates) = changes(transaction);
        Outcome { inserted, deleted, index_updates, rows_read: 0 }
    }

    fn book(
        &self,
        accounting: &mut SysbenchAccounting,
        transaction: &Transaction,
        outcome: &Outcome,
    ) {
        if transaction.script == Script::BulkInsert {
            accounting.bulk_rows += u64::from(outcome.inserted);
            return;
        }
        accounting.inserted += u64::from(outcome.inserted);
        accounting.deleted += u64::from(outcome.deleted);
        accounting.index_updates += u64::from(outcome.index_updates);
        let replaces = |operation: &Operation| matches!(operation, Operation::DeleteInsert { .. });
        accounting.replaced += transaction.operations.iter().filter(|o| replaces(o)).count() as u64;
    }

    fn book_unknown(&self, accounting: &mut SysbenchAccounting, transaction: &Transaction) {
        if transaction.script == Script::BulkInsert {
            return;
        }
        let (inserted, deleted, index_updates) = changes(transaction);
        accounting.perhaps_inserted += u64::from(inserted);
        accounting.perhaps_deleted += u64::from(deleted);
        accounting.perhaps_updated += u64::from(index_updates);
    }
}

/// The rows that a transaction inserts, deletes and raises at most.
fn changes(transaction: &Transaction) -> (u32, u32, u32) {
    transaction.operations.iter().fold((0, 0, 0), |(inserted, deleted, updated), operation| {
        match operation {
            Operation::DeleteInsert { .. } => (inserted + 1, deleted + 1, updated),
            Operation::Insert { .. } => (inserted + 1, deleted, updated),
            Operation::BulkInsert { rows, .. } => (inserted + rows, deleted, updated),
            Operation::Delete { .. } => (inserted, deleted + 1, updated),
            Operation::IndexUpdate { .. } => (inserted, deleted, updated + 1),
            _ => (inserted, deleted, updated),
        }
    })
}

impl User for Source {
    type Transaction = Transaction;

    fn next(&mut self, mix: &Mix) -> Transaction {
        self.next_of(mix)
    }

    fn keying_time(&self, _: usize) -> Nanos {
        Nanos::ZERO
    }

    fn think_time(&mut self, _: usize) -> Nanos {
        Nanos::ZERO
    }
}
