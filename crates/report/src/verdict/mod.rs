//! What limits a design, and whether that may be said: fixed rules over a window's numbers.
//!
//! Pure, deterministic, explainable: a time budget ([`time_budget`]), conditions that must hold before anything
//! is said ([`gates`]), and a short list of comparisons ([`bottleneck`]). No machine learning, no
//! guess: when a gate fails the verdict is "inconclusive" with the reason. The thresholds are stated where they are
//! used, and every verdict lists what was ruled out and by which number.

pub(crate) mod bottleneck;
pub(crate) mod causal;
pub(crate) mod gates;
pub(crate) mod situation;
pub(crate) mod steady;
pub(crate) mod time_budget;
