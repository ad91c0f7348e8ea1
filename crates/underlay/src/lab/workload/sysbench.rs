//! Sysbench's OLTP scripts in a study.

use std::time::Instant;
use tokio::runtime::Runtime;
use underlay_core::RootSeed;
use underlay_database::load_report::LoadReport;
use underlay_database::sysbench::{
    SysbenchConnector, Tally, check, identity, load, prepare_bulk, tally,
};
use underlay_database::{Engine, Target};
use underlay_driver::{DriveSpec, Driver};
use underlay_record::{CheckMoment, CheckOutcome};
use underlay_study::SysbenchPlan;
use underlay_workload::sysbench::{Parameters, Script, SysbenchAccounting};

use super::{Checked, Progress, Subject};
use crate::lab::abort::{Abort, During};
use crate::stop::Stop;

/// The scripts on tables of some size.
pub struct SysbenchSubject {
    parameters: Parameters,
}

impl SysbenchSubject {
    /// As the plan has it.
    pub fn new(plan: &SysbenchPlan, seed: RootSeed) -> Result<SysbenchSubject, Stop> {
        let SysbenchPlan { script, tables, table_size, distribution, range_size } = *plan;
        let mut parameters = Parameters::new(tables, table_size, seed, distribution, script)
            .map_err(|error| Stop::bad_input(error.to_string()))?;
        parameters.composition.range_size = range_size;
        Ok(SysbenchSubject { parameters })
    }
}

impl Subject for SysbenchSubject {
    type Load = Driver<SysbenchAccounting>;
    type Accounting = SysbenchAccounting;
    type Before = Tally;

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
        SysbenchSubject { parameters: population }.identity(engine)
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
        load(target, &self.parameters, parallel).during("load the population")
    }

    fn before(&self, runtime: &Runtime, target: &Target, users: u32) -> Result<Tally, Abort> {
        runtime
            .block_on(async {
                if self.parameters.script == Script::BulkInsert {
                    prepare_bulk(target, users).await?;
                }
                tally(target, &self.parameters).await
            })
            .during("count the rows")
    }

    fn check(
        &self,
        runtime: &Runtime,
        target: &Target,
        _: CheckMoment,
        run: Option<(&Tally, &SysbenchAccounting)>,
    ) -> Result<Vec<Checked>, Abort> {
        let results = runtime
            .block_on(check(target, &self.parameters, run))
            .during("make the consistency checks")?;
        let checked = results.into_iter().map(|result| Checked {
            id: result.check.id().to_string(),
            title: result.check.title().to_string(),
            outcome: match result.violation {
                None => CheckOutcome::Ok,
                Some(example) => CheckOutcome::Violated { rows: 0, example },
            },
        });
        Ok(checked.collect())
    }

    fn start(&self, spec: DriveSpec, target: Target, origin: Instant) -> Result<Self::Load, Abort> {
        let connector = SysbenchConnector::new(target, self.parameters);
        Driver::start(spec, connector, origin).during("start the load")
    }
}
