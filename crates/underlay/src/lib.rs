//! The lab: carries out plans.
