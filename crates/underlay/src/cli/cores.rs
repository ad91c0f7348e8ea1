//! The processors of a simulated host that has no limit. Where the number comes from otherwise is decided by the commands.

use crate::stop::Stop;

/// The cores of a host without a CPU limit, as given, or those of this host.
///
/// # Errors
/// Numbers out of range.
pub fn cores_of(asked: Option<u64>) -> Result<u32, Stop> {
    let here = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let cores = u32::try_from(asked.unwrap_or_else(here));
    let cores = cores.ok().filter(|cores| (1..=4_096).contains(cores));
    cores.ok_or_else(|| Stop::bad_input("--cores must lie in 1 to 4096"))
}
