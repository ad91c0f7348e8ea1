//! Reading records: statistics, verdicts, terminal summaries and the HTML report.
//!
//! The way of the data: a record is read into an [`Analysis`], which holds every number and every sentence;
//! pages and summaries only draw it.
//!
//! What this crate deliberately does not do: measure, change a record, or know how a run is made.

// Pure: clippy.toml lists what is denied, and why.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

// Modules import one way: only from the groups above their own.

// What pages show; tools without a subject.
pub mod analysis;
mod flatten;
mod statistics;
mod text_table;
mod wording;

// Names and their meanings; the plan.
mod axes;
mod engine_settings;
mod metrics;
mod transaction_types;
mod volume_names;

mod workload_view;

mod method;
mod plan_view;

// One run.
mod observed;

mod checkpoints;
mod timelines;

// Numbers over runs, and what limits a rung.
mod estimates;
mod latencies;
mod verdict;

mod busy_parts;
mod curves;

// The whole record.
mod digest;

mod block_loads;
mod confounds;
mod operations;
mod published;
mod rate_searches;
mod settings;
mod working_set;

mod ladder;

// Judgements, and what is said of them.
mod comparisons;
mod validity;

mod findings;
mod headline;

mod analyse;

// How an analysis looks.
pub mod atlas;
mod terminal;

mod html;

// Several records.
mod compare;
mod trend;

mod gate;

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
