//! The test beds and experiments of the three publications.

use super::testbed::{Experiment, Load, Prefill, Shape, System, Testbed};
use underlay_core::Bytes;

/// Disks per host of the HCIBench runs; four requests in flight on each make 32 per host.
const HCIBENCH_DISKS: u32 = 8;
/// The write buffer with which destaging is steady within a second.
const STEADY_BUFFER: Bytes = Bytes::from_mib(256);

/// All test beds.
pub fn testbeds() -> Vec<Testbed> {
    vec![
        kingston_drives(),
        kingston(
            "kingston-nvme",
            "nvme",
            4,
            "kingston-nvme-vsan",
            "Kingston, NVMe bed: HCIBench on vSAN",
        ),
        kingston(
            "kingston-sata",
            "sata",
            3,
            "kingston-sata-5200eco-vsan",
            "Kingston, SATA bed (5200 ECO): HCIBench on vSAN",
        ),
        vmware(),
        storagereview(),
    ]
}

fn kingston_drives() -> Testbed {
    let system = System::Drives { numerator: "dc1500m-1920", denominator: "5200eco-1920" };
    let experiment = |id, workload, working_set| Experiment {
        id,
        variant: "dc1500m-over-5200eco",
        system,
        load: Load {
            workload,
            volumes: 1,
            threads: 1,
            queue_depth: 32,
            working_set,
            prefill: Prefill::Nothing,
        },
        shape: Shape::Closed,
    };
    Testbed {
        name: "kingston-drives",
        publication: "kingston",
        title: "Kingston, single drives: DC1500M over Micron 5200 ECO, fio at queue depth 32",
        fitted: None,
        assumptions: &[
            "The whole drives are in use. Only ratios are published; for sequential loads, the larger of read and \
             write.",
        ],
        experiments: vec![
            experiment("KFa", "4k-random-75-25", Bytes::from_gib(64)),
            experiment("KFb", "256k-sequential", Bytes::from_gib(64)),
        ],
    }
}

fn kingston(
    name: &'static str,
    variant: &'static str,
    hosts: u32,
    design: &'static str,
    title: &'static str,
) -> Testbed {
    let experiment = |id, workload, queue_depth| Experiment {
        id,
        variant,
        system: System::Cluster { design, write_buffer: Some(STEADY_BUFFER) },
        load: Load {
            workload,
            volumes: hosts * HCIBENCH_DISKS,
            threads: 1,
            queue_depth,
            working_set: Bytes::from_gib(10),
            prefill: Prefill::Nothing,
        },
        shape: Shape::Closed,
    };
    Testbed {
        name,
        publication: "kingston",
        title,
        fitted: Some(("KH1-4k", "iops")),
        assumptions: &[
            "32 requests in flight per host, 64 at 64 KiB: from rate x latency of the published rows on both beds \
             (\"6 machines, queue depth 8, 4 threads\" is stated for all).",
            "8 disks of 10 GiB per host. The runs lasted 30 minutes, so the steady state of destaging, reached quickly \
             with a write buffer of 256 MiB per disk group.",
        ],
        experiments: vec![
            experiment("KH1-4k", "4k-random-70-30", 4),
            experiment("KH1-64k", "64k-random-70-30", 8),
            experiment("KH2-128k", "128k-sequential-read", 4),
            experiment("KH3-128k", "128k-sequential-write", 4),
        ],
    }
}

fn vmware() -> Testbed {
    let experiment = |id, workload| Experiment {
        id,
        variant: "vmware",
        system: System::Cluster { design: "vmware-pm1725a", write_buffer: None },
        load: Load {
            workload,
            volumes: 32,
            threads: 8,
            queue_depth: 1,
            working_set: Bytes::from_mib(256),
            prefill: Prefill::Everything,
        },
        shape: Shape::Closed,
    };
    Testbed {
        name: "vmware",
        publication: "vmware",
        title: "VMware, PM1725a over S3610: HCIBench on vSAN 6.7",
        fitted: Some(("V1-1", "iops")),
        assumptions: &[
            "The 5 GB disks fit completely in the write buffer; 256 MiB of each are used here, which also fit.",
        ],
        experiments: vec![
            experiment("V1-1", "8k-random-70-30"),
            experiment("V1-2", "8k-random-90-10"),
            experiment("V1-3", "64k-sequential-90-10"),
        ],
    }
}

fn storagereview() -> Testbed {
    let corners = [
        ("SR3-4k-read", "4k-random-read", 128),
        ("SR4-4k-write", "4k-random-write", 64),
        ("SR5-64k-read", "64k-sequential-read", 16),
        ("SR6-64k-write", "64k-sequential-write", 8),
    ];
    let systems = [("raw", "storagereview-optane"), ("dr", "storagereview-optane-reduced")];
    let experiments = systems.into_iter().flat_map(|(variant, design)| {
        corners.into_iter().map(move |(id, workload, threads)| Experiment {
            id,
            variant,
            system: System::Cluster { design, write_buffer: Some(STEADY_BUFFER) },
            load: Load {
                workload,
                volumes: 24,
                threads,
                queue_depth: 1,
                working_set: Bytes::from_gib(20),
                prefill: Prefill::Nothing,
            },
            shape: Shape::Curve,
        })
    });
    Testbed {
        name: "storagereview",
        publication: "storagereview",
        title: "StorageReview, P4800X over P4500: vdbench curves on vSAN 6.7, without and with data reduction",
        fitted: Some(("SR3-4k-read", "peak-iops")),
        assumptions: &[
            "24 load machines with one disk each: the median of rate x latency / threads over the eight peaks.",
            "Network of 10 Gbit/s and one failure tolerated, see the design; working sets of 20 GiB per machine.",
            "The steady state of destaging, reached quickly with a write buffer of 256 MiB per disk group. Costs of data \
             reduction are assumed; data that is halved.",
        ],
        experiments: experiments.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::testbeds;
    use crate::experiments::System;

    #[test]
    fn every_experiment_is_published_and_names_what_exists() {
        for testbed in testbeds() {
            let numbers = underlay_study::published_numbers(testbed.publication)
                .expect("a known publication");
            for experiment in &testbed.experiments {
                let known = numbers
                    .iter()
                    .any(|n| n.experiment == experiment.id && n.variant == experiment.variant);
                assert!(known, "{} {}", experiment.id, experiment.variant);
                assert!(
                    underlay_study::find_io_profile(experiment.load.workload).is_some(),
                    "{}",
                    experiment.load.workload
                );
                if let System::Cluster { design, .. } = experiment.system {
                    assert!(underlay_study::builtin_datastore(design).is_some(), "{design}");
                }
            }
            if let Some((id, _)) = testbed.fitted {
                assert!(testbed.experiments.iter().any(|experiment| experiment.id == id));
            }
        }
    }
}
