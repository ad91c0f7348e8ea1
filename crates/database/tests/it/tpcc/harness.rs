//! One server for all tests of this binary, loaded databases, and copies of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::runtime::Runtime;
use tokio_postgres::SimpleQueryMessage;
use underlay_core::RootSeed;
use underlay_database::postgres::{Listen, Server, ServerSpec, find_installs};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, CheckReport, CheckResult, LoadOptions, Mode, OrderNumbers, Outcome,
    Session, TableNames, check, load, order_numbers,
};
use underlay_database::{SessionError, Target};
use underlay_host::{StateDir, Teardown, unprivileged_user};
use underlay_workload::tpcc::{Entropy, Ledger, Parameters, Transaction};

/// A database without remote rows: the smallest.
pub const ONE_WAREHOUSE: u32 = 1;
/// The smallest database with remote rows.
pub const TWO_WAREHOUSES: u32 = 2;

/// The server, with a loaded database per size, to which nobody connects: it is copied.
struct Shared {
    server: Target,
    major: u32,
    teardown: Teardown,
    directory: PathBuf,
    /// The sizes that are loaded. Held while a database is copied: the original must not be in use.
    loaded: Mutex<BTreeSet<u32>>,
}

static SHARED: OnceLock<Option<Shared>> = OnceLock::new();

/// A database of one test, dropped at its end, with a runtime to talk to it.
pub struct Database {
    pub target: Target,
    pub runtime: Runtime,
    warehouses: u32,
}

pub fn parameters(warehouses: u32) -> Parameters {
    Parameters::new(warehouses, RootSeed(42), Entropy::FULL).unwrap()
}

/// An empty database; `None` when this host has no PostgreSQL.
pub fn empty_database() -> Option<Database> {
    let shared = shared()?;
    Some(Database::new(create(shared, "template0", ""), 0))
}

/// A loaded database; `None` when this host has no PostgreSQL.
pub fn loaded_database(warehouses: u32) -> Option<Database> {
    let shared = shared()?;
    let mut loaded = shared.loaded.lock().unwrap_or_else(PoisonError::into_inner);
    let original = format!("loaded_{warehouses}");
    if loaded.insert(warehouses) {
        execute(&shared.server, &format!("CREATE DATABASE {original} TEMPLATE template0"));
        let options = LoadOptions { parallel: 2, progress: &|_| {} };
        let target = shared.server.with_database(&original);
        load(&target, &parameters(warehouses), &options).unwrap();
    }
    // Copying files is faster than logging every page; before 15 it is the only way.
    let strategy = if shared.major >= 15 { "STRATEGY file_copy" } else { "" };
    Some(Database::new(create(shared, &original, strategy), warehouses))
}

/// Skips the test when there is no database.
macro_rules! database_or_skip {
    ($database:expr) => {
        match $database {
            Some(database) => database,
            None => underlay_host::skip!("no PostgreSQL 13 to 18 on this host"),
        }
    };
}
pub(crate) use database_or_skip;

impl Database {
    fn new(target: Target, warehouses: u32) -> Database {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Database { target, runtime, warehouses }
    }

    pub fn parameters(&self) -> Parameters {
        parameters(self.warehouses)
    }

    /// Carries out statements.
    pub fn execute(&self, sql: &str) {
        execute(&self.target, sql);
    }

    /// The first column of all rows as text; NULL is `null`.
    pub fn texts(&self, sql: &str) -> Vec<String> {
        self.runtime.block_on(async {
            let client = self.target.connect().await.unwrap();
            let messages = client.simple_query(sql).await.unwrap_or_else(|error| {
                panic!("{sql}: {error:?}");
            });
            let text = |message: &SimpleQueryMessage| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("null").to_string()),
                _ => None,
            };
            messages.iter().filter_map(text).collect()
        })
    }

    /// The only value of a query.
    pub fn text(&self, sql: &str) -> String {
        let texts = self.texts(sql);
        assert_eq!(texts.len(), 1, "{sql}: {texts:?}");
        texts[0].clone()
    }

    /// The only value of a query, an integer.
    pub fn number(&self, sql: &str) -> i64 {
        self.text(sql).parse().unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub fn session(&self, mode: Mode) -> Session {
        self.connect(mode).unwrap()
    }

    pub fn connect(&self, mode: Mode) -> Result<Session, SessionError> {
        self.runtime.block_on(Session::connect(&self.target, &self.parameters(), mode))
    }

    pub fn run(
        &self,
        session: &mut Session,
        transaction: &Transaction,
    ) -> Result<Outcome, SessionError> {
        self.runtime.block_on(session.run(transaction))
    }

    pub fn order_numbers(&self) -> OrderNumbers {
        let tables = TableNames::underlay();
        self.runtime.block_on(order_numbers(&self.target, &tables)).unwrap()
    }

    /// Makes all checks.
    pub fn check(
        &self,
        moment: CheckMoment,
        ledger: Option<(&Ledger, &OrderNumbers)>,
    ) -> CheckReport {
        self.check_tables(moment, ledger, &TableNames::underlay())
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
        self.runtime.block_on(check(&self.target, options)).unwrap()
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
        let tables = self.texts(
            "SELECT table_name || ' ' || string_agg(
                      CASE WHEN column_name IN ('h_date', 'o_entry_d', 'ol_delivery_d')
                           THEN column_name || ' IS NULL' ELSE column_name END,
                      ', ' ORDER BY ordinal_position)
               FROM information_schema.columns
              WHERE table_schema = 'tpcc' AND table_name <> 'underlay_population'
              GROUP BY table_name",
        );
        assert_eq!(tables.len(), 9);
        let hash = |table: &String| {
            let (name, columns) = table.split_once(' ').unwrap();
            let sql = format!(
                "SELECT count(*) || ' ' || sum(hashtextextended(ROW({columns})::text, 0))
                   FROM tpcc.{name}"
            );
            (name.to_string(), self.text(&sql))
        };
        tables.iter().map(hash).collect()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(Some(shared)) = SHARED.get() {
            let name = &self.target.database;
            execute(&shared.server, &format!("DROP DATABASE {name} WITH (FORCE)"));
        }
    }
}

fn shared() -> Option<&'static Shared> {
    SHARED
        .get_or_init(|| {
            let shared = start()?;
            // SAFETY: `remove` takes nothing, does not unwind, and may run at any time from now on.
            let registered = unsafe { libc::atexit(remove) };
            assert_eq!(registered, 0, "the server would be left behind");
            Some(shared)
        })
        .as_ref()
}

fn start() -> Option<Shared> {
    let install = find_installs(None).into_iter().next()?;
    let directory = tempfile::Builder::new().prefix("underlay-tpcc").tempdir().unwrap().keep();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).unwrap();
    let state = StateDir::at(directory.join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    let volume = |name: &str| directory.join(name).join("pg");
    let settings = [
        ("shared_buffers", "512MB"),
        ("fsync", "off"),
        ("full_page_writes", "off"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", "4GB"),
        ("autovacuum", "off"),
        // As a careless server would have it: the load must freeze its rows nevertheless.
        ("synchronous_commit", "off"),
    ];
    let spec = ServerSpec {
        name: "tpcc-test".to_string(),
        install,
        data: volume("data"),
        wal: volume("wal"),
        backup: volume("backup"),
        settings: settings.map(|(name, value)| (name.to_string(), value.to_string())).into(),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: directory.join("runtime"),
        listen: Listen::UnixSocket,
    };
    let major = spec.install.major;
    let mut server = Server::create(&teardown, spec).unwrap();
    server.start().unwrap();
    // The value may go, the server stays: the teardown stack ends it.
    Some(Shared {
        server: server.target(),
        major,
        teardown,
        directory,
        loaded: Mutex::new(BTreeSet::new()),
    })
}

/// Ends the server and removes its files when the test binary ends.
extern "C" fn remove() {
    let removed = std::panic::catch_unwind(|| {
        let Some(Some(shared)) = SHARED.get() else { return };
        for left in shared.teardown.unwind() {
            eprintln!("left behind: {left:?}");
        }
        if let Err(error) = fs::remove_dir_all(&shared.directory) {
            eprintln!("left behind: {}: {error}", shared.directory.display());
        }
    });
    if removed.is_err() {
        eprintln!("left behind: a test server");
    }
}

fn create(shared: &Shared, template: &str, strategy: &str) -> Target {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    execute(&shared.server, &format!("CREATE DATABASE {name} TEMPLATE {template} {strategy}"));
    shared.server.with_database(&name)
}

fn execute(target: &Target, sql: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = runtime.block_on(async { target.connect().await.unwrap().batch_execute(sql).await });
    done.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}
