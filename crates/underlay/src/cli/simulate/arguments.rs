//! Arguments of `underlay simulate`. What they lead to is decided elsewhere.

use std::path::PathBuf;

use clap::Args;

use super::design;
use crate::cli::whole_number::whole_number;

/// Arguments of `underlay simulate`.
#[derive(Debug, Args)]
#[command(
    after_help = "All results are simulated: they show what the storage model does in virtual time.\n\nExamples:\n  \
    underlay simulate --study storagereview --html comparison.html\n  underlay simulate --design vmware-pm1725a \
    --workload oracle --volumes 8 --threads 24\n  underlay simulate --design hdd --workload 4k-random-read --rate 60 \
    --seconds 30"
)]
#[group(id = "subject", required = true, multiple = false, args = ["study", "design"])]
pub struct Arguments {
    /// A publication's block experiments (kingston, vmware, storagereview, or all), or a study with a block load: built in, such
    /// as `kingston/kh1`, or a file.
    #[arg(long, value_name = "NAME")]
    pub(super) study: Option<String>,
    /// A built-in design (`underlay list designs`) or device (`underlay list devices`), or the file of one.
    #[arg(long, value_name = "DESIGN")]
    pub(super) design: Option<String>,
    #[command(flatten)]
    pub(super) load: design::Load,
    /// Limit of measured requests per run or per point of a curve; with --study, each step of a fit uses a quarter.
    /// Default: 1000000 for a run, 200000 per point of a curve, 400000 with --study.
    #[arg(long, value_parser = whole_number, allow_negative_numbers = true)]
    pub(super) requests: Option<u64>,
    /// Root seed.
    #[arg(long, default_value_t = 1, value_parser = whole_number, allow_negative_numbers = true)]
    pub(super) seed: u64,
    /// Also write the comparison as one self-contained HTML file (with --study).
    #[arg(long, value_name = "FILE", conflicts_with = "design")]
    pub(super) html: Option<PathBuf>,
    /// Print as JSON.
    #[arg(long)]
    pub(super) json: bool,
}
