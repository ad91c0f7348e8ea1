//! TPC-C: merging, scaling and checking what only it has.

use crate::file::workload::Tpcc;
use crate::finding::Severity;
use crate::plan::{HomeWarehouse, Mode, Profile, Scale, Setting, TpccPlan};
use crate::resolve::chosen::{Chosen, Layer};
use crate::resolve::resolver::Resolver;
use crate::scale;

/// The decisions about TPC-C.
#[derive(Clone, Debug)]
pub(super) struct TpccChoice {
    warehouses: Chosen<u64>,
    mode: Chosen<Mode>,
    profile: Chosen<Profile>,
    home_warehouse: Chosen<HomeWarehouse>,
    entropy: Chosen<u64>,
}

/// The path of its section.
pub(super) const PATH: &str = "workload.tpcc";

impl TpccChoice {
    /// As the plan holds it.
    pub fn plan(&self) -> TpccPlan {
        TpccPlan {
            // The reader accepts a million at most.
            warehouses: self.warehouses.value as u32,
            mode: self.mode.value,
            profile: self.profile.value,
            home_warehouse: self.home_warehouse.value,
            entropy: self.entropy.value as u8,
        }
    }

    /// At the size of the plan.
    pub fn scale(&mut self, scale: Scale) {
        let warehouses = scale::count(self.warehouses.value as u32, scale);
        let full = self.warehouses.value.to_string();
        self.warehouses = self.warehouses.scaled(u64::from(warehouses), full);
    }

    /// The lines of the provenance table.
    pub fn settings(&self) -> Vec<Setting> {
        vec![
            self.warehouses.setting(self.warehouses.value.to_string()),
            self.mode.setting(self.mode.value.as_str().to_string()),
            self.profile.setting(self.profile.value.as_str().to_string()),
            self.home_warehouse.setting(self.home_warehouse.value.as_str().to_string()),
            self.entropy.setting(self.entropy.value.to_string()),
        ]
    }
}

/// Decides about `[workload.tpcc]` at full size.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    file: &Tpcc,
    default: &Tpcc,
) -> Option<TpccChoice> {
    let at = |key: &str| format!("{PATH}.{key}");
    let warehouses = resolver.pick(&at("warehouses"), &[(Layer::File, &file.warehouses)]);
    if warehouses.is_absent() {
        resolver.report.add(
            resolver.file.workload.tpcc.span.clone(),
            "missing-key",
            "`workload.tpcc` does not say how many warehouses",
            "`warehouses` is missing",
            "add for example warehouses = 8, about 105 MB each",
        );
    }
    let mode = [(Layer::File, &file.mode), (Layer::Default, &default.mode)];
    let mode = resolver.pick(&at("mode"), &mode).found();
    let profile = [(Layer::File, &file.profile), (Layer::Default, &default.profile)];
    let profile = resolver.pick(&at("profile"), &profile).found();
    if let (Some(profile), Some(mode)) = (&profile, &mode) {
        judge_profile(resolver, profile, mode);
    }
    let home = [(Layer::File, &file.home_warehouse), (Layer::Default, &default.home_warehouse)];
    let home_warehouse = resolver.pick(&at("home-warehouse"), &home).found();
    let entropy = [(Layer::File, &file.entropy), (Layer::Default, &default.entropy)];
    let entropy = resolver.pick(&at("entropy"), &entropy).found();
    Some(TpccChoice {
        warehouses: warehouses.found()?,
        mode: mode?,
        profile: profile?,
        home_warehouse: home_warehouse?,
        entropy: entropy?,
    })
}

/// What follows from a profile other than the specification.
fn judge_profile(resolver: &mut Resolver<'_>, profile: &Chosen<Profile>, mode: &Chosen<Mode>) {
    if profile.value == Profile::Specification {
        return;
    }
    if mode.value == Mode::Statements {
        profile.problem(
            &mut resolver.report,
            "conflict",
            format!("{} needs procedures", profile.called()),
            "the database draws the lines of an order itself".to_string(),
            "write mode = \"procedures\", or leave `mode` out".to_string(),
        );
    }
    let line = profile.line(resolver.text);
    resolver.finding(
        Severity::Warning,
        "hammerdb-like",
        "hammerdb-like: users follow HammerDB's declared deviations from TPC-C (customers and items drawn \
         uniformly, a random warehouse per user, independent types, its think times, whole payments, order \
         lines drawn by the database); the result is neither that of TPC-C nor of HammerDB",
        "leave `profile` out for the rules of the specification",
        line,
    );
}
