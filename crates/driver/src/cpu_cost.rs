//! Making transactions more expensive for the load generator, to see whether its own processor time limits them.
//!
//! After each transaction the thread uses up as much processor time again as it has used since the one before, times the
//! factor less one. It is used up and not slept: a thread that may have only a share of a processor must lose it.

use std::cell::Cell;

use rustix::time::{ClockId, clock_gettime};

/// How much more each transaction of a thread costs.
#[derive(Debug, Default)]
pub(crate) struct CpuCost {
    /// Beyond the cost itself, as a share of it; 0 = nothing.
    surcharge: Cell<f64>,
    /// CPU time of the thread when the last transaction was paid for.
    paid_until_ns: Cell<u64>,
}

impl CpuCost {
    /// From now on transactions cost `factor` times as much. Called on the thread.
    pub(crate) fn set_factor(&self, factor: f64) {
        debug_assert!(factor >= 1.0, "nothing becomes cheaper");
        self.surcharge.set(factor - 1.0);
        self.paid_until_ns.set(thread_cpu_ns());
    }

    /// Pays for what the thread has done since the last call. Costs nothing where nothing is to be paid.
    #[inline]
    pub(crate) fn pay(&self) {
        if self.surcharge.get() > 0.0 {
            self.use_up();
        }
    }

    #[cold]
    fn use_up(&self) {
        let now_ns = thread_cpu_ns();
        let used_ns = now_ns.saturating_sub(self.paid_until_ns.get());
        let until_ns = now_ns + (used_ns as f64 * self.surcharge.get()) as u64;
        while thread_cpu_ns() < until_ns {
            std::hint::spin_loop();
        }
        self.paid_until_ns.set(thread_cpu_ns());
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::{CpuCost, thread_cpu_ns};

    fn work(ns: u64) {
        let until = thread_cpu_ns() + ns;
        while thread_cpu_ns() < until {}
    }

    /// CPU time of ten pieces of work of 1 ms, paid one by one.
    fn cost_ns(factor: f64) -> u64 {
        let cost = CpuCost::default();
        cost.set_factor(factor);
        let began = thread_cpu_ns();
        for _ in 0..10 {
            work(1_000_000);
            cost.pay();
        }
        thread_cpu_ns() - began
    }

    #[test]
    fn work_costs_the_factor_in_processor_time() {
        // Processor time: how busy the machine is does not matter.
        for (factor, expected_ms) in [(1.0, 10.0), (1.5, 15.0), (3.0, 30.0)] {
            let found_ms = cost_ns(factor) as f64 / 1e6;
            assert!((found_ms / expected_ms - 1.0).abs() < 0.1, "{factor}: {found_ms} ms");
        }
    }
}
