//! The lab and the command line of Underlay: the only crate that knows all the others.
//!
//! [`cli`] says what can be asked; [`lab`] carries out plans: it stands databases on datastores,
//! drives them, records every layer and removes everything again. Storage behaviour, workloads,
//! statistics and pages are deliberately not here: they live in their own crates.

pub mod cli;
pub mod exit_code;
pub mod lab;
pub mod stop;
