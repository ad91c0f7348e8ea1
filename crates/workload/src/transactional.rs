//! What a load generator needs of a workload of database transactions, whichever it is.
//!
//! A [`Workload`] is a deterministic source of transactions per user, the names of its transaction
//! types, which of them the headline counts, its keying and think times, what a database answers, and
//! what must be booked of it. The load generator is generic over it: a new workload implements this
//! and nothing in the generator changes. Sessions that carry the transactions out belong to the
//! engines (`database`).
//!
//! The `k`-th transaction of user `u` is a function of the seed, `u`, `k` and, where weights were set, of
//! the weights in force when it is drawn. Where users act on answers ([`Workload::on_outcome`]), it is also one of
//! what they were answered.

use rand_pcg::Pcg64;
use underlay_core::{Nanos, RootSeed};

/// The names of a workload and what its headline counts.
#[derive(Debug, PartialEq, Eq)]
pub struct Shape {
    /// The word in files, records and on the command line: `tpcc`.
    pub name: &'static str,
    /// The transaction types, by their index.
    pub types: &'static [&'static str],
    /// The headline metric.
    pub headline: Headline,
    /// The notice that every page with a result must show.
    pub notice: &'static str,
}

/// The headline metric: committed transactions of some types per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline {
    /// Indexes of the types that are counted.
    pub types: &'static [usize],
    /// What is counted, in the plural: `new orders`.
    pub counted: &'static str,
    /// The unit as it is printed: `NOPM`.
    pub unit: &'static str,
    /// The unit's period: a minute, a second.
    pub period: Nanos,
}

impl Shape {
    /// The shape of no workload: no types, nothing counted.
    pub const NONE: Shape = Shape {
        name: "",
        types: &[],
        headline: Headline {
            types: &[],
            counted: "transactions",
            unit: "per second",
            period: Nanos::from_secs(1),
        },
        notice: "",
    };

    /// The index of the type of a name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.types.iter().position(|known| *known == name)
    }
}

impl Headline {
    /// `count` transactions over `length`, in the headline's unit; 0 over no time.
    pub fn rate(&self, count: u64, length: Nanos) -> f64 {
        if length == Nanos::ZERO {
            return 0.0;
        }
        count as f64 * self.period.as_secs_f64() / length.as_secs_f64()
    }
}

impl Default for &'static Shape {
    fn default() -> &'static Shape {
        static NONE: Shape = Shape::NONE;
        &NONE
    }
}

/// A workload of database transactions. Cheap to clone: a clone goes to each worker thread.
pub trait Workload: Clone + Send + 'static {
    /// One transaction with all its inputs, so that a repetition does the same work.
    type Transaction: 'static;
    /// What a database answers to a transaction that it carried out.
    type Outcome: 'static;
    /// What one user asks, transaction after transaction.
    type User: User<Transaction = Self::Transaction> + 'static;
    /// What is kept of all that was asked and answered.
    type Accounting: RunAccounting;

    /// Names and headline.
    fn shape(&self) -> &'static Shape;

    /// The user `number`, counted from 0, drawing from `inputs`.
    fn user(&self, number: u64, inputs: RootSeed) -> Self::User;

    /// The index of the transaction's type in [`Shape::types`].
    fn kind(transaction: &Self::Transaction) -> usize;

    /// Whether the transaction can leave anything committed behind. One that cannot is never of unknown
    /// outcome.
    fn may_commit(transaction: &Self::Transaction) -> bool;

    /// Whether it was committed; otherwise it was rolled back as the workload intends it.
    fn committed(outcome: &Self::Outcome) -> bool;

    /// What a database that does nothing would answer: for measuring the load generator alone.
    fn imagined(transaction: &Self::Transaction) -> Self::Outcome;

    /// Tells the user how its transaction ended, before it draws the next one: for workloads whose users act
    /// on answers. None: it was lost, and whether it was committed may be unknown.
    fn on_outcome(
        _user: &mut Self::User,
        _transaction: &Self::Transaction,
        _outcome: Option<&Self::Outcome>,
    ) {
    }

    /// Accounts for a transaction that was answered. Called once per transaction, not per attempt.
    fn book(
        &self,
        accounting: &mut Self::Accounting,
        transaction: &Self::Transaction,
        outcome: &Self::Outcome,
    );

    /// Accounts for a transaction that may have been committed without an answer.
    fn book_unknown(&self, accounting: &mut Self::Accounting, transaction: &Self::Transaction);
}

/// The source of one user's transactions.
pub trait User {
    /// What it asks.
    type Transaction;

    /// The next transaction. There is always one.
    fn next(&mut self, mix: &Mix) -> Self::Transaction;

    /// The time to wait before a transaction of this type is sent, unscaled.
    fn keying_time(&self, kind: usize) -> Nanos;

    /// The time to wait after a transaction of this type was answered, unscaled; drawn again at each call.
    fn think_time(&mut self, kind: usize) -> Nanos;
}

/// What is kept of a run, per thread, and merged at its end. A load generator in a process of its own hands it over as bytes.
pub trait RunAccounting: Default + Send + 'static {
    /// Adds what another thread kept.
    fn merge(&mut self, other: &Self);

    /// As bytes, for another process of the same program.
    fn encode(&self) -> Vec<u8>;

    /// What [`RunAccounting::encode`] wrote; `None` when it is something else.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl RunAccounting for () {
    fn merge(&mut self, (): &()) {}

    fn encode(&self) -> Vec<u8> {
        Vec::new()
    }

    fn decode(bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }
}

/// Numbers as bytes.
pub(crate) fn encode_numbers<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The numbers that [`encode_numbers`] wrote, and the bytes behind them.
pub(crate) fn decode_numbers<const N: usize>(bytes: &[u8]) -> Option<([u64; N], &[u8])> {
    let (numbers, rest) = bytes.split_at_checked(N * 8)?;
    let mut decoded = [0; N];
    for (number, bytes) in decoded.iter_mut().zip(numbers.chunks_exact(8)) {
        *number = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some((decoded, rest))
}

/// How the types of transactions are chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// As the workload prescribes.
    #[default]
    Prescribed,
    /// By weights that were set.
    Weighted(Weights),
}

/// Weights of a workload's transaction types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Cumulated; the last one is the sum.
    cumulated: Vec<u64>,
}

/// Why weights were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    /// Nothing could be chosen.
    #[error("all weights are 0; give at least one type of transaction a weight above 0")]
    Nothing,
    /// A type that the workload does not have.
    #[error("`{name}` is not a transaction of {workload}; use {known}")]
    UnknownType {
        /// The word.
        name: String,
        /// The workload's name.
        workload: &'static str,
        /// Its types.
        known: String,
    },
    /// Not `type=weight`.
    #[error("`{text}` is not a weight; write for example {example}=10")]
    Malformed {
        /// The text.
        text: String,
        /// A type of the workload.
        example: &'static str,
    },
}

impl Weights {
    /// One weight per type; types beyond the end of `weights` have none.
    pub fn new(weights: &[u32]) -> Result<Weights, WeightsError> {
        let mut sum = 0;
        let cumulated: Vec<u64> = weights
            .iter()
            .map(|weight| {
                sum += u64::from(*weight);
                sum
            })
            .collect();
        if sum == 0 { Err(WeightsError::Nothing) } else { Ok(Weights { cumulated }) }
    }

    /// From `type=weight,type=weight`; types that are not named have none.
    pub fn parse(text: &str, shape: &Shape) -> Result<Weights, WeightsError> {
        let mut weights = vec![0; shape.types.len()];
        for part in text.split(',').map(str::trim) {
            let malformed = || WeightsError::Malformed {
                text: part.to_string(),
                example: shape.types.first().copied().unwrap_or("type"),
            };
            let (name, weight) = part.split_once('=').ok_or_else(malformed)?;
            let name = name.trim();
            let index = shape.index_of(&name.replace('-', "_")).ok_or_else(|| {
                WeightsError::UnknownType {
                    name: name.to_string(),
                    workload: shape.name,
                    known: shape.types.join(", "),
                }
            })?;
            weights[index] = weight.trim().parse().map_err(|_| malformed())?;
        }
        Weights::new(&weights)
    }

    /// The weight of each type.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let before = std::iter::once(0).chain(self.cumulated.iter().copied());
        self.cumulated.iter().zip(before).map(|(sum, before)| sum - before)
    }

    /// A type, as often as its weight says.
    pub fn pick(&self, random: &mut Pcg64) -> usize {
        let sum = self.cumulated.last().copied().unwrap_or(1);
        let drawn = crate::draw::below(random, sum);
        self.cumulated.partition_point(|reached| *reached <= drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::{Headline, Shape, Weights, WeightsError};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use underlay_core::{Nanos, RootSeed};

    const SHAPE: Shape = Shape { name: "some", types: &["read_only", "write"], ..Shape::NONE };

    #[test]
    fn weights_are_read_and_refused_with_a_remedy() {
        let read = |text| Weights::parse(text, &SHAPE);
        let values = |text| read(text).unwrap().values().collect::<Vec<_>>();
        assert_eq!(values("read-only=3, write=1"), [3, 1]);
        assert_eq!(values("write=7"), [0, 7]);
        assert_eq!(read("write=0"), Err(WeightsError::Nothing));
        assert_eq!(
            read("writes=1").unwrap_err().to_string(),
            "`writes` is not a transaction of some; use read_only, write"
        );
        assert_eq!(
            read("write").unwrap_err().to_string(),
            "`write` is not a weight; write for example read_only=10"
        );
    }

    #[test]
    fn a_headline_has_its_own_period() {
        let per = |period| Headline { period, ..Shape::NONE.headline };
        assert_eq!(per(Nanos::from_secs(60)).rate(50, Nanos::from_secs(10)), 300.0);
        assert_eq!(per(Nanos::from_secs(1)).rate(50, Nanos::from_secs(10)), 5.0);
        assert_eq!(per(Nanos::from_secs(1)).rate(50, Nanos::ZERO), 0.0);
    }

    proptest! {
        #[test]
        fn types_come_as_often_as_their_weights_say(weights in proptest::collection::vec(0u32..50, 1..7), seed in 0u64..1000) {
            let Ok(mix) = Weights::new(&weights) else { return Ok(()) };
            prop_assert_eq!(mix.values().collect::<Vec<_>>(), weights.iter().map(|w| u64::from(*w)).collect::<Vec<_>>());
            let mut random = RootSeed(seed).stream("test", 0);
            let mut counts = vec![0u32; weights.len()];
            const DRAWS: u32 = 20_000;
            (0..DRAWS).for_each(|_| counts[mix.pick(&mut random)] += 1);
            let sum: u32 = weights.iter().sum();
            for (count, weight) in counts.iter().zip(&weights) {
                let share = f64::from(*weight) / f64::from(sum);
                let expected = share * f64::from(DRAWS);
                // Six standard deviations of a binomial.
                let margin = 6.0 * (expected * (1.0 - share)).sqrt();
                prop_assert!((f64::from(*count) - expected).abs() <= margin, "{} of {}", count, expected);
            }
        }
    }
}
