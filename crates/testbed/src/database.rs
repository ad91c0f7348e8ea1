//! A database with a TPC-C population, of one test: sessions on it, and all checks.

use std::collections::BTreeMap;

use underlay_core::RootSeed;
use underlay_database::managed::Server;
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, CheckReport, CheckResult, Mode, OrderNumbers, Outcome, Session,
    TableNames, check, order_numbers,
};
use underlay_database::{Engine, SessionError, Target};
use underlay_workload::tpcc::{Entropy, Ledger, Parameters, Transaction};

use crate::bed::{Bed, NoServer, settings};
use crate::server::TestServer;
use crate::sql;
use crate::templates::careless;

/// A database without remote rows: the smallest.
pub const ONE_WAREHOUSE: u32 = 1;
/// The smallest database with remote rows.
pub const TWO_WAREHOUSES: u32 = 2;

/// The tables and columns of PostgreSQL without the times at which transactions ran.
const COLUMNS_POSTGRESQL: &str = "SELECT table_name || ' ' || string_agg(
          CASE WHEN column_name IN ('h_date', 'o_entry_d', 'ol_delivery_d')
               THEN column_name || ' IS NULL' ELSE column_name END,
          ', ' ORDER BY ordinal_position)
     FROM information_schema.columns
    WHERE table_schema = 'tpcc' AND table_name <> 'underlay_population'
    GROUP BY table_name";
/// Those of MariaDB.
const COLUMNS_MARIADB: &str = "SELECT concat(table_name, ' ', group_concat(
          CASE WHEN column_name IN ('h_date', 'o_entry_d', 'ol_delivery_d')
               THEN concat(column_name, ' IS NULL')
               ELSE concat('coalesce(', column_name, ', ''none'')') END
          ORDER BY ordinal_position SEPARATOR ', '))
     FROM information_schema.columns
    WHERE table_schema = 'tpcc' AND table_name <> 'underlay_population'
    GROUP BY table_name";

/// A server with a database for TPC-C, which is thrown away: it waits for no disk.
#[derive(Debug)]
pub struct Database {
    /// The server.
    pub server: Server,
    /// The database. Valid until the server's next start.
    pub target: Target,
    /// Where the server is.
    pub bed: Bed,
    warehouses: u32,
}

/// The population of a number of warehouses.
pub fn parameters(warehouses: u32) -> Parameters {
    Parameters::new(warehouses, RootSeed(42), Entropy::FULL).unwrap()
}

impl Database {
    /// A loaded database.
    pub fn loaded(engine: Engine, warehouses: u32) -> Result<Database, NoServer> {
        let (bed, careless) = (Bed::anywhere(engine)?, settings(careless(engine)));
        let population = parameters(warehouses);
        let server = TestServer::loaded_on(bed, &population, |spec| spec.settings = careless);
        Ok(Database::new(server, warehouses))
    }

    /// An empty database.
    pub fn empty(engine: Engine) -> Result<Database, NoServer> {
        let (bed, careless) = (Bed::anywhere(engine)?, settings(careless(engine)));
        Ok(Database::new(TestServer::start_on(bed, |spec| spec.settings = careless), 0))
    }

    fn new(server: TestServer, warehouses: u32) -> Database {
        let target = server.target();
        let TestServer { server, bed, .. } = server;
        Database { server, target, bed, warehouses }
    }

    /// Its population.
    pub fn parameters(&self) -> Parameters {
        parameters(self.warehouses)
    }

    /// As [`crate::execute`].
    pub fn execute(&self, sql: &str) {
        sql::execute(&self.target, sql);
    }

    /// As [`crate::texts`].
    pub fn texts(&self, sql: &str) -> Vec<String> {
        sql::texts(&self.target, sql)
    }

    /// As [`crate::text`].
    pub fn text(&self, sql: &str) -> String {
        sql::text(&self.target, sql)
    }

    /// As [`crate::number`].
    pub fn number(&self, sql: &str) -> i64 {
        sql::number(&self.target, sql)
    }

    /// A session.
    pub fn session(&self, mode: Mode) -> Session {
        self.connect(mode).unwrap()
    }

    /// A session, if it can be had.
    pub fn connect(&self, mode: Mode) -> Result<Session, SessionError> {
        self.bed.runtime.block_on(Session::connect(&self.target, &self.parameters(), mode))
    }

    /// Runs a transaction.
    pub fn run(
        &self,
        session: &mut Session,
        transaction: &Transaction,
    ) -> Result<Outcome, SessionError> {
        self.bed.runtime.block_on(session.run(transaction))
    }

    /// The next order of each district.
    pub fn order_numbers(&self) -> OrderNumbers {
        let tables = TableNames::of(self.target.engine);
        self.bed.runtime.block_on(order_numbers(&self.target, &tables)).unwrap()
    }

    /// Makes all checks.
    pub fn check(
        &self,
        moment: CheckMoment,
        ledger: Option<(&Ledger, &OrderNumbers)>,
    ) -> CheckReport {
        self.check_tables(moment, ledger, &TableNames::of(self.target.engine))
    }

    /// Makes all checks on tables of other names.
    pub fn check_tables(
        &self,
        moment: CheckMoment,
        ledger: Option<(&Ledger, &OrderNumbers)>,
        tables: &TableNames,
    ) -> CheckReport {
        let options =
            CheckOptions { warehouses: self.warehouses, parallel: 2, moment, ledger, tables };
        self.bed.runtime.block_on(check(&self.target, options)).unwrap()
    }

    /// Makes all checks after transactions have run, and expects that all of them hold.
    pub fn assert_consistent(&self, ledger: Option<(&Ledger, &OrderNumbers)>) {
        let report = self.check(CheckMoment::AfterRun, ledger);
        let failures: Vec<&CheckResult> = report.failures().collect();
        assert!(failures.is_empty(), "{failures:#?}");
        assert_eq!(report.results.len(), 21 + usize::from(ledger.is_some()));
    }

    /// A hash of the content of all tables but for the times at which transactions ran.
    pub fn content(&self) -> BTreeMap<String, String> {
        let engine = self.target.engine;
        let tables = self.texts(match engine {
            Engine::Postgresql => COLUMNS_POSTGRESQL,
            Engine::Mariadb => COLUMNS_MARIADB,
        });
        assert_eq!(tables.len(), 9);
        let hash = |table: &String| {
            let (name, columns) = table.split_once(' ').unwrap();
            let hash = match engine {
                Engine::Postgresql => format!(
                    "SELECT count(*) || ' ' || sum(hashtextextended(ROW({columns})::text, 0)) \
                       FROM tpcc.{name}"
                ),
                Engine::Mariadb => format!(
                    "SELECT concat(count(*), ' ', sum(crc32(concat_ws('|', {columns})))) FROM {name}"
                ),
            };
            (name.to_string(), self.text(&hash))
        };
        tables.iter().map(hash).collect()
    }
}
