//! The initial rows of every table, as a function of the seed and a number.
//!
//! Rows come in *units* that are generated alone, in any order: a customer, a product, an order with its one to nine
//! lines, a review with its 2 to 39 ratings. A caller that needs rows passes a [`Fields`], which receives their
//! columns one after the other; nothing is allocated per row.
//!
//! Not here: column types, SQL, how a row is sent; that is the engine's.

mod customers;
mod date;
mod fields;
mod orders;
mod products;
mod reviews;
mod row_counts;
mod table;
mod units;

pub use customers::{CUSTOMER_VALUES, write_customer};
pub use date::Date;
pub use fields::Fields;
pub use products::Catalogue;
pub use table::Table;
pub use units::Units;

/// Changes whenever equal parameters generate other rows. Part of the workload's identity.
pub const GENERATION: u32 = 1;

#[cfg(test)]
mod tests;
