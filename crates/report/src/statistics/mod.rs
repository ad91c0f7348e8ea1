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
mod usl;
mod within_pairs;

pub use batch_means::{BATCHES, batch_means};
pub use bootstrap::{QuantileEstimate, quantile_intervals};
pub use change_points::{ChangePoint, FEWEST_RECORDS, change_points, change_points_of_few};
pub use comparison::{RatioEstimate, paired_log_ratio, welch_log_ratio};
pub use drift::{Drift, drift};
pub use effective_samples::effective_samples;
pub use elasticity::{ChangeEffect, Elasticity, Period, change_effects};
pub use equivalence::equivalence_p;
pub use families::correct_families;
pub use holm::holm;
pub use mean::{MeanInterval, mean, t_interval, variance};
pub use mser::{Trim, mser5};
pub use repeats::{is_as_narrow_as, repeats_needed};
pub use sign_flip::sign_flip_p;
pub use student::{two_sided_p, upper_quantile, upper_tail_p};
pub use usl::{Scalability, fit_scalability};
pub use within_pairs::{Spread, within_pairs};
