//! TPC-C: its population, its users, its checks.

use serde_json::Value;
use std::time::Instant;
use underlay_core::RootSeed;
use underlay_database::tpcc::{
    CheckMoment as DatabaseMoment, CheckOptions, LoadOptions, LoadStage, Mode, OrderNumbers,
    TableNames, TpccConnector, check, identity, identity_for, load, order_numbers,
};
use underlay_database::{Engine, Target};
use underlay_driver::{DriveSpec, Driver};
use underlay_record::CheckMoment;
use underlay_study::TpccPlan;
use underlay_workload::tpcc::{
    Entropy, HomeWarehouse, Parameters, Profile, SHAPE, Tpcc, TpccAccounting,
};

use super::cause::{not_started, stopped};
use super::checked::Checked;
use super::loaded::{Loaded, Progress};
use super::subject::{Access, Loadable, Subject};
use crate::lab::client::ClientProcess;
use crate::lab::generator::UserLoad;
use crate::stop::Stop;

/// TPC-C of some size.
pub struct TpccSubject {
    /// Size and seed of the population.
    pub parameters: Parameters,
    /// How transactions are sent.
    pub mode: Mode,
    /// Whose rules the users follow.
    pub profile: Profile,
    /// How the home warehouse of a transaction is chosen.
    pub home_warehouse: HomeWarehouse,
}

impl TpccSubject {
    /// As the plan has it.
    pub fn new(plan: &TpccPlan, seed: RootSeed) -> Result<TpccSubject, Stop> {
        let parameters = Entropy::new(plan.entropy)
            .and_then(|entropy| Parameters::new(plan.warehouses, seed, entropy))
            .map_err(|error| Stop::bad_input(error.to_string()))?;
        let TpccPlan { mode, profile, home_warehouse, .. } = *plan;
        Ok(TpccSubject { parameters, mode, profile, home_warehouse })
    }

    /// What the users do.
    pub fn workload(&self) -> Tpcc {
        Tpcc {
            profile: self.profile,
            home_warehouse: self.home_warehouse,
            ..Tpcc::new(self.parameters)
        }
    }
}

impl Loadable for TpccSubject {
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
        identity_for(engine, &self.workload(), self.mode).to_string()
    }

    fn load(
        &self,
        access: Access<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Loaded, Stop> {
        let options = LoadOptions {
            parallel: access.parallel,
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
        let loaded = load(access.target, &self.parameters, &options);
        loaded.map(Loaded::from).map_err(|error| stopped("load the population", error))
    }
}

impl Subject for TpccSubject {
    type Load = UserLoad<TpccAccounting>;
    type Accounting = TpccAccounting;
    type Before = OrderNumbers;

    fn before(&self, access: Access<'_>, _: u32) -> Result<OrderNumbers, Stop> {
        let Access { runtime, target, .. } = access;
        runtime
            .block_on(order_numbers(target, &TableNames::of(target.engine)))
            .map_err(|error| stopped("read the order numbers", error))
    }

    fn check(
        &self,
        access: Access<'_>,
        moment: CheckMoment,
        run: Option<(&OrderNumbers, &TpccAccounting)>,
    ) -> Result<Vec<Checked>, Stop> {
        let tables = TableNames::of(access.target.engine);
        self.check_tables(access, &tables, moment, run)
    }

    fn start(
        &self,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        _: &OrderNumbers,
    ) -> Result<Self::Load, Stop> {
        self.drive(spec, target, origin).map(UserLoad::from)
    }

    fn start_within(
        &self,
        process: ClientProcess<'_>,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        _: &OrderNumbers,
    ) -> Result<Self::Load, Stop> {
        process.start(&SHAPE, (&spec, &target), origin, None).map(UserLoad::from)
    }
}

impl TpccSubject {
    /// Starts the users in threads of this process.
    pub fn drive(
        &self,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
    ) -> Result<Driver<TpccAccounting>, Stop> {
        let connector = TpccConnector::new(target, self.parameters, self.mode)
            .with_profile(self.profile)
            .with_home_warehouse(self.home_warehouse);
        Driver::start(spec, connector, origin).map_err(not_started)
    }

    /// Checks tables of these names.
    pub fn check_tables(
        &self,
        Access { runtime, target, parallel }: Access<'_>,
        tables: &TableNames,
        moment: CheckMoment,
        run: Option<(&OrderNumbers, &TpccAccounting)>,
    ) -> Result<Vec<Checked>, Stop> {
        let options = CheckOptions {
            warehouses: self.parameters.warehouses,
            parallel,
            moment: match moment {
                CheckMoment::Before => DatabaseMoment::AfterLoad,
                CheckMoment::After => DatabaseMoment::AfterRun,
            },
            ledger: run.map(|(before, accounting)| (&accounting.ledger, before)),
            tables,
        };
        let report = runtime
            .block_on(check(target, options))
            .map_err(|error| stopped("make the consistency checks", error))?;
        let checked = report.results.into_iter().map(|result| Checked {
            id: result.id.to_string(),
            title: result.title.to_string(),
            outcome: result.outcome,
            detail: Value::Null,
        });
        Ok(checked.collect())
    }
}
