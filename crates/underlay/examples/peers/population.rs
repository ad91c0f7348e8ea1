//! A population of TPC-C that a peer loaded, as Underlay sees it: its order numbers, and what the checks say.

use mysql_async::prelude::Queryable;
use underlay_database::mariadb::connect;
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, CheckOutcome, CheckReport, TableNames, check, order_numbers,
};
use underlay_database::{Engine, Target};

use crate::Failure;
use crate::place::Place;
use crate::run::Verdict;

/// Whose and how large it is.
pub struct Population {
    /// The database that holds it.
    pub database: &'static str,
    pub warehouses: u32,
    /// What it calls the table of orders; all others have their ordinary names.
    pub orders: &'static str,
}

impl Population {
    /// Makes its database, empty, for a peer that does not.
    pub fn create_database(&self, place: &Place) -> Result<(), Failure> {
        let sql = format!("CREATE DATABASE {}", self.database);
        match place.engine {
            Engine::Postgresql => on_runtime(async {
                let client = place.with_database("postgres").target()?.connect().await?;
                Ok(client.batch_execute(&sql).await?)
            }),
            Engine::Mariadb => on_runtime(async {
                let mut connection = connect(&place.with_database("mysql").target()?).await?;
                connection.query_drop(sql).await?;
                Ok(connection.disconnect().await?)
            }),
        }
    }

    /// The sum of D_NEXT_O_ID: it advances by one with each committed order.
    pub fn order_numbers(&self, place: &Place) -> Result<u64, Failure> {
        let (target, tables) = (self.target(place)?, self.tables());
        on_runtime(async { Ok(order_numbers(&target, &tables).await?.sum()) })
    }

    /// All checks that can be made after a run.
    pub fn verdict(&self, place: &Place) -> Result<Verdict, Failure> {
        let (target, tables) = (self.target(place)?, self.tables());
        let options = CheckOptions {
            warehouses: self.warehouses,
            parallel: std::thread::available_parallelism()?.get(),
            moment: CheckMoment::AfterRun,
            ledger: None,
            tables: &tables,
        };
        on_runtime(async { Ok(verdict_of(&check(&target, options).await?)) })
    }

    fn target(&self, place: &Place) -> Result<Target, Failure> {
        place.with_database(self.database).target()
    }

    fn tables(&self) -> TableNames {
        TableNames::mapped(|table| match table {
            "orders" => self.orders.to_string(),
            other => other.to_string(),
        })
    }
}

fn on_runtime<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Runtime::new()?.block_on(future)
}

fn verdict_of(report: &CheckReport) -> Verdict {
    let mut verdict = Verdict::default();
    for result in &report.results {
        let id = result.id.to_string();
        match &result.outcome {
            CheckOutcome::Ok => verdict.made += 1,
            CheckOutcome::Violated { rows, .. } => {
                verdict.made += 1;
                verdict.violated.push((id, format!("{rows} rows")));
            }
            CheckOutcome::Failed { error } => verdict.unmade.push((id, error.clone())),
        }
    }
    verdict
}
