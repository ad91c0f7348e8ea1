//! Batch insertion: rows of one table inserted one after the other, in one transaction each, in one transaction
//! for all, or as a stream.
//!
//! The table is that of VMware's study of batch insertion on vSAN (one table of orders at a stock exchange, one
//! million rows), where the choice of the transaction mattered 15 times as much as that of the storage policy. The
//! study inserts the same values a million times; here the values follow from the seed, so that what a database
//! holds afterwards can be compared row by row.
//!
//! In reading order: [`Row`] is what is inserted, [`Mode`] and [`Loop`] how, [`slices`] says which session inserts which rows,
//! [`Verifier`] compares what is there with what was acknowledged. What is deliberately not here: SQL, clocks.

mod mode;
mod parameters;
mod row;
mod slice;
mod verifier;

pub use mode::{LOOP_ROWS, Loop, Mode};
pub use parameters::{MAX_ROWS, Parameters, STUDY_ROWS};
pub use row::{CHECKORD_BYTES, Row, TEXT_COLUMNS, Text};
pub use slice::{Slice, slices};
pub use verifier::{Claim, Verdict, Verifier};

use underlay_core::Nanos;

use crate::transactional::{Headline, Shape};

/// The names of the workload: rows are what is counted.
pub const SHAPE: Shape = Shape {
    name: "batch",
    types: &["insert"],
    headline: Headline {
        types: &[0],
        counted: "rows",
        unit: "rows/s",
        period: Nanos::from_secs(1),
    },
    notice: "",
};
