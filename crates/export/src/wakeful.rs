//! Keeping idle CPUs from sleeping while modelled times matter.
//!
//! A request passes four hand-overs between threads. Waking a sleeping CPU costs 15 to 20 us on a virtual machine and
//! up to 100 us on hardware with deep sleep states, at each of them: more than most devices take. The
//! kernel's quality-of-service file for CPU latency (`Documentation/power/pm_qos_interface.rst`) asks that no CPU
//! sleeps while it is held open, and ends with the process that holds it, however it ends.
//!
//! Costs power and nothing else: a CPU that polls for work is idle in every account.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

const QUALITY_OF_SERVICE: &str = "/dev/cpu_dma_latency";

/// The request; withdrawn when dropped.
#[derive(Debug)]
pub(crate) struct CpusAwake(#[expect(dead_code, reason = "held for its effect")] File);

impl CpusAwake {
    /// Asks for it. Only root may.
    pub(crate) fn hold() -> io::Result<CpusAwake> {
        let mut file = OpenOptions::new().write(true).open(QUALITY_OF_SERVICE)?;
        // Microseconds of wake-up latency that are bearable, as a native 32-bit number.
        file.write_all(&0i32.to_ne_bytes())?;
        Ok(CpusAwake(file))
    }
}
