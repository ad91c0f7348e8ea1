//! The lab and the command line of Underlay: the only crate that knows all the others.
//!
//! [`cli`] says what can be asked; [`lab`] carries out plans: it stands databases on datastores,
//! drives them, records every layer and removes everything again. Storage behaviour, workloads,
//! statistics and pages are deliberately not here: they live in their own crates.

// Printing is for `output`, which does not panic when the reader is gone.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

pub mod cli;
pub mod exit_code;
pub mod lab;
pub mod stop;
