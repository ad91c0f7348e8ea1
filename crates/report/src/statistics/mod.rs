//! The statistics of comparisons and measured windows: pure functions of numbers.
//!
//! Two levels that must not be confused: *within a window* the values are seconds, which are
//! autocorrelated (batch means, effective sample size, steadiness); *between runs* the unit of replication
//! is the run (t-interval, paired log-ratio, Welch, equivalence). An interval from one level says
//! nothing about the other.
//!
//! What is deliberately not here: reading records, wording, decisions with consequences for a page.

mod batch_means;
mod bootstrap;
mod change_points;
mod comparison;
mod drift;
mod effective_samples;
mod elasticity;
mod equivalence;
mod families;
mod holm;
pub(crate) mod host_share;
mod mean;
mod mser;
mod repeats;
mod sign_flip;
mod student;
mod within_pairs;

pub(crate) use batch_means::batch_means;
pub(crate) use bootstrap::{QuantileEstimate, quantile_intervals};
pub(crate) use change_points::{FEWEST_RECORDS, change_points, change_points_of_few};
pub(crate) use comparison::{RatioEstimate, paired_log_ratio, welch_log_ratio};
pub(crate) use drift::drift;
pub(crate) use effective_samples::effective_samples;
pub(crate) use elasticity::{ChangeEffect, Elasticity, Period, change_effects};
pub(crate) use equivalence::equivalence_p;
pub(crate) use families::correct_families;
pub(crate) use holm::holm;
pub(crate) use mean::{MeanInterval, mean, t_interval};
pub(crate) use mser::mser5;
#[cfg(test)]
pub(crate) use repeats::is_as_narrow_as;
pub(crate) use repeats::repeats_needed;
pub(crate) use sign_flip::sign_flip_p;
pub(crate) use within_pairs::within_pairs;
