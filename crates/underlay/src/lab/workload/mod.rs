//! What the lab needs of a workload: its population, its sessions, its checks. One file per workload.
//!
//! The lab is compiled per workload, like the load generator: it knows none of them. It neither draws
//! transactions nor carries them out; that is between the workload and the engine's sessions.

mod batch;
mod dvdstore;
mod sysbench;
mod tpcc;
mod warehouse;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use underlay_core::Nanos;
use underlay_database::load_report::LoadReport;
use underlay_database::{Engine, Target};
use underlay_driver::DriveSpec;
use underlay_record::{CheckMoment, CheckOutcome};

use crate::lab::abort::Abort;
use crate::lab::generator::RunningLoad;

pub use batch::BatchSubject;
pub use dvdstore::DvdStoreSubject;
pub use sysbench::SysbenchSubject;
pub use tpcc::TpccSubject;
pub use warehouse::WarehouseSubject;

/// A workload with its size, as a study uses it.
pub trait Subject: Sync {
    /// What loads the server: users that are driven, or a job.
    type Load: RunningLoad<Accounting = Self::Accounting>;
    /// What it keeps of a run.
    type Accounting;
    /// What is known before a run and compared with after it.
    type Before;

    /// The database that holds its tables in every managed server.
    fn database(&self) -> &'static str;

    /// Its name and size, short and fit for a file name: `tpcc-8w`.
    fn population(&self) -> String;

    /// What tells its population from any other, on this engine.
    fn population_identity(&self, engine: Engine) -> String;

    /// What tells population and transactions from any other, on this engine.
    fn identity(&self, engine: Engine) -> String;

    /// Loads the population on `parallel` connections. Blocks; called outside of any runtime.
    fn load(
        &self,
        target: &Target,
        parallel: usize,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<LoadReport, Abort>;

    /// What is known before a run of at most `users`.
    fn before(&self, runtime: &Runtime, target: &Target, users: u32)
    -> Result<Self::Before, Abort>;

    /// Makes all checks, after a run also against what it was told.
    fn check(
        &self,
        runtime: &Runtime,
        target: &Target,
        moment: CheckMoment,
        run: Option<(&Self::Before, &Self::Accounting)>,
    ) -> Result<Vec<Checked>, Abort>;

    /// Makes the load ready; it begins when users are set. Instants are counted from `origin`.
    fn start(&self, spec: DriveSpec, target: Target, origin: Instant) -> Result<Self::Load, Abort>;

    /// What the run came to, for the record's document of that name, where the headline is not counted: a job's.
    fn outcome(&self, accounting: &Self::Accounting) -> Result<Option<Value>, Abort> {
        let _ = accounting;
        Ok(None)
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
}

impl Checked {
    /// Whether it holds.
    pub fn holds(&self) -> bool {
        self.outcome == CheckOutcome::Ok
    }

    /// In one line.
    pub fn describe(&self) -> String {
        let Checked { id, title, outcome } = self;
        match outcome {
            CheckOutcome::Ok => format!("{id} ({title}) holds"),
            // Checks over sums know no row that is wrong.
            CheckOutcome::Violated { rows: 0, example } => {
                format!("{id} ({title}) is violated: {example}")
            }
            CheckOutcome::Violated { rows, example } => {
                format!("{id} ({title}) is violated by {rows} rows, for example {example}")
            }
            CheckOutcome::Failed { error } => format!("{id} ({title}) could not be made: {error}"),
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
            Checked { id: "c1".to_string(), title: "sums".to_string(), outcome }.describe()
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
            "c1 (sums) could not be made: no table"
        );
    }
}
