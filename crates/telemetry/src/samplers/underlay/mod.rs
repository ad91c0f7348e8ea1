//! What observing costs: the collector's own sweeps, misses, CPU time and memory.
//!
//! * **Reads** counters that the tiers keep, `/proc/self/statm`, `cpu.stat` of its control group and the CPU clock of the process.
//! * **Emits** per tier the time of the latest sweep, ticks taken and missed, and CPU time; for the
//!   whole process CPU time and resident memory.
//! * **Costs** about 15 us per tick.
//! * **Needs** nothing.
//!
//! The process is the one that runs the collector: when the load driver lives in it, `process.cpu`
//! is mostly the driver's. `collector.cpu` is the collector's alone.

mod own_limit;

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::kernel_file::KernelFile;
use crate::source::{SampleError, Sampler};
use crate::targets::Roots;
use crate::tier::Account;
use own_limit::OwnLimit;
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use underlay_core::series::Layer;

/// The declaration: first what is per tier, then what is per process.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "underlay",
    layer: Layer::Underlay,
    reads: "its own counters, /proc/self/statm, cpu.stat of the process's control group and those above",
    costs: "15 us",
    needs: "nothing",
    traps: &[
        "process.cpu and process.rss include everything that runs in the same process, the load driver too",
        "a sweep of the proc tier that is long means that the host is short of CPU, not that /proc is slow",
    ],
    series: &[
        SeriesDoc::gauge(
            "tier.<tier>.sweep",
            "ns",
            "wall time of the latest completed sweep of a tier (proc, postgres, waits, or an extra sampler)",
        ),
        SeriesDoc::counter("tier.<tier>.ticks", "ticks", "ticks taken by a tier"),
        SeriesDoc::counter(
            "tier.<tier>.missed",
            "ticks",
            "ticks a tier missed because the one before took too long",
        ),
        SeriesDoc::counter("tier.<tier>.cpu", "ns", "CPU time of a tier's thread"),
        SeriesDoc::counter(
            "limit.periods",
            "periods",
            "enforcement periods of a CPU limit in which the process wanted to run",
        ),
        SeriesDoc::counter(
            "limit.throttled.periods",
            "periods",
            "of these, periods in which it was stopped by the limit",
        ),
        SeriesDoc::counter(
            "limit.throttled.time",
            "ns",
            "time in which its CPUs were stopped by the limit",
        ),
        SeriesDoc::counter("collector.cpu", "ns", "CPU time of all threads of the collector"),
        SeriesDoc::counter("process.cpu", "ns", "CPU time of the whole process"),
        SeriesDoc::gauge("process.rss", "bytes", "resident memory of the whole process")
            .quantum("one page"),
    ],
};

const PER_TIER: [&str; 4] = ["sweep", "ticks", "missed", "cpu"];

/// The sampler.
struct Underlay {
    identity: Identity,
    accounts: Vec<Arc<Account>>,
    limit: OwnLimit,
    statm: Option<KernelFile>,
    page_bytes: f64,
}

/// The sampler of these tiers.
pub(crate) fn sampler(roots: &Roots, accounts: &[Arc<Account>]) -> Box<dyn Sampler> {
    let mut series = Vec::new();
    for account in accounts {
        let named = DOC.series.iter().zip(PER_TIER);
        let name = &account.name;
        series.extend(named.map(|(doc, part)| doc.named(format!("tier.{name}.{part}"))));
    }
    series.extend(DOC.series[PER_TIER.len()..].iter().map(SeriesDoc::spec));
    let mut gaps = Vec::new();
    let statm = KernelFile::open(roots.proc.join("self/statm"))
        .map_err(|error| gaps.push(error.to_string()))
        .ok();
    if statm.is_none() {
        series.pop();
    }
    Box::new(Underlay {
        identity: Identity::with_gaps(&DOC, series, &gaps),
        accounts: accounts.to_vec(),
        limit: OwnLimit::find(roots),
        statm,
        page_bytes: rustix::param::page_size() as f64,
    })
}

impl Sampler for Underlay {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let mut collector_cpu_ns = 0;
        for account in &self.accounts {
            let cpu_ns = account.cpu_ns.load(Ordering::Relaxed);
            collector_cpu_ns += cpu_ns;
            values.extend_from_slice(&[
                account.sweep_ns.load(Ordering::Relaxed) as f64,
                account.ticks.load(Ordering::Relaxed) as f64,
                account.missed.load(Ordering::Relaxed) as f64,
                cpu_ns as f64,
            ]);
        }
        values.extend(self.limit.values());
        values.push(collector_cpu_ns as f64);
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        values.push(cpu.tv_sec as f64 * 1e9 + cpu.tv_nsec as f64);
        if let Some(statm) = &mut self.statm {
            values.push(resident_pages(statm.text()?) * self.page_bytes);
        }
        Ok(())
    }
}

/// The second number of a statm text.
fn resident_pages(text: &str) -> f64 {
    let resident = text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    resident.map_or(f64::NAN, |pages| pages as f64)
}

#[cfg(test)]
mod tests {
    use super::{resident_pages, sampler};
    use crate::targets::Roots;
    use crate::tier::Account;
    use std::time::Duration;

    #[test]
    fn tiers_are_accounted_and_the_process_has_memory() {
        let account = Account::new("proc");
        account.settle(Duration::from_micros(250), 3);
        let mut sampler = sampler(&Roots::system(), &[account]);
        let mut values = Vec::new();
        sampler.sample(&mut values).expect("sampled");
        assert_eq!(values[..3], [250_000.0, 1.0, 3.0]);
        let rss = *values.last().expect("not empty");
        assert!(rss > 100_000.0, "a test process is larger than {rss} bytes");
    }

    #[test]
    fn a_strange_statm_is_a_missing_value() {
        assert_eq!(resident_pages("10 7 3"), 7.0);
        assert!(resident_pages("10").is_nan());
        assert!(resident_pages("10 x").is_nan());
    }
}
