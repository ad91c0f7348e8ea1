//! `[start]`: what a run begins with, apart from the database.

use crate::entry::Entry;
use crate::section::*;

section! {
    /// What every run begins with, in addition to the database.
    pub(crate) struct Start as "Start" {
        /// Share of every capacity device of a cluster that other data takes. They are empty, when
        /// left out.
        "fill-percent" fill_percent: Entry<u64> = One(whole(1..=95));
    }
    written_for {
        "fill" => "fill-percent", "full" => "fill-percent",
    }
}
