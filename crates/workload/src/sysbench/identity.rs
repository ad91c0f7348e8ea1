//! The name of the workload: two results are comparable only when theirs are equal.

use sha2::{Digest, Sha256};

use super::Parameters;

/// Changes whenever other rows or other transactions are made from the same parameters.
const GENERATION: u32 = 1;

/// The identity as 64 hexadecimal digits: parameters and the engine's texts, each with its length.
pub fn identity(parameters: &Parameters, engine_texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    field(b"underlay sysbench identity 1");
    field(&GENERATION.to_le_bytes());
    let composition = &parameters.composition;
    for number in [
        parameters.tables,
        parameters.table_size,
        composition.point_selects,
        composition.simple_ranges,
        composition.sum_ranges,
        composition.order_ranges,
        composition.distinct_ranges,
        composition.range_size,
        composition.index_updates,
        composition.non_index_updates,
        composition.delete_inserts,
        composition.bulk_rows,
    ] {
        field(&number.to_le_bytes());
    }
    field(&parameters.seed.0.to_le_bytes());
    field(parameters.distribution.as_str().as_bytes());
    field(parameters.script.as_str().as_bytes());
    engine_texts.iter().for_each(|text| field(text.as_bytes()));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::identity;
    use crate::sysbench::{Distribution, Parameters, Script};
    use std::collections::BTreeSet;
    use underlay_core::RootSeed;

    #[test]
    fn everything_that_changes_the_work_changes_the_identity() {
        let base =
            Parameters::new(2, 100, RootSeed(1), Distribution::Uniform, Script::ReadWrite).unwrap();
        let mut wider = base;
        wider.composition.range_size = 50;
        let all = [
            identity(&base, &["a"]),
            identity(&base, &["b"]),
            identity(&Parameters { tables: 3, ..base }, &["a"]),
            identity(&Parameters { table_size: 101, ..base }, &["a"]),
            identity(&Parameters { seed: RootSeed(2), ..base }, &["a"]),
            identity(&Parameters { distribution: Distribution::Pareto, ..base }, &["a"]),
            identity(&Parameters { script: Script::Delete, ..base }, &["a"]),
            identity(&wider, &["a"]),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
