//! Block loads: the courses that `underlay io` and studies share, and the runs of a study whose workload they are.
//!
//! In reading order: targets and results ([`Place`], [`Outcome`]), a course ([`Session`]), its record ([`recording`]), and one run of
//! a study ([`run`]). The load generator itself is `underlay_blockio`; no database server is involved.

mod io_error;
mod outcome;
pub mod recording;
pub mod run;
mod session;

pub use io_error::stop;
pub use outcome::{LastLook, Medium, Outcome, Phase, Place, Second, TargetFacts};
pub use session::{Course, Session, Settings, Watch, run_identity, verifiers};
