//! Reading records: statistics, verdicts, terminal summaries and the HTML report.
//!
//! The way of the data: a record is read into an [`Analysis`], which holds every number and every sentence;
//! pages and summaries only draw it.
//!
//! What this crate deliberately does not do: measure, change a record, or know how a run is made.

// Pure: clippy.toml lists what is denied, and why.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod analysis;

mod statistics;

mod axes;
mod engine_settings;
mod flatten;
mod method;
mod metrics;
mod plan_view;
mod transaction_types;
mod volume_names;
mod wording;
mod working_set;
mod workload_view;

mod checkpoints;
mod observed;
mod timelines;

mod digest;

mod block_loads;
mod busy_parts;
mod estimates;
mod ladder;
mod latencies;
mod operations;
mod rate_searches;
mod verdict;

mod comparisons;
mod confounds;
mod curves;
mod findings;
mod headline;
mod published;
mod settings;
mod validity;

mod analyse;

mod text_table;

pub mod atlas;

mod html;
mod terminal;

mod compare;
mod gate;
mod trend;

#[cfg(test)]
mod synthetic_series;

pub use analyse::{analyse, is_precise};
pub use analysis::Analysis;
pub use atlas::{Atlas, atlas_summary};
pub use compare::{
    CompareError, CompareOptions, DesignPair, IdentityPolicy, RecordComparison, Side, compare,
    comparison_summary,
};
pub use gate::{Gate, GateOutcome, GatePair, gate};
pub use html::{HtmlError, atlas_html, html};
pub use terminal::{Colour, terminal_summary};
pub use trend::{
    LeftOut, Trend, TrendChange, TrendDesign, TrendError, TrendPoint, TrendRecord, trend,
    trend_summary,
};
pub use underlay_record::{export_csv, export_json_lines};
