//! What a comparison with published results rests on, and the one number that it comes to. How it looks is decided elsewhere.

use underlay_simulation::experiments::{Comparison, Effort, median};

/// What the numbers of a study depend on, apart from the code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) requests: u64,
    pub(super) seed: u64,
}

impl Settings {
    /// As a sentence.
    pub(super) fn sentence(self) -> String {
        let unusual = match Effort::FULL.requests {
            usual if self.requests < usual => {
                format!(
                    " The default is {usual}: the median error differs from the documented one."
                )
            }
            _ => String::new(),
        };
        format!(
            "At most {} requests per run, and per point of a curve; seed {}.{unusual}",
            self.requests, self.seed
        )
    }
}

/// The median error over the predicted rows of all test beds, in percent.
pub(super) fn overall(comparisons: &[Comparison]) -> Option<f64> {
    median(comparisons.iter().flat_map(Comparison::predicted_errors).collect())
}
