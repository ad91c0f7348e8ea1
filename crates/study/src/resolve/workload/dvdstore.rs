//! The web shop after DVD Store 3: merging, scaling and checking what only it has.

use underlay_workload::dvdstore::Size;

use super::KindChoice;
use crate::file::workload::Dvdstore;
use crate::plan::{DvdstorePlan, Scale, Setting};
use crate::resolve::Resolver;
use crate::resolve::chosen::{Chosen, Layer};

/// The decisions about the shop.
#[derive(Clone, Debug)]
pub(super) struct DvdstoreChoice {
    size: Chosen<Size>,
}

/// The path of its section.
pub(super) const PATH: &str = "workload.dvdstore";

impl DvdstoreChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> DvdstorePlan {
        DvdstorePlan { size: self.size.value }
    }

    /// At the size of the plan; a shop has a smallest size.
    pub fn scale(&mut self, scale: Scale) {
        let nominal_kb = self.size.value.nominal_kb() / u64::from(scale.divisor);
        let smallest = || Size::of_nominal_kb(SMALLEST_KB).unwrap_or(self.size.value);
        let size = Size::of_nominal_kb(nominal_kb).unwrap_or_else(|_| smallest());
        self.size = self.size.scaled(size, self.size.value.to_string());
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        vec![self.size.setting(self.size.value.to_string())]
    }
}

/// The smallest shop there is, in nominal kB.
const SMALLEST_KB: u64 = 10;

impl Resolver<'_> {
    /// Decides about `[workload.dvdstore]` at full size.
    pub(super) fn dvdstore(&mut self, file: &Dvdstore) -> Option<KindChoice> {
        let size = self.pick(&format!("{PATH}.db-size"), &[(Layer::File, &file.db_size)]);
        if size.is_absent() {
            self.report.add(
                self.file.workload.dvdstore.span.clone(),
                "missing-key",
                "`workload.dvdstore` does not say how large the shop is",
                "`db-size` is missing",
                "add for example db-size = \"10MB\", which takes about 460 MB",
            );
        }
        let size = size.found()?;
        match size.value.parse::<Size>() {
            Ok(parsed) => Some(KindChoice::Dvdstore(DvdstoreChoice { size: size.with(parsed) })),
            Err(error) => {
                size.problem(
                    &mut self.report,
                    "out-of-range",
                    format!("`{}` is not the size of a shop", size.value),
                    error.to_string(),
                    "write S, M, L, or a number with MB, GB or TB",
                );
                None
            }
        }
    }
}
