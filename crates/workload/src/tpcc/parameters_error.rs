//! Why parameters were refused, and the limit that the refusal names.
//!
//! Not here: the checks, which are beside what they check.

/// As many warehouses as the generators number safely.
pub(super) const WAREHOUSES_MAX: u32 = 1_000_000;

/// Why parameters were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// A database needs at least one warehouse.
    #[error("the number of warehouses is 0; use at least 1")]
    NoWarehouse,
    /// More warehouses than the generators number safely.
    #[error("the number of warehouses is {warehouses}; use at most {}", WAREHOUSES_MAX)]
    TooManyWarehouses {
        /// The number that was asked for.
        warehouses: u32,
    },
    /// A share above the whole.
    #[error("the entropy is {percent} %; use 0 to 100")]
    EntropyAboveAll {
        /// The share that was asked for.
        percent: u8,
    },
}
