//! Entries of the atlas: what they take from the study at the size of the publication.

use std::collections::BTreeMap;

use underlay_report::atlas::{FullSize, SimulatedPoint, entry};

use crate::example::{Size, analysis};

#[test]
fn designs_are_called_as_in_the_publication_beside_a_simulation_of_its_size() {
    let analysis = analysis(Size { series: 0, buckets: 0, runs: 0 });
    let designs = || analysis.designs.iter().map(|design| design.name.clone());
    let titles: BTreeMap<String, String> =
        designs().zip(["24 CPUs", "12 CPUs"].map(String::from)).collect();
    let point = |(design, value)| SimulatedPoint { design, metric: "tpm".into(), users: 8, value };
    let simulated = designs().zip([1_000.0, 500.0]).map(point).collect();
    let entry = entry(("paper/x1", ""), &analysis, &FullSize { titles, simulated }, None);
    let ratio = entry.ratios.iter().find(|ratio| ratio.simulated.is_some()).expect("a ratio");
    assert_eq!(ratio.text, "24 CPUs over 12 CPUs at 8 users");
    assert_eq!((ratio.ours, ratio.simulated), (Some(1.0), Some(2.0)));
}
