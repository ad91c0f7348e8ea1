//! Pressure stall information of the host: how long tasks could not run for want of a resource.
//!
//! * **Reads** `/proc/pressure/{cpu,memory,io,irq}`, one `pread` each.
//! * **Emits** the `total` counters in microseconds. The kernel's averages are left out: a
//!   difference of totals over the true window says the same without a filter of its own.
//! * **Costs** about 15 us per tick.
//! * **Needs** a kernel with pressure accounting (`CONFIG_PSI`, perhaps the boot option `psi=1`).
//!
//! The host-wide `full` of cpu is meaningless (documented as zero) and is not emitted.

mod parse;

pub(crate) use parse::{Totals, parse};

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::kernel_file::KernelFile;
use crate::source::{SampleError, Sampler};
use crate::targets::Roots;
use underlay_core::series::Layer;

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "pressure",
    layer: Layer::Host,
    reads: "/proc/pressure/{cpu,memory,io,irq}",
    costs: "15 us",
    needs: "CONFIG_PSI and, on some kernels, the boot option psi=1",
    traps: &[
        "cpu.some rises when any tenant of the host waits, not only the database",
        "some = at least one task stalled, full = all non-idle tasks stalled; neither is a utilisation",
    ],
    series: &[
        SeriesDoc::counter("cpu.some", "us", "time in which at least one runnable task had no CPU"),
        SeriesDoc::counter(
            "memory.some",
            "us",
            "time in which at least one task waited for memory",
        ),
        SeriesDoc::counter(
            "memory.full",
            "us",
            "time in which all non-idle tasks waited for memory",
        ),
        SeriesDoc::counter("io.some", "us", "time in which at least one task waited for I/O"),
        SeriesDoc::counter("io.full", "us", "time in which all non-idle tasks waited for I/O"),
        SeriesDoc::counter("irq.full", "us", "time in which tasks were held up by interrupts"),
    ],
};

const FILES: [(&str, &[Kind]); 4] = [
    ("cpu", &[Kind::Some]),
    ("memory", &[Kind::Some, Kind::Full]),
    ("io", &[Kind::Some, Kind::Full]),
    ("irq", &[Kind::Full]),
];

/// Which line of a pressure file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// At least one task stalls.
    Some,
    /// All non-idle tasks stall.
    Full,
}

impl Kind {
    /// Last part of a series name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Kind::Some => "some",
            Kind::Full => "full",
        }
    }

    /// The total of this line.
    pub(crate) fn of(self, totals: &Totals) -> f64 {
        match self {
            Kind::Some => totals.some_us,
            Kind::Full => totals.full_us,
        }
    }
}

/// The sampler.
struct Pressure {
    identity: Identity,
    files: Vec<(KernelFile, &'static [Kind])>,
}

/// The sampler of the host under `roots`.
pub(crate) fn sampler(roots: &Roots) -> Box<dyn Sampler> {
    let mut files = Vec::new();
    let mut series = Vec::new();
    let mut gaps = Vec::new();
    for (resource, kinds) in FILES {
        match KernelFile::open(roots.proc.join("pressure").join(resource)) {
            Ok(file) => {
                files.push((file, kinds));
                let names = kinds.iter().map(|kind| format!("{resource}.{}", kind.as_str()));
                series.extend(names.filter_map(|name| {
                    DOC.series.iter().find(|doc| doc.name == name).map(SeriesDoc::spec)
                }));
            }
            // Interrupt pressure exists only where interrupt time is accounted: its absence is not reported.
            Err(_) if resource == "irq" => {}
            Err(error) => gaps.push(error.to_string()),
        }
    }
    if !gaps.is_empty() {
        gaps.push("needs a kernel with CONFIG_PSI, perhaps booted with psi=1".to_string());
    }
    Box::new(Pressure { identity: Identity::with_gaps(&DOC, series, &gaps), files })
}

impl Sampler for Pressure {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        if self.files.is_empty() {
            return Err(self.identity.absence());
        }
        for (file, kinds) in &mut self.files {
            let totals = parse(file.text()?);
            values.extend(kinds.iter().map(|kind| kind.of(&totals)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::sampler;
    use crate::source::Status;
    use crate::targets::Roots;
    use std::fs;

    #[test]
    fn what_exists_is_emitted_and_what_does_not_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pressure = folder.path().join("pressure");
        fs::create_dir(&pressure).expect("made");
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=0 total=3\n";
        fs::write(pressure.join("io"), text).expect("written");
        let roots = Roots { proc: folder.path().to_path_buf(), sys: folder.path().to_path_buf() };
        let mut sampler = sampler(&roots);
        assert!(
            matches!(sampler.status(), Status::Degraded(why) if why.contains("cpu") && why.contains("psi=1"))
        );
        let mut values = Vec::new();
        sampler.sample(&mut values).expect("sampled");
        assert_eq!(sampler.series()[1].name, "io.full");
        assert_eq!(values, [7.0, 3.0]);
    }
}
