//! The names of population and workload: two results are comparable only when theirs are equal.

use sha2::{Digest, Sha256};

use super::Parameters;
use super::population::GENERATION;

/// Changes whenever other transactions are made from the same parameters.
const USERS_GENERATION: u32 = 1;

/// The identity of the rows: size, seed and the engine's texts that they were made with.
pub fn population_identity(parameters: &Parameters, engine_texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    field(&mut hash, b"underlay dvdstore population 1");
    field(&mut hash, &GENERATION.to_le_bytes());
    field(&mut hash, &parameters.size.nominal_kb().to_le_bytes());
    field(&mut hash, &parameters.seed.0.to_le_bytes());
    engine_texts.iter().for_each(|text| field(&mut hash, text.as_bytes()));
    hexadecimal(hash)
}

/// The identity of a run: that of its population, what users do, and the engine's texts of their steps.
pub fn identity(parameters: &Parameters, population: &str, engine_texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    field(&mut hash, b"underlay dvdstore identity 1");
    field(&mut hash, &USERS_GENERATION.to_le_bytes());
    field(&mut hash, population.as_bytes());
    let behaviour = &parameters.behaviour;
    for number in [
        behaviour.pct_newcustomers,
        behaviour.pct_newmember,
        behaviour.n_searches,
        behaviour.search_batch_size,
        behaviour.search_depth,
        behaviour.n_reviews,
        behaviour.pct_newreviews,
        behaviour.pct_newhelpfulness,
        behaviour.n_line_items,
        u32::from(behaviour.ds2_mode),
    ] {
        field(&mut hash, &number.to_le_bytes());
    }
    engine_texts.iter().for_each(|text| field(&mut hash, text.as_bytes()));
    hexadecimal(hash)
}

/// A field with its length before it.
fn field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{identity, population_identity};
    use crate::dvdstore::{Behaviour, Parameters, Size};
    use std::collections::BTreeSet;
    use underlay_core::RootSeed;

    #[test]
    fn everything_that_changes_the_work_changes_the_identity() {
        let base = Parameters::new(Size::SMALL, RootSeed(1));
        let behaviour = Behaviour { n_reviews: 20, ..base.behaviour };
        let name = |parameters: &Parameters, texts: &[&str]| {
            identity(parameters, &population_identity(parameters, &["t"]), texts)
        };
        let all = [
            name(&base, &["a"]),
            name(&base, &["b"]),
            name(&Parameters { size: Size::MEDIUM, ..base }, &["a"]),
            name(&Parameters { seed: RootSeed(2), ..base }, &["a"]),
            name(&Parameters { behaviour, ..base }, &["a"]),
            identity(&base, &population_identity(&base, &["u"]), &["a"]),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        let other = Parameters { behaviour, ..base };
        assert_eq!(population_identity(&base, &[]), population_identity(&other, &[]));
    }
}
