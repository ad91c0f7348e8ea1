//! How many units and how many rows a table has in a shop of some size.
//!
//! Not here: the rows themselves, which need not be generated to be counted.

use super::table::Table;
use super::{orders, reviews};
use crate::dvdstore::Parameters;
use crate::dvdstore::words::CATEGORIES;

impl Table {
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
}
