//! An order-entry workload derived from TPC-C: inputs, pacing, population, ledger, identity.
//!
//! The workload is derived from the TPC-C specification and is not comparable to published TPC
//! results. Clause numbers in this module name the clause of that specification (revision 5) a rule
//! comes from.
//!
//! Reading order: [`cardinality`] and [`Parameters`] say how big; [`Transaction`] says what a user
//! asks; [`Terminal`] decides it, from [`nurand`], [`names`], the [`deck`] and [`pacing`];
//! [`Variability`] counts what was asked; [`population`] generates the initial rows; the
//! [`ledger`] holds what the database acknowledged; [`Tpcc`] is all of it as the load generator
//! drives it; [`Identity`] names the whole.
//!
//! Everything is a function of [`Parameters`]: the transaction number `n` of user `u` is the same on
//! every machine, whatever the other users did, and any warehouse can be generated alone.

pub mod cardinality;
mod configuration;
mod constants;
pub mod deck;
mod entropy;
mod home;
mod identity;
pub mod ledger;
pub mod money;
pub mod names;
pub mod nurand;
pub mod pacing;
mod parameters;
mod parameters_error;
pub mod population;
mod profile;
mod terminal;
mod transaction;
mod variability;
mod workload;

pub use configuration::Tpcc;
pub use constants::Constants;
pub use entropy::Entropy;
pub use home::HomeWarehouse;
pub use identity::{Identity, identity};
pub use ledger::Ledger;
pub use parameters::Parameters;
pub use parameters_error::ParametersError;
pub use profile::Profile;
pub use terminal::Terminal;
pub use transaction::{
    CustomerSelector, Delivery, NewOrder, OrderLineInput, OrderStatus, Payment, SERVER_DRAWN_ITEM,
    StockLevel, Transaction, TransactionType, UNUSED_ITEM,
};
pub use variability::{Limit, LimitOutcome, Variability, VariabilityFinding};
pub use workload::{Outcome, SHAPE, TpccAccounting};
