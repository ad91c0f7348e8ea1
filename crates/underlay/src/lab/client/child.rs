//! What the process of a load generator does: `underlay client` (hidden). It is told everything and decides nothing.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use underlay_core::RootSeed;
use underlay_database::Target;
use underlay_driver::Driver;
use underlay_study::WorkloadKind;
use underlay_workload::transactional::RunAccounting;

use super::handshake::{Start, Started, monotonic_ns, read_line, write_line};
use crate::lab::workload::{DvdStoreSubject, SysbenchSubject, TpccSubject};
use crate::stop::{Stop, chain};

/// Serves as a load generator's process: what `underlay client` (hidden) does.
///
/// # Errors
/// If the message of the starting process cannot be parsed, or the connection with it
/// fails.
pub fn serve(socket: &Path) -> Result<(), Stop> {
    let failed = |error: io::Error| {
        Stop::run_failed(format!("the load generator lost its connection to the lab: {error}"))
    };
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    let start: Start = read_line(&mut stream).map_err(failed)?;
    let malformed = || Stop::run_failed("the load generator received no instructions");
    let spec = start.drive.spec().ok_or_else(malformed)?;
    let kind = start.workload.kind().ok_or_else(malformed)?;
    let target = Target::from_url(&start.target).map_err(|error| Stop::bad_input(chain(&error)))?;
    let since = Duration::from_nanos(monotonic_ns().saturating_sub(start.origin_ns));
    let origin = Instant::now().checked_sub(since).ok_or_else(malformed)?;
    let seed = RootSeed(start.seed);
    match kind {
        WorkloadKind::Tpcc(plan) => {
            let driver =
                TpccSubject::new(&plan, seed).and_then(|it| it.drive(spec, target, origin));
            direct(driver, stream)
        }
        WorkloadKind::Sysbench(plan) => {
            let driver =
                SysbenchSubject::new(&plan, seed).and_then(|it| it.drive(spec, target, origin));
            direct(driver, stream)
        }
        WorkloadKind::Dvdstore(plan) => {
            let first = start.first_new_customer.ok_or_else(malformed)?;
            direct(DvdStoreSubject::new(&plan, seed).drive(spec, target, origin, first), stream)
        }
        WorkloadKind::Batch(_)
        | WorkloadKind::Warehouse(_)
        | WorkloadKind::Block(_)
        | WorkloadKind::Backup(_) => Err(malformed()),
    }
}

/// Lets a driver that has started, or not, be directed.
fn direct<B: RunAccounting>(
    driver: Result<Driver<B>, Stop>,
    mut stream: UnixStream,
) -> Result<(), Stop> {
    let failed = |error: io::Error| {
        Stop::run_failed(format!("the load generator lost its connection to the lab: {error}"))
    };
    match driver {
        Ok(driver) => {
            write_line(&mut stream, &Started::Ready).map_err(failed)?;
            underlay_driver::process::serve(driver, stream).map_err(failed)
        }
        Err(stop) => {
            let refused = Started::Refused { reason: stop.to_string() };
            write_line(&mut stream, &refused).map_err(failed)
        }
    }
}
