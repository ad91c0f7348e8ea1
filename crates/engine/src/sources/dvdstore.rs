//! The web shop as scripts: what the steps of a visit lock, touch and log.
//!
//! Visitors learn the result of a step when it begins, because their next step depends on nothing
//! else: a purchase is refused if the stock is too low. Stock, new rows and members are kept; what
//! was inserted since the load is not found again by later searches.

use crate::demand::{DemandProfile, TypeDemand};
use crate::draw::{scatter, scatter_below};
use crate::hashing::NumberMap;
use crate::layout::Relation;
use crate::layout::dvdstore::{LINES_PER_ORDER, REVIEWS_PER_PRODUCT, ShopPages, Table};
use crate::script::Script;
use crate::spec::EngineSpec;
use underlay_core::{Nanos, RootSeed};
use underlay_workload::dvdstore::population::Catalogue;
use underlay_workload::dvdstore::{DvdStore, Line, Outcome, Step, Transaction, Visitor};
use underlay_workload::transactional::{Mix, User, Workload};

/// First and last names of actors, words of titles: a title has two.
const NAMES: u64 = 200;
const TITLE_WORDS: u64 = 1_000;
const CATEGORIES: u64 = 16;
/// Purchases that a login shows at most.
const SHOWN_MAX: u64 = 10;
/// Orders per customer when the shop is loaded: 0.6 on average, Poisson; in hundredths, how many
/// customers have at most so many.
const ORDERS_PER_CUSTOMER: [u64; 5] = [55, 88, 98, 99, 100];
/// Above so many products one in 10,000 is special; below, one in 100.
const MANY_PRODUCTS: u64 = 100_000;
/// Stock is filled up to this below [`LEAST_STOCK`]; of popular products, each 10,000th, ten times.
const FULL_STOCK: u16 = 250;
const LEAST_STOCK: u16 = 3;

/// Rows that were inserted since the load.
#[derive(Clone, Copy, Debug, Default)]
struct Inserted {
    customers: u64,
    members: u64,
    orders: u64,
    lines: u64,
    reviews: u64,
    ratings: u64,
}

/// Users and database state.
#[derive(Clone)]
pub(crate) struct DvdStoreSource {
    users: Vec<Visitor>,
    /// Per user: what was drawn and has not begun.
    drawn: Vec<Option<Transaction>>,
    pages: ShopPages,
    demands: Vec<TypeDemand>,
    /// Pieces in stock, by product.
    stock: Vec<u16>,
    inserted: Inserted,
    /// Customers who became members since the load.
    members: NumberMap<()>,
    /// Transactions that changed something.
    written: u64,
}

impl DvdStoreSource {
    pub(crate) fn new(
        shop: &DvdStore,
        engine: &EngineSpec,
        demands: &DemandProfile,
        users: u32,
        seed: RootSeed,
    ) -> DvdStoreSource {
        let catalogue = Catalogue::new(&shop.parameters);
        let stock = |product| catalogue.initial_stock(product) as u16;
        DvdStoreSource {
            users: (0..users).map(|user| shop.user(u64::from(user), seed)).collect(),
            drawn: (0..users).map(|_| None).collect(),
            pages: Self::pages(shop, engine),
            demands: demands.types.clone(),
            stock: (1..=catalogue.products()).map(stock).collect(),
            inserted: Inserted::default(),
            members: NumberMap::default(),
            written: 0,
        }
    }

    /// The rows of `other`; users stay.
    pub(crate) fn restore(&mut self, other: &DvdStoreSource) {
        let users = std::mem::take(&mut self.users);
        *self = DvdStoreSource { users, ..other.clone() };
    }

    fn pages(shop: &DvdStore, engine: &EngineSpec) -> ShopPages {
        match engine {
            EngineSpec::Postgresql(_) => ShopPages::postgresql(shop.parameters.size),
            EngineSpec::Mariadb(_) => ShopPages::innodb(shop.parameters.size),
        }
    }

    pub(crate) fn relations(shop: &DvdStore, engine: &EngineSpec) -> Vec<Relation> {
        Self::pages(shop, engine).relations()
    }

    pub(crate) fn think_time(&mut self, user: u32, kind: usize) -> Nanos {
        User::think_time(&mut self.users[user as usize], kind)
    }

    pub(crate) fn draw(&mut self, user: u32, mix: &Mix) -> usize {
        let transaction = self.users[user as usize].next_of(mix);
        let kind = transaction.step().index();
        self.drawn[user as usize] = Some(transaction);
        kind
    }

    pub(crate) fn has_drawn(&self, user: u32) -> bool {
        self.drawn[user as usize].is_some()
    }

    pub(crate) fn write_down(&mut self, user: u32, script: &mut Script) {
        let transaction = self.drawn[user as usize].take();
        let transaction = transaction.expect("a transaction is drawn before it begins");
        script.begin(transaction.step().index());
        let outcome = match &transaction {
            Transaction::Login { customer } => self.login(*customer, script),
            Transaction::NewCustomer { .. } => self.new_customer(script),
            Transaction::NewMember { customer, .. } => self.new_member(*customer, script),
            Transaction::BrowseCategory { category, .. } => self.browse_category(*category, script),
            Transaction::Search { step, text, batch, depth } => {
                self.search(*step, text, (*batch, *depth), script)
            }
            Transaction::Reviews { step, product, batch, .. } => {
                self.reviews(*step, u64::from(*product) - 1, u64::from(*batch), script)
            }
            Transaction::NewReview { product, customer, .. } => {
                self.new_review(u64::from(*product) - 1, *customer, script)
            }
            Transaction::RateReview { review, customer, .. } => {
                self.rate_review(u64::from(*review) - 1, *customer, script)
            }
            Transaction::Prices { lines } => self.prices(lines, script),
            Transaction::Purchase { customer, lines, .. } => {
                self.purchase(*customer, lines, script)
            }
        };
        script.succeeds = outcome.committed;
        script.commits = outcome.committed && transaction.step().writes();
        self.users[user as usize].on_outcome(&transaction, Some(&outcome));
        if self.pages.is_clustered() && script.touches.iter().any(|touch| touch.writes) {
            script.append_write(ShopPages::undo(self.written));
            self.written += 1;
        }
    }

    /// Ends a transaction of one step, of so many units.
    fn end(&self, units: u64, outcome: Outcome, script: &mut Script) -> Outcome {
        let demand = &self.demands[script.kind];
        script.end_step(demand.cpu(units as u32), demand.log_bytes(units as u32));
        outcome
    }

    fn customers(&self) -> u64 {
        self.pages.rows(Table::Customers)
    }

    fn read_product(&self, product: u64, script: &mut Script) {
        script.read_all(self.pages.keyed(Table::ProductsKey, Table::Products, product));
    }

    /// The row of a customer to whom something else refers: looked up by key, and locked in
    /// PostgreSQL against its removal, which changes its page.
    fn refer_to_customer(&self, customer: u64, script: &mut Script) {
        let [key, page] = self.pages.keyed(Table::CustomersKey, Table::Customers, customer);
        script.read(key);
        self.refer_to(page, script);
    }

    fn refer_to(&self, page: crate::page::PageId, script: &mut Script) {
        match self.pages.is_clustered() {
            true => script.read(page),
            false => script.write(page),
        }
    }

    fn login(&mut self, customer: u32, script: &mut Script) -> Outcome {
        let row = u64::from(customer) - 1;
        script.read(self.pages.scattered(Table::Logins, row));
        script.read(self.pages.row(Table::Customers, row));
        script.read(self.pages.of_parent(Table::CustHistOfCustomer, row, self.customers()));
        let drawn = scatter_below(2 << 56 | row, 100);
        let orders = ORDERS_PER_CUSTOMER.partition_point(|up_to| *up_to <= drawn) as u64;
        let mut shown = 0;
        for number in 0..orders {
            let order = self.pages.order_of(row, number);
            script.read(self.pages.row(Table::CustHist, order * LINES_PER_ORDER));
            for line in 0..LINES_PER_ORDER.min(SHOWN_MAX - shown) {
                let products = self.pages.rows(Table::Products);
                let product = scatter_below(order << 8 | line, products);
                self.read_product(product, script);
                // And another one that customers bought with it.
                self.read_product(scatter_below(product, products), script);
                shown += 1;
            }
        }
        self.end(shown, Outcome::wrote(customer), script)
    }

    fn new_customer(&mut self, script: &mut Script) -> Outcome {
        let row = self.customers() + self.inserted.customers;
        self.inserted.customers += 1;
        script.write_all(self.pages.keyed(Table::CustomersKey, Table::Customers, row));
        script.write(self.pages.row(Table::Usernames, row));
        script.write(self.pages.row(Table::Logins, row));
        self.end(1, Outcome::wrote(row as u32 + 1), script)
    }

    fn new_member(&mut self, customer: u32, script: &mut Script) -> Outcome {
        let row = u64::from(customer) - 1;
        // One in ten became one before the load.
        let was = scatter_below(3 << 56 | row, 10) == 0 && row < self.customers();
        let pages = self.pages;
        let leaves = if pages.is_clustered() { Table::Membership } else { Table::MembershipKey };
        let leaf = pages.of_parent(leaves, row, self.customers());
        if was || self.members.insert(u64::from(customer), ()).is_some() {
            script.read(leaf);
            let demand = &self.demands[script.kind];
            script.end_step(demand.cpu(0), 0);
            return Outcome::REFUSED;
        }
        script.write(leaf);
        if !pages.is_clustered() {
            let end = pages.rows(Table::Membership) + self.inserted.members;
            script.write(pages.row(Table::Membership, end));
        }
        self.inserted.members += 1;
        self.refer_to_customer(row, script);
        self.end(1, Outcome::wrote(customer), script)
    }

    /// Products that a search finds, evenly spread and always the same of the same words.
    fn found(&self, words: u64, count: u64) -> impl Iterator<Item = u64> + use<> {
        let products = self.pages.rows(Table::Products);
        let (count, every) = (count.clamp(1, products), products / count.clamp(1, products));
        (0..count).map(move |number| number * every + scatter_below(words ^ number << 40, every))
    }

    fn browse_category(&mut self, category: u32, script: &mut Script) -> Outcome {
        let products = self.pages.rows(Table::Products);
        let special = products / if products > MANY_PRODUCTS { 10_000 } else { 100 };
        let words = scatter(4 << 56 | u64::from(category));
        script.read(self.pages.scattered(Table::ProductsByKind, words));
        let mut units = 0;
        for product in self.found(words, special / CATEGORIES) {
            script.read(self.pages.row(Table::Products, product));
            units += 1;
        }
        self.end(units, Outcome::read(units as u32), script)
    }

    fn search(
        &mut self,
        step: Step,
        text: &str,
        (batch, depth): (u32, u32),
        script: &mut Script,
    ) -> Outcome {
        let words =
            text.bytes().fold(step.index() as u64, |hash, byte| scatter(hash ^ u64::from(byte)));
        let products = self.pages.rows(Table::Products);
        // A search uses the words of an existing product.
        let (count, lists) = match step {
            Step::BrowseActor => (products / (NAMES * NAMES), 2),
            Step::BrowseTitle => (products / (TITLE_WORDS * TITLE_WORDS / 2), 2),
            Step::ReviewsByActor => (products / NAMES, 1),
            _ => (products / (TITLE_WORDS / 2), 1),
        };
        for list in 0..lists {
            script.read(self.pages.scattered(Table::ProductWords, words ^ list));
        }
        if depth == 0 {
            let mut units = 0;
            for product in self.found(words, count) {
                script.read(self.pages.row(Table::Products, product));
                units += 1;
            }
            return self.end(units, Outcome::read(units as u32), script);
        }
        let mut left = u64::from(depth);
        let mut looked_at = 0;
        for product in self.found(words, count) {
            if left == 0 {
                break;
            }
            script.read(self.pages.row(Table::Products, product));
            let reviews = left.min(REVIEWS_PER_PRODUCT);
            self.read_reviews(Table::ReviewsOfProduct, product, reviews, script);
            left -= reviews;
            looked_at += reviews;
        }
        let best = self.found(words, 1).next().unwrap_or(0);
        self.show_reviews(best, u64::from(batch).min(looked_at), script);
        self.end(looked_at, Outcome::read(batch), script)
    }

    /// Reviews of a product by an index, each with the sum of its ratings.
    fn read_reviews(&self, index: Table, product: u64, count: u64, script: &mut Script) {
        let pages = self.pages;
        script.read(pages.of_parent(index, product, pages.rows(Table::Products)));
        for number in 0..count {
            let review = pages.review_of(product, number);
            if !pages.is_clustered() {
                script.read(pages.row(Table::Reviews, review));
            }
            let (leaf, rows) = pages.ratings_of(review);
            script.read(leaf);
            rows.into_iter().for_each(|page| script.read(page));
        }
    }

    /// The rows of the best reviews.
    fn show_reviews(&self, product: u64, count: u64, script: &mut Script) {
        for number in 0..count {
            let review = self.pages.review_of(product, number);
            script.read_all(self.pages.keyed(Table::ReviewsKey, Table::Reviews, review));
        }
        self.read_product(product, script);
    }

    fn reviews(&mut self, step: Step, product: u64, batch: u64, script: &mut Script) -> Outcome {
        let pages = self.pages;
        let units = match step {
            // One star of five.
            Step::ProductReviewsByStars => {
                let count = REVIEWS_PER_PRODUCT / 5;
                self.read_reviews(Table::ReviewsOfProductByStars, product, count, script);
                count
            }
            // All rows are sorted by date, ratings are read of those that are shown.
            Step::ProductReviewsByDate => {
                let products = pages.rows(Table::Products);
                script.read(pages.of_parent(Table::ReviewsOfProduct, product, products));
                for number in 0..REVIEWS_PER_PRODUCT {
                    let review = pages.review_of(product, number);
                    script.read_all(pages.keyed(Table::ReviewsKey, Table::Reviews, review));
                }
                let count = batch.min(REVIEWS_PER_PRODUCT);
                self.read_reviews(Table::ReviewsOfProduct, product, count, script);
                count
            }
            _ => {
                self.read_reviews(Table::ReviewsOfProduct, product, REVIEWS_PER_PRODUCT, script);
                REVIEWS_PER_PRODUCT
            }
        };
        self.show_reviews(product, batch.min(units), script);
        self.end(units, Outcome::read(batch.min(units) as u32), script)
    }

    fn new_review(&mut self, product: u64, customer: u32, script: &mut Script) -> Outcome {
        let pages = self.pages;
        let row = pages.rows(Table::Reviews) + self.inserted.reviews;
        self.inserted.reviews += 1;
        script.write_all(pages.keyed(Table::ReviewsKey, Table::Reviews, row));
        let products = pages.rows(Table::Products);
        script.write(pages.of_parent(Table::ReviewsOfProduct, product, products));
        script.write(pages.scattered(Table::ReviewsByStars, row));
        script.write(pages.of_parent(Table::ReviewsOfProductByStars, product, products));
        self.refer_to_customer(u64::from(customer) - 1, script);
        let [key, page] = pages.keyed(Table::ProductsKey, Table::Products, product);
        script.read(key);
        self.refer_to(page, script);
        self.end(1, Outcome::wrote(row as u32 + 1), script)
    }

    fn rate_review(&mut self, review: u64, customer: u32, script: &mut Script) -> Outcome {
        let pages = self.pages;
        let row = pages.rows(Table::Ratings) + self.inserted.ratings;
        self.inserted.ratings += 1;
        script.write_all(pages.keyed(Table::RatingsKey, Table::Ratings, row));
        let reviews = pages.rows(Table::Reviews);
        script.write(pages.of_parent(Table::RatingsOfReview, review, reviews));
        let customer = u64::from(customer) - 1;
        script.write(pages.of_parent(Table::RatingsOfCustomer, customer, self.customers()));
        let [key, page] = pages.keyed(Table::ReviewsKey, Table::Reviews, review);
        script.read(key);
        self.refer_to(page, script);
        self.end(1, Outcome::wrote(row as u32 + 1), script)
    }

    fn prices(&mut self, lines: &[Line], script: &mut Script) -> Outcome {
        for line in lines {
            self.read_product(u64::from(line.product) - 1, script);
        }
        // Amounts change no page.
        let outcome = Outcome { net_cents: 1, ..Outcome::read(lines.len() as u32) };
        self.end(lines.len() as u64, outcome, script)
    }

    fn purchase(&mut self, customer: u32, lines: &[Line], script: &mut Script) -> Outcome {
        let (pages, customer) = (self.pages, u64::from(customer) - 1);
        let count = lines.len() as u64;
        let demand = &self.demands[script.kind];
        let (base, log_base) = (demand.cpu_base, u64::from(demand.log_bytes_base));
        let per_line = Nanos(demand.cpu_per_unit.0 * count);
        let log_lines = u64::from(demand.log_bytes_per_unit) * count;

        let order = pages.rows(Table::Orders) + self.inserted.orders;
        let first_line = pages.rows(Table::OrderLines) + self.inserted.lines;
        script.write_all(pages.keyed(Table::OrdersKey, Table::Orders, order));
        script.write(pages.of_parent(Table::OrdersOfCustomer, customer, self.customers()));
        self.refer_to_customer(customer, script);
        script.end_step(base, log_base);

        for line in lines {
            let product = u64::from(line.product) - 1;
            script.lock(product);
            let [key, page] = pages.keyed(Table::InventoryKey, Table::Inventory, product);
            script.read(key);
            script.write(page);
        }
        for line in [first_line, first_line + count.saturating_sub(1)] {
            script.write_all(pages.keyed(Table::OrderLinesKey, Table::OrderLines, line));
            script.write(pages.row(Table::CustHist, line));
        }
        script.write(pages.of_parent(Table::CustHistOfCustomer, customer, self.customers()));
        script.end_step(per_line, log_lines);

        // What a rollback leaves in the heaps stays until vacuum.
        self.inserted.orders += 1;
        self.inserted.lines += count;
        match self.sell(lines) {
            true => Outcome::wrote(order as u32 + 1),
            false => Outcome::REFUSED,
        }
    }

    /// Takes the lines out of the stock, all or none of them; whether all were there.
    fn sell(&mut self, lines: &[Line]) -> bool {
        for (place, line) in lines.iter().enumerate() {
            let stock = &mut self.stock[line.product as usize - 1];
            let quantity = line.quantity as u16;
            if *stock < quantity {
                for sold in &lines[..place] {
                    self.stock[sold.product as usize - 1] += sold.quantity as u16;
                }
                return false;
            }
            *stock -= quantity;
        }
        for line in lines {
            let stock = &mut self.stock[line.product as usize - 1];
            if *stock < LEAST_STOCK {
                let popular = line.product.is_multiple_of(10_000);
                *stock = FULL_STOCK * if popular { 10 } else { 1 };
            }
        }
        true
    }
}
