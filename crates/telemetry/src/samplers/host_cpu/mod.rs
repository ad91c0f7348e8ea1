//! CPU time of the host: all of it and per CPU, with steal and iowait.
//!
//! * **Reads** `/proc/stat`, one `pread`.
//! * **Emits** nanoseconds per state for the host (`cpu.<state>`) and per CPU (`cpu<n>.<state>`),
//!   context switches, forks, runnable and blocked tasks.
//! * **Costs** about 27 us per tick on 2 CPUs; the file grows with interrupts, not with load.
//! * **Needs** nothing. A CPU that goes offline leaves missing values; one that appears adds series.
//!
//! Time spent in a guest is contained in `user` and `nice` of the kernel's text and is subtracted
//! here, so that the states of a CPU add up to its time. It does not compute utilisation.

mod parse;

pub(crate) use parse::{Stat, parse};

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::kernel_file::{KernelFile, parse_error};
use crate::source::{SampleError, Sampler, Status};
use crate::targets::Roots;
use parse::{STATES, TICK_NS};
use underlay_core::series::{Layer, SeriesSpec};

const QUANTUM: &str = "10 ms";

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "host_cpu",
    layer: Layer::Host,
    reads: "/proc/stat",
    costs: "27 us on 2 CPUs",
    needs: "nothing",
    traps: &[
        "iowait is idle time with an I/O outstanding, never \"busy\"; idle and iowait may step back a little",
        "steal is time the hypervisor gave to other guests: a run with steal does not measure this machine alone",
        "counted in steps of 10 ms (the kernel's tick may be 4 ms): +/-1 % of one CPU over 1 s",
    ],
    series: &[
        SeriesDoc::counter("cpu.<state>", "ns", "CPU time of the host in a state (user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice), summed over CPUs. Guest time is not part of user").quantum(QUANTUM),
        SeriesDoc::counter("cpu<n>.<state>", "ns", "the same per CPU").quantum(QUANTUM),
        SeriesDoc::counter("context_switches", "events", "context switches of all CPUs"),
        SeriesDoc::counter("forks", "events", "processes and threads created"),
        SeriesDoc::gauge("tasks.running", "tasks", "tasks on a CPU or waiting for one, at the instant of reading (the collector itself is one)"),
        SeriesDoc::gauge("tasks.blocked", "tasks", "tasks waiting for block I/O at the instant of reading"),
        SeriesDoc::gauge("cpus.online", "cpus", "CPUs online"),
    ],
};

const SCALARS: usize = 5;

/// The sampler.
struct HostCpu {
    identity: Identity,
    file: Option<KernelFile>,
    stat: Stat,
    /// CPU numbers in the order of their series.
    cpus: Vec<u32>,
}

/// The sampler of the host under `roots`.
pub(crate) fn sampler(roots: &Roots) -> Box<dyn Sampler> {
    let mut sampler = HostCpu {
        identity: Identity::available(&DOC, Vec::new()),
        file: None,
        stat: Stat::default(),
        cpus: Vec::new(),
    };
    let opened = KernelFile::open(roots.proc.join("stat"))
        .map(|file| sampler.file.insert(file))
        .and_then(|file| refresh(file, &mut sampler.stat));
    match opened {
        Ok(()) => sampler.identity.series = host_series(),
        Err(error) => sampler.identity.status = Status::Absent(error.to_string()),
    }
    sampler.add_new_cpus();
    Box::new(sampler)
}

fn host_series() -> Vec<SeriesSpec> {
    let [total, _, scalars @ ..] = DOC.series else {
        unreachable!("the declaration starts with the two families of CPU times");
    };
    STATES
        .iter()
        .map(|state| total.named(format!("cpu.{state}")))
        .chain(scalars.iter().map(SeriesDoc::spec))
        .collect()
}

fn refresh(file: &mut KernelFile, stat: &mut Stat) -> Result<(), SampleError> {
    let path = file.path().to_path_buf();
    parse(file.text()?, stat).map_err(|detail| parse_error(&path, detail))
}

impl HostCpu {
    fn add_new_cpus(&mut self) {
        for (cpu, _) in &self.stat.cpus {
            if !self.cpus.contains(cpu) {
                self.cpus.push(*cpu);
                let states = STATES.iter();
                let series = states.map(|state| DOC.series[1].named(format!("cpu{cpu}.{state}")));
                self.identity.series.extend(series);
            }
        }
    }
}

impl Sampler for HostCpu {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let Some(file) = &mut self.file else {
            return Err(self.identity.absence());
        };
        refresh(file, &mut self.stat)?;
        self.add_new_cpus();
        let stat = &self.stat;
        values.extend(stat.total.map(in_ns));
        values.extend_from_slice(&[
            stat.context_switches,
            stat.forks,
            stat.running,
            stat.blocked,
            stat.cpus.len() as f64,
        ]);
        debug_assert_eq!(values.len(), STATES.len() + SCALARS);
        for cpu in &self.cpus {
            let times = stat.cpus.iter().find(|(number, _)| number == cpu);
            values.extend(times.map_or([f64::NAN; STATES.len()], |(_, ticks)| ticks.map(in_ns)));
        }
        Ok(())
    }
}

fn in_ns(ticks: u64) -> f64 {
    ticks as f64 * TICK_NS
}
