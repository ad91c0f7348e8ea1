//! The tables with initial rows: their names, their columns, about how large a unit is.
//!
//! Not here: how many rows there are, which depends on the size of the shop.

use super::customers;

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
