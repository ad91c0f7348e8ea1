//! The web shop after DVD Store 3: its population, its visitors, its checks.

use std::time::Instant;
use underlay_core::RootSeed;
use underlay_database::dvdstore::{
    DvdStoreConnector, Tally, check, identity, load, population_identity, tally,
};
use underlay_database::{Engine, Target};
use underlay_driver::{DriveSpec, Driver};
use underlay_record::CheckMoment;
use underlay_study::DvdstorePlan;
use underlay_workload::dvdstore::{DvdStore, DvdStoreAccounting, Parameters, SHAPE};

use super::cause::{not_started, stopped};
use super::checked::Checked;
use super::loaded::{Loaded, Progress};
use super::subject::{Access, Loadable, Subject};
use crate::lab::client::ClientProcess;
use crate::lab::generator::UserLoad;
use crate::stop::Stop;

/// The shop of some size, whose visitors behave as the plan says.
pub struct DvdStoreSubject {
    /// Size and seed of the population, and what visitors do.
    pub parameters: Parameters,
}

impl DvdStoreSubject {
    /// As the plan has it.
    pub fn new(plan: &DvdstorePlan, seed: RootSeed) -> DvdStoreSubject {
        let behaviour = plan.behaviour;
        DvdStoreSubject { parameters: Parameters { behaviour, ..Parameters::new(plan.size, seed) } }
    }
}

impl Loadable for DvdStoreSubject {
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
        access: Access<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Loaded, Stop> {
        progress(Progress { share: 0.0, rows: 0 });
        let shop = load(access.target, &self.parameters, access.parallel)
            .map_err(|error| stopped("load the population", error))?;
        Ok(Loaded { report: shop.report, stored_bytes: Some(shop.stored_bytes) })
    }
}

impl Subject for DvdStoreSubject {
    type Load = UserLoad<DvdStoreAccounting>;
    type Accounting = DvdStoreAccounting;
    type Before = Tally;

    fn before(&self, access: Access<'_>, _: u32) -> Result<Tally, Stop> {
        let counted = access.runtime.block_on(tally(access.target));
        counted.map_err(|error| stopped("count the rows", error))
    }

    fn check(
        &self,
        Access { runtime, target, .. }: Access<'_>,
        _: CheckMoment,
        run: Option<(&Tally, &DvdStoreAccounting)>,
    ) -> Result<Vec<Checked>, Stop> {
        let results = runtime
            .block_on(check(target, &self.parameters, run))
            .map_err(|error| stopped("make the consistency checks", error))?;
        let checked = results
            .into_iter()
            .map(|result| Checked::simple(result.id, result.title, result.violation));
        Ok(checked.collect())
    }

    fn start(
        &self,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        before: &Tally,
    ) -> Result<Self::Load, Stop> {
        self.drive(spec, target, origin, first_new_customer(before)).map(UserLoad::from)
    }

    fn start_within(
        &self,
        process: ClientProcess<'_>,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        before: &Tally,
    ) -> Result<Self::Load, Stop> {
        process
            .start(&SHAPE, (&spec, &target), origin, Some(first_new_customer(before)))
            .map(UserLoad::from)
    }
}

impl DvdStoreSubject {
    /// Starts the visitors in threads of this process. Customers whom they register are numbered from
    /// `first_new_customer` on.
    pub fn drive(
        &self,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        first_new_customer: u32,
    ) -> Result<Driver<DvdStoreAccounting>, Stop> {
        let workload = DvdStore { parameters: self.parameters, first_new_customer };
        Driver::start(spec, DvdStoreConnector::new(target, workload), origin).map_err(not_started)
    }
}

fn first_new_customer(before: &Tally) -> u32 {
    before.last_customer + 1
}
