//! Sysbench's OLTP transactions on a database of the user's.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use clap::Args;
use serde_json::{Map, Value, json};
use underlay_core::RootSeed;
use underlay_database::schema_ownership::WorkloadTables;
use underlay_database::sysbench::{SysbenchError, describe, drop_bulk_tables, drop_tables, others};
use underlay_study::{SysbenchPlan, WorkloadKind};
use underlay_workload::sysbench::{Distribution, Parameters, SHAPE, Script, Sysbench};

use super::command::Command;
use super::external::{Dropped, External};
use super::noop::run_noop;
use super::options::{Common, Loading, Mixes, NOT_LOADED, NOT_RUN, Problems, UserLoad};
use super::shown::Added;
use super::steps::carry_out;
use super::users;
use crate::lab::external::{Checks, Finished};
use crate::lab::workload::{Access, Loadable, Loaded, SysbenchSubject, stopped};
use crate::stop::Stop;

/// What is loaded unless something else is asked for.
const TABLES: u32 = 1;
const TABLE_SIZE: u32 = 10_000;
/// Ids in a range, as in studies.
const RANGE_SIZE: RangeInclusive<u32> = 1..=1_000_000;
const RANGE_SIZE_DEFAULT: u32 = 100;

/// Arguments of `underlay drive sysbench`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    users: UserLoad,
    /// Use tables that Underlay did not create as they are (fewer by --tables and --table-size).
    #[arg(long, conflicts_with_all = ["load", "drop", "replace_foreign"])]
    foreign_tables: bool,
    /// What a transaction does: read_write, read_only, write_only, point_select, update_index,
    /// update_non_index, insert, delete or bulk_insert [default: read_write].
    #[arg(long, value_name = "SCRIPT")]
    script: Option<Script>,
    /// Tables to load: 1 by default; of --foreign-tables those to use, by default all.
    #[arg(long, value_name = "N")]
    tables: Option<u32>,
    /// Rows of each table: 10000 by default; of --foreign-tables the ids to use, by default all.
    #[arg(long, value_name = "N")]
    table_size: Option<u32>,
    /// How ids are drawn: uniform (the default of sysbench's master), special (the default of sysbench 1.0),
    /// gaussian, pareto or zipfian [default: uniform].
    #[arg(long, value_name = "DISTRIBUTION")]
    rand_type: Option<Distribution>,
    /// Ids in a range [default: 100].
    #[arg(long, value_name = "N")]
    range_size: Option<u32>,
}

impl Arguments {
    fn script(&self) -> Script {
        self.script.unwrap_or(Script::ReadWrite)
    }

    fn parameters(&self, seed: RootSeed) -> Result<Parameters, String> {
        let tables = self.tables.unwrap_or(TABLES);
        let table_size = self.table_size.unwrap_or(TABLE_SIZE);
        let distribution = self.rand_type.unwrap_or(Distribution::Uniform);
        let mut parameters = Parameters::new(tables, table_size, seed, distribution, self.script())
            .map_err(|error| error.to_string())?;
        parameters.composition.range_size = self.range_size.unwrap_or(RANGE_SIZE_DEFAULT);
        Ok(parameters)
    }

    /// The scripts that a run draws.
    fn scripts(&self, mixes: &Mixes) -> BTreeSet<Script> {
        let weights = mixes.first.iter().chain(mixes.later.iter().map(|change| &change.weights));
        let weighted = weights.flat_map(|weights| {
            let drawn = Script::ALL.into_iter().zip(weights.values());
            drawn.filter_map(|(script, weight)| (weight > 0).then_some(script))
        });
        let prescribed = mixes.first.is_none().then(|| self.script());
        weighted.chain(prescribed).collect()
    }

    fn problems(&self, command: &Command<'_>, mixes: Option<&Mixes>) -> Problems {
        let mut problems = Problems::default();
        problems.outside("--range-size", self.range_size, RANGE_SIZE);
        let runs = command.runs();
        if command.is_noop() {
            return problems;
        }
        let key_think = self.users.key_think.is_some_and(|factor| factor > 0.0);
        problems.refuse(
            &[("--key-think", key_think && runs)],
            "multiplies keying and think times, and sysbench has neither",
        );
        if !self.loading.load && !self.foreign_tables {
            let sizes =
                [("--tables", self.tables.is_some()), ("--table-size", self.table_size.is_some())];
            problems.refuse(&sizes, NOT_LOADED);
        }
        let draws = [("--rand-type", self.rand_type.is_some())];
        let of_run =
            [("--script", self.script.is_some()), ("--range-size", self.range_size.is_some())];
        if !runs {
            problems.refuse(&of_run, NOT_RUN);
            if !self.loading.load {
                problems.refuse(&draws, "has no effect without --load or --run: no ids are drawn");
            }
            return problems;
        }
        let Some(mixes) = mixes else { return problems };
        let scripts = self.scripts(mixes);
        let both = self.script.is_some() && mixes.first.is_some();
        problems.refuse(&[("--script", both)], "and --weights both define the transactions");
        if !scripts.iter().any(|script| [Script::ReadWrite, Script::ReadOnly].contains(script)) {
            let ranges = [("--range-size", self.range_size.is_some())];
            problems.refuse(&ranges, "has an effect on read_write and read_only only");
        }
        if !self.loading.load && scripts.iter().all(|script| *script == Script::BulkInsert) {
            problems.refuse(&draws, "has no effect on bulk inserts, which draw no ids");
        }
        problems
    }
}

/// Carries out the command.
pub(super) fn run(arguments: &Arguments) -> Result<(), Stop> {
    let mixes = arguments.users.mixes(&SHAPE);
    let draws_bulk =
        mixes.as_ref().is_ok_and(|mixes| arguments.scripts(mixes).contains(&Script::BulkInsert));
    let command = Command {
        common: &arguments.common,
        loading: &arguments.loading,
        users: Some(&arguments.users),
        name: "sysbench",
        tables: WorkloadTables::Sysbench,
        foreign_tables: arguments.foreign_tables,
        foreign_size: (arguments.tables, arguments.table_size),
        inserts_in_bulk: draws_bulk,
    };
    let mut problems = arguments.problems(&command, mixes.as_ref().ok());
    problems.0.extend(mixes.err().unwrap_or_default());
    let parameters = arguments.parameters(arguments.common.seed());
    problems.0.extend(parameters.as_ref().err().cloned());
    Command::refuse(problems, &command)?;
    let parameters = parameters.map_err(Stop::bad_input)?;
    if command.is_noop() {
        return run_noop(&command, Sysbench::new(parameters));
    }
    carry_out(&command, SysbenchSubject { parameters, inserts_in_bulk: draws_bulk })
}

impl External for SysbenchSubject {
    fn adopt(&mut self, command: &Command<'_>, access: Access<'_>) -> Result<(), Stop> {
        let Access { runtime, target, .. } = access;
        if command.foreign_tables {
            let (tables, table_size) = command.foreign_size;
            let (tables, table_size) = runtime
                .block_on(others(target, tables, table_size))
                .map_err(|error| stopped("look for tables", error))?;
            command.say(&format!(
                "using sbtest1 to sbtest{tables} as they are, ids 1 to {table_size} of each"
            ));
            self.parameters = Parameters { tables, table_size, ..self.parameters };
            return Ok(());
        }
        let there = runtime.block_on(describe(target));
        let there = there.map_err(|error| stopped("read what is loaded", error))?.parameters;
        let Parameters { tables, table_size, seed, .. } = there;
        self.parameters = Parameters { tables, table_size, seed, ..self.parameters };
        Ok(())
    }

    /// Tables for bulk inserts that were made next to foreign tables have no marker: their comments identify them.
    fn drop_population(&self, Access { runtime, target, .. }: Access<'_>) -> Result<Dropped, Stop> {
        let error = match runtime.block_on(drop_tables(target)) {
            Ok(()) => return Ok(Dropped::Done("the population".to_string())),
            Err(error) => error,
        };
        let is_absent = matches!(error, SysbenchError::NotLoaded);
        let is_foreign = matches!(error, SysbenchError::Foreign { .. });
        let stop = stopped("drop the population", error);
        if !is_absent && !is_foreign {
            return Err(stop);
        }
        match runtime.block_on(drop_bulk_tables(target)) {
            Ok(0) if is_absent => Ok(Dropped::Nothing(stop)),
            Ok(0) => Err(stop),
            Ok(dropped) => Ok(Dropped::Done(format!(
                "{dropped} tables for bulk inserts; underlay created no other table here"
            ))),
            Err(error) => Err(stopped("drop the tables for bulk inserts", error)),
        }
    }

    fn describe_load(&self, _: &Loaded) -> (String, Value) {
        let Parameters { tables, table_size, .. } = self.parameters;
        let text = format!("{tables} tables of {table_size} rows");
        (text, json!({ "tables": tables, "table_size": table_size }))
    }

    fn run(
        &self,
        command: &Command<'_>,
        access: Access<'_>,
    ) -> Result<(Value, Result<(), Stop>), Stop> {
        let Parameters { tables, table_size, script, distribution, composition, .. } =
            self.parameters;
        let range_size = composition.range_size;
        let plan = SysbenchPlan { script, tables, table_size, distribution, range_size };
        let kind = WorkloadKind::Sysbench(plan);
        users::run_users(self, command, access, kind, &|| Ok(None), |finished| {
            Ok(self.conclude(access, finished))
        })
    }
}

impl SysbenchSubject {
    fn conclude(&self, access: Access<'_>, finished: &Finished<SysbenchSubject>) -> Added {
        let Parameters { tables, table_size, script, distribution, seed, .. } = self.parameters;
        let accounting = &finished.summary.accounting;
        let none = Checks::default();
        let after = finished.checked_after.as_ref().unwrap_or(&none);
        let identity = self.identity(access.target.engine);
        let members = json!({
            "identity": identity,
            "script": script.as_str(),
            "tables": tables,
            "table_size": table_size,
            "distribution": distribution.as_str(),
            "seed": seed.0,
            "rows": {
                "inserted": accounting.inserted,
                "deleted": accounting.deleted,
                "index_updates": accounting.index_updates,
                "bulk": accounting.bulk_rows,
            },
            "checks": self.checks_json(after),
        });
        let bulk = match accounting.bulk_rows {
            0 => String::new(),
            rows => format!("; {rows} rows of bulk inserts"),
        };
        Added {
            said: vec![format!(
                "rows of the whole run: {} inserted, {} deleted, {} index updates{bulk}",
                accounting.inserted, accounting.deleted, accounting.index_updates
            )],
            ended: vec![format!(
                "checks: {} made, {} failed; workload {identity}, {tables} tables of {table_size} rows, ids {distribution}, \
                 seed {}",
                after.results.len(),
                after.failed().count(),
                seed.0
            )],
            members: members.as_object().cloned().unwrap_or_else(Map::new),
        }
    }
}
