//! Sysbench's OLTP transactions, as `underlay drive` sees them.

use std::ops::RangeInclusive;

use clap::Args;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use underlay_core::RootSeed;
use underlay_database::Target;
use underlay_database::sysbench::{
    CheckResult, SysbenchConnector, SysbenchError, Tally, check, describe, drop_bulk_tables,
    drop_tables, identity, load, others, prepare_bulk, tally,
};
use underlay_driver::DriveSummary;
use underlay_workload::sysbench::{Distribution, Parameters, Script, Sysbench, SysbenchAccounting};

use super::page::After;
use super::{Arguments, Reading, Subject, loaded, rights};
use crate::stop::{Stop, chain};

/// What is loaded unless something else is asked for.
const TABLES: u32 = 1;
const TABLE_SIZE: u32 = 10_000;
/// Ids in a range, as in studies.
const RANGE_SIZE: RangeInclusive<u32> = 1..=1_000_000;

/// Arguments of sysbench.
#[derive(Debug, Args)]
pub(super) struct SysbenchArguments {
    /// What a transaction does: read_write, read_only, write_only, point_select, update_index,
    /// update_non_index, insert, delete or bulk_insert (sysbench).
    #[arg(long, value_name = "SCRIPT", default_value = "read_write")]
    script: Script,
    /// Tables to load: 1 by default; of --foreign-tables those to take, by default all (sysbench).
    #[arg(long, value_name = "N")]
    tables: Option<u32>,
    /// Rows of each table: 10000 by default; of --foreign-tables the ids to take, by default all (sysbench).
    #[arg(long, value_name = "N")]
    table_size: Option<u32>,
    /// How ids are drawn: uniform (the default of sysbench's master), special (the default of sysbench 1.0),
    /// gaussian, pareto or zipfian (sysbench).
    #[arg(long, value_name = "DISTRIBUTION", default_value = "uniform")]
    rand_type: Distribution,
    /// Ids in a range (sysbench).
    #[arg(long, value_name = "N", default_value_t = 100)]
    range_size: u32,
}

impl SysbenchArguments {
    fn parameters(&self, seed: RootSeed) -> Result<Parameters, Stop> {
        let tables = self.tables.unwrap_or(TABLES);
        let table_size = self.table_size.unwrap_or(TABLE_SIZE);
        let mut parameters = Parameters::new(tables, table_size, seed, self.rand_type, self.script)
            .map_err(|error| Stop::bad_input(error.to_string()))?;
        if !RANGE_SIZE.contains(&self.range_size) {
            let (least, most) = (RANGE_SIZE.start(), RANGE_SIZE.end());
            return Err(Stop::bad_input(format!(
                "--range-size {} is not between {least} and {most}",
                self.range_size
            )));
        }
        parameters.composition.range_size = self.range_size;
        Ok(parameters)
    }

    /// What transactions do, unless weights say otherwise.
    pub(super) fn script(&self) -> Script {
        self.script
    }

    /// The workload as it would be loaded.
    pub(super) fn workload(&self, seed: RootSeed) -> Result<Sysbench, Stop> {
        Ok(Sysbench::new(self.parameters(seed)?))
    }
}

/// The scripts on the database of the command.
pub(super) struct SysbenchSubject<'a> {
    arguments: &'a Arguments,
    target: Target,
    runtime: Runtime,
}

/// What is known before a run.
pub(super) struct Before {
    parameters: Parameters,
    tally: Tally,
}

impl<'a> SysbenchSubject<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        target: Target,
    ) -> Result<SysbenchSubject<'a>, Stop> {
        // Wrong numbers are refused before anything is touched.
        arguments.sysbench.parameters(RootSeed(arguments.seed))?;
        let runtime = Runtime::new()
            .map_err(|error| Stop::host(format!("could not start threads: {error}")))?;
        Ok(SysbenchSubject { arguments, target, runtime })
    }

    /// Waits for `work`.
    fn wait<T>(&self, work: impl Future<Output = Result<T, SysbenchError>>) -> Result<T, Stop> {
        self.runtime.block_on(work).map_err(refusal)
    }

    /// Size and seed of what is there; script and skew of the command.
    fn described(&self) -> Result<Parameters, Stop> {
        let wanted = self.arguments.sysbench.parameters(RootSeed(self.arguments.seed))?;
        if self.arguments.foreign_tables {
            let SysbenchArguments { tables, table_size, .. } = self.arguments.sysbench;
            let (tables, table_size) = self.wait(others(&self.target, tables, table_size))?;
            self.arguments.say(&format!(
                "taking sbtest1 to sbtest{tables} as they are, ids 1 to {table_size} of each"
            ));
            return Ok(Parameters { tables, table_size, ..wanted });
        }
        let there = self.wait(describe(&self.target))?.parameters;
        Ok(Parameters {
            tables: there.tables,
            table_size: there.table_size,
            seed: there.seed,
            ..wanted
        })
    }
}

impl Arguments {
    /// Whether some of its transactions are bulk inserts.
    pub(super) fn wants_bulk_tables(&self) -> bool {
        let named = |text: &String| text.replace('-', "_").contains(Script::BulkInsert.as_str());
        self.sysbench.script == Script::BulkInsert
            || self.weights.iter().chain(&self.weights_at).any(named)
    }
}

impl Subject for SysbenchSubject<'_> {
    type Connector = SysbenchConnector;
    type Accounting = SysbenchAccounting;
    type Before = Before;

    fn target(&self) -> &Target {
        &self.target
    }

    fn load(&self) -> Result<Value, Stop> {
        let parameters = self.arguments.sysbench.parameters(RootSeed(self.arguments.seed))?;
        let report = load(&self.target, &parameters, self.arguments.loaders()).map_err(refusal)?;
        self.arguments.say(&format!(
            "loaded {} tables of {} rows in {}",
            parameters.tables,
            parameters.table_size,
            loaded::in_words(&report),
        ));
        let own = json!({ "tables": parameters.tables, "table_size": parameters.table_size });
        Ok(loaded::json(&report, own))
    }

    /// Tables for bulk inserts that were made beside tables of others have no marker: they are known by their comments.
    fn drop(&self) -> Result<String, Stop> {
        self.wait(async {
            match drop_tables(&self.target).await {
                Ok(()) => Ok("the population".to_string()),
                Err(error @ (SysbenchError::Foreign { .. } | SysbenchError::NotLoaded)) => {
                    match drop_bulk_tables(&self.target).await? {
                        0 => Err(error),
                        dropped => Ok(format!(
                            "{dropped} tables for bulk inserts; underlay created no other table here"
                        )),
                    }
                }
                Err(error) => Err(error),
            }
        })
    }

    fn drop_if_there(&self) -> Result<(), Stop> {
        self.wait(async {
            match drop_tables(&self.target).await {
                Err(SysbenchError::NotLoaded) => Ok(()),
                dropped => dropped,
            }
        })
    }

    fn check(&self) -> Result<(Value, Result<(), Stop>), Stop> {
        let parameters = self.described()?;
        let results = self.wait(check(&self.target, &parameters, None))?;
        for result in &results {
            let found = result
                .violation
                .as_deref()
                .map_or("ok".to_string(), |violation| format!("VIOLATED: {violation}"));
            self.arguments.say(&format!(
                "  {:7} {}: {found}",
                result.check.id(),
                result.check.title()
            ));
        }
        Ok((results_json(&results), verdict_of("", &results)))
    }

    fn before(&self) -> Result<Before, Stop> {
        let parameters = self.described()?;
        let results = self.wait(check(&self.target, &parameters, None))?;
        // What is wrong already cannot be told apart from what the run breaks.
        verdict_of(" before the run", &results)?;
        if self.arguments.wants_bulk_tables() {
            let users = self.arguments.users();
            self.wait(prepare_bulk(&self.target, users))?;
        }
        let tally = self.wait(tally(&self.target, &parameters))?;
        Ok(Before { parameters, tally })
    }

    fn connector(&self, before: &Before) -> SysbenchConnector {
        let target = self.target.with_application_name("underlay-drive");
        SysbenchConnector::new(target, before.parameters)
    }

    fn reading(&self) -> Result<Reading, Stop> {
        super::reading(&self.runtime, &self.target, None)
    }

    fn after(
        &self,
        before: Before,
        summary: &DriveSummary<SysbenchAccounting>,
    ) -> Result<After, Stop> {
        let Before { parameters, tally } = before;
        let accounting = &summary.accounting;
        let results = self.wait(check(&self.target, &parameters, Some((&tally, accounting))))?;
        let identity = identity(self.target.engine, &parameters);
        let failed = results.iter().filter(|result| result.violation.is_some()).count();
        let members = json!({
            "identity": identity,
            "script": parameters.script.as_str(),
            "tables": parameters.tables,
            "table_size": parameters.table_size,
            "distribution": parameters.distribution.as_str(),
            "seed": parameters.seed.0,
            "rows": {
                "inserted": accounting.inserted,
                "deleted": accounting.deleted,
                "index_updates": accounting.index_updates,
                "bulk": accounting.bulk_rows,
            },
            "checks": results_json(&results),
        });
        let bulk = match accounting.bulk_rows {
            0 => String::new(),
            rows => format!("; {rows} rows of bulk inserts"),
        };
        Ok(After {
            said: vec![format!(
                "rows of the whole run: {} inserted, {} deleted, {} index updates{bulk}",
                accounting.inserted, accounting.deleted, accounting.index_updates
            )],
            ended: vec![format!(
                "checks: {} made, {failed} failed; workload {identity}, {} tables of {} rows, ids {}, seed {}",
                results.len(),
                parameters.tables,
                parameters.table_size,
                parameters.distribution,
                parameters.seed.0
            )],
            members: members.as_object().cloned().unwrap_or_else(Map::new),
            verdict: verdict_of(" after the run", &results),
        })
    }
}

fn verdict_of(when: &str, results: &[CheckResult]) -> Result<(), Stop> {
    let violated = results
        .iter()
        .find_map(|result| result.violation.as_ref().map(|violation| (result.check, violation)));
    match violated {
        None => Ok(()),
        Some((check, violation)) => Err(Stop::check_violated(format!(
            "consistency{when}: {} ({}): {violation}",
            check.id(),
            check.title()
        ))),
    }
}

fn results_json(results: &[CheckResult]) -> Value {
    results
        .iter()
        .map(|result| {
            json!({
                "id": result.check.id(),
                "title": result.check.title(),
                "outcome": if result.violation.is_none() { "ok" } else { "violated" },
                "detail": result.violation,
            })
        })
        .collect()
}

/// What the user can mend is bad input; a database that does not answer is not.
fn refusal(error: SysbenchError) -> Stop {
    match &error {
        SysbenchError::Session(session) => rights::session_failed(session, chain(&error)),
        SysbenchError::Thread(_) => Stop::run_failed(chain(&error)),
        _ => Stop::bad_input(chain(&error)),
    }
}
