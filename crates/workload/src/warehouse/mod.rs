//! A data warehouse, derived from TPC-H: its population, its refresh functions, its 22 queries and their answers.
//!
//! Results are not comparable with published TPC-H results: this is a derived work. It keeps the specification's
//! schema, cardinalities, rules of population, questions and their ranges; it deviates, declared, in the text of
//! comments and addresses (our own words, so rows are not those of the specification's generator), in scale factors
//! below 1, in refresh sets (orders go in the order of their keys), and in the orders of streams after the tenth.
//!
//! In reading order: [`Scale`] says how much, [`Population`] makes every row from its key, [`Refreshed`] what refresh
//! functions did, [`Query`] is a question with its values, [`order_of_stream`] says who asks what when, [`answers`]
//! computes the answers from the rows alone, without SQL. What is deliberately not here: SQL, clocks.

pub mod answers;
mod date;
mod query;
mod refresh;
mod rows;
mod scale;
mod stream;
mod text;
pub mod words;

pub use date::Day;
pub use query::Query;
pub use refresh::Refreshed;
pub use rows::{
    Customer, Line, Nation, Order, Part, PartSupplier, Population, Region, Supplier,
    retail_price_cents,
};
pub use scale::{REFRESH_SETS, Scale, ScaleError};
pub use stream::order_of_stream;

/// Said with every result.
pub const NOTICE: &str = "Derived from TPC-H: not comparable with published TPC-H results. Deviations: text of \
    comments and addresses, scale factors below 1, order of deletions, ordered sets after the tenth stream, ties in \
    answers broken by key.";
