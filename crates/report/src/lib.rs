//! Reading records: statistics, verdicts, terminal summaries and the HTML report.
//!
//! The way of the data: a record is read into an [`Analysis`], which holds every number and every sentence;
//! pages and summaries only draw it.
//!
//! What this crate deliberately does not do: measure, change a record, or know how a run is made.

pub mod analysis;
mod html;
pub mod statistics;
#[cfg(test)]
mod synthetic_series;

pub use analysis::Analysis;
pub use html::{HtmlError, html};
