//! The units of any table, generated one by one.
//!
//! Not here: what is in a row; each table has a generator of its own.

use super::fields::Fields;
use super::products::Catalogue;
use super::table::Table;
use super::{customers, orders, reviews};
use crate::dvdstore::Parameters;
use crate::dvdstore::words::CATEGORIES;

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
