//! Analyses of simulated executions whose truth is known.

mod answers;
mod fixture;
mod simulation;
mod synthetic;
