//! What was really asked: counts of the random choices, judged by the limits of clause 5.5.1.5.
//!
//! The inputs are drawn at the right rates, but a short run, a defect or a driver that drops some
//! transactions can leave those limits. A count is judged only when the sample is so large that
//! chance alone would practically never (four standard errors) leave the limits.

use super::{CustomerSelector, Transaction, TransactionType};

/// Standard errors that must fit between the expected value and a limit before it is judged.
const SIGMAS: f64 = 4.0;

/// Counts of the random choices in transactions. Add those of all users with
/// [`Variability::merge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variability {
    /// Transactions by [`TransactionType::index`].
    pub transactions: [u64; 5],
    /// New orders that had to roll back.
    pub rollbacks: u64,
    /// Lines of all new orders.
    pub lines: u64,
    /// Lines supplied by another warehouse.
    pub remote_lines: u64,
    /// Payments for a customer of another warehouse.
    pub remote_payments: u64,
    /// Payments with the customer selected by last name.
    pub payments_by_name: u64,
    /// Order-Status transactions with the customer selected by last name.
    pub order_statuses_by_name: u64,
}

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Share of new orders that roll back: 0.9 to 1.1 %.
    Rollbacks,
    /// Mean lines per order: 9.5 to 10.5.
    LinesPerOrder,
    /// Share of remote lines: 0.95 to 1.05 %.
    RemoteLines,
    /// Share of remote payments: 14 to 16 %.
    RemotePayments,
    /// Share of payments by last name: 57 to 63 %.
    PaymentsByName,
    /// Share of Order-Status transactions by last name: 57 to 63 %.
    OrderStatusesByName,
}

impl Limit {
    /// All limits, in the order they are reported.
    pub const ALL: [Limit; 6] = [
        Limit::Rollbacks,
        Limit::LinesPerOrder,
        Limit::RemoteLines,
        Limit::RemotePayments,
        Limit::PaymentsByName,
        Limit::OrderStatusesByName,
    ];

    /// The name in records and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Limit::Rollbacks => "rollbacks",
            Limit::LinesPerOrder => "lines_per_order",
            Limit::RemoteLines => "remote_lines",
            Limit::RemotePayments => "remote_payments",
            Limit::PaymentsByName => "payments_by_name",
            Limit::OrderStatusesByName => "order_statuses_by_name",
        }
    }

    /// The smallest and the largest value allowed; shares are fractions of 1.
    pub const fn range(self) -> (f64, f64) {
        match self {
            Limit::Rollbacks => (0.009, 0.011),
            Limit::LinesPerOrder => (9.5, 10.5),
            Limit::RemoteLines => (0.0095, 0.0105),
            Limit::RemotePayments => (0.14, 0.16),
            Limit::PaymentsByName | Limit::OrderStatusesByName => (0.57, 0.63),
        }
    }

    /// How many samples make chance unlikely to leave the limits.
    pub fn samples_needed(self) -> u64 {
        let (low, high) = self.range();
        let expected = (low + high) / 2.0;
        let variance = match self {
            // Uniform over 5 to 15: (11^2 - 1) / 12.
            Limit::LinesPerOrder => 10.0,
            _ => expected * (1.0 - expected),
        };
        let margin = (high - low) / 2.0 / SIGMAS;
        (variance / (margin * margin)).ceil() as u64
    }
}

/// Assessment of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOutcome {
    /// The value is within the limits.
    Within,
    /// The value is outside of the limits: the inputs are not those of the workload.
    Outside,
    /// The value is outside of the limits, but so few samples are no evidence.
    TooFewSamples,
    /// The database has one warehouse: nothing can be remote.
    NotApplicable,
}

/// One limit with what was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VariabilityFinding {
    /// Which limit.
    pub limit: Limit,
    /// The counted value; not a number when nothing was counted.
    pub value: f64,
    /// From how many transactions or lines.
    pub samples: u64,
    /// What follows.
    pub outcome: LimitOutcome,
}

impl Variability {
    /// How many numbers there are.
    pub(super) const COUNT: usize = 11;

    /// All numbers.
    pub(super) fn values(&self) -> [u64; Variability::COUNT] {
        let [a, b, c, d, e] = self.transactions;
        [
            a,
            b,
            c,
            d,
            e,
            self.rollbacks,
            self.lines,
            self.remote_lines,
            self.remote_payments,
            self.payments_by_name,
            self.order_statuses_by_name,
        ]
    }

    /// From all numbers.
    pub(super) fn of(values: [u64; Variability::COUNT]) -> Variability {
        let [a, b, c, d, e, rest @ ..] = values;
        let [rollbacks, lines, remote_lines, remote_payments, payments_by_name, last] = rest;
        Variability {
            transactions: [a, b, c, d, e],
            rollbacks,
            lines,
            remote_lines,
            remote_payments,
            payments_by_name,
            order_statuses_by_name: last,
        }
    }

    /// Counts one transaction. Count each once, not its retries.
    pub fn record(&mut self, transaction: &Transaction) {
        self.transactions[transaction.transaction_type().index()] += 1;
        match transaction {
            Transaction::NewOrder(order) => {
                self.rollbacks += u64::from(order.rolls_back());
                self.lines += order.lines.len() as u64;
                let remote = |supplier: u32| supplier != order.warehouse;
                self.remote_lines +=
                    order.lines.iter().filter(|line| remote(line.supply_warehouse)).count() as u64;
            }
            Transaction::Payment(payment) => {
                self.remote_payments += u64::from(payment.is_remote());
                self.payments_by_name += u64::from(is_by_name(&payment.customer));
            }
            Transaction::OrderStatus(order_status) => {
                self.order_statuses_by_name += u64::from(is_by_name(&order_status.customer));
            }
            Transaction::Delivery(_) | Transaction::StockLevel(_) => {}
        }
    }

    /// Adds the counts of other users.
    pub fn merge(&mut self, other: &Variability) {
        for (total, count) in self.transactions.iter_mut().zip(other.transactions) {
            *total += count;
        }
        self.rollbacks += other.rollbacks;
        self.lines += other.lines;
        self.remote_lines += other.remote_lines;
        self.remote_payments += other.remote_payments;
        self.payments_by_name += other.payments_by_name;
        self.order_statuses_by_name += other.order_statuses_by_name;
    }

    /// How many transactions of this type were counted.
    pub const fn count(&self, transaction: TransactionType) -> u64 {
        self.transactions[transaction.index()]
    }

    /// The achieved mix: the share of each type, by [`TransactionType::index`]. All zero when
    /// nothing was counted.
    pub fn mix(&self) -> [f64; 5] {
        let total: u64 = self.transactions.iter().sum();
        self.transactions.map(|count| count as f64 / total.max(1) as f64)
    }

    /// Judges all limits for a database of `warehouses`.
    pub fn findings(&self, warehouses: u32) -> [VariabilityFinding; 6] {
        Limit::ALL.map(|limit| {
            let (count, samples) = self.observed(limit);
            let value = count as f64 / samples as f64;
            let outcome = judge(limit, value, samples, warehouses);
            VariabilityFinding { limit, value, samples, outcome }
        })
    }

    /// What is counted, and out of how many.
    fn observed(&self, limit: Limit) -> (u64, u64) {
        let new_orders = self.count(TransactionType::NewOrder);
        let payments = self.count(TransactionType::Payment);
        let order_statuses = self.count(TransactionType::OrderStatus);
        match limit {
            Limit::Rollbacks => (self.rollbacks, new_orders),
            Limit::LinesPerOrder => (self.lines, new_orders),
            Limit::RemoteLines => (self.remote_lines, self.lines),
            Limit::RemotePayments => (self.remote_payments, payments),
            Limit::PaymentsByName => (self.payments_by_name, payments),
            Limit::OrderStatusesByName => (self.order_statuses_by_name, order_statuses),
        }
    }
}

fn judge(limit: Limit, value: f64, samples: u64, warehouses: u32) -> LimitOutcome {
    let (low, high) = limit.range();
    if warehouses == 1 && matches!(limit, Limit::RemoteLines | Limit::RemotePayments) {
        LimitOutcome::NotApplicable
    } else if samples > 0 && (low..=high).contains(&value) {
        LimitOutcome::Within
    } else if samples < limit.samples_needed() {
        LimitOutcome::TooFewSamples
    } else {
        LimitOutcome::Outside
    }
}

fn is_by_name(customer: &CustomerSelector) -> bool {
    matches!(customer, CustomerSelector::ByLastName(_))
}

#[cfg(test)]
mod tests {
    use underlay_core::RootSeed;

    use super::{Limit, LimitOutcome, Variability};
    use crate::tpcc::{Entropy, Parameters, Terminal, TransactionType};

    fn sample(warehouses: u32, decks: usize) -> Variability {
        let parameters = Parameters::new(warehouses, RootSeed(42), Entropy::FULL).unwrap();
        let mut variability = Variability::default();
        for user in 0..50 {
            let mut terminal = Terminal::new(&parameters, user);
            (0..decks * 23).for_each(|_| variability.record(&terminal.next()));
        }
        variability
    }

    fn outcome(variability: &Variability, warehouses: u32, limit: Limit) -> LimitOutcome {
        let findings = variability.findings(warehouses);
        findings.iter().find(|finding| finding.limit == limit).unwrap().outcome
    }

    #[test]
    fn a_long_run_is_within_all_limits() {
        let variability = sample(5, 400);
        assert!(variability.count(TransactionType::NewOrder) > Limit::Rollbacks.samples_needed());
        assert!(variability.lines > Limit::RemoteLines.samples_needed());
        for finding in variability.findings(5) {
            assert_eq!(finding.outcome, LimitOutcome::Within, "{finding:?}");
        }
        let mix = variability.mix().map(|share| (share * 23.0).round() as u32);
        assert_eq!(mix, [10, 10, 1, 1, 1]);
    }

    #[test]
    fn a_defect_is_outside_and_a_short_run_is_no_evidence() {
        let good = sample(5, 400);
        let lost_rollbacks = Variability { rollbacks: 0, ..good };
        assert_eq!(outcome(&lost_rollbacks, 5, Limit::Rollbacks), LimitOutcome::Outside);
        let local_only = Variability { remote_lines: 0, remote_payments: 0, ..good };
        assert_eq!(outcome(&local_only, 5, Limit::RemoteLines), LimitOutcome::Outside);
        assert_eq!(outcome(&local_only, 5, Limit::RemotePayments), LimitOutcome::Outside);
        assert_eq!(outcome(&local_only, 1, Limit::RemoteLines), LimitOutcome::NotApplicable);
        let by_id = Variability { payments_by_name: 0, order_statuses_by_name: 0, ..good };
        assert_eq!(outcome(&by_id, 5, Limit::PaymentsByName), LimitOutcome::Outside);
        assert_eq!(outcome(&by_id, 5, Limit::OrderStatusesByName), LimitOutcome::Outside);
        let short_orders = Variability { lines: good.lines / 2, ..good };
        assert_eq!(outcome(&short_orders, 5, Limit::LinesPerOrder), LimitOutcome::Outside);

        let few = Variability { rollbacks: 5, ..sample(5, 1) };
        assert!(few.count(TransactionType::NewOrder) == 500);
        assert_eq!(outcome(&few, 5, Limit::Rollbacks), LimitOutcome::Within);
        let few = Variability { rollbacks: 0, ..few };
        assert_eq!(outcome(&few, 5, Limit::Rollbacks), LimitOutcome::TooFewSamples);
        let nothing = Variability::default();
        assert!(nothing.findings(5).iter().all(|f| f.outcome == LimitOutcome::TooFewSamples));
        assert_eq!(nothing.mix(), [0.0; 5]);
    }

    #[test]
    fn merging_adds_every_count() {
        let (one, other) = (sample(5, 3), sample(2, 5));
        let mut merged = one;
        merged.merge(&other);
        let sum = |count: fn(&Variability) -> u64| count(&one) + count(&other);
        for kind in TransactionType::ALL {
            assert_eq!(merged.count(kind), one.count(kind) + other.count(kind));
        }
        assert_eq!(merged.rollbacks, sum(|v| v.rollbacks));
        assert_eq!(merged.lines, sum(|v| v.lines));
        assert_eq!(merged.remote_lines, sum(|v| v.remote_lines));
        assert_eq!(merged.remote_payments, sum(|v| v.remote_payments));
        assert_eq!(merged.payments_by_name, sum(|v| v.payments_by_name));
        assert_eq!(merged.order_statuses_by_name, sum(|v| v.order_statuses_by_name));
    }
}
