//! What the lab needs of a workload: its population, its sessions, its checks. One file per workload.
//!
//! The lab is compiled per workload, like the load generator: it knows none of them. It neither draws
//! transactions nor carries them out; that is between the workload and the engine's sessions.

mod backup;
mod batch;
mod dvdstore;
mod session;
mod sysbench;
mod tpcc;
mod warehouse;

use serde_json::{Value, json};
use std::error::Error;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use underlay_core::Nanos;
use underlay_database::batch::BatchError;
use underlay_database::dvdstore::DvdStoreError;
use underlay_database::load_report::LoadReport;
use underlay_database::managed::{RestoredCopy, Server};
use underlay_database::schema_ownership::OwnershipError;
use underlay_database::sysbench::SysbenchError;
use underlay_database::tpcc::TpccError;
use underlay_database::warehouse::WarehouseError;
use underlay_database::{Engine, SessionError, Target};
use underlay_driver::{DriveError, DriveSpec};
use underlay_record::{CheckMoment, CheckOutcome};

use crate::lab::abort::Abort;
use crate::lab::client::ClientProcess;
use crate::lab::generator::RunningLoad;
use crate::stop::{Stop, chain};

pub use backup::BackupSubject;
/// Operations of backups, and what they come to.
pub mod backups {
    pub use super::backup::{Operation, outcome};
}
pub use batch::BatchSubject;
pub use dvdstore::DvdStoreSubject;
pub use session::{AnySubject, Session, subject_of};
pub use sysbench::SysbenchSubject;
pub use tpcc::TpccSubject;
pub use warehouse::{Asked, WarehouseSubject};

/// The database that a workload uses, and how it is reached.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// For what waits for the database.
    pub runtime: &'a Runtime,
    /// Where it is.
    pub target: &'a Target,
    /// Connections of a load, and of checks that are made side by side.
    pub parallel: usize,
}

/// A workload with its size, as its population is made and told from others.
pub trait Loadable: Sync {
    /// The database that holds its tables in every managed server.
    fn database(&self) -> &'static str;

    /// Its name and size, short and fit for a file name: `tpcc-8w`.
    fn population(&self) -> String;

    /// What tells its population from any other, on this engine.
    fn population_identity(&self, engine: Engine) -> String;

    /// What tells population and transactions from any other, on this engine.
    fn identity(&self, engine: Engine) -> String;

    /// Loads the population. Blocks; called outside of any runtime.
    fn load(
        &self,
        access: Access<'_>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Loaded, Stop>;
}

/// A workload with its size, as it is driven and checked.
pub trait Subject: Loadable {
    /// What loads the server: users that are driven, or a job.
    type Load: RunningLoad<Accounting = Self::Accounting> + Send;
    /// What it keeps of a run.
    type Accounting: Send;
    /// What is known before a run and compared with after it.
    type Before: Send;

    /// What is known before a run of at most `users`.
    fn before(&self, access: Access<'_>, users: u32) -> Result<Self::Before, Stop>;

    /// Makes all checks, after a run also against what it was told. `Before` is for a population that nothing has
    /// changed since its load.
    fn check(
        &self,
        access: Access<'_>,
        moment: CheckMoment,
        run: Option<(&Self::Before, &Self::Accounting)>,
    ) -> Result<Vec<Checked>, Stop>;

    /// Makes the load ready; it begins when users are set. Instants are counted from `origin`.
    fn start(
        &self,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        before: &Self::Before,
    ) -> Result<Self::Load, Stop>;

    /// The same in a process within the server's limits. A job works in the lab's own threads, and its study refuses this.
    fn start_within(
        &self,
        process: ClientProcess<'_>,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        before: &Self::Before,
    ) -> Result<Self::Load, Stop> {
        let _ = (process, spec, target, origin, before);
        Err(Stop::bad_input("a job cannot run within the limits of the server"))
    }

    /// The same with a server that Underlay manages, for what needs more of it than its address.
    fn start_managed(
        &self,
        server: &Server,
        spec: DriveSpec,
        target: Target,
        origin: Instant,
        before: &Self::Before,
    ) -> Result<Self::Load, Stop> {
        let _ = server;
        self.start(spec, target, origin, before)
    }

    /// A restored copy of the database, which takes its place after the run, so that it is what is checked.
    fn restored<'a>(&self, accounting: &'a Self::Accounting) -> Option<&'a RestoredCopy> {
        let _ = accounting;
        None
    }

    /// The result of the run, for the record's document of that name, where the headline is not counted: a job's.
    fn outcome(&self, accounting: &Self::Accounting) -> Result<Option<Value>, Abort> {
        let _ = accounting;
        Ok(None)
    }
}

/// An error of a workload's database, whose cause decides how a command ends.
pub trait Cause: Error + 'static {
    /// The session that failed, if one did.
    fn session(&self) -> Option<&SessionError>;
    /// Whether the host had no thread left.
    fn is_thread(&self) -> bool;
}

macro_rules! cause {
    ($($error:ident => $session:pat => $found:expr),* $(,)?) => {$(
        impl Cause for $error {
            fn session(&self) -> Option<&SessionError> {
                match self {
                    $session => $found,
                    _ => None,
                }
            }

            fn is_thread(&self) -> bool {
                matches!(self, $error::Thread(_))
            }
        }
    )*};
}

cause! {
    TpccError => TpccError::Session(error) => Some(error),
    SysbenchError => SysbenchError::Session(error) => Some(error),
    DvdStoreError => DvdStoreError::Session(error) => Some(error),
    BatchError => BatchError::Session(error) => Some(error),
    WarehouseError => WarehouseError::Session { error, .. } => Some(error),
}

impl Cause for OwnershipError {
    fn session(&self) -> Option<&SessionError> {
        match self {
            OwnershipError::Session(error) => Some(error),
            _ => None,
        }
    }

    fn is_thread(&self) -> bool {
        false
    }
}

impl Cause for SessionError {
    fn session(&self) -> Option<&SessionError> {
        Some(self)
    }

    fn is_thread(&self) -> bool {
        false
    }
}

/// What ends because of `error` while `doing` ("load the population"): what the user can correct is bad input, a database that
/// does not answer is not.
pub fn stopped<E: Cause>(doing: &str, error: E) -> Stop {
    match error.session() {
        Some(session) => session_failed(session, format!("could not {doing}: {}", chain(&error))),
        None if error.is_thread() => {
            Stop::run_failed(format!("could not {doing}: {}", chain(&error)))
        }
        None => Stop::bad_input(chain(&error)),
    }
}

/// An error of a session, which `text` says; remembers whether a right is lacking.
pub fn session_failed(error: &SessionError, text: String) -> Stop {
    if error.is_denial() { Stop::denied(text) } else { Stop::run_failed(text) }
}

/// Why the load of users did not start.
fn not_started(error: DriveError) -> Stop {
    let text = chain(&error);
    match error {
        DriveError::Connect(error) => session_failed(&error, text),
        _ => Stop::run_failed(text),
    }
}

/// A population that was loaded.
pub struct Loaded {
    /// How long it took, and how much it was.
    pub report: LoadReport,
    /// What it takes in the database, where that is known.
    pub stored_bytes: Option<u64>,
}

impl From<LoadReport> for Loaded {
    fn from(report: LoadReport) -> Loaded {
        Loaded { report, stored_bytes: None }
    }
}

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Share of the whole, 0 to 1.
    pub share: f64,
    /// Rows sent.
    pub rows: u64,
}

/// The record's document of a load that took `total` with the server's start and stop.
pub fn load_document(report: &LoadReport, total: Duration) -> serde_json::Value {
    json!({
        "rows": report.rows,
        "bytes": report.bytes,
        "rows_ns": Nanos::from(report.rows_duration).0,
        "keys_ns": Nanos::from(report.keys_duration).0,
        "settle_ns": Nanos::from(report.settle_duration).0,
        "total_ns": Nanos::from(total).0,
    })
}

/// A check and what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its short identity.
    pub id: String,
    /// What it verifies.
    pub title: String,
    /// What it found.
    pub outcome: CheckOutcome,
    /// More of it, for programs.
    pub detail: Value,
}

impl Checked {
    /// A check that knows only whether something is wrong.
    fn simple(id: &str, title: &str, violation: Option<String>) -> Checked {
        let outcome = match violation {
            None => CheckOutcome::Ok,
            Some(example) => CheckOutcome::Violated { rows: 0, example },
        };
        Checked { id: id.to_string(), title: title.to_string(), outcome, detail: Value::Null }
    }

    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.outcome == CheckOutcome::Ok
    }

    /// In one line.
    pub fn describe(&self) -> String {
        let Checked { id, title, outcome, .. } = self;
        match outcome {
            CheckOutcome::Ok => format!("{id} ({title}) holds"),
            // Checks over sums know no row that is wrong.
            CheckOutcome::Violated { rows: 0, example } => {
                format!("{id} ({title}) is violated: {example}")
            }
            CheckOutcome::Violated { rows, example } => {
                format!("{id} ({title}) is violated by {rows} rows, for example {example}")
            }
            CheckOutcome::Failed { error } => {
                format!("{id} ({title}) could not be checked: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Checked;
    use underlay_record::CheckOutcome;

    #[test]
    fn a_check_says_what_it_found() {
        let says = |outcome| {
            let (id, title) = ("c1".to_string(), "sums".to_string());
            Checked { id, title, outcome, detail: serde_json::Value::Null }.describe()
        };
        let example = "warehouse 1".to_string();
        assert_eq!(says(CheckOutcome::Ok), "c1 (sums) holds");
        assert_eq!(
            says(CheckOutcome::Violated { rows: 2, example: example.clone() }),
            "c1 (sums) is violated by 2 rows, for example warehouse 1"
        );
        assert_eq!(
            says(CheckOutcome::Violated { rows: 0, example }),
            "c1 (sums) is violated: warehouse 1"
        );
        assert_eq!(
            says(CheckOutcome::Failed { error: "no table".to_string() }),
            "c1 (sums) could not be checked: no table"
        );
    }
}
