//! The experiments of an atlas, and the medians of their errors.

use serde::{Deserialize, Serialize};

use super::experiment::AtlasExperiment;

/// Version of the JSON form: raised when a field changes its meaning or disappears.
pub const ATLAS_FORMAT: u32 = 1;

/// Experiments beside their publications.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Atlas {
    /// [`ATLAS_FORMAT`].
    pub format: u32,
    /// In the order in which they were asked for.
    pub experiments: Vec<AtlasExperiment>,
    /// Median of the errors of the headline ratios of runs, without their signs and without ratios that are given; `null`
    /// without any.
    pub median_error: Option<f64>,
    /// The same without ratios that are host-limited, too; `null` without any, and in older atlases.
    #[serde(default)]
    pub median_error_not_host_limited: Option<f64>,
    /// That of simulations.
    pub simulated_median_error: Option<f64>,
}

impl Atlas {
    /// Puts an experiment in the place of an earlier one of the same study, or after the others. A simulation stands beside
    /// an earlier run, and a run takes over what was simulated earlier and has no newer simulation. What has no result leaves
    /// an earlier result.
    pub fn put(&mut self, experiment: AtlasExperiment) {
        let mut all = std::mem::take(&mut self.experiments);
        match all.iter_mut().find(|known| known.name == experiment.name) {
            Some(known) => *known = experiment.after(known),
            None => all.push(experiment),
        }
        *self = Atlas::new(all);
    }

    /// The atlas of these experiments.
    pub fn new(experiments: Vec<AtlasExperiment>) -> Atlas {
        let headlines = || {
            let ratios = experiments.iter().flat_map(|one| &one.ratios);
            ratios.filter(|ratio| ratio.is_headline && !ratio.is_given)
        };
        Atlas {
            format: ATLAS_FORMAT,
            median_error: median(headlines().filter_map(|ratio| ratio.error)),
            median_error_not_host_limited: median(
                headlines().filter(|ratio| !ratio.is_host_limited).filter_map(|ratio| ratio.error),
            ),
            simulated_median_error: median(headlines().filter_map(|ratio| ratio.simulated_error)),
            experiments,
        }
    }
}

fn median(errors: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sizes: Vec<f64> = errors.map(f64::abs).collect();
    sizes.sort_by(f64::total_cmp);
    let middle = sizes.len() / 2;
    match sizes.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sizes[middle]),
        _ => Some((sizes[middle - 1] + sizes[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{Atlas, AtlasExperiment, median};
    use crate::analysis::EvidenceKind;
    use crate::atlas::build::missing;
    use crate::atlas::experiment::{Agreement, AtlasRatio};

    #[test]
    fn an_experiment_takes_the_place_of_an_earlier_one() {
        let one = |name: &str, problem: &str| missing(name, "", "", problem.to_string());
        let mut atlas = Atlas::new(vec![one("a", "first"), one("b", "first")]);
        atlas.put(one("a", "second"));
        atlas.put(one("c", "second"));
        let expected = [one("a", "second"), one("b", "first"), one("c", "second")];
        assert_eq!(atlas.experiments, expected);
        let json = serde_json::to_string(&atlas).expect("JSON");
        assert_eq!(serde_json::from_str::<Atlas>(&json).expect("read"), atlas);
    }

    fn entry(evidence: EvidenceKind, ours: Option<f64>, simulated: Option<f64>) -> AtlasExperiment {
        let ratio = AtlasRatio {
            is_headline: true,
            is_given: false,
            is_host_limited: false,
            text: "NVMe over SATA at 8 users".to_string(),
            metric: "NOPM".to_string(),
            published: 2.0,
            ours,
            low: None,
            high: None,
            simulated,
            error: ours.map(|ours| ours / 2.0 - 1.0),
            simulated_error: simulated.map(|simulated| simulated / 2.0 - 1.0),
            agreement: Agreement::Close,
        };
        let empty = missing("a", "", "", String::new());
        AtlasExperiment { evidence: Some(evidence), ratios: vec![ratio], ..empty }
    }

    #[test]
    fn a_simulation_and_a_run_stand_beside_each_other_whichever_comes_first() {
        let run = |ours| entry(EvidenceKind::Emulated, Some(ours), None);
        let simulation = |simulated| entry(EvidenceKind::Simulated, None, Some(simulated));
        let of = |entries: Vec<AtlasExperiment>| {
            let mut atlas = Atlas::new(Vec::new());
            entries.into_iter().for_each(|entry| atlas.put(entry));
            let [only] = &atlas.experiments[..] else { panic!("one experiment") };
            let [ratio] = &only.ratios[..] else { panic!("one ratio") };
            (only.evidence, ratio.ours, ratio.simulated, atlas.simulated_median_error)
        };
        let emulated = Some(EvidenceKind::Emulated);
        let both = (emulated, Some(1.8), Some(1.5), Some(0.25));
        assert_eq!(of(vec![run(1.8), simulation(1.5)]), both);
        assert_eq!(of(vec![simulation(1.5), run(1.8)]), both);
        assert_eq!(of(vec![run(1.8), simulation(3.0), simulation(1.5)]), both);
        assert_eq!(of(vec![run(3.0), simulation(1.5), run(1.8)]), both);
        let of_both = entry(EvidenceKind::Emulated, Some(1.8), Some(1.5));
        assert_eq!(of(vec![simulation(3.0), of_both]), both);
    }

    #[test]
    fn an_entry_without_a_result_leaves_an_earlier_result() {
        let both = entry(EvidenceKind::Emulated, Some(1.8), Some(1.5));
        let mut atlas = Atlas::new(vec![both.clone()]);
        atlas.put(missing("a", "", "", "a block load has no database".to_string()));
        assert_eq!(atlas.experiments, [both]);
    }

    #[test]
    fn what_is_given_is_no_part_of_the_medians() {
        let found = entry(EvidenceKind::Emulated, Some(1.5), Some(1.0));
        let mut given = entry(EvidenceKind::Emulated, Some(2.0), Some(2.0));
        (given.name, given.ratios[0].is_given) = ("b".to_string(), true);
        let atlas = Atlas::new(vec![found, given]);
        assert_eq!((atlas.median_error, atlas.simulated_median_error), (Some(0.25), Some(0.5)));
        // An atlas from before says of nothing that it is given.
        let text = serde_json::to_string(&atlas).expect("JSON");
        let older = text.replace("\"is_given\":true,", "").replace("\"is_given\":false,", "");
        let older: Atlas = serde_json::from_str(&older).expect("read");
        assert!(older.experiments.iter().flat_map(|it| &it.ratios).all(|it| !it.is_given));
    }

    #[test]
    fn what_the_host_limited_is_left_out_of_a_median_of_its_own() {
        let found = entry(EvidenceKind::Emulated, Some(1.5), Some(1.0));
        let mut limited = entry(EvidenceKind::Emulated, Some(1.0), Some(2.0));
        (limited.name, limited.ratios[0].is_host_limited) = ("b".to_string(), true);
        let atlas = Atlas::new(vec![found, limited.clone()]);
        assert_eq!(atlas.median_error, Some(0.375));
        assert_eq!(atlas.median_error_not_host_limited, Some(0.25));
        // A host limits no simulation.
        assert_eq!(atlas.simulated_median_error, Some(0.25));
        let only = Atlas::new(vec![limited]);
        assert_eq!((only.median_error, only.median_error_not_host_limited), (Some(0.5), None));
        // An atlas from before does not know.
        let mut older = serde_json::to_value(&atlas).expect("JSON");
        older.as_object_mut().expect("an object").remove("median_error_not_host_limited");
        for experiment in older["experiments"].as_array_mut().expect("a list") {
            let ratio = experiment["ratios"][0].as_object_mut().expect("a ratio");
            ratio.remove("is_host_limited");
        }
        let older: Atlas = serde_json::from_value(older).expect("read");
        assert_eq!(older.median_error_not_host_limited, None);
        assert!(older.experiments.iter().flat_map(|it| &it.ratios).all(|it| !it.is_host_limited));
    }

    #[test]
    fn a_simulation_leaves_a_run_host_limited_and_is_never_so_itself() {
        let mut run = entry(EvidenceKind::Emulated, Some(1.0), None);
        run.ratios[0].is_host_limited = true;
        let simulation = entry(EvidenceKind::Simulated, None, Some(1.5));
        let of = |entries: Vec<AtlasExperiment>| -> Vec<bool> {
            let mut atlas = Atlas::new(Vec::new());
            entries.into_iter().for_each(|entry| atlas.put(entry));
            let ratios = atlas.experiments.iter().flat_map(|one| &one.ratios);
            ratios.map(|ratio| ratio.is_host_limited).collect()
        };
        assert_eq!(of(vec![run.clone(), simulation.clone()]), [true]);
        assert_eq!(of(vec![simulation, run.clone()]), [true]);
        // A later run that lacks the ratio takes over what was simulated, and nothing of the earlier run.
        let both = AtlasExperiment {
            ratios: vec![AtlasRatio { simulated: Some(1.5), ..run.ratios[0].clone() }],
            ..run.clone()
        };
        assert_eq!(of(vec![both, AtlasExperiment { ratios: Vec::new(), ..run }]), [false]);
    }

    #[test]
    fn a_median_has_no_sign() {
        assert_eq!(median([].into_iter()), None);
        assert_eq!(median([-0.5, 0.1, 0.2].into_iter()), Some(0.2));
        assert_eq!(median([0.1, -0.3].into_iter()), Some(0.2));
    }
}
