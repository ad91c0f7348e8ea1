//! Waiting until nobody else uses the CPUs, for measurements on shared machines.
//!
//! With `--patience SECONDS` each measurement waits up to that long for an idle host, and is repeated when unrelated
//! work came in between. Without it, measurements are taken as they come.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::cpu;
use super::fio::{Job, Outcome, measure};
use super::site::{Failure, argument};

/// Unrelated work beyond this share of the CPUs spoils a measurement.
const UNRELATED_MAX: f64 = 0.15;

/// How long the whole benchmark may spend on waiting.
pub struct Patience {
    ends: Option<Instant>,
}

impl Patience {
    /// As the command line says.
    pub fn from_arguments() -> Patience {
        let seconds = argument("--patience").and_then(|text| text.parse().ok());
        Patience { ends: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)) }
    }

    /// Returns when the host has been idle for two seconds, or patience is at its end.
    pub fn wait_for_quiet(&self) -> Result<(), Failure> {
        let cpus = std::thread::available_parallelism()?.get() as f64;
        let mut idle_spans = 0;
        while self.is_left() && idle_spans < 4 {
            let begin = cpu::host_seconds().0;
            sleep(Duration::from_millis(500));
            let busy = (cpu::host_seconds().0 - begin) / 0.5 / cpus;
            idle_spans = if busy < UNRELATED_MAX { idle_spans + 1 } else { 0 };
        }
        Ok(())
    }

    /// Measures on a quiet host, again and again until nobody disturbed it. `prepare` runs before each.
    pub fn measure<E: Into<Failure>>(
        &self,
        job: &Job<'_>,
        mut prepare: impl FnMut() -> Result<(), E>,
    ) -> Result<Outcome, Failure> {
        loop {
            self.wait_for_quiet()?;
            prepare().map_err(Into::into)?;
            let outcome = measure(job)?;
            if outcome.unrelated <= UNRELATED_MAX || !self.is_left() {
                return Ok(outcome);
            }
        }
    }

    fn is_left(&self) -> bool {
        self.ends.is_some_and(|ends| Instant::now() < ends)
    }
}
