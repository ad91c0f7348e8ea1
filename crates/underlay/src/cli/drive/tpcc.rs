//! TPC-C on any engine, as `underlay drive` sees it.

use clap::Args;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use underlay_core::{Nanos, RootSeed};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, CheckOutcome, CheckReport, CheckResult, LoadOptions, Mode,
    OrderNumbers, TableNames, TpccConnector, TpccError, check, describe, drop_schema, identity_for,
    load, order_numbers, others,
};
use underlay_database::{SessionError, Target};
use underlay_driver::DriveSummary;
use underlay_workload::tpcc::{Entropy, Ledger, Parameters, Profile, Tpcc, TpccAccounting};

use super::page::After;
use super::{Arguments, Reading, Subject, loaded, rights};
use crate::stop::{Stop, chain};

/// Arguments of TPC-C.
#[derive(Debug, Args)]
pub(super) struct TpccArguments {
    /// Warehouses to load (tpcc).
    #[arg(long, value_name = "N", default_value_t = 1)]
    warehouses: u32,
    /// Random share of generated text in percent; 100 does not compress (tpcc).
    #[arg(long, value_name = "PERCENT", default_value_t = 100)]
    entropy: u8,
    /// Whose rules the users follow: `specification`, or `hammerdb-like` for HammerDB's declared deviations,
    /// which every result then names (tpcc).
    #[arg(long, value_name = "PROFILE", default_value = "specification")]
    profile: Profile,
    /// Issue statements one by one instead of calling functions (tpcc).
    #[arg(long)]
    statements: bool,
}

impl TpccArguments {
    fn mode(&self) -> Mode {
        if self.statements { Mode::Statements } else { Mode::Procedures }
    }

    fn parameters(&self, seed: RootSeed) -> Result<Parameters, Stop> {
        Entropy::new(self.entropy)
            .and_then(|entropy| Parameters::new(self.warehouses, seed, entropy))
            .map_err(|error| Stop::bad_input(error.to_string()))
    }

    /// What does not go together.
    pub(super) fn contradiction(&self) -> Option<String> {
        (self.statements && self.profile != Profile::Specification).then(|| {
            format!(
                "the profile {} draws lines in the database: it needs functions, so leave --statements out",
                self.profile
            )
        })
    }

    /// The workload as it would be loaded.
    pub(super) fn workload(&self, seed: RootSeed) -> Result<Tpcc, Stop> {
        Ok(Tpcc { profile: self.profile, ..Tpcc::new(self.parameters(seed)?) })
    }
}

/// TPC-C on the database of the command.
pub(super) struct TpccSubject<'a> {
    arguments: &'a Arguments,
    target: Target,
    runtime: Runtime,
}

/// What is known before a run.
pub(super) struct Before {
    parameters: Parameters,
    checked: CheckReport,
    numbers: OrderNumbers,
}

impl<'a> TpccSubject<'a> {
    pub(super) fn new(arguments: &'a Arguments, target: Target) -> Result<TpccSubject<'a>, Stop> {
        let runtime = Runtime::new()
            .map_err(|error| Stop::host(format!("could not start threads: {error}")))?;
        Ok(TpccSubject { arguments, target, runtime })
    }

    fn described(&self) -> Result<Parameters, Stop> {
        let described = self
            .runtime
            .block_on(describe(&self.target))
            .map_err(|error| refusal("could not read what is loaded", error))?;
        Ok(described.parameters)
    }

    fn numbers(&self) -> Result<OrderNumbers, Stop> {
        let tables = TableNames::of(self.target.engine);
        self.runtime
            .block_on(order_numbers(&self.target, &tables))
            .map_err(|error| session_failed("could not read the order numbers", &error))
    }

    fn verify(
        &self,
        parameters: &Parameters,
        ledger: Option<(&Ledger, &OrderNumbers)>,
    ) -> Result<CheckReport, Stop> {
        let tables = TableNames::of(self.target.engine);
        self.verify_tables(&tables, parameters.warehouses, ledger)
    }

    fn verify_tables(
        &self,
        tables: &TableNames,
        warehouses: u32,
        ledger: Option<(&Ledger, &OrderNumbers)>,
    ) -> Result<CheckReport, Stop> {
        let options = CheckOptions {
            warehouses,
            parallel: self.arguments.loaders(),
            moment: CheckMoment::AfterRun,
            ledger,
            tables,
        };
        self.runtime
            .block_on(check(&self.target, options))
            .map_err(|error| session_failed("could not make the checks", &error))
    }
}

impl Subject for TpccSubject<'_> {
    type Connector = TpccConnector;
    type Accounting = TpccAccounting;
    type Before = Before;

    fn target(&self) -> &Target {
        &self.target
    }

    fn load(&self) -> Result<Value, Stop> {
        let parameters = self.arguments.tpcc.parameters(RootSeed(self.arguments.seed))?;
        let options = LoadOptions { parallel: self.arguments.loaders(), progress: &|_| {} };
        let report = load(&self.target, &parameters, &options)
            .map_err(|error| refusal("could not load the population", error))?;
        self.arguments.say(&format!(
            "loaded {} warehouses: {} rows in {}",
            parameters.warehouses,
            report.rows,
            loaded::in_words(&report),
        ));
        Ok(loaded::json(&report, json!({ "warehouses": parameters.warehouses })))
    }

    fn drop(&self) -> Result<String, Stop> {
        self.runtime
            .block_on(drop_schema(&self.target))
            .map_err(|error| refusal("could not drop the population", error))?;
        Ok("the population".to_string())
    }

    fn drop_if_there(&self) -> Result<(), Stop> {
        match self.runtime.block_on(drop_schema(&self.target)) {
            Ok(()) | Err(TpccError::NotLoaded) => Ok(()),
            Err(error) => Err(refusal("could not drop the population", error)),
        }
    }

    fn check(&self) -> Result<(Value, Result<(), Stop>), Stop> {
        let report = if self.arguments.foreign_tables {
            let (tables, warehouses) = self
                .runtime
                .block_on(others(&self.target))
                .map_err(|error| refusal("could not look for tables", error))?;
            self.arguments.say(&format!(
                "{warehouses} warehouses that underlay did not load; what its columns differ in cannot be checked"
            ));
            self.verify_tables(&tables, warehouses, None)?
        } else {
            self.verify(&self.described()?, None)?
        };
        for result in &report.results {
            let text = match &result.outcome {
                CheckOutcome::Ok => "ok".to_string(),
                CheckOutcome::Violated { rows, example } => {
                    format!("VIOLATED by {rows} rows: {example}")
                }
                CheckOutcome::Failed { error } => format!("COULD NOT BE MADE: {error}"),
            };
            self.arguments.say(&format!("  {:7} {}: {text}", result.id, result.title));
        }
        self.arguments.say(&format!(
            "{} checks in {}, {} failed",
            report.results.len(),
            Nanos::from(report.duration),
            report.failures().count()
        ));
        Ok((report_json(&report), verdict_of("", &report)))
    }

    fn before(&self) -> Result<Before, Stop> {
        let parameters = self.described()?;
        let checked = self.verify(&parameters, None)?;
        // What is wrong already cannot be told apart from what the run breaks.
        verdict_of(" before the run", &checked)?;
        Ok(Before { parameters, checked, numbers: self.numbers()? })
    }

    fn connector(&self, before: &Before) -> TpccConnector {
        let target = self.target.with_application_name("underlay-drive");
        TpccConnector::new(target, before.parameters, self.arguments.tpcc.mode())
            .with_profile(self.arguments.tpcc.profile)
    }

    fn reading(&self) -> Result<Reading, Stop> {
        let counted = self.numbers()?.sum();
        super::reading(&self.runtime, &self.target, Some(counted))
    }

    fn after(&self, before: Before, summary: &DriveSummary<TpccAccounting>) -> Result<After, Stop> {
        let Before { parameters, checked, numbers } = before;
        let orders = self.numbers()?.sum().saturating_sub(numbers.sum());
        let ledger = &summary.accounting.ledger;
        let after = self.verify(&parameters, Some((ledger, &numbers)))?;
        let profile = self.arguments.tpcc.profile;
        let workload = Tpcc { profile, ..Tpcc::new(parameters) };
        let identity =
            identity_for(self.target.engine, &workload, self.arguments.tpcc.mode()).to_string();
        let members = json!({
            "identity": identity,
            "warehouses": parameters.warehouses,
            "seed": parameters.seed.0,
            "mode": self.arguments.tpcc.mode().as_str(),
            "profile": profile.as_str(),
            "deviations": profile.deviations(),
            "new_orders": {
                "acknowledged": ledger.acknowledged_count(),
                "by_order_numbers": orders,
                "unknown": ledger.unknown_count(),
            },
            "checks": { "before": report_json(&checked), "after": report_json(&after) },
        });
        Ok(After {
            said: vec![format!(
                "new orders of the whole run: {} acknowledged, {orders} by the database's order numbers, {} of \
                 unknown outcome",
                ledger.acknowledged_count(),
                ledger.unknown_count()
            )],
            ended: std::iter::once(format!(
                "checks: {} made, {} failed; workload {identity}, {} warehouses, seed {}",
                after.results.len(),
                after.failures().count(),
                parameters.warehouses,
                parameters.seed.0
            ))
            .chain(profile.deviations().iter().map(|text| (*text).to_string()))
            .collect(),
            members: members.as_object().cloned().unwrap_or_else(Map::new),
            verdict: verdict_of(" after the run", &after),
        })
    }
}

fn session_failed(what: &str, error: &SessionError) -> Stop {
    rights::session_failed(error, format!("{what}: {error}"))
}

/// What the user can mend is bad input; a database that does not answer is not.
fn refusal(what: &str, error: TpccError) -> Stop {
    match error {
        TpccError::Session(error) => session_failed(what, &error),
        TpccError::Thread(_) => Stop::run_failed(format!("{what}: {error}")),
        error => Stop::bad_input(chain(&error)),
    }
}

fn verdict_of(when: &str, report: &CheckReport) -> Result<(), Stop> {
    let is_violated =
        |result: &&CheckResult| matches!(result.outcome, CheckOutcome::Violated { .. });
    let said = |result: &CheckResult| {
        format!("consistency{when}: {}", in_words(result.id, result.title, &result.outcome))
    };
    match (report.failures().find(is_violated), report.failures().next()) {
        (Some(violated), _) => Err(Stop::check_violated(said(violated))),
        // What nobody could look at may well be right.
        (None, Some(not_made)) => Err(Stop::run_failed(said(not_made))),
        (None, None) => Ok(()),
    }
}

/// A check in one line.
fn in_words(id: &str, title: &str, outcome: &CheckOutcome) -> String {
    match outcome {
        CheckOutcome::Ok => format!("{id} ({title}) holds"),
        CheckOutcome::Violated { rows, example } => {
            format!("{id} ({title}) is violated by {rows} rows, for example {example}")
        }
        CheckOutcome::Failed { error } => format!("{id} ({title}) could not be made: {error}"),
    }
}

fn report_json(report: &CheckReport) -> Value {
    let results: Vec<Value> = report
        .results
        .iter()
        .map(|result| {
            let (outcome, rows, detail) = match &result.outcome {
                CheckOutcome::Ok => ("ok", 0, String::new()),
                CheckOutcome::Violated { rows, example } => ("violated", *rows, example.clone()),
                CheckOutcome::Failed { error } => ("failed", 0, error.clone()),
            };
            json!({ "id": result.id, "title": result.title, "outcome": outcome, "rows": rows, "detail": detail })
        })
        .collect();
    json!({ "duration_ns": Nanos::from(report.duration).0, "results": results })
}
