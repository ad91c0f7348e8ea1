//! The atlas: published experiments beside ours, one entry each.
//!
//! An entry is made of the analysis of one record, and of a simulation where there is one. Everything that the page and
//! the terminal show is in here; they only draw it.
//!
//! What it deliberately does not do: judge who is right. It says where the numbers agree and where they do not.

mod build;
mod collection;
mod curves;
mod experiment;
mod text;

pub use build::{FullSize, SimulatedPoint, entry, missing, simulated_points};
pub use collection::{ATLAS_FORMAT, Atlas};
pub use experiment::{
    Agreement, AtlasCurve, AtlasCurvePoint, AtlasCurves, AtlasExperiment, AtlasFigure, AtlasLine,
    AtlasRatio, LineOrigin,
};
pub use text::atlas_summary;
