//! The analysis in a terminal: the answer, what the designs are, one line per design and rung, warnings.
//!
//! Each part has a file of its own; [`terminal_summary`] has them in the order in which they are shown. Comparisons and trends are
//! laid out on the same [`Page`].
//!
//! What it deliberately does not do: compute or judge anything. All numbers and sentences are those of the analysis.

mod colour;
mod page;

mod cells;

mod answer;
mod axes;
mod bottlenecks;
mod curves;
mod databases;
mod findings;
mod ladder;
mod operations;
mod ratios;
mod searches;
mod small_print;

use crate::analysis::Analysis;

pub use colour::Colour;
pub(crate) use findings::findings;
pub(crate) use page::Page;
pub(crate) use ratios::{outcome_words, probability, ratio_interval};

/// The summary of an analysis for a terminal of `width` columns. Ends with a line feed.
pub fn terminal_summary(analysis: &Analysis, width: usize, colour: Colour) -> String {
    let mut page = Page::new(width, colour);
    answer::answer(&mut page, analysis);
    answer::designs(&mut page, analysis);
    axes::axes(&mut page, analysis);
    ladder::ladder(&mut page, analysis);
    databases::databases(&mut page, analysis);
    searches::searches(&mut page, analysis);
    operations::operations(&mut page, analysis);
    curves::curves(&mut page, analysis);
    ratios::ratios(&mut page, analysis);
    bottlenecks::bottlenecks(&mut page, analysis);
    findings(&mut page, &analysis.findings);
    small_print::small_print(&mut page, analysis);
    page.text()
}
