//! The program as its users run it.

mod block_study;
mod causal_check;
mod cluster_faults;
mod command_line;
mod common;
mod decisions;
mod docs;
mod drive_by_url;
mod imports;
mod io;
mod mariadb;
mod power_cut;
mod published_studies;
mod reproduce;
mod simulate_and_calibrate;
mod simulated_study;
mod sizing;
mod study_axes;
mod study_backups;
mod study_client;
mod study_databases;
mod study_faults;
mod study_jobs;
mod study_search;
mod volumes;
mod whole_study;
