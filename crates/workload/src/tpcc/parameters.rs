//! What a run of the workload is a function of.

use underlay_core::RootSeed;

use super::constants::Constants;
use super::entropy::Entropy;
use super::parameters_error::{ParametersError, WAREHOUSES_MAX};

/// Size, seed and knobs of one database and the load on it.
///
/// Two runs with equal parameters generate the same rows and ask the same transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// How many warehouses are loaded; they are numbered from 1.
    pub warehouses: u32,
    /// The root of all random streams, of the population and of the users.
    pub seed: RootSeed,
    /// How random the generated text is.
    pub entropy: Entropy,
    /// The run constants of the non-uniform random function, derived from the seed.
    pub constants: Constants,
}

impl Parameters {
    /// Most warehouses of one database (about 100 TB of rows).
    pub const WAREHOUSES_MAX: u32 = WAREHOUSES_MAX;

    /// Parameters with the run constants derived from `seed`.
    ///
    /// # Errors
    /// Refuses 0 warehouses and more than [`Parameters::WAREHOUSES_MAX`].
    pub fn new(
        warehouses: u32,
        seed: RootSeed,
        entropy: Entropy,
    ) -> Result<Parameters, ParametersError> {
        if warehouses == 0 {
            return Err(ParametersError::NoWarehouse);
        }
        if warehouses > Self::WAREHOUSES_MAX {
            return Err(ParametersError::TooManyWarehouses { warehouses });
        }
        Ok(Parameters { warehouses, seed, entropy, constants: Constants::derive(seed) })
    }
}

#[cfg(test)]
mod tests {
    use underlay_core::RootSeed;

    use super::Parameters;
    use crate::tpcc::{Entropy, ParametersError};

    #[test]
    fn impossible_sizes_are_refused_with_a_remedy() {
        let error = Parameters::new(0, RootSeed(1), Entropy::FULL).unwrap_err();
        assert_eq!(error, ParametersError::NoWarehouse);
        assert_eq!(error.to_string(), "the number of warehouses is 0; use at least 1");
        let error = Parameters::new(1_000_001, RootSeed(1), Entropy::FULL).unwrap_err();
        assert_eq!(error.to_string(), "the number of warehouses is 1000001; use at most 1000000");
        let error = Entropy::new(101).unwrap_err();
        assert_eq!(error.to_string(), "the entropy is 101 %; use 0 to 100");
    }
}
