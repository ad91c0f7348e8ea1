//! Analyses of simulated executions whose truth is known.

mod answers;
mod block_load;
mod compare;
mod devices;
mod fixture;
mod lost_database;
mod mariadb;
mod simulation;
mod synthetic;
mod synthetic_run;
mod terminal;
mod time_axis;
mod verdicts;
