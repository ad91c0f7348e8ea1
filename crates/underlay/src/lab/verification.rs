//! Making the consistency checks and keeping what they found.

use tokio::runtime::Runtime;
use underlay_database::Target;
use underlay_database::tpcc::{
    CheckMoment as DatabaseMoment, CheckOptions, CheckOutcome as DatabaseOutcome, CheckReport,
    OrderNumbers, TableNames, check, order_numbers,
};
use underlay_record::{Check, CheckMoment, CheckOutcome, RunId};
use underlay_workload::tpcc::Ledger;

use crate::lab::abort::{Abort, During};
use crate::lab::event::{Event, Observer};
use crate::lab::recording::SharedRecorder;

/// Reads the order numbers: what the ledger is compared with later.
pub fn read_order_numbers(runtime: &Runtime, target: &Target) -> Result<OrderNumbers, Abort> {
    runtime
        .block_on(order_numbers(target, &TableNames::of(target.engine)))
        .during("read the order numbers")
}

/// Makes all checks, writes them to the record and tells the observer. Returns whether all hold.
pub fn verify(
    runtime: &Runtime,
    target: &Target,
    warehouses: u32,
    ledger: Option<(&Ledger, &OrderNumbers)>,
    kept: (&SharedRecorder, RunId, CheckMoment),
    observer: &mut dyn Observer,
) -> Result<Verified, Abort> {
    let tables = TableNames::of(target.engine);
    let options = CheckOptions {
        warehouses,
        parallel: std::thread::available_parallelism().map_or(1, usize::from),
        moment: match kept.2 {
            CheckMoment::Before => DatabaseMoment::AfterLoad,
            CheckMoment::After => DatabaseMoment::AfterRun,
        },
        ledger,
        tables: &tables,
    };
    let report = runtime.block_on(check(target, options)).during("make the consistency checks")?;
    let (recorder, run, moment) = kept;
    for result in &report.results {
        let outcome = match &result.outcome {
            DatabaseOutcome::Ok => CheckOutcome::Ok,
            DatabaseOutcome::Violated { rows, example } => {
                CheckOutcome::Violated { rows: *rows, example: example.clone() }
            }
            DatabaseOutcome::Failed { error } => CheckOutcome::Failed { error: error.clone() },
        };
        recorder
            .lock()
            .check(&Check {
                run,
                moment,
                id: result.id.to_string(),
                title: result.title.to_string(),
                outcome,
            })
            .during("write the record")?;
    }
    let failed = report.failures().count();
    observer.notice(&Event::Checked { moment, checks: report.results.len(), failed });
    Ok(Verified::of(&report))
}

/// Whether the data is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Every check was made and holds.
    Clean,
    /// At least one is violated or could not be made; the first in words.
    Broken(String),
}

impl Verified {
    fn of(report: &CheckReport) -> Verified {
        match report.failures().next() {
            None => Verified::Clean,
            Some(result) => Verified::Broken(describe(result.id, result.title, &result.outcome)),
        }
    }
}

/// A failed check in one line.
pub fn describe(id: &str, title: &str, outcome: &DatabaseOutcome) -> String {
    match outcome {
        DatabaseOutcome::Ok => format!("{id} ({title}) holds"),
        DatabaseOutcome::Violated { rows, example } => {
            format!("{id} ({title}) is violated by {rows} rows, for example {example}")
        }
        DatabaseOutcome::Failed { error } => format!("{id} ({title}) could not be made: {error}"),
    }
}
