//! TPC-C in a study.

use std::time::Instant;
use tokio::runtime::Runtime;
use underlay_core::RootSeed;
use underlay_database::load_report::LoadReport;
use underlay_database::tpcc::{
    CheckMoment as DatabaseMoment, CheckOptions, LoadOptions, LoadStage, Mode, OrderNumbers,
    TableNames, TpccConnector, check, identity, identity_for, load, order_numbers,
};
use underlay_database::{Engine, Target};
use underlay_driver::{DriveSpec, Driver};
use underlay_record::CheckMoment;
use underlay_study::TpccPlan;
use underlay_workload::tpcc::{Entropy, Parameters, Profile, Tpcc, TpccAccounting};

use super::{Checked, Progress, Subject};
use crate::lab::abort::{Abort, During};
use crate::stop::Stop;

/// TPC-C of some size.
pub struct TpccSubject {
    parameters: Parameters,
    mode: Mode,
    profile: Profile,
}

impl TpccSubject {
    /// As the plan has it.
    pub fn new(plan: &TpccPlan, seed: RootSeed) -> Result<TpccSubject, Stop> {
        let parameters = Entropy::new(plan.entropy)
            .and_then(|entropy| Parameters::new(plan.warehouses, seed, entropy))
            .map_err(|error| Stop::bad_input(error.to_string()))?;
        Ok(TpccSubject { parameters, mode: plan.mode, profile: plan.profile })
    }
}

impl Subject for TpccSubject {
    type Load = Driver<TpccAccounting>;
    type Accounting = TpccAccounting;
    type Before = OrderNumbers;

    fn database(&self) -> &'static str {
        "tpcc"
    }

    fn population(&self) -> String {
        format!("tpcc-{}w", self.parameters.warehouses)
    }

    fn population_identity(&self, engine: Engine) -> String {
        identity(engine, &self.parameters, Mode::Procedures).to_string()
    }

    fn identity(&self, engine: Engine) -> String {
        let workload = Tpcc { profile: self.profile, ..Tpcc::new(self.parameters) };
        identity_for(engine, &workload, self.mode).to_string()
    }

    fn load(
        &self,
        target: &Target,
        parallel: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<LoadReport, Abort> {
        let options = LoadOptions {
            parallel,
            progress: &|at| {
                let copied = (at.rows as f64 / at.rows_expected.max(1) as f64).min(1.0);
                let share = match at.stage {
                    LoadStage::Rows => 0.6 * copied,
                    LoadStage::Keys => 0.6,
                    LoadStage::Settle => 0.8,
                };
                progress(Progress { share, rows: at.rows });
            },
        };
        load(target, &self.parameters, &options).during("load the population")
    }

    fn before(&self, runtime: &Runtime, target: &Target, _: u32) -> Result<OrderNumbers, Abort> {
        runtime
            .block_on(order_numbers(target, &TableNames::of(target.engine)))
            .during("read the order numbers")
    }

    fn check(
        &self,
        runtime: &Runtime,
        target: &Target,
        moment: CheckMoment,
        run: Option<(&OrderNumbers, &TpccAccounting)>,
    ) -> Result<Vec<Checked>, Abort> {
        let tables = TableNames::of(target.engine);
        let options = CheckOptions {
            warehouses: self.parameters.warehouses,
            parallel: std::thread::available_parallelism().map_or(1, usize::from),
            moment: match moment {
                CheckMoment::Before => DatabaseMoment::AfterLoad,
                CheckMoment::After => DatabaseMoment::AfterRun,
            },
            ledger: run.map(|(before, accounting)| (&accounting.ledger, before)),
            tables: &tables,
        };
        let report =
            runtime.block_on(check(target, options)).during("make the consistency checks")?;
        let checked = report.results.into_iter().map(|result| Checked {
            id: result.id.to_string(),
            title: result.title.to_string(),
            outcome: result.outcome,
        });
        Ok(checked.collect())
    }

    fn start(&self, spec: DriveSpec, target: Target, origin: Instant) -> Result<Self::Load, Abort> {
        let connector =
            TpccConnector::new(target, self.parameters, self.mode).with_profile(self.profile);
        Driver::start(spec, connector, origin).during("start the load")
    }
}
