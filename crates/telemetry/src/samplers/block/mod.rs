//! Block devices: those under the volumes of the run, and the disks of the host beneath them.
//!
//! * **Reads** `/proc/diskstats`, one `pread`; once at the start `/sys/block/*/queue`.
//! * **Emits** all fields raw per volume that has a device to itself (`volume.<volume>.*`) and per disk
//!   (`device.<device>.*`).
//! * **Costs** about 32 us per tick.
//! * **Needs** the device of each volume in `/proc/diskstats`: a volume on an overlay or network file
//!   system has none, and the status says so.
//!
//! Disks of the host (everything that is not loop, RAM, floppy or optical) are recorded in addition to the volumes
//! because an emulated volume ends on one of them: that is how a host-limited run shows. The kernel counts per
//! device, not per folder. A volume that is a folder on a file system, or that shares its device with another one,
//! therefore has no series of its own: the device beneath is recorded once, under its name, and a note says which
//! volumes are on it. It attributes nothing to one of them: control groups count per device and group too, and the
//! server writes its log and its data from the same processes. It emits no `%util`: with parallel devices
//! `io_ticks` says nothing about being saturated. Use the queue length, difference of `queue_time` per difference
//! of time, and time per operation.

mod device;
mod parse;

pub(crate) use parse::{FIELDS, Line, lines};

use crate::declare::{SamplerDoc, SeriesDoc};
use crate::identity::{Identity, identify};
use crate::kernel_file::KernelFile;
use crate::source::{SampleError, Sampler};
use crate::targets::{Roots, VolumeTarget};
use std::collections::BTreeMap;
use underlay_core::series::Layer;

const SECTOR: &str = "512 B whatever the device's sector is";
const MILLISECOND: &str = "1 ms: useless per operation on a fast device, sound as a sum";

/// The declaration: the fields of one device, in the order of the kernel's text.
pub(crate) const DOC: SamplerDoc = SamplerDoc {
    name: "block",
    layer: Layer::Block,
    reads: "/proc/diskstats",
    costs: "32 us",
    needs: "a block device under each volume",
    traps: &[
        "io_ticks (the base of %util) counts time with any operation outstanding: it does not show saturation",
        "queue length = difference of queue_time / difference of time; latency = difference of <operation>.time / difference of <operation>.ios",
        "a loop device and the disk beneath it both count the same write",
        "the kernel counts per device: a volume that is a folder or shares its device has no series of its own",
        "device.<device>.* counts all I/O of the device, for all volumes and all programs",
    ],
    series: &[
        SeriesDoc::counter(
            "<kind>.<name>.read.ios",
            "ios",
            "reads completed; <kind>.<name> is volume.<volume> or device.<device>",
        ),
        SeriesDoc::counter(
            "<kind>.<name>.read.merges",
            "ios",
            "reads merged into another before the device",
        ),
        SeriesDoc::counter("<kind>.<name>.read.sectors", "sectors", "sectors read").quantum(SECTOR),
        SeriesDoc::counter(
            "<kind>.<name>.read.time",
            "ms",
            "time of all reads, from queueing to completion",
        )
        .quantum(MILLISECOND),
        SeriesDoc::counter("<kind>.<name>.write.ios", "ios", "writes completed"),
        SeriesDoc::counter("<kind>.<name>.write.merges", "ios", "writes merged into another"),
        SeriesDoc::counter("<kind>.<name>.write.sectors", "sectors", "sectors written")
            .quantum(SECTOR),
        SeriesDoc::counter(
            "<kind>.<name>.write.time",
            "ms",
            "time of all writes, from queueing to completion",
        )
        .quantum(MILLISECOND),
        SeriesDoc::gauge(
            "<kind>.<name>.in_flight",
            "ios",
            "operations queued or at the device at the instant of reading",
        ),
        SeriesDoc::counter(
            "<kind>.<name>.io_ticks",
            "ms",
            "time with at least one operation outstanding",
        )
        .quantum("a tick of the kernel"),
        SeriesDoc::counter(
            "<kind>.<name>.queue_time",
            "ms",
            "operations outstanding integrated over time",
        )
        .quantum(MILLISECOND),
        SeriesDoc::counter("<kind>.<name>.discard.ios", "ios", "discards completed"),
        SeriesDoc::counter("<kind>.<name>.discard.merges", "ios", "discards merged into another"),
        SeriesDoc::counter("<kind>.<name>.discard.sectors", "sectors", "sectors discarded")
            .quantum(SECTOR),
        SeriesDoc::counter("<kind>.<name>.discard.time", "ms", "time of all discards")
            .quantum(MILLISECOND),
        SeriesDoc::counter(
            "<kind>.<name>.flush.ios",
            "ios",
            "flushes completed (not counted for partitions)",
        ),
        SeriesDoc::counter("<kind>.<name>.flush.time", "ms", "time of all flushes")
            .quantum(MILLISECOND),
    ],
};

/// A host with more disks than this has the others left out, and the status says so.
const DISKS_MAX: usize = 32;

/// One observed device: the key in diskstats and where its values go.
struct Observed {
    device: String,
    /// Number of fields this kernel has: 11, 15 or 17.
    fields: usize,
    first: usize,
}

/// The sampler.
struct Block {
    identity: Identity,
    file: Option<KernelFile>,
    observed: Vec<Observed>,
    facts: Vec<String>,
}

/// The sampler of these volumes.
pub(crate) fn sampler(roots: &Roots, volumes: &[VolumeTarget]) -> Box<dyn Sampler> {
    let mut block = Block {
        identity: Identity::available(&DOC, Vec::new()),
        file: None,
        observed: Vec::new(),
        facts: Vec::new(),
    };
    let mut gaps = Vec::new();
    match KernelFile::open(roots.proc.join("diskstats")) {
        Ok(mut file) => {
            match file.text() {
                Ok(text) => block.choose(roots, volumes, text, &mut gaps),
                Err(error) => gaps.push(error.to_string()),
            }
            block.file = Some(file);
        }
        Err(error) => gaps.push(error.to_string()),
    }
    block.identity = Identity::with_gaps(&DOC, block.identity.series, &gaps);
    Box::new(block)
}

impl Block {
    fn choose(
        &mut self,
        roots: &Roots,
        volumes: &[VolumeTarget],
        text: &str,
        gaps: &mut Vec<String>,
    ) {
        let mut by_device: BTreeMap<String, Vec<&VolumeTarget>> = BTreeMap::new();
        for volume in volumes {
            match device::of_place(roots, &volume.place) {
                Ok(device) => by_device.entry(device).or_default().push(volume),
                Err(reason) => gaps.push(format!("volume {} has no device: {reason}", volume.name)),
            }
        }
        let mut shared = Vec::new();
        for (device, volumes) in &by_device {
            let names: Vec<&str> = volumes.iter().map(|volume| &*volume.name).collect();
            let Some(line) = lines(text).find(|line| line.device == device) else {
                let names = names.join(", ");
                gaps.push(format!(
                    "volume {names} has no device: {device} is not in /proc/diskstats"
                ));
                continue;
            };
            match volumes[..] {
                [volume] if volume.owns_device => {
                    self.observe(roots, &format!("volume.{}", volume.name), &line);
                }
                _ => {
                    self.observe(roots, &format!("device.{device}"), &line);
                    self.facts.push(format!(
                        "on device {device}, which is shared: {}; device.{device}.* counts all I/O of the device, for \
                         these volumes and anything else",
                        names.join(", ")
                    ));
                    shared.push(device);
                }
            }
        }
        let disks = lines(text).filter(|line| {
            device::is_disk(roots, line.device)
                && !shared.iter().any(|known| **known == line.device)
        });
        for (number, line) in disks.enumerate() {
            if number == DISKS_MAX {
                gaps.push(format!("only the first {DISKS_MAX} disks of the host are observed"));
                break;
            }
            self.observe(roots, &format!("device.{}", line.device), &line);
        }
    }

    fn observe(&mut self, roots: &Roots, prefix: &str, line: &Line<'_>) {
        let first = self.identity.series.len();
        let fields = line.values.len();
        let series = DOC.series[..fields].iter().zip(FIELDS);
        self.identity
            .series
            .extend(series.map(|(doc, field)| doc.named(format!("{prefix}.{field}"))));
        self.observed.push(Observed { device: line.device.to_string(), fields, first });
        self.facts.push(format!("{prefix}: {}", device::facts(roots, line.device)));
    }
}

impl Sampler for Block {
    identify!();

    fn sample(&mut self, values: &mut Vec<f64>) -> Result<(), SampleError> {
        let Some(file) = self.file.as_mut().filter(|_| !self.observed.is_empty()) else {
            return Err(self.identity.absence());
        };
        values.resize(self.identity.series.len(), f64::NAN);
        for line in lines(file.text()?) {
            for observed in self.observed.iter().filter(|observed| observed.device == line.device) {
                let slots = &mut values[observed.first..observed.first + observed.fields];
                for (slot, value) in slots.iter_mut().zip(line.values.iter()) {
                    *slot = *value as f64;
                }
            }
        }
        Ok(())
    }

    fn facts(&self) -> Vec<String> {
        self.facts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{DOC, FIELDS, sampler};
    use crate::source::Sampler;
    use crate::source::Status;
    use crate::targets::{Roots, VolumeTarget};
    use std::fs;
    use std::path::Path;

    const DISKSTATS: &str = "\
   7       3 loop3 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
 254       0 vda 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117
";

    fn host(folder: &Path) -> Roots {
        fs::write(folder.join("diskstats"), DISKSTATS).expect("written");
        let disk = folder.join("block/vda/queue");
        fs::create_dir_all(&disk).expect("made");
        fs::write(disk.join("scheduler"), "none [mq-deadline]\n").expect("written");
        fs::create_dir_all(folder.join("block/loop3/queue")).expect("made");
        Roots { proc: folder.to_path_buf(), sys: folder.to_path_buf() }
    }

    fn volume(name: &str, place: &str, owns_device: bool) -> VolumeTarget {
        VolumeTarget { name: name.to_string(), place: place.to_string(), owns_device }
    }

    /// The prefixes of all series, once each, in their order.
    fn prefixes(sampler: &dyn Sampler) -> Vec<&str> {
        let mut prefixes: Vec<&str> = sampler
            .series()
            .iter()
            .filter_map(|series| series.name.strip_suffix(".read.ios"))
            .collect();
        prefixes.dedup();
        prefixes
    }

    #[test]
    fn volumes_on_one_device_have_no_series_of_their_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let roots = host(folder.path());
        // Folders of a file system, as a path datastore has them.
        let folders = ["data", "wal"].map(|name| volume(name, "vda", false));
        let on_disk = sampler(&roots, &folders);
        assert_eq!(*on_disk.status(), Status::Available);
        assert_eq!(prefixes(&*on_disk), ["device.vda"], "once, not again as a disk of the host");
        let told = on_disk.facts().join("; ");
        assert!(told.contains("on device vda, which is shared: data, wal"), "{told}");

        // One folder by itself does not own the disk either.
        assert_eq!(prefixes(&*sampler(&roots, &folders[..1])), ["device.vda"]);

        // Two that say they own the same device cannot both be right.
        let twice = ["data", "wal"].map(|name| volume(name, "/dev/loop3", true));
        assert_eq!(prefixes(&*sampler(&roots, &twice)), ["device.loop3", "device.vda"]);
    }

    #[test]
    fn volumes_and_disks_are_observed_raw() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let roots = host(folder.path());
        let volumes = [volume("wal", "/dev/loop3", true)];
        let mut sampler = sampler(&roots, &volumes);
        assert_eq!(*sampler.status(), Status::Available);
        let mut values = Vec::new();
        sampler.sample(&mut values).expect("sampled");
        let value = |name: &str| {
            let index = sampler.series().iter().position(|series| series.name == name);
            values[index.expect("declared")]
        };
        assert_eq!(value("volume.wal.read.ios"), 1.0);
        assert_eq!(value("volume.wal.flush.time"), 17.0);
        assert_eq!(value("device.vda.queue_time"), 111.0);
        assert_eq!(sampler.series().len(), 2 * FIELDS.len(), "a loop device is not a disk");
        assert!(sampler.facts().iter().any(|fact| fact.contains("scheduler mq-deadline")));
    }

    #[test]
    fn a_lost_device_leaves_missing_values() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let roots = host(folder.path());
        let mut sampler = sampler(&roots, &[volume("data", "loop3", true)]);
        fs::write(folder.path().join("diskstats"), DISKSTATS.lines().nth(1).expect("two"))
            .expect("written");
        let mut values = Vec::new();
        sampler.sample(&mut values).expect("sampled");
        assert!(values[0].is_nan());
        assert_eq!(values[FIELDS.len()], 101.0);
    }

    #[test]
    fn a_volume_without_device_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let roots = host(folder.path());
        let sampler = sampler(&roots, &[volume("data", "nvme9n9", true)]);
        assert!(
            matches!(sampler.status(), Status::Degraded(why) if why.contains("volume data") && why.contains("nvme9n9"))
        );
    }

    #[test]
    fn fields_are_declared_in_their_order() {
        for (doc, field) in DOC.series.iter().zip(FIELDS) {
            assert!(doc.name.ends_with(field), "{} is {field}", doc.name);
        }
        assert_eq!(DOC.series.len(), FIELDS.len());
    }
}
