//! Places, servers and queries for tests with a real MariaDB.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use mysql_async::prelude::Queryable;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use underlay_core::Bytes;
use underlay_core::RootSeed;
use underlay_database::Target;
use underlay_database::managed::Listen;
use underlay_database::managed::{RestoreOptions, StopMode};
use underlay_database::mariadb::{Install, Server, ServerSpec, Template, connect, find_installs};
use underlay_database::tpcc::{
    CheckMoment, CheckOptions, CheckReport, CheckResult, LoadOptions, Mode, OrderNumbers, Outcome,
    Session, TableNames, check, load, order_numbers,
};
use underlay_database::{Engine, SessionError};
use underlay_host::{StateDir, Teardown, unprivileged_user};
use underlay_workload::tpcc::{Entropy, Ledger, Parameters, Transaction};

/// A place on disk with a teardown stack, as a run has.
pub struct Place {
    pub path: PathBuf,
    pub teardown: Teardown,
    pub install: Install,
    pub runtime: Runtime,
    // After the stack, which is unwound first.
    _dir: TempDir,
}

/// `None` when this host has no MariaDB.
pub fn place() -> Option<Place> {
    let install = find_installs(None, None).into_iter().next()?;
    // On a disk: the server writes with direct I/O, which memory file systems refuse.
    let dir = tempfile::Builder::new().prefix("underlay-maria").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let path = dir.path().canonicalize().unwrap();
    let state = StateDir::at(path.join("state")).unwrap();
    let teardown = Teardown::create(&state, "test").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    Some(Place { path, teardown, install, runtime, _dir: dir })
}

impl Drop for Place {
    fn drop(&mut self) {
        self.teardown.unwind();
    }
}

/// The place, or a printed reason why there is none.
macro_rules! place_or_skip {
    () => {
        match $crate::mariadb::harness::place() {
            Some(place) => place,
            None => underlay_host::skip!("no MariaDB 10.6 or MySQL 8 on this host"),
        }
    };
}
pub(crate) use place_or_skip;

pub fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Data, log and backups in separate directories named after `run`, as on three volumes.
pub fn spec(place: &Place, run: &str, pairs: &[(&str, &str)]) -> ServerSpec {
    let volume = |name: &str| {
        let dir = place.path.join(run).join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    ServerSpec {
        name: run.to_string(),
        install: place.install.clone(),
        data: volume("data").join("maria"),
        wal: volume("wal").join("maria"),
        backup: volume("backup").join("maria"),
        settings: settings(pairs),
        run_as: unprivileged_user().unwrap(),
        cgroup: None,
        runtime_dir: place.path.join(run).join("runtime"),
        listen: Listen::UnixSocket,
    }
}

/// Rows of one query: their first columns as text.
pub fn query(place: &Place, target: &Target, sql: &str) -> Result<Vec<String>, String> {
    place.runtime.block_on(async {
        let mut client = connect(target).await.map_err(|error| error.to_string())?;
        let rows: Vec<mysql_async::Row> =
            client.query(sql).await.map_err(|error| error.to_string())?;
        client.disconnect().await.map_err(|error| error.to_string())?;
        Ok(rows
            .into_iter()
            .map(|row| row.get::<Option<String>, _>(0).flatten().unwrap_or_default())
            .collect())
    })
}

pub fn one(place: &Place, target: &Target, sql: &str) -> String {
    query(place, target, sql).unwrap().remove(0)
}

/// A database without remote rows: the smallest.
pub const ONE_WAREHOUSE: u32 = 1;
/// The smallest database with remote rows.
pub const TWO_WAREHOUSES: u32 = 2;

/// A running server with a loaded population of its own, removed at the end of the test.
pub struct Database {
    pub server: Server,
    pub target: Target,
    pub place: Place,
    warehouses: u32,
}

pub fn parameters(warehouses: u32) -> Parameters {
    Parameters::new(warehouses, RootSeed(42), Entropy::FULL).unwrap()
}

/// Settings under which nothing is waited for: the tests' databases are thrown away.
const CARELESS: [(&str, &str); 5] = [
    ("innodb_buffer_pool_size", "256M"),
    ("innodb_log_file_size", "16M"),
    ("innodb_flush_log_at_trx_commit", "2"),
    ("innodb_doublewrite", "OFF"),
    ("max_connections", "60"),
];

/// A loaded database; `None` when this host has no MariaDB. The first test of a size loads it; all
/// others start from its template.
pub fn loaded_database(warehouses: u32) -> Option<Database> {
    static LOADING: Mutex<()> = Mutex::new(());
    let place = place()?;
    let kept = std::env::temp_dir().join(format!("underlay-maria-{}", std::process::id()));
    let dir = kept.join(format!("loaded-{warehouses}"));
    let template = {
        let _turn = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        Template::open(&dir).unwrap_or_else(|_| {
            fs::create_dir_all(&kept).unwrap();
            register_removal();
            make_template(&place, warehouses, &dir)
        })
    };
    let options = RestoreOptions { log_ready: Bytes::ZERO };
    let (mut server, _) =
        template.restore(&place.teardown, spec(&place, "tpcc", &CARELESS), &options).unwrap();
    server.start().unwrap();
    let target = server.target().with_database("tpcc");
    Some(Database { server, target, place, warehouses })
}

fn make_template(place: &Place, warehouses: u32, dir: &std::path::Path) -> Template {
    let mut server = Server::create(&place.teardown, spec(place, "load", &CARELESS)).unwrap();
    server.start().unwrap();
    let options = LoadOptions { parallel: 2, progress: &|_| {} };
    let report = load(&server.target(), &parameters(warehouses), &options).unwrap();
    println!("loaded {warehouses} warehouses: {report:?}");
    server.stop(StopMode::Fast).unwrap();
    Template::capture(&mut server, dir, BTreeMap::new()).unwrap().0
}

/// Has the templates of this process removed when the test binary ends.
fn register_removal() {
    extern "C" fn remove() {
        let kept = std::env::temp_dir().join(format!("underlay-maria-{}", std::process::id()));
        // Nobody is left to tell.
        let _ = fs::remove_dir_all(kept);
    }
    // SAFETY: `remove` takes nothing, does not unwind, and may run at any time from now on.
    unsafe { libc::atexit(remove) };
}

/// Skips the test when there is no database.
macro_rules! database_or_skip {
    ($database:expr) => {
        match $database {
            Some(database) => database,
            None => underlay_host::skip!("no MariaDB 10.6 or MySQL 8 on this host"),
        }
    };
}
pub(crate) use database_or_skip;

impl Database {
    pub fn parameters(&self) -> Parameters {
        parameters(self.warehouses)
    }

    /// Carries out one statement.
    pub fn execute(&self, sql: &str) {
        query(&self.place, &self.target, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The first column of all rows as text.
    pub fn texts(&self, sql: &str) -> Vec<String> {
        query(&self.place, &self.target, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
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
        let parameters = self.parameters();
        self.place.runtime.block_on(Session::connect(&self.target, &parameters, mode))
    }

    pub fn run(
        &self,
        session: &mut Session,
        transaction: &Transaction,
    ) -> Result<Outcome, SessionError> {
        self.place.runtime.block_on(session.run(transaction))
    }

    pub fn order_numbers(&self) -> OrderNumbers {
        let tables = TableNames::of(Engine::Mariadb);
        self.place.runtime.block_on(order_numbers(&self.target, &tables)).unwrap()
    }

    /// Makes all checks.
    pub fn check(
        &self,
        moment: CheckMoment,
        ledger: Option<(&Ledger, &OrderNumbers)>,
    ) -> CheckReport {
        self.check_tables(moment, ledger, &TableNames::of(Engine::Mariadb))
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
        self.place.runtime.block_on(check(&self.target, options)).unwrap()
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
            "SELECT concat(table_name, ' ', group_concat(
                      CASE WHEN column_name IN ('h_date', 'o_entry_d', 'ol_delivery_d')
                           THEN concat(column_name, ' IS NULL')
                           ELSE concat('coalesce(', column_name, ', ''none'')') END
                      ORDER BY ordinal_position SEPARATOR ', '))
               FROM information_schema.columns
              WHERE table_schema = 'tpcc' AND table_name <> 'underlay_population'
              GROUP BY table_name",
        );
        assert_eq!(tables.len(), 9);
        let hash = |table: &String| {
            let (name, columns) = table.split_once(' ').unwrap();
            let sql = format!(
                "SELECT concat(count(*), ' ', sum(crc32(concat_ws('|', {columns})))) FROM {name}"
            );
            (name.to_string(), self.text(&sql))
        };
        tables.iter().map(hash).collect()
    }
}
