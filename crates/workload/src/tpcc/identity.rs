//! The name of a workload: two results are comparable only when theirs are equal.

use std::fmt;

use sha2::{Digest, Sha256};

use super::Parameters;
use super::population::GENERATION;

/// Changes whenever a terminal asks other transactions from the same parameters.
const INPUTS_GENERATION: u32 = 1;

/// The identity of a workload as 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(pub String);

impl Identity {
    /// The first 12 digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The identity of a workload: everything that decides which work the database is asked to do.
///
/// `engine_texts` are the engine's schema, procedures and statements, in a fixed order; `mode` is how
/// they are called. Every field goes into SHA-256 with its length, so that no two different inputs
/// are the same text. How much load is offered, and by how many users, is not part of it.
pub fn identity(parameters: &Parameters, engine_texts: &[&str], mode: &str) -> Identity {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    field(b"underlay tpcc identity 1");
    field(&GENERATION.to_le_bytes());
    field(&INPUTS_GENERATION.to_le_bytes());
    let constants = parameters.constants;
    for number in [
        parameters.warehouses,
        u32::from(parameters.entropy.percent()),
        constants.c_load_last,
        constants.c_run_last,
        constants.c_customer,
        constants.c_item,
    ] {
        field(&number.to_le_bytes());
    }
    field(&parameters.seed.0.to_le_bytes());
    field(mode.as_bytes());
    field(&(engine_texts.len() as u64).to_le_bytes());
    for text in engine_texts {
        field(text.as_bytes());
    }
    Identity(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use underlay_core::RootSeed;

    use super::identity;
    use crate::tpcc::{Entropy, Parameters};

    fn parameters(warehouses: u32, seed: u64, percent: u8) -> Parameters {
        Parameters::new(warehouses, RootSeed(seed), Entropy::new(percent).unwrap()).unwrap()
    }

    #[test]
    fn everything_that_changes_the_work_changes_the_identity() {
        let base = parameters(2, 42, 100);
        let mut other_constant = base;
        other_constant.constants.c_item ^= 1;
        let all = [
            identity(&base, &["a", "b"], "procedures"),
            identity(&base, &["a", "b"], "statements"),
            identity(&base, &["ab", ""], "procedures"),
            identity(&base, &["ab"], "procedures"),
            identity(&parameters(3, 42, 100), &["a", "b"], "procedures"),
            identity(&parameters(2, 43, 100), &["a", "b"], "procedures"),
            identity(&parameters(2, 42, 50), &["a", "b"], "procedures"),
            identity(&other_constant, &["a", "b"], "procedures"),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|identity| identity.0.len() == 64));
    }

    #[test]
    fn equal_inputs_have_equal_identities_in_every_version() {
        let name = identity(&parameters(2, 42, 100), &["schema"], "procedures");
        assert_eq!(name.0, GOLDEN);
        assert_eq!(name.short(), &GOLDEN[..12]);
    }

    const GOLDEN: &str = "458dae35a12ad9d076651bf99f8e3881c8d89cc5e080deb8de3a2a4246cb915f";
}
