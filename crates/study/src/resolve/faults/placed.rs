//! A fault with its place in the file, where its problems are reported. It is neither read nor checked here.

use std::ops::Range;

use crate::entry::Section;
use crate::fault_plan::FaultPlan;
use crate::file;

/// A fault with its place in the file.
pub(super) struct Placed {
    pub plan: FaultPlan,
    pub span: Range<usize>,
}

/// Where a fault is in the file.
pub(super) fn place(section: &Section<file::Fault>) -> Range<usize> {
    section.span.clone().unwrap_or(0..0)
}
