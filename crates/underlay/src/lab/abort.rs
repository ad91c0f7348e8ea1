//! Why a run ends before its time.

use crate::exit_code;
use crate::stop::{Stop, chain};
use std::error::Error;

/// The cause, as the record keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The user asked to stop.
    Interrupted,
    /// Something failed; the text names the cause.
    Failed(String),
}

impl Abort {
    /// A failure with the whole chain of its causes, said to have happened while `doing`.
    pub fn failed(doing: &str, error: &(dyn Error + 'static)) -> Abort {
        Abort::Failed(format!("{doing}: {}", chain(error)))
    }
}

impl From<Stop> for Abort {
    fn from(stop: Stop) -> Abort {
        match stop.code() {
            exit_code::INTERRUPTED => Abort::Interrupted,
            _ => Abort::Failed(stop.to_string()),
        }
    }
}

impl From<Abort> for Stop {
    fn from(abort: Abort) -> Stop {
        match abort {
            Abort::Interrupted => Stop::interrupted("stopped by the user"),
            Abort::Failed(reason) => Stop::run_failed(reason),
        }
    }
}

/// Turns any error into a failure with its context.
pub trait During<T> {
    /// `doing` completes "could not ...".
    fn during(self, doing: &str) -> Result<T, Abort>;
}

impl<T, E: Error + 'static> During<T> for Result<T, E> {
    fn during(self, doing: &str) -> Result<T, Abort> {
        self.map_err(|error| Abort::failed(&format!("could not {doing}"), &error))
    }
}
