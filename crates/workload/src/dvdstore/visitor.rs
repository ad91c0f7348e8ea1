//! A user: one visit of the shop after the other.
//!
//! Visit `v` of user `u` is planned when it begins, from the seed, `u` and `v` alone: the customer, the steps, and their
//! inputs. Every decision has a draw of its own; the kit takes one number for four decisions, so that only new customers
//! become members or write reviews. What depends on answers: the number that a new customer was given, the amount of the
//! order, and repeats, when a name was taken or a customer was a member already. A visit whose customer could not come in,
//! or whose prices stayed unknown, ends there.

use rand::Rng;
use rand_pcg::Pcg64;
use underlay_core::{Nanos, RootSeed};

use super::money::tax_cents;
use super::parameters::LINES_MAX;
use super::population::Catalogue;
use super::review_text::{write_review_text, write_summary};
use super::transaction::{Line, Outcome, Step, Transaction};
use super::words::CATEGORIES;
use super::{Behaviour, Parameters};
use crate::draw::{below, percent, uniform};
use crate::transactional::Mix;

/// Customers who are asked in vain whether they want to become members, per visit.
const MEMBER_ATTEMPTS_MAX: u32 = 10;
/// The mean think time between two steps, unscaled: the scale is then the kit's `think_time` in seconds.
const THINK_TIME_MEAN: Nanos = Nanos::from_secs(1);
const QUANTITY_MAX: u32 = 3;

/// One user.
#[derive(Clone, Debug)]
pub struct Visitor {
    parameters: Parameters,
    catalogue: Catalogue,
    /// Distinguishes new customers from those of earlier runs.
    first_new_customer: u32,
    user: u64,
    /// The root of this user's streams.
    seed: RootSeed,
    think: Pcg64,
    /// Visits that were begun.
    visit: u64,
    /// The steps that are left of the current visit, the next one last.
    plan: Vec<Step>,
    /// Steps drawn by weight so far.
    weighted: u64,
    /// Who is in the shop.
    customer: Option<u32>,
    /// What will be bought.
    cart: Vec<Line>,
    net_cents: i64,
    /// Refusals of the current step.
    refusals: u32,
}

impl Visitor {
    /// The user `user`, counted from 0, drawing from `inputs`. Customers from `first_new_customer` on are new ones.
    pub fn new(
        parameters: &Parameters,
        first_new_customer: u32,
        user: u64,
        inputs: RootSeed,
    ) -> Visitor {
        let seed = inputs.child("dvdstore/user", user);
        Visitor {
            parameters: *parameters,
            catalogue: Catalogue::new(parameters),
            first_new_customer,
            user,
            seed,
            think: seed.stream("think", 0),
            visit: 0,
            plan: Vec::new(),
            weighted: 0,
            customer: None,
            cart: Vec::new(),
            net_cents: 0,
            refusals: 0,
        }
    }

    /// The next step of the visit, or the first of the next visit. With weights: a step of any kind by any customer
    /// of the population, outside any visit.
    pub fn next_of(&mut self, mix: &Mix) -> Transaction {
        match mix {
            Mix::Prescribed => {
                if self.plan.is_empty() {
                    self.plan_visit();
                }
                let step = self.plan.pop().expect("a visit has at least a purchase");
                // Where in the visit this is, whatever was repeated before.
                let place = (self.plan.len() as u64) << 32 | u64::from(self.refusals);
                let mut random = self.seed.child("visit steps", self.visit).stream("step", place);
                let name = (self.visit, self.refusals);
                self.transaction(step, name, &mut random)
            }
            Mix::Weighted(weights) => {
                self.plan.clear();
                self.customer = None;
                self.cart.clear();
                let mut random = self.seed.stream("weighted", self.weighted);
                self.weighted += 1;
                let step = Step::ALL[weights.pick(&mut random)];
                // Visits count from 1.
                self.transaction(step, (0, self.weighted as u32), &mut random)
            }
        }
    }

    /// How the step that was drawn last ended; none: it was lost.
    pub fn on_outcome(&mut self, transaction: &Transaction, outcome: Option<&Outcome>) {
        // Weights know no visits.
        if self.plan.is_empty() {
            self.refusals = 0;
            return;
        }
        let refused = outcome.is_some_and(|outcome| !outcome.committed);
        self.refusals = if refused { self.refusals + 1 } else { 0 };
        match (transaction, outcome) {
            (Transaction::NewCustomer { .. }, Some(_)) if refused => {
                self.plan.push(Step::NewCustomer);
            }
            (Transaction::NewMember { .. }, Some(_)) if refused => {
                if self.refusals < MEMBER_ATTEMPTS_MAX {
                    self.plan.push(Step::NewMember);
                } else {
                    self.refusals = 0;
                }
            }
            (Transaction::Login { .. } | Transaction::NewCustomer { .. }, outcome) => {
                self.customer = outcome.and_then(|outcome| outcome.id);
                if self.customer.is_none() {
                    self.plan.clear();
                }
            }
            (Transaction::Prices { .. }, Some(outcome)) => self.net_cents = outcome.net_cents,
            (Transaction::Prices { .. }, None) => self.plan.clear(),
            _ => {}
        }
    }

    /// The time to wait after a step, unscaled: uniform around a mean of one second. Prices are read in the step that
    /// buys, and who has bought leaves.
    pub fn think_time(&mut self, step: Step) -> Nanos {
        if matches!(step, Step::Prices | Step::Purchase) {
            return Nanos::ZERO;
        }
        Nanos(below(&mut self.think, 2 * THINK_TIME_MEAN.0 + 1))
    }

    fn plan_visit(&mut self) {
        let behaviour = self.parameters.behaviour;
        let mut random = self.seed.stream("visit", self.visit);
        self.visit += 1;
        self.customer = None;
        self.cart.clear();
        let mut steps = Vec::with_capacity(20);
        let is_new = percent(&mut random, behaviour.pct_newcustomers);
        steps.push(if is_new { Step::NewCustomer } else { Step::Login });
        let reviews = !behaviour.ds2_mode;
        if percent(&mut random, behaviour.pct_newmember) && reviews {
            steps.push(Step::NewMember);
        }
        for _ in 0..around(&mut random, behaviour.n_searches) {
            let ways = [Step::BrowseCategory, Step::BrowseActor, Step::BrowseTitle];
            steps.push(ways[below(&mut random, 3) as usize]);
        }
        if reviews {
            plan_reviews(&mut random, &behaviour, &mut steps);
        }
        steps.extend([Step::Prices, Step::Purchase]);
        steps.reverse();
        self.plan = steps;
    }

    fn transaction(&mut self, step: Step, name: (u64, u32), random: &mut Pcg64) -> Transaction {
        match step {
            Step::Login => Transaction::Login { customer: self.any_customer(random) },
            Step::NewCustomer => Transaction::NewCustomer {
                username: format!(
                    "new{}-{}-{}-{}",
                    self.first_new_customer, self.user, name.0, name.1
                ),
                draw: random.next_u64(),
            },
            Step::NewMember => Transaction::NewMember {
                customer: self.any_customer(random),
                level: uniform(random, 1, 3),
            },
            Step::BrowseCategory => Transaction::BrowseCategory {
                category: uniform(random, 1, CATEGORIES.len() as u32),
                batch: self.batch(random),
            },
            Step::BrowseActor | Step::BrowseTitle | Step::ReviewsByActor | Step::ReviewsByTitle => {
                self.search(step, random)
            }
            Step::ProductReviews | Step::ProductReviewsByStars | Step::ProductReviewsByDate => {
                Transaction::Reviews {
                    step,
                    product: self.any_product(random),
                    stars: uniform(random, 1, 5),
                    batch: self.batch(random),
                }
            }
            Step::NewReview => {
                let draw = random.next_u64();
                let (mut summary, mut text) = (String::new(), String::new());
                write_summary(&mut summary, draw);
                write_review_text(&mut text, draw);
                Transaction::NewReview {
                    product: self.any_product(random),
                    customer: self.present_customer(random),
                    stars: uniform(random, 1, 5),
                    summary,
                    text,
                }
            }
            Step::RateReview => Transaction::RateReview {
                review: uniform(random, 1, self.parameters.size.reviews()),
                customer: self.present_customer(random),
                helpfulness: uniform(random, 1, 10),
            },
            Step::Prices => {
                self.cart = self.fill_cart(random);
                Transaction::Prices { lines: self.cart.clone() }
            }
            Step::Purchase => self.purchase(random),
        }
    }

    /// A search that finds something: its words are those of a product drawn.
    fn search(&self, step: Step, random: &mut Pcg64) -> Transaction {
        let product = self.any_product(random);
        let mut text = String::new();
        let push = match step {
            Step::BrowseActor => Catalogue::push_actor,
            Step::BrowseTitle => Catalogue::push_title,
            Step::ReviewsByActor => Catalogue::push_actor_last,
            _ => Catalogue::push_title_end,
        };
        push(&self.catalogue, &mut text, product);
        let depth = match step {
            Step::ReviewsByActor | Step::ReviewsByTitle => self.parameters.behaviour.search_depth,
            _ => 0,
        };
        Transaction::Search { step, text, batch: self.batch(random), depth }
    }

    /// Lines by product: all visitors lock stock in the same order.
    fn fill_cart(&self, random: &mut Pcg64) -> Vec<Line> {
        let count = around(random, self.parameters.behaviour.n_line_items).min(LINES_MAX);
        let mut lines: Vec<Line> = (0..count)
            .map(|_| Line {
                product: self
                    .catalogue
                    .weighted_product(below(random, self.catalogue.weight_sum())),
                quantity: uniform(random, 1, QUANTITY_MAX),
            })
            .collect();
        lines.sort_unstable();
        lines
    }

    fn purchase(&mut self, random: &mut Pcg64) -> Transaction {
        let mut lines = std::mem::take(&mut self.cart);
        let mut net_cents = self.net_cents;
        if lines.is_empty() {
            lines = self.fill_cart(random);
            let price =
                |line: &Line| self.catalogue.price_cents(line.product) * i64::from(line.quantity);
            net_cents = lines.iter().map(price).sum();
        }
        let customer = self.present_customer(random);
        Transaction::Purchase { customer, lines, net_cents, tax_cents: tax_cents(net_cents) }
    }

    fn batch(&self, random: &mut Pcg64) -> u32 {
        around(random, self.parameters.behaviour.search_batch_size)
    }

    fn any_customer(&self, random: &mut Pcg64) -> u32 {
        uniform(random, 1, self.parameters.size.customers())
    }

    fn any_product(&self, random: &mut Pcg64) -> u32 {
        uniform(random, 1, self.catalogue.products())
    }

    /// Who is in the shop; outside a visit anybody.
    fn present_customer(&self, random: &mut Pcg64) -> u32 {
        let anybody = self.any_customer(random);
        self.customer.unwrap_or(anybody)
    }
}

fn plan_reviews(random: &mut Pcg64, behaviour: &Behaviour, steps: &mut Vec<Step>) {
    for _ in 0..around(random, behaviour.n_reviews) {
        let ways = [Step::ReviewsByActor, Step::ReviewsByTitle];
        steps.push(ways[below(random, 2) as usize]);
    }
    for _ in 0..around(random, behaviour.n_reviews) {
        let ways = [Step::ProductReviews, Step::ProductReviewsByStars, Step::ProductReviewsByDate];
        steps.push(ways[below(random, 3) as usize]);
    }
    if percent(random, behaviour.pct_newreviews) {
        steps.push(Step::NewReview);
    }
    if percent(random, behaviour.pct_newhelpfulness) {
        steps.push(Step::RateReview);
    }
}

/// 1 to 2n - 1, n on average.
fn around(random: &mut Pcg64, mean: u32) -> u32 {
    uniform(random, 1, 2 * mean - 1)
}

#[cfg(test)]
#[path = "visitor_tests.rs"]
mod tests;
