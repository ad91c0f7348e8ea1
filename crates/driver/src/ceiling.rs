//! What the generator can do without a database behind it: the ceiling of any result measured with
//! it.

use std::time::{Duration, Instant};

use underlay_core::RootSeed;
use underlay_workload::transactional::Workload;

use crate::driver::Driver;
use crate::error::DriveError;
use crate::noop::Noop;
use crate::spec::DriveSpec;

/// The generator alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// Transactions of the full mix per second, over all threads.
    pub transactions_per_second: f64,
    /// The workload's headline, in its own unit.
    pub headline_rate: f64,
    /// CPU time per transaction, ns.
    pub cpu_ns_per_transaction: f64,
}

/// Drives `users` users against nothing for `duration`, in a closed loop without think time.
///
/// The threads of the host are fully busy meanwhile: measure it before the load, not beside it.
pub fn noop_ceiling<W: Workload>(
    workload: W,
    inputs: RootSeed,
    users: u32,
    duration: Duration,
) -> Result<Ceiling, DriveError> {
    let driver = Driver::start(DriveSpec::new(inputs, users), Noop(workload), Instant::now())?;
    driver.set_users(users);
    let before = driver.tick();
    std::thread::sleep(duration);
    let tick = driver.tick();
    let transactions: u64 = tick.types.iter().map(|kind| kind.completed()).sum();
    let cpu_ns = tick.cpu_ns - before.cpu_ns;
    Ok(Ceiling {
        transactions_per_second: transactions as f64 / tick.length().as_secs_f64(),
        headline_rate: tick.headline_rate(),
        cpu_ns_per_transaction: cpu_ns as f64 / transactions.max(1) as f64,
    })
}
