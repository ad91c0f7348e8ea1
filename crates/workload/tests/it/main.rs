//! Populations, distributions and ledgers of the workloads.

mod distributions;
mod ledger_fuzz;
mod population_golden;
mod population_rules;
mod terminals;
mod warehouse;
