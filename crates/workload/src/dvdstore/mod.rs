//! A web shop after DVD Store 3: its rows and its visitors.
//!
//! Made from the published description of tables, sizes, procedures and flow; words, random numbers and code are Underlay's own.
//! Where the kit has defects, this has not: every decision of a visit is drawn apart, an order that cannot be
//! delivered is rolled back whole, stock is read under a lock, searches find what they look for.
//!
//! Reading order: [`Size`] says how many rows there are; [`population`] makes them; [`Behaviour`] says what users do;
//! [`Transaction`] is one step of a visit with its inputs; [`Visitor`] is the user; [`DvdStore`] is all of it as the
//! load generator drives it.

mod accounting;
mod identity;
mod money;
mod parameters;
pub mod population;
mod random;
mod review_text;
mod size;
mod transaction;
mod visitor;
mod words;
mod workload;

pub use accounting::{Changes, DvdStoreAccounting};
pub use identity::{identity, population_identity};
pub use money::tax_cents;
pub use parameters::{Behaviour, BehaviourError, LINES_MAX, Parameters};
pub use size::{Size, SizeError};
pub use transaction::{Line, Outcome, Step, Transaction};
pub use visitor::Visitor;
pub use workload::{DvdStore, SHAPE};
