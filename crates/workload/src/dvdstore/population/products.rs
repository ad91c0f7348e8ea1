//! PRODUCTS and INVENTORY, and what users know of them: titles, actors, prices.

use super::fields::Fields;
use crate::dvdstore::Parameters;
use crate::dvdstore::random::{RowRandom, TableKey};
use crate::dvdstore::words::{
    CATEGORIES, NAMES, TITLE_WORDS, push_first_name, push_last_name, push_word,
};

/// Every product of this number is popular: ten times the stock, ten times as often bought.
const POPULAR_EVERY: u32 = 10_000;
/// Prices in cents.
const PRICE_CENTS: (u32, u32) = (999, 2_999);
/// Most pieces in stock of an ordinary product.
const STOCK_MAX: u32 = 500;
/// Above so many products, one in 10,000 is special; below, one in 100.
const MANY_PRODUCTS: u32 = 100_000;

/// All products, each a function of its number.
#[derive(Clone, Copy, Debug)]
pub struct Catalogue {
    products: u32,
    key: TableKey,
    stock: TableKey,
}

/// What a product was drawn as.
struct Product {
    category: u32,
    title: [u32; 2],
    actor: [u32; 2],
    price_cents: i64,
    is_special: bool,
    common: u32,
    is_for_members: bool,
}

impl Catalogue {
    /// The products of a shop.
    pub fn new(parameters: &Parameters) -> Catalogue {
        Catalogue {
            products: parameters.size.products(),
            key: TableKey::new(parameters.seed, "products"),
            stock: TableKey::new(parameters.seed, "inventory"),
        }
    }

    /// How many there are; they are numbered from 1.
    pub fn products(&self) -> u32 {
        self.products
    }

    /// Pieces of `product` in stock before anything was sold.
    pub fn initial_stock(&self, product: u32) -> u32 {
        let stock = self.stock.row(u64::from(product)).uniform(0, STOCK_MAX);
        if product.is_multiple_of(POPULAR_EVERY) { stock * 10 } else { stock }
    }

    /// The price of one piece.
    pub fn price_cents(&self, product: u32) -> i64 {
        self.product(product).price_cents
    }

    /// Appends the title, two words.
    pub fn push_title(&self, out: &mut String, product: u32) {
        let title = self.product(product).title;
        push_word(out, title[0]);
        out.push(' ');
        push_word(out, title[1]);
    }

    /// Appends the second word of the title.
    pub fn push_title_end(&self, out: &mut String, product: u32) {
        push_word(out, self.product(product).title[1]);
    }

    /// Appends first and last name of the actor.
    pub fn push_actor(&self, out: &mut String, product: u32) {
        let actor = self.product(product).actor;
        push_first_name(out, actor[0]);
        out.push(' ');
        push_last_name(out, actor[1]);
    }

    /// Appends the last name of the actor.
    pub fn push_actor_last(&self, out: &mut String, product: u32) {
        push_last_name(out, self.product(product).actor[1]);
    }

    /// Sum of the weights with which products are bought: 1 each, 10 for popular ones.
    pub fn weight_sum(&self) -> u64 {
        u64::from(self.products) + 9 * u64::from(self.products / POPULAR_EVERY)
    }

    /// The product at `place` below the sum of weights.
    pub fn weighted_product(&self, place: u64) -> u32 {
        match place.checked_sub(u64::from(self.products)) {
            None => place as u32 + 1,
            Some(beyond) => (beyond / 9 + 1) as u32 * POPULAR_EVERY,
        }
    }

    fn product(&self, number: u32) -> Product {
        let mut random = self.key.row(u64::from(number));
        let random: &mut RowRandom = &mut random;
        let special = if self.products > MANY_PRODUCTS { 10_000 } else { 100 };
        Product {
            category: random.uniform(1, CATEGORIES.len() as u32),
            title: [random.below(TITLE_WORDS), random.below(TITLE_WORDS)],
            actor: [random.below(NAMES), random.below(NAMES)],
            price_cents: i64::from(random.uniform(PRICE_CENTS.0, PRICE_CENTS.1)),
            is_special: random.below(special) == 0,
            common: random.uniform(1, self.products),
            is_for_members: random.below(10) == 0,
        }
    }

    pub(super) fn write_product(&self, number: u32, text: &mut String, fields: &mut impl Fields) {
        let product = self.product(number);
        fields.integer(i64::from(number));
        fields.integer(i64::from(product.category));
        text.clear();
        self.push_title(text, number);
        fields.text(text);
        text.clear();
        self.push_actor(text, number);
        fields.text(text);
        fields.cents(product.price_cents);
        fields.integer(i64::from(product.is_special));
        fields.integer(i64::from(product.common));
        fields.integer(i64::from(product.is_for_members));
        fields.end_row();
    }

    pub(super) fn write_inventory(&self, number: u32, fields: &mut impl Fields) {
        fields.integer(i64::from(number));
        fields.integer(i64::from(self.initial_stock(number)));
        // Sold since the load: the orders of the population were delivered before the stock was counted.
        fields.integer(0);
        fields.end_row();
    }
}
