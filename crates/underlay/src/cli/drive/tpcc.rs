//! TPC-C on a database of the user's.

use clap::Args;
use serde_json::{Map, Value, json};
use underlay_core::{Nanos, RootSeed};
use underlay_database::schema_ownership::WorkloadTables;
use underlay_database::tpcc::{
    Mode, OrderNumbers, TableNames, TpccError, describe, drop_schema, order_numbers, others,
};
use underlay_record::CheckMoment;
use underlay_study::{TpccPlan, WorkloadKind};
use underlay_workload::tpcc::{Entropy, HomeWarehouse, Parameters, Profile, SHAPE};

use super::command::Command;
use super::external::{Dropped, External, check_alone};
use super::noop::run_noop;
use super::options::{Common, Loading, NOT_LOADED, NOT_RUN, Problems, UserLoad};
use super::page_json;
use super::shown::Added;
use super::steps::carry_out;
use super::users;
use crate::lab::external::{Checks, Finished};
use crate::lab::workload::{Access, Loadable, Loaded, Subject, TpccSubject, stopped};
use crate::stop::Stop;

/// Arguments of `underlay drive tpcc`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    users: UserLoad,
    /// Check tables that Underlay did not create (in the search path or the schema tpcc; on MariaDB in the URL's
    /// database).
    #[arg(long, conflicts_with_all = ["load", "drop", "replace_foreign"])]
    foreign_tables: bool,
    /// Warehouses to load [default: 1].
    #[arg(long, value_name = "N")]
    warehouses: Option<u32>,
    /// Random share of generated text in percent; 100 does not compress [default: 100].
    #[arg(long, value_name = "PERCENT")]
    entropy: Option<u8>,
    /// Rules that the users follow: `specification`, or `hammerdb-like` for HammerDB's declared deviations,
    /// which every result then lists [default: specification].
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
    /// Draw the warehouse of each transaction from all, so that any number of users has the same working set. By
    /// default each user keeps one warehouse, as TPC-C says.
    #[arg(long)]
    all_warehouses: bool,
    /// Send statements one by one instead of calling functions.
    #[arg(long)]
    statements: bool,
}

impl Arguments {
    fn profile(&self) -> Profile {
        self.profile.unwrap_or(Profile::Specification)
    }

    fn home_warehouse(&self) -> HomeWarehouse {
        if self.all_warehouses { HomeWarehouse::Drawn } else { HomeWarehouse::Fixed }
    }

    /// The population that would be loaded.
    fn parameters(&self, seed: RootSeed) -> Result<Parameters, String> {
        Entropy::new(self.entropy.unwrap_or(100))
            .and_then(|entropy| Parameters::new(self.warehouses.unwrap_or(1), seed, entropy))
            .map_err(|error| error.to_string())
    }

    fn problems(&self, command: &Command<'_>) -> Problems {
        let mut problems = Problems::default();
        let of_load =
            [("--warehouses", self.warehouses.is_some()), ("--entropy", self.entropy.is_some())];
        let of_run = [
            ("--profile", self.profile.is_some()),
            ("--all-warehouses", self.all_warehouses),
            ("--statements", self.statements),
        ];
        if command.is_noop() {
            let why = "has no effect with --noop, which drives nothing";
            problems.refuse(&[of_load[1], of_run[2]], why);
            return problems;
        }
        if !self.loading.load {
            problems.refuse(&of_load, NOT_LOADED);
        }
        if !command.runs() {
            problems.refuse(&of_run, NOT_RUN);
        } else if self.statements && self.profile() != Profile::Specification {
            problems.0.push(format!(
                "the profile {} draws lines in the database: it needs functions, so leave --statements out",
                self.profile()
            ));
        }
        let runs = command.runs() || !self.common.check;
        problems.refuse(
            &[("--foreign-tables", self.foreign_tables && runs)],
            "is for --check only: the transactions need Underlay's functions and the constants of its load",
        );
        problems
    }
}

/// Carries out the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), Stop> {
    let command = Command {
        common: &arguments.common,
        loading: &arguments.loading,
        users: Some(&arguments.users),
        name: "tpcc",
        tables: WorkloadTables::Tpcc,
        foreign_tables: arguments.foreign_tables,
        foreign_size: (None, None),
        inserts_in_bulk: false,
    };
    let mut problems = arguments.problems(&command);
    problems.0.extend(arguments.users.mixes(&SHAPE).err().unwrap_or_default());
    let parameters = arguments.parameters(arguments.common.seed());
    problems.0.extend(parameters.as_ref().err().cloned());
    Command::refuse(problems, &command)?;
    let parameters = parameters.map_err(Stop::bad_input)?;
    let mode = if arguments.statements { Mode::Statements } else { Mode::Procedures };
    let home_warehouse = arguments.home_warehouse();
    let subject = TpccSubject { parameters, mode, profile: arguments.profile(), home_warehouse };
    if command.is_noop() {
        return run_noop(&command, subject.workload());
    }
    carry_out(&command, subject)
}

fn numbers(access: Access<'_>) -> Result<OrderNumbers, Stop> {
    let tables = TableNames::of(access.target.engine);
    let numbers = access.runtime.block_on(order_numbers(access.target, &tables));
    numbers.map_err(|error| stopped("read the order numbers", error))
}

impl External for TpccSubject {
    fn adopt(&mut self, command: &Command<'_>, access: Access<'_>) -> Result<(), Stop> {
        if !command.foreign_tables {
            let described = access.runtime.block_on(describe(access.target));
            let described = described.map_err(|error| stopped("read what is loaded", error))?;
            self.parameters = described.parameters;
        }
        Ok(())
    }

    fn drop_population(&self, access: Access<'_>) -> Result<Dropped, Stop> {
        match access.runtime.block_on(drop_schema(access.target)) {
            Ok(()) => Ok(Dropped::Done("the population".to_string())),
            Err(error) => {
                let is_absent = matches!(error, TpccError::NotLoaded);
                let stop = stopped("drop the population", error);
                if is_absent { Ok(Dropped::Nothing(stop)) } else { Err(stop) }
            }
        }
    }

    fn describe_load(&self, loaded: &Loaded) -> (String, Value) {
        let warehouses = self.parameters.warehouses;
        let text = format!("{warehouses} warehouses: {} rows", loaded.report.rows);
        (text, json!({ "warehouses": warehouses }))
    }

    fn check_alone(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        if !command.foreign_tables {
            return check_alone(
                self,
                command,
                |access| self.check(access, CheckMoment::After, None),
                access,
            );
        }
        let found = access.runtime.block_on(others(access.target));
        let (tables, warehouses) = found.map_err(|error| stopped("look for tables", error))?;
        command.say(&format!(
            "{warehouses} warehouses that Underlay did not load; checks that need other columns cannot be made"
        ));
        let parameters = Parameters { warehouses, ..self.parameters };
        let theirs = TpccSubject { parameters, ..*self };
        check_alone(
            self,
            command,
            |access| theirs.check_tables(access, &tables, CheckMoment::After, None),
            access,
        )
    }

    fn checks_json(&self, checks: &Checks) -> Value {
        let results: Vec<Value> = checks.results.iter().map(page_json::check).collect();
        json!({ "duration_ns": Nanos::from(checks.duration).0, "results": results })
    }

    fn run(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let kind = WorkloadKind::Tpcc(TpccPlan {
            warehouses: self.parameters.warehouses,
            mode: self.mode,
            profile: self.profile,
            home_warehouse: self.home_warehouse,
            entropy: self.parameters.entropy.percent(),
        });
        let counter = || Ok(Some(numbers(access)?.sum()));
        users::run_users(self, command, access, kind, &counter, |finished| {
            self.conclude(access, finished)
        })
    }
}

impl TpccSubject {
    fn conclude(
        &self,
        access: Access<'_>,
        finished: &Finished<TpccSubject>,
    ) -> Result<Added, Stop> {
        let Parameters { warehouses, seed, .. } = self.parameters;
        let orders = numbers(access)?.sum().saturating_sub(finished.before.sum());
        let ledger = &finished.summary.accounting.ledger;
        let (acknowledged, unknown) = (ledger.acknowledged_count(), ledger.unknown_count());
        let none = Checks::default();
        let after = finished.checked_after.as_ref().unwrap_or(&none);
        let identity = self.identity(access.target.engine);
        let members = json!({
            "identity": identity,
            "warehouses": warehouses,
            "seed": seed.0,
            "mode": self.mode.as_str(),
            "profile": self.profile.as_str(),
            "home_warehouse": self.home_warehouse.as_str(),
            "deviations": self.workload().deviations().collect::<Vec<_>>(),
            "new_orders": {
                "acknowledged": acknowledged,
                "by_order_numbers": orders,
                "unknown": unknown,
            },
            "checks": {
                "before": self.checks_json(&finished.checked_before),
                "after": self.checks_json(after),
            },
        });
        let checks = format!(
            "checks: {} made, {} failed; workload {identity}, {warehouses} warehouses, seed {}",
            after.results.len(),
            after.failed().count(),
            seed.0
        );
        let deviations = self.workload().deviations().map(str::to_string);
        Ok(Added {
            said: vec![format!(
                "new orders of the whole run: {acknowledged} acknowledged, {orders} by the database's order numbers, \
                 {unknown} of unknown outcome"
            )],
            ended: std::iter::once(checks).chain(deviations).collect(),
            members: members.as_object().cloned().unwrap_or_else(Map::new),
        })
    }
}
