//! The web shop after DVD Store 3 in a study.

use std::time::Instant;
use tokio::runtime::Runtime;
use underlay_core::RootSeed;
use underlay_database::dvdstore::{
    DvdStoreConnector, Tally, check, identity, load, population_identity, tally,
};
use underlay_database::load_report::LoadReport;
use underlay_database::{Engine, Target};
use underlay_driver::{DriveSpec, Driver};
use underlay_record::{CheckMoment, CheckOutcome};
use underlay_study::DvdstorePlan;
use underlay_workload::dvdstore::{DvdStore, DvdStoreAccounting, Parameters};

use super::{Checked, Progress, Subject};
use crate::lab::abort::{Abort, During};

/// The shop of some size, whose visitors behave as the plan says.
pub struct DvdStoreSubject {
    parameters: Parameters,
}

impl DvdStoreSubject {
    /// As the plan has it.
    pub fn new(plan: &DvdstorePlan, seed: RootSeed) -> DvdStoreSubject {
        let behaviour = plan.behaviour;
        DvdStoreSubject { parameters: Parameters { behaviour, ..Parameters::new(plan.size, seed) } }
    }
}

impl Subject for DvdStoreSubject {
    type Load = Driver<DvdStoreAccounting>;
    type Accounting = DvdStoreAccounting;
    type Before = Tally;

    fn database(&self) -> &'static str {
        "dvdstore"
    }

    fn population(&self) -> String {
        format!("dvdstore-{}", self.parameters.size)
    }

    fn population_identity(&self, engine: Engine) -> String {
        population_identity(engine, &self.parameters)
    }

    fn identity(&self, engine: Engine) -> String {
        identity(engine, &self.parameters)
    }

    fn load(
        &self,
        target: &Target,
        parallel: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<LoadReport, Abort> {
        progress(Progress { share: 0.0, rows: 0 });
        let shop = load(target, &self.parameters, parallel).during("load the population")?;
        Ok(shop.report)
    }

    fn before(&self, runtime: &Runtime, target: &Target, _: u32) -> Result<Tally, Abort> {
        runtime.block_on(tally(target)).during("count the rows")
    }

    fn check(
        &self,
        runtime: &Runtime,
        target: &Target,
        _: CheckMoment,
        run: Option<(&Tally, &DvdStoreAccounting)>,
    ) -> Result<Vec<Checked>, Abort> {
        let results = runtime
            .block_on(check(target, &self.parameters, run))
            .during("make the consistency checks")?;
        let checked = results.into_iter().map(|result| Checked {
            id: result.id.to_string(),
            title: result.title.to_string(),
            outcome: match result.violation {
                None => CheckOutcome::Ok,
                Some(example) => CheckOutcome::Violated { rows: 0, example },
            },
        });
        Ok(checked.collect())
    }

    /// Every run starts from the template, whose customers are those of the load.
    fn start(&self, spec: DriveSpec, target: Target, origin: Instant) -> Result<Self::Load, Abort> {
        let connector = DvdStoreConnector::new(target, DvdStore::new(self.parameters));
        Driver::start(spec, connector, origin).during("start the load")
    }
}
