//! A design at an offered rate: an open loop in virtual time, judged against a latency target.
//!
//! Response times count from the intended start, as everywhere. The target is about the main
//! transactions, those that the headline counts (New-Order of TPC-C); the rate is that of all types
//! together. Caches are filled in no time, as before a rung.

use underlay_core::{Arrivals, Histogram, Nanos, RootSeed};
use underlay_engine::{EngineRun, Load, Scenario, Simulation, Window};
use underlay_workload::judgement::{Judgement, LateShare, Span, Verdict};
use underlay_workload::objective::Objective;

use super::bottleneck::Bottleneck;
use super::ladder::{LadderError, transactions_to_fill};
use super::observation::{Observation, Observing};
use super::storage::DesignTarget;

const SECOND: Nanos = Nanos::from_secs(1);
/// The share of the offered transactions that may be missing before the load counts as not
/// delivered: that of the load generator.
const DELIVERY_TOLERANCE: f64 = 0.01;

/// What is offered to a database, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Transactions of all types per second.
    pub rate_per_second: f64,
    /// Time that is not measured.
    pub settle: Nanos,
    /// Transactions that caches are filled with at most, before.
    pub cached_at_most: u64,
}

/// A design at an offered rate, some seconds of it measured. Going on continues the window.
pub struct Offered {
    simulation: Simulation<DesignTarget>,
    scenario: Scenario,
    rate_per_second: f64,
    sessions: u32,
    observing: Observing,
    /// Response times of the main transactions, of each second of the window.
    seconds: Vec<Histogram>,
    /// Arrivals that waited for a session when the window began, and now.
    backlog: (u64, u64),
}

impl Offered {
    /// Offers the rate to every database of a scenario that has users, and lets the load settle.
    ///
    /// # Errors
    /// A scenario that cannot be simulated.
    pub fn new(
        target: DesignTarget,
        mut scenario: Scenario,
        offer: &Offer,
        seed: RootSeed,
    ) -> Result<Offered, LadderError> {
        let mut sessions = 0;
        for database in &mut scenario.databases {
            let (users, arrivals) = match database.load {
                Load::Open { users, arrivals, .. } => (users, arrivals),
                Load::Closed { users, .. } => (users, Arrivals::Poisson),
                Load::Job { .. } => continue,
            };
            let rate_per_second = offer.rate_per_second;
            database.load = Load::Open { users, rate_per_second, arrivals };
            sessions += users;
        }
        let mut simulation = Simulation::new(&scenario, target, seed).map_err(LadderError)?;
        simulation.warm_caches(transactions_to_fill(&scenario).min(offer.cached_at_most));
        let mut offered = Offered {
            simulation,
            scenario,
            rate_per_second: offer.rate_per_second,
            sessions,
            observing: Observing::default(),
            seconds: Vec::new(),
            backlog: (0, 0),
        };
        if offer.settle > Nanos::ZERO {
            let settled = offered.pass(offer.settle);
            offered.backlog = (backlog(&settled), backlog(&settled));
        }
        Ok(offered)
    }

    fn pass(&mut self, measure: Nanos) -> EngineRun {
        self.simulation.run(&Window { warm_up: Nanos::ZERO, measure })
    }

    /// Measures on until the window has that length, in whole seconds.
    pub fn measure_until(&mut self, length: Nanos) {
        while Nanos(self.seconds.len() as u64 * SECOND.0) < length {
            let second = self.pass(SECOND);
            self.observing.add(&second, &self.scenario);
            let mut response = Histogram::new();
            // What a job does beside the users has no limit to keep.
            for database in second.databases.iter().filter(|database| database.job.is_none()) {
                for kind in database.headline.types {
                    response.merge(&database.types[*kind].response);
                }
            }
            self.seconds.push(response);
            self.backlog.1 = backlog(&second);
        }
    }

    /// What the window says about the target.
    pub fn judgement(&self, objective: &Objective) -> Judgement {
        let limit = objective.limit.0;
        let spans: Vec<Span> = self
            .seconds
            .iter()
            .map(|second| Span { late: second.count_above(limit), all: second.count() })
            .collect();
        let late = LateShare::of(&spans);
        let transactions: u64 = spans.iter().map(|span| span.all).sum();
        let grown = self.backlog.1.saturating_sub(self.backlog.0) as f64;
        let due = self.rate_per_second * self.seconds.len() as f64;
        let verdict = if transactions == 0 || grown > DELIVERY_TOLERANCE * due {
            Verdict::NotDelivered
        } else {
            late.verdict(objective)
        };
        Judgement {
            verdict,
            transactions,
            delivered_per_second: self.observation().transactions_per_second,
            observed: self.quantile(objective.quantile),
            late_share: late.share,
            late_share_bounds: late.bounds,
            connections_lost: false,
        }
    }

    /// A quantile of the response times of the main transactions.
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        let mut all = Histogram::new();
        self.seconds.iter().for_each(|second| all.merge(second));
        all.quantile(quantile).map(Nanos)
    }

    /// What the window shows of its load.
    pub fn observation(&self) -> Observation {
        self.observing.observation(self.sessions)
    }

    /// Where its transactions spend their time.
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        self.observing.bottleneck()
    }
}

fn backlog(run: &EngineRun) -> u64 {
    run.databases.iter().map(|database| database.backlog).sum()
}
