//! The web shop on the engine model.

use crate::scenario::{device, run, tpcc};
use underlay_core::{Bytes, RootSeed};
use underlay_engine::{DemandProfile, EngineRun, Scenario, WorkloadSpec};
use underlay_workload::dvdstore::{DvdStore, Parameters, Size, Step};

const USERS: u32 = 16;

pub fn shop() -> WorkloadSpec {
    let size: Size = "40MB".parse().expect("a size");
    WorkloadSpec::DvdStore(DvdStore::new(Parameters::new(size, RootSeed(5))))
}

fn postgresql(buffers: Bytes) -> Scenario {
    let mut scenario = tpcc(1, USERS, 4, buffers);
    scenario.databases[0].workload = shop();
    scenario.databases[0].demands = DemandProfile::dvdstore_postgresql();
    scenario
}

fn share(run: &EngineRun, step: Step) -> f64 {
    let types = &run.databases[0].types;
    types[step.index()].committed as f64 / types[Step::Purchase.index()].committed as f64
}

#[test]
fn visits_have_the_steps_that_the_shop_prescribes() {
    let run = run(&postgresql(Bytes::from_gib(4)), &device("null"), 20);
    // One purchase ends a visit; four of five visits begin with a login, the others register.
    let logins = share(&run, Step::Login);
    assert!((0.72..=0.88).contains(&logins), "{logins}");
    let browses = share(&run, Step::BrowseCategory)
        + share(&run, Step::BrowseActor)
        + share(&run, Step::BrowseTitle);
    assert!((2.7..=3.3).contains(&browses), "three searches on average, {browses}");
    assert!((share(&run, Step::Prices) - 1.0).abs() < 0.05);
    // A product has 0 to 500 pieces, a line takes 1 to 3 and an order has five: 2 % are refused.
    let purchases = &run.databases[0].types[Step::Purchase.index()];
    let refused = purchases.rolled_back as f64 / purchases.committed as f64;
    assert!((0.01..0.03).contains(&refused), "{refused}");
}
