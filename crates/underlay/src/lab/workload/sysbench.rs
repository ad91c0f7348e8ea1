//! Sysbench's OLTP transactions: their tables, users and checks.

use std::time::Instant;
use underlay_core::RootSeed;
use underlay_database::sysbench::{
    SysbenchConnector, Tally, check, identity, load, prepare_bulk, tally,
};
use underlay_database::{Engine, Target};
use underlay_driver::{DriveSpec, Driver};
use underlay_record::CheckMoment;
use underlay_study::SysbenchPlan;
use underlay_workload::sysbench::{Parameters, SHAPE, Script, SysbenchAccounting};

use super::cause::{not_started, stopped};
use super::checked::Checked;
use super::loaded::{Loaded, Progress};
use super::subject::{Access, Loadable, Subject};
use crate::lab::client::ClientProcess;
use crate::lab::generator::UserLoad;
use crate::stop::Stop;

/// The scripts on tables of some size.
pub struct SysbenchSubject {
    /// Tables, rows and transactions.
    pub parameters: Parameters,
    /// Whether users may insert in bulk, for which they need tables of their own.
    pub inserts_in_bulk: bool,
}

impl SysbenchSubject {
    /// As the plan has it.
    pub fn new(plan: &SysbenchPlan, seed: RootSeed) -> Result<SysbenchSubject, Stop> {
        let SysbenchPlan { script, tables, table_size, distribution, range_size } = *plan;
        let mut parameters = Parameters::new(tables, table_size, seed, distribution, script)
            .map_err(|error| Stop::bad_input(error.to_string()))?;
        parameters.composition.range_size = range_size;
        let inserts_in_bulk = script == Script::BulkInsert;
        Ok(SysbenchSubject { parameters, inserts_in_bulk })
    }
}

impl Loadable for SysbenchSubject {
    fn database(&self) -> &'static str {
        "sysbench"
    }

    fn population(&self) -> String {
        format!("sysbench-{}x{}", self.parameters.tables, self.parameters.table_size)
    }

    /// Rows depend on the distribution, in which `k` is drawn, but not on the script.
    fn population_identity(&self, engine: Engine) -> String {
        let script = Script::ReadWrite;
        let composition = Default::default();
        let population = Parameters { script, composition, ..self.parameters };
        identity(engine, &population)
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
        let loaded = load(access.target, &self.parameters, access.parallel);
        loaded.map(Loaded::from).map_err(|error| stopped("load the population", error))
    }
}

impl Subject for SysbenchSubject {
    type Load = UserLoad<SysbenchAccounting>;
    type Accounting = SysbenchAccounting;
    type Before = Tally;

    fn before(&self, access: Access<'_>, users: u32) -> Result<Tally, Stop> {
        let Access { runtime, target, .. } = access;
        runtime
            .block_on(async {
                if self.inserts_in_bulk {
                    prepare_bulk(target, users).await?;
                }
                tally(target, &self.parameters).await
            })
            .map_err(|error| stopped("count the rows", error))
    }

    fn check(
        &self,
        Access { runtime, target, .. }: Access<'_>,
        _: CheckMoment,
        run: Option<(&Tally, &SysbenchAccounting)>,
    ) -> Result<Vec<Checked>, Stop> {
        let results = runtime
            .block_on(check(target, &self.parameters, run))
            .map_err(|error| stopped("make the consistency checks", error))?;
        let checked = results.into_iter().map(|result| {
            Checked::simple(result.check.id(), result.check.title(), result.violation)
        });
        Ok(checked.collect())
    }

    fn start(
        &self,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        _: &Tally,
    ) -> Result<Self::Load, Stop> {
        self.drive(spec, target, origin).map(UserLoad::from)
    }

    fn start_within(
        &self,
        process: ClientProcess<'_>,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        _: &Tally,
    ) -> Result<Self::Load, Stop> {
        process.start(&SHAPE, (&spec, &target), origin, None).map(UserLoad::from)
    }
}

impl SysbenchSubject {
    /// Starts the users in threads of this process.
    pub fn drive(
        &self,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
    ) -> Result<Driver<SysbenchAccounting>, Stop> {
        let connector = SysbenchConnector::new(target, self.parameters);
        Driver::start(spec, connector, origin).map_err(not_started)
    }
}
