//! Analyses of simulated executions whose truth is known.

mod answers;
mod atlas;
mod axes;
mod backups;
mod block_load;
mod block_study;
mod compare;
mod damaged;
mod databases;
mod devices;
mod example;
mod figures;
mod fixture;
mod html;
mod lost_database;
mod mariadb;
mod page;
mod simulation;
mod synthetic;
mod synthetic_resync;
mod synthetic_run;
mod terminal;
mod time_axis;
mod validity;
mod verdicts;
