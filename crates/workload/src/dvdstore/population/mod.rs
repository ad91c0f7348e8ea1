//! The initial rows of every table, as a function of the seed and a number.
//!
//! Rows come in *units* that are generated alone, in any order: a customer, a product, an order with its one to nine
//! lines, a review with its 2 to 39 ratings. A caller that needs rows passes a [`Fields`], which receives their
//! columns one after the other; nothing is allocated per row.
//!
//! Not here: column types, SQL, how a row is sent; that is the engine's.

mod customers;
mod orders;
mod products;
mod reviews;

pub use customers::{CUSTOMER_VALUES, write_customer};
pub use products::Catalogue;

pub(super) use reviews::{write_review_text, write_summary};

use super::Parameters;
use super::words::CATEGORIES;

/// Changes whenever equal parameters generate other rows. Part of the workload's identity.
pub const GENERATION: u32 = 1;

/// Takes the columns of rows.
pub trait Fields {
    /// A whole number.
    fn integer(&mut self, value: i64);
    /// Text of ASCII letters, digits, spaces and `@.-`.
    fn text(&mut self, value: &str);
    /// An amount of money.
    fn cents(&mut self, value: i64);
    /// A day.
    fn date(&mut self, value: Date);
    /// The row is complete.
    fn end_row(&mut self);
}

/// A day of the year 2013, in which everything in the population happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 1 to 12.
    pub month: u32,
    /// From 1.
    pub day: u32,
}

impl Date {
    /// The year of all dates.
    pub const YEAR: u32 = 2013;
    const DAYS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

    /// The days of a month.
    pub(super) fn days(month: u32) -> u32 {
        Date::DAYS[month as usize - 1]
    }

    /// A day of any month.
    pub(super) fn any(random: &mut super::random::RowRandom) -> Date {
        let month = random.uniform(1, 12);
        Date { month, day: random.uniform(1, Date::days(month)) }
    }
}

/// The tables with initial rows. REORDER begins empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// The names of the categories.
    Categories,
    /// Customers.
    Customers,
    /// A tenth of the customers.
    Membership,
    /// Products.
    Products,
    /// Stock and sales per product.
    Inventory,
    /// Headers of orders.
    Orders,
    /// Lines of orders.
    OrderLines,
    /// What each customer bought: one row per line.
    CustHist,
    /// Reviews.
    Reviews,
    /// Ratings of reviews.
    ReviewsHelpfulness,
}

impl Table {
    /// All, parents before children.
    pub const ALL: [Table; 10] = [
        Table::Categories,
        Table::Customers,
        Table::Membership,
        Table::Products,
        Table::Inventory,
        Table::Orders,
        Table::OrderLines,
        Table::CustHist,
        Table::Reviews,
        Table::ReviewsHelpfulness,
    ];

    /// The table's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Table::Categories => "categories",
            Table::Customers => "customers",
            Table::Membership => "membership",
            Table::Products => "products",
            Table::Inventory => "inventory",
            Table::Orders => "orders",
            Table::OrderLines => "orderlines",
            Table::CustHist => "cust_hist",
            Table::Reviews => "reviews",
            Table::ReviewsHelpfulness => "reviews_helpfulness",
        }
    }

    /// Its columns in the order in which they are generated.
    pub const fn columns(self) -> &'static str {
        match self {
            Table::Categories => "category, categoryname",
            Table::Customers => customers::COLUMNS,
            Table::Membership => "customerid, membershiptype, expiredate",
            Table::Products => {
                "prod_id, category, title, actor, price, special, common_prod_id, membership_item"
            }
            Table::Inventory => "prod_id, quan_in_stock, sales",
            Table::Orders => "orderid, orderdate, customerid, netamount, tax, totalamount",
            Table::OrderLines => "orderlineid, orderid, prod_id, quantity, orderdate",
            Table::CustHist => "customerid, orderid, prod_id",
            Table::Reviews => {
                "review_id, prod_id, review_date, stars, customerid, review_summary, review_text"
            }
            Table::ReviewsHelpfulness => {
                "review_helpfulness_id, review_id, customerid, helpfulness"
            }
        }
    }

    /// How many units there are; they are numbered from 1.
    pub fn units(self, parameters: &Parameters) -> u64 {
        let size = parameters.size;
        u64::from(match self {
            Table::Categories => CATEGORIES.len() as u32,
            Table::Customers => size.customers(),
            Table::Membership => size.members(),
            Table::Products | Table::Inventory => size.products(),
            Table::Orders | Table::OrderLines | Table::CustHist => size.orders(),
            Table::Reviews | Table::ReviewsHelpfulness => size.reviews(),
        })
    }

    /// How many rows there are, exactly.
    pub fn rows(self, parameters: &Parameters) -> u64 {
        let units = self.units(parameters);
        match self {
            Table::OrderLines | Table::CustHist => orders::lines_before(parameters, units),
            Table::ReviewsHelpfulness => reviews::ratings_before(parameters, units),
            _ => units,
        }
    }

    /// About how many characters a unit has as text; only to divide work evenly.
    pub const fn nominal_unit_bytes(self) -> u64 {
        match self {
            Table::Categories => 12,
            Table::Customers => 230,
            Table::Membership => 22,
            Table::Products => 50,
            Table::Inventory => 12,
            Table::Orders => 45,
            Table::OrderLines => 150,
            Table::CustHist => 100,
            Table::Reviews => 520,
            Table::ReviewsHelpfulness => 500,
        }
    }
}

/// Generates the units of one table.
#[derive(Clone, Debug)]
pub struct Units(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Categories,
    Customers(customers::Customers),
    Membership(customers::Membership),
    Products(Catalogue, String),
    Inventory(Catalogue),
    Orders(orders::Orders, Table),
    Reviews(reviews::Reviews, Table),
}

impl Units {
    /// The units of `table`.
    pub fn new(parameters: &Parameters, table: Table) -> Units {
        Units(match table {
            Table::Categories => Kind::Categories,
            Table::Customers => Kind::Customers(customers::Customers::new(parameters)),
            Table::Membership => Kind::Membership(customers::Membership::new(parameters)),
            Table::Products => Kind::Products(Catalogue::new(parameters), String::new()),
            Table::Inventory => Kind::Inventory(Catalogue::new(parameters)),
            Table::Orders | Table::OrderLines | Table::CustHist => {
                Kind::Orders(orders::Orders::new(parameters), table)
            }
            Table::Reviews | Table::ReviewsHelpfulness => {
                Kind::Reviews(reviews::Reviews::new(parameters), table)
            }
        })
    }

    /// Gives the rows of unit `unit`, counted from 1.
    pub fn write(&mut self, unit: u64, fields: &mut impl Fields) {
        match &mut self.0 {
            Kind::Categories => {
                fields.integer(unit as i64);
                fields.text(CATEGORIES[unit as usize - 1]);
                fields.end_row();
            }
            Kind::Customers(customers) => customers.write(unit as u32, fields),
            Kind::Membership(membership) => membership.write(unit as u32, fields),
            Kind::Products(catalogue, text) => catalogue.write_product(unit as u32, text, fields),
            Kind::Inventory(catalogue) => catalogue.write_inventory(unit as u32, fields),
            Kind::Orders(orders, table) => orders.write(*table, unit, fields),
            Kind::Reviews(reviews, table) => reviews.write(*table, unit, fields),
        }
    }
}

#[cfg(test)]
mod tests;
