//! A user: decides what is asked next.
//!
//! Each transaction is drawn from a stream of its own, so that think times, retries and other users change
//! nothing. Groups of statements choose one table each; ids follow the distribution, tables are uniform.

use rand_pcg::Pcg64;
use underlay_core::RootSeed;

use super::transaction::{Operation, Range, Transaction};
use super::{Parameters, Sampler, Script};
use crate::draw::uniform;
use crate::transactional::Mix;
use std::sync::Arc;

/// Ids of a bulk insert stay below this, so that they fit into a signed integer of 32 bits.
const BULK_ID_MAX: u64 = 2_000_000_000;

/// One user.
#[derive(Clone, Debug)]
pub struct Source {
    parameters: Parameters,
    sampler: Arc<Sampler>,
    /// The root of this user's streams.
    seed: RootSeed,
    user: u64,
    /// The number of the next transaction, from 0.
    sequence: u64,
    /// Bulk inserts so far.
    bulks: u64,
}

impl Source {
    /// The user `user`, counted from 0, drawing from `inputs`.
    pub fn new(
        parameters: &Parameters,
        sampler: Arc<Sampler>,
        user: u64,
        inputs: RootSeed,
    ) -> Source {
        let seed = inputs.child("sysbench/user", user);
        Source { parameters: *parameters, sampler, seed, user, sequence: 0, bulks: 0 }
    }

    /// The next transaction. There is always one.
    pub fn next_of(&mut self, mix: &Mix) -> Transaction {
        let mut random = self.seed.stream("transaction", self.sequence);
        let script = match mix {
            Mix::Prescribed => self.parameters.script,
            Mix::Weighted(weights) => {
                Script::ALL[weights.pick(&mut self.seed.stream("mix", self.sequence))]
            }
        };
        self.sequence += 1;
        Transaction { script, operations: self.operations(script, &mut random) }
    }

    fn operations(&mut self, script: Script, random: &mut Pcg64) -> Vec<Operation> {
        let mut list = Vec::with_capacity(20);
        match script {
            Script::ReadWrite => {
                self.reads(random, &mut list);
                self.writes(random, &mut list);
            }
            Script::ReadOnly => self.reads(random, &mut list),
            Script::WriteOnly => self.writes(random, &mut list),
            Script::PointSelect => {
                list.push(Operation::PointSelect {
                    table: self.table(random),
                    id: self.id(random),
                });
            }
            Script::UpdateIndex => {
                list.push(Operation::IndexUpdate {
                    table: self.table(random),
                    id: self.id(random),
                });
            }
            Script::UpdateNonIndex => list.push(Operation::NonIndexUpdate {
                table: self.table(random),
                id: self.id(random),
                text: text(random),
            }),
            Script::Insert => list.push(Operation::Insert {
                table: self.table(random),
                k: self.id(random),
                text: text(random),
            }),
            Script::Delete => {
                list.push(Operation::Delete { table: self.table(random), id: self.id(random) });
            }
            Script::BulkInsert => list.push(self.bulk()),
        }
        list
    }

    fn reads(&self, random: &mut Pcg64, list: &mut Vec<Operation>) {
        let wanted = &self.parameters.composition;
        let table = self.table(random);
        for _ in 0..wanted.point_selects {
            list.push(Operation::PointSelect { table, id: self.id(random) });
        }
        type Of = fn(Range) -> Operation;
        let kinds: [(u32, Of); 4] = [
            (wanted.simple_ranges, Operation::SimpleRange),
            (wanted.sum_ranges, Operation::SumRange),
            (wanted.order_ranges, Operation::OrderRange),
            (wanted.distinct_ranges, Operation::DistinctRange),
        ];
        for (count, kind) in kinds {
            let table = self.table(random);
            for _ in 0..count {
                let first = self.id(random);
                let last = first.saturating_add(wanted.range_size.max(1) - 1);
                list.push(kind(Range { table, first, last }));
            }
        }
    }

    fn writes(&self, random: &mut Pcg64, list: &mut Vec<Operation>) {
        let wanted = &self.parameters.composition;
        let table = self.table(random);
        for _ in 0..wanted.index_updates {
            list.push(Operation::IndexUpdate { table, id: self.id(random) });
        }
        let table = self.table(random);
        for _ in 0..wanted.non_index_updates {
            list.push(Operation::NonIndexUpdate { table, id: self.id(random), text: text(random) });
        }
        let table = self.table(random);
        for _ in 0..wanted.delete_inserts {
            let (id, k) = (self.id(random), self.id(random));
            list.push(Operation::DeleteInsert { table, id, k, text: text(random) });
        }
    }

    fn bulk(&mut self) -> Operation {
        let rows = self.parameters.composition.bulk_rows;
        let first = (self.bulks * u64::from(rows)) % BULK_ID_MAX + 1;
        self.bulks += 1;
        Operation::BulkInsert { table: self.user as u32 + 1, first: first as u32, rows }
    }

    fn table(&self, random: &mut Pcg64) -> u32 {
        uniform(random, 1, self.parameters.tables)
    }

    fn id(&self, random: &mut Pcg64) -> u32 {
        self.sampler.sample(random)
    }
}

fn text(random: &mut Pcg64) -> u64 {
    use rand::Rng;
    random.next_u64()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use underlay_core::RootSeed;

    use super::Source;
    use crate::sysbench::{Distribution, Operation, Parameters, Script, Transaction};
    use crate::transactional::{Mix, Weights};

    fn source(script: Script, user: u64) -> Source {
        let parameters =
            Parameters::new(4, 1_000, RootSeed(1), Distribution::Uniform, script).unwrap();
        let sampler = Arc::new(parameters.distribution.sampler(parameters.table_size));
        Source::new(&parameters, sampler, user, RootSeed(1))
    }

    fn shape(transaction: &Transaction) -> String {
        transaction
            .operations
            .iter()
            .map(|operation| match operation {
                Operation::PointSelect { .. } => 'p',
                Operation::SimpleRange(_) => 'r',
                Operation::SumRange(_) => 's',
                Operation::OrderRange(_) => 'o',
                Operation::DistinctRange(_) => 'd',
                Operation::IndexUpdate { .. } => 'i',
                Operation::NonIndexUpdate { .. } => 'n',
                Operation::DeleteInsert { .. } => 'x',
                Operation::Insert { .. } => 'I',
                Operation::Delete { .. } => 'D',
                Operation::BulkInsert { .. } => 'B',
            })
            .collect()
    }

    #[test]
    fn every_script_has_its_statements_in_order() {
        let expected = ["pppppppppprsodinx", "pppppppppprsod", "inx", "p", "i", "n", "I", "D", "B"];
        for (script, expected) in Script::ALL.into_iter().zip(expected) {
            assert_eq!(shape(&source(script, 0).next_of(&Mix::Prescribed)), expected, "{script}");
        }
    }

    #[test]
    fn inputs_are_within_the_tables_and_ranges_have_their_size() {
        let mut user = source(Script::ReadWrite, 3);
        for _ in 0..200 {
            for operation in user.next_of(&Mix::Prescribed).operations {
                let (table, id) = match operation {
                    Operation::PointSelect { table, id }
                    | Operation::IndexUpdate { table, id }
                    | Operation::NonIndexUpdate { table, id, .. }
                    | Operation::DeleteInsert { table, id, .. } => (table, id),
                    Operation::SimpleRange(range)
                    | Operation::SumRange(range)
                    | Operation::OrderRange(range)
                    | Operation::DistinctRange(range) => {
                        assert_eq!(range.last - range.first, 99);
                        (range.table, range.first)
                    }
                    other => panic!("{other:?}"),
                };
                assert!((1..=4).contains(&table) && (1..=1_000).contains(&id));
            }
        }
    }

    #[test]
    fn equal_numbers_give_equal_transactions_and_users_differ() {
        let sequence = |user| {
            let mut source = source(Script::ReadWrite, user);
            (0..50).map(|_| source.next_of(&Mix::Prescribed)).collect::<Vec<_>>()
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
    }

    #[test]
    fn weights_choose_among_the_scripts() {
        let mix = Mix::Weighted(Weights::new(&[0, 0, 0, 3, 1]).unwrap());
        let mut user = source(Script::ReadWrite, 0);
        let updates = (0..4_000)
            .map(|_| user.next_of(&mix).script)
            .inspect(|script| assert!(matches!(script, Script::PointSelect | Script::UpdateIndex)))
            .filter(|script| *script == Script::UpdateIndex)
            .count();
        assert!((850..1_150).contains(&updates), "{updates}");
    }

    #[test]
    fn bulk_inserts_number_their_rows_without_gaps() {
        let mut user = source(Script::BulkInsert, 7);
        for expected in [1, 1_001, 2_001] {
            let [Operation::BulkInsert { table, first, rows }] =
                user.next_of(&Mix::Prescribed).operations[..]
            else {
                panic!()
            };
            assert_eq!((table, first, rows), (8, expected, 1_000));
        }
    }
}
