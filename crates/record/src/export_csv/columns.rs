//! Columns that several of the files have.
//!
//! It deliberately holds no column of one file only: that is declared with its file.

use super::csv_file::ColumnDoc;

pub(super) const RUN: ColumnDoc<'static> = ("run", "id of the run; empty: concerns all runs");
pub(super) const BEGIN: ColumnDoc<'static> =
    ("begin_ns", "start of the window, ns on the run's clock");
pub(super) const END: ColumnDoc<'static> = ("end_ns", "end of the window, ns on the run's clock");
pub(super) const BUCKETS: &str =
    "non-empty histogram buckets as `lower bound ns:width ns:count`, space separated";
