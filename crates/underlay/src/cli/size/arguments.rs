//! Arguments of `underlay size`. Which of them fit together is decided where they are used.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use underlay_core::Bytes;
use underlay_simulation::databases::Vary;
use underlay_study::EngineKind;
use underlay_workload::objective::Objective;

use crate::cli::target_options::TargetOptions;
use crate::cli::whole_number::whole_number;

/// Arguments of `underlay size`.
#[derive(Debug, Args)]
#[command(
    after_help = "Quantities of --vary: hosts, disk-groups (of a host), capacity-drives (of a disk \
    group) and ftt take numbers, cache-device and capacity-device take names of devices.\n\nExit \
    code 11 says that no design of the family meets the target.\n\nExamples:\n  underlay size \
    --workload tpcc --warehouses 1000 --memory 64GiB --cores 16 --rate 800 --slo p99=10ms --design \
    kingston-nvme-vsan --vary hosts=3..8 --vary capacity-drives=2..6\n  underlay size --record \
    record.sqlite --rate 500 --slo p95=5ms --design six-hosts --vary hosts=3..6 --vary \
    cache-device=dc1500m-960,p4800x-375 --json"
)]
pub struct Arguments {
    /// What users do, with --warehouses and --memory.
    #[arg(long, value_name = "WORKLOAD")]
    pub(super) workload: Option<DescribedWorkload>,
    /// Size of the database for --workload tpcc.
    #[arg(long, value_name = "N", value_parser = whole_number)]
    pub(super) warehouses: Option<u64>,
    /// Memory of the database server for --workload: a quarter of it (PostgreSQL) or three quarters
    /// (MariaDB) for its own cache.
    #[arg(long, value_name = "SIZE")]
    pub(super) memory: Option<Bytes>,
    /// The database server for --workload [default: postgresql].
    #[arg(long, value_name = "ENGINE")]
    pub(super) engine: Option<EngineKind>,
    /// The workload, memory and volumes of a study.
    #[arg(long, value_name = "STUDY")]
    pub(super) study: Option<String>,
    /// Those of a record, whose runs also say what transactions cost.
    #[arg(long, value_name = "RECORD")]
    pub(super) record: Option<PathBuf>,
    /// The design of the record that was measured; by default the first of the study.
    #[arg(long, value_name = "NAME", requires = "record")]
    pub(super) measured: Option<String>,
    /// What the storage of that design is like: a design, a device, or a file, such as one that
    /// `underlay calibrate` wrote. Needed if it is real storage.
    #[arg(long, value_name = "DESIGN", requires = "record")]
    pub(super) measured_as: Option<String>,
    /// What transactions cost, as `underlay profile` writes it.
    #[arg(long, value_name = "FILE")]
    pub(super) demands: Option<PathBuf>,
    /// Cores of the server without a CPU limit. Default: those of this host, or of the host that made
    /// the record.
    #[arg(long, value_name = "N", value_parser = whole_number)]
    pub(super) cores: Option<u64>,
    /// The cluster that is varied: another design of the study, a built-in one, or a file. Default:
    /// the first design of the study.
    #[arg(long, value_name = "DESIGN")]
    pub(super) design: Option<String>,
    /// What varies between the designs: hosts=3..8, capacity-drives=2,4,6. May be repeated.
    #[arg(long, value_name = "QUANTITY=VALUES")]
    pub(super) vary: Vec<Vary>,
    /// Transactions of all types per second, an open loop.
    #[arg(long, value_name = "PER-SECOND", required = true, allow_negative_numbers = true)]
    pub(super) rate: f64,
    /// The latency target of the workload's main transactions, New-Order of TPC-C: p99=10ms. Response
    /// times count from the intended start.
    #[arg(long, value_name = "QUANTILE=TIME", required = true)]
    pub(super) slo: Option<Objective>,
    #[command(flatten)]
    pub(super) target: TargetOptions,
    /// Capacity devices may be this full, in percent, when the volumes are full, including the copies
    /// of their policy. Above 80 % a cluster rebalances.
    #[arg(long, value_name = "PERCENT", default_value_t = 80.0, allow_negative_numbers = true)]
    pub(super) full_at_most: f64,
    /// Simulate every design, also those that contain one which meets the target.
    #[arg(long)]
    pub(super) all: bool,
    /// Print as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Workloads that a few options describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DescribedWorkload {
    /// Order entry derived from TPC-C.
    Tpcc,
}
