//! The web shop after DVD Store 3: merging, scaling and checking what only it has.

use underlay_workload::dvdstore::{Behaviour, Size};

use crate::entry::Entry;
use crate::file::workload::Dvdstore;
use crate::plan::{DvdstorePlan, Scale, Setting};
use crate::resolve::chosen::{Chosen, Layer};
use crate::resolve::resolver::Resolver;

/// The decisions about the shop.
#[derive(Clone, Debug)]
pub(super) struct DvdstoreChoice {
    size: Chosen<Size>,
    behaviour: Behaviour,
    /// Who decided what of it.
    decided: Vec<Setting>,
}

/// The path of its section.
pub(super) const PATH: &str = "workload.dvdstore";

impl DvdstoreChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> DvdstorePlan {
        DvdstorePlan { size: self.size.value, behaviour: self.behaviour }
    }

    /// At the size of the plan; a shop has a smallest size.
    pub fn scale(&mut self, scale: Scale) {
        let scaled = self.size.value.nominal_kb() / u64::from(scale.divisor);
        // Sizes have steps, the first of which is the smallest shop.
        let nominal_kb = (scaled / SMALLEST_KB).max(1) * SMALLEST_KB;
        let size = Size::of_nominal_kb(nominal_kb).unwrap_or(self.size.value);
        self.size = self.size.scaled(size, self.size.value.to_string());
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        let size = self.size.setting(self.size.value.to_string());
        std::iter::once(size).chain(self.decided.iter().cloned()).collect()
    }
}

/// The smallest shop there is, in nominal kB, and what sizes are multiples of.
const SMALLEST_KB: u64 = 10;

/// Decides about `[workload.dvdstore]` at full size.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    file: &Dvdstore,
    default: &Dvdstore,
) -> Option<DvdstoreChoice> {
    let behaviour = behaviour(resolver, file, default);
    let size = resolver.pick(&format!("{PATH}.db-size"), &[(Layer::File, &file.db_size)]);
    if size.is_absent() {
        resolver.report.add(
            resolver.file.workload.dvdstore.span.clone(),
            "missing-key",
            "`workload.dvdstore` does not say how large the shop is",
            "`db-size` is missing",
            "add for example db-size = \"10MB\", which takes about 460 MB",
        );
    }
    let size = size.found()?;
    match size.value.parse::<Size>() {
        Ok(parsed) => {
            let (behaviour, decided) = behaviour?;
            let size = size.with(parsed);
            Some(DvdstoreChoice { size, behaviour, decided })
        }
        Err(error) => {
            size.problem(
                &mut resolver.report,
                "out-of-range",
                format!("`{}` is not the size of a shop", size.value),
                error.to_string(),
                "write S, M, L, or a number with MB, GB or TB",
            );
            None
        }
    }
}

/// What visitors do, and who decided it.
fn behaviour(
    resolver: &mut Resolver<'_>,
    file: &Dvdstore,
    default: &Dvdstore,
) -> Option<(Behaviour, Vec<Setting>)> {
    let mut decided = Vec::new();
    let mut number = |key: &str, file: &Entry<u64>, default: &Entry<u64>| {
        let layers = [(Layer::File, file), (Layer::Default, default)];
        let chosen = resolver.pick(&format!("{PATH}.{key}"), &layers).found()?;
        decided.push(chosen.setting(chosen.value.to_string()));
        u32::try_from(chosen.value).ok()
    };
    let numbers = [
        number("pct-newcustomers", &file.pct_newcustomers, &default.pct_newcustomers),
        number("pct-newmember", &file.pct_newmember, &default.pct_newmember),
        number("n-searches", &file.n_searches, &default.n_searches),
        number("search-batch-size", &file.search_batch_size, &default.search_batch_size),
        number("search-depth", &file.search_depth, &default.search_depth),
        number("n-reviews", &file.n_reviews, &default.n_reviews),
        number("pct-newreviews", &file.pct_newreviews, &default.pct_newreviews),
        number("pct-newhelpfulness", &file.pct_newhelpfulness, &default.pct_newhelpfulness),
        number("n-line-items", &file.n_line_items, &default.n_line_items),
    ];
    let layers = [(Layer::File, &file.ds2_mode), (Layer::Default, &default.ds2_mode)];
    let ds2_mode = resolver.pick(&format!("{PATH}.ds2-mode"), &layers).found()?;
    decided.push(ds2_mode.setting(ds2_mode.value.to_string()));
    let [
        pct_newcustomers,
        pct_newmember,
        n_searches,
        search_batch_size,
        search_depth,
        n_reviews,
        pct_newreviews,
        pct_newhelpfulness,
        n_line_items,
    ] = numbers;
    let behaviour = Behaviour {
        pct_newcustomers: pct_newcustomers?,
        pct_newmember: pct_newmember?,
        n_searches: n_searches?,
        search_batch_size: search_batch_size?,
        search_depth: search_depth?,
        n_reviews: n_reviews?,
        pct_newreviews: pct_newreviews?,
        pct_newhelpfulness: pct_newhelpfulness?,
        n_line_items: n_line_items?,
        ds2_mode: ds2_mode.value,
    };
    Some((behaviour, decided))
}
