//! Memory of the host: what is free, dirty, under writeback, and what reclaim costs.
//!
//! * **Reads** `/proc/meminfo` and `/proc/vmstat`, one `pread` each.
//! * **Emits** gauges in bytes and counters of faults, reclaim, writeback and swap.
//! * **Costs** about 63 us per tick.
//! * **Needs** nothing; series that a kernel does not know are not declared.
//!
//! Dirty and writeback explain checkpoint stalls. It does not judge whether memory is short: that
//! is what the `pressure` source and reclaim counters are for.

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::kernel_file::KernelFile;
use crate::keyed::entries;
use crate::source::{SampleError, Sampler};
use crate::targets::Roots;
use underlay_core::series::{Layer, SeriesSpec};

/// The declaration.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "memory",
    layer: Layer::Host,
    reads: "/proc/meminfo, /proc/vmstat",
    costs: "63 us",
    needs: "nothing",
    traps: &[
        "the page cache of a database in a control group counts there too: see source cgroup",
        "page_in and page_out count bytes to and from block devices of the whole host",
    ],
    series: &[
        SeriesDoc::gauge("total", "bytes", "memory of the host"),
        SeriesDoc::gauge("free", "bytes", "unused memory"),
        SeriesDoc::gauge(
            "available",
            "bytes",
            "memory that new programs could have without swapping",
        ),
        SeriesDoc::gauge("buffers", "bytes", "cache of block devices read directly"),
        SeriesDoc::gauge("cached", "bytes", "page cache including shared memory"),
        SeriesDoc::gauge("dirty", "bytes", "page cache waiting to be written"),
        SeriesDoc::gauge("writeback", "bytes", "page cache being written"),
        SeriesDoc::gauge("anonymous", "bytes", "memory of processes that is not file backed"),
        SeriesDoc::gauge("shared", "bytes", "shared memory and tmpfs"),
        SeriesDoc::gauge("slab", "bytes", "kernel objects"),
        SeriesDoc::gauge("swap.total", "bytes", "swap space"),
        SeriesDoc::gauge("swap.free", "bytes", "unused swap space"),
        SeriesDoc::counter("faults", "events", "page faults, minor and major"),
        SeriesDoc::counter("faults.major", "events", "page faults that read from a device"),
        SeriesDoc::counter("page_in", "bytes", "bytes read from block devices").quantum("1 KiB"),
        SeriesDoc::counter("page_out", "bytes", "bytes written to block devices").quantum("1 KiB"),
        SeriesDoc::counter("swap.in", "pages", "pages read from swap"),
        SeriesDoc::counter("swap.out", "pages", "pages written to swap"),
        SeriesDoc::counter("dirtied", "pages", "pages of page cache made dirty"),
        SeriesDoc::counter("written", "pages", "pages of page cache written"),
        SeriesDoc::counter(
            "throttled_written",
            "pages",
            "pages written while their writers were throttled by reclaim",
        ),
        SeriesDoc::counter(
            "allocation_stalls",
            "events",
            "allocations that had to reclaim memory themselves, over all zones",
        ),
        SeriesDoc::counter(
            "scan.direct",
            "pages",
            "pages looked at by allocations that had to reclaim",
        ),
        SeriesDoc::counter(
            "scan.background",
            "pages",
            "pages looked at by the background reclaimer",
        ),
        SeriesDoc::counter(
            "refaults.file",
            "pages",
            "file pages read again soon after being evicted: the cache is too small",
        ),
        SeriesDoc::counter("oom_kills", "events", "processes killed for lack of memory"),
        SeriesDoc::counter("balloon.inflate", "pages", "pages taken by the hypervisor's balloon"),
    ],
};

/// How a key of the kernel becomes a series: name, factor to the unit.
type Mapping = (&'static str, &'static str, f64);

const KIB: f64 = 1024.0;

const MEMINFO: [Mapping; 12] = [
    ("MemTotal", "total", KIB),
    ("MemFree", "free", KIB),
    ("MemAvailable", "available", KIB),
    ("Buffers", "buffers", KIB),
    ("Cached", "cached", KIB),
    ("Dirty", "dirty", KIB),
    ("Writeback", "writeback", KIB),
    ("AnonPages", "anonymous", KIB),
    ("Shmem", "shared", KIB),
    ("Slab", "slab", KIB),
    ("SwapTotal", "swap.total", KIB),
    ("SwapFree", "swap.free", KIB),
];

/// Several keys of one series are added up (one per memory zone).
const VMSTAT: [Mapping; 23] = [
    ("pgfault", "faults", 1.0),
    ("pgmajfault", "faults.major", 1.0),
    ("pgpgin", "page_in", KIB),
    ("pgpgout", "page_out", KIB),
    ("pswpin", "swap.in", 1.0),
    ("pswpout", "swap.out", 1.0),
    ("nr_dirtied", "dirtied", 1.0),
    ("nr_written", "written", 1.0),
    ("nr_throttled_written", "throttled_written", 1.0),
    ("allocstall", "allocation_stalls", 1.0),
    ("allocstall_dma", "allocation_stalls", 1.0),
    ("allocstall_dma32", "allocation_stalls", 1.0),
    ("allocstall_normal", "allocation_stalls", 1.0),
    ("allocstall_high", "allocation_stalls", 1.0),
    ("allocstall_movable", "allocation_stalls", 1.0),
    ("allocstall_device", "allocation_stalls", 1.0),
    ("pgscan_direct", "scan.direct", 1.0),
    ("pgscan_kswapd", "scan.background", 1.0),
    ("workingset_refault_file", "refaults.file", 1.0),
    // The name before file and anonymous pages were counted separately (Linux 5.9).
    ("workingset_refault", "refaults.file", 1.0),
    ("oom_kill", "oom_kills", 1.0),
    ("balloon_inflate", "balloon.inflate", 1.0),
    ("nr_balloon_inflate", "balloon.inflate", 1.0),
];

/// One file and the series that its keys add to.
struct KeyedFile {
    file: KernelFile,
    mappings: &'static [Mapping],
    /// For each mapping the index of its series, if the kernel knows any key of it.
    slots: Vec<Option<usize>>,
}

/// The sampler.
struct Memory {
    identity: Identity,
    files: Vec<KeyedFile>,
}

/// The sampler of the host under `roots`.
pub(crate) fn sampler(roots: &Roots) -> Box<dyn Sampler> {
    let mut series = Vec::new();
    let mut gaps = Vec::new();
    let mut files = Vec::new();
    for (name, mappings) in [("meminfo", &MEMINFO[..]), ("vmstat", &VMSTAT[..])] {
        let opened = KernelFile::open(roots.proc.join(name))
            .and_then(|file| KeyedFile::discover(file, mappings, &mut series));
        match opened {
            Ok(file) => files.push(file),
            Err(error) => gaps.push(error.to_string()),
        }
    }
    Box::new(Memory { identity: Identity::with_gaps(&DOC, series, &gaps), files })
}

impl KeyedFile {
    /// Declares the series whose keys this kernel has.
    fn discover(
        mut file: KernelFile,
        mappings: &'static [Mapping],
        series: &mut Vec<SeriesSpec>,
    ) -> Result<KeyedFile, SampleError> {
        let text = file.text()?;
        let known: Vec<bool> = mappings
            .iter()
            .map(|(key, _, _)| entries(text).any(|(found, _)| found == *key))
            .collect();
        for doc in DOC.series {
            let has_key = mappings
                .iter()
                .zip(&known)
                .any(|((_, name, _), known)| *known && *name == doc.name);
            if has_key {
                series.push(doc.spec());
            }
        }
        let position = |name: &str| series.iter().position(|series| series.name == name);
        let slots = mappings.iter().map(|(_, name, _)| position(name)).collect();
        Ok(KeyedFile { file, mappings, slots })
    }

    fn add_up(&mut self, values: &mut [f64]) -> Result<(), SampleError> {
        for (key, value) in entries(self.file.text()?) {
            let found = self.mappings.iter().position(|(wanted, _, _)| *wanted == key);
            if let Some((mapping, slot)) =
                found.and_then(|index| self.slots[index].map(|slot| (&self.mappings[index], slot)))
            {
                let sum = values[slot];
                values[slot] = if sum.is_nan() { 0.0 } else { sum } + value * mapping.2;
            }
        }
        Ok(())
    }
}

impl Sampler for Memory {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        if self.files.is_empty() {
            return Err(self.identity.absence());
        }
        values.resize(self.identity.series.len(), f64::NAN);
        self.files.iter_mut().try_for_each(|file| file.add_up(values))
    }
}

#[cfg(test)]
mod tests {
    use super::{DOC, MEMINFO, VMSTAT, sampler};
    use crate::source::Status;
    use crate::targets::Roots;
    use std::fs;

    fn host(meminfo: Option<&str>, vmstat: Option<&str>) -> (tempfile::TempDir, Roots) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in [("meminfo", meminfo), ("vmstat", vmstat)] {
            if let Some(text) = text {
                fs::write(folder.path().join(name), text).expect("written");
            }
        }
        let roots = Roots { proc: folder.path().to_path_buf(), sys: folder.path().to_path_buf() };
        (folder, roots)
    }

    #[test]
    fn zones_are_added_up_and_kib_become_bytes() {
        let (_folder, roots) = host(
            Some("MemTotal:  100 kB\nDirty:   7 kB\n"),
            Some("pgpgin 3\nallocstall_normal 2\nallocstall_movable 5\nother 1\n"),
        );
        let mut sampler = sampler(&roots);
        let names: Vec<&str> = sampler.series().iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["total", "dirty", "page_in", "allocation_stalls"]);
        for _ in 0..2 {
            let mut values = Vec::new();
            sampler.sample(&mut values).expect("sampled");
            assert_eq!(values, [102400.0, 7168.0, 3072.0, 7.0]);
        }
    }

    #[test]
    fn a_missing_file_degrades_and_two_are_an_absence() {
        let (_folder, roots) = host(Some("MemTotal:  100 kB\n"), None);
        assert!(
            matches!(sampler(&roots).status(), Status::Degraded(why) if why.contains("vmstat"))
        );
        let (_folder, roots) = host(None, None);
        let mut sampler = sampler(&roots);
        assert!(matches!(sampler.status(), Status::Absent(why) if why.contains("meminfo")));
        assert!(sampler.sample(&mut Vec::new()).is_err());
    }

    #[test]
    fn a_key_that_vanishes_leaves_a_missing_value() {
        let (folder, roots) = host(Some("MemTotal:  100 kB\nDirty:   7 kB\n"), None);
        let mut sampler = sampler(&roots);
        fs::write(folder.path().join("meminfo"), "MemTotal:  100 kB\n").expect("written");
        let mut values = Vec::new();
        sampler.sample(&mut values).expect("sampled");
        assert!(values[1].is_nan());
    }

    #[test]
    fn every_mapping_names_a_declared_series() {
        for (key, name, _) in MEMINFO.iter().chain(&VMSTAT) {
            assert!(DOC.series.iter().any(|doc| doc.name == *name), "{key} goes to {name}");
        }
    }
}
