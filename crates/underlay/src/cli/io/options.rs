//! The options of `underlay io`, and which of them contradict each other.

use crate::cli::arrival_process::arrival_process;
use crate::cli::complaints::Complaints;
use crate::cli::whole_number::whole_number;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use underlay_blockio::Caching;
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_workload::arrivals::Arrivals;
use underlay_workload::block::IoProfile;
use underlay_workload::block::steady_state::{ROUNDS_MAX, WINDOW_ROUNDS};

/// A load and where to put it.
#[derive(Debug, Args)]
pub struct LoadArguments {
    /// A built-in load, or a profile file.
    #[arg(required = true)]
    pub profile: Option<String>,
    /// Folders, files or block devices; the load runs on all of them at once.
    #[arg(required = true)]
    pub targets: Vec<PathBuf>,

    /// Size of a created file, or how much of an existing file or device to use.
    #[arg(long, help_heading = "Targets")]
    pub size: Option<Bytes>,
    /// Keep the created files.
    #[arg(long, help_heading = "Targets")]
    pub keep: bool,
    /// Allow the content of this target to be destroyed. Repeat for each target.
    #[arg(long, value_name = "TARGET", help_heading = "Targets")]
    pub destroy: Vec<PathBuf>,
    /// Fill existing targets before the load, so that no unwritten blocks are read.
    #[arg(long, help_heading = "Targets")]
    pub fill: bool,
    /// Use the page cache: the results then include memory speed.
    #[arg(long, help_heading = "Targets")]
    pub buffered: bool,

    /// Threads per target instead of the profile's.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub threads: Option<u32>,
    /// Requests in flight per thread instead of the profile's.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub queue_depth: Option<u32>,
    /// Open loop: start this many requests per second and target, regardless of completions.
    #[arg(long, value_name = "PER_SECOND", conflicts_with_all = ["max", "curve"], help_heading = "Load")]
    pub rate: Option<f64>,
    /// Arrival process of --rate or --curve [default: poisson].
    #[arg(long, value_parser = arrival_process(), help_heading = "Load")]
    pub arrivals: Option<Arrivals>,
    /// Closed loop: drop the profile's rates.
    #[arg(long, help_heading = "Load")]
    pub max: bool,
    /// Sizes of requests: "8KiB", or a mix "8KiB:90,32KiB:10".
    #[arg(long, value_name = "SIZES", help_heading = "Load")]
    pub block_size: Option<String>,
    /// Share of reads.
    #[arg(long, value_name = "PERCENT", help_heading = "Load")]
    pub read_percent: Option<f64>,
    /// Share of requests at random offsets; the rest is sequential.
    #[arg(long, value_name = "PERCENT", help_heading = "Load")]
    pub random_percent: Option<f64>,
    /// Zipf distribution of random offsets, with this exponent.
    #[arg(long, value_name = "EXPONENT", conflicts_with = "zones", help_heading = "Load")]
    pub zipf: Option<f64>,
    /// Hot spots: percent of space and of accesses, "5/95,10/4,85/1".
    #[arg(long, value_name = "ZONES", help_heading = "Load")]
    pub zones: Option<String>,
    /// Flush after this many writes of a thread.
    #[arg(long, value_name = "WRITES", conflicts_with = "write_through", help_heading = "Load")]
    pub flush_every: Option<u32>,
    /// Every write goes through volatile caches (RWF_DSYNC).
    #[arg(long, help_heading = "Load")]
    pub write_through: bool,
    /// LZ4 compression ratio of each written 4 KiB block, 1 to 40.
    #[arg(long, value_name = "RATIO", help_heading = "Load")]
    pub compress_ratio: Option<f64>,
    /// Share of written 4 KiB blocks that are duplicates.
    #[arg(long, value_name = "PERCENT", help_heading = "Load")]
    pub duplicate_percent: Option<f64>,

    /// Duration of the measured load.
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Procedure")]
    pub duration: Nanos,
    /// Load before the measurement.
    #[arg(long, value_name = "TIME", default_value = "2s", help_heading = "Procedure")]
    pub warm_up: Nanos,
    /// Write the working set sequentially this many times first (SNIA: 2).
    #[arg(long, value_name = "TIMES", default_value_t = 0, help_heading = "Procedure")]
    pub precondition: u32,
    /// Repeat rounds of --duration until five are steady by SNIA's criteria; report those five.
    #[arg(long, conflicts_with = "curve", help_heading = "Procedure")]
    pub steady_state: bool,
    /// Stop after this many rounds of --steady-state [default: 25].
    #[arg(long, value_name = "N", help_heading = "Procedure")]
    pub rounds_max: Option<u32>,
    /// Measure the maximum rate, then 10 to 120 % of it in an open loop.
    #[arg(long, help_heading = "Procedure")]
    pub curve: bool,

    /// Mark each written block; check it whenever it is read, and check all blocks at the end.
    #[arg(long, help_heading = "Verification")]
    pub verify: bool,
    /// Log writes, acknowledgements and flushes in this new file, for `underlay io verify` after a crash.
    #[arg(long, value_name = "FILE", requires = "verify", help_heading = "Verification")]
    pub journal: Option<PathBuf>,
    /// Make the journal survive a power cut of this host (slower).
    #[arg(long, requires = "journal", help_heading = "Verification")]
    pub journal_durable: bool,

    /// Count failed requests instead of stopping at the first.
    #[arg(long, help_heading = "Procedure")]
    pub continue_on_error: bool,
    /// Spin instead of sleeping for this long before an open-loop request is due: exact, but uses a processor.
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Procedure")]
    pub spin: Nanos,
    /// Worker threads per job and target; by default up to one per processor.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Procedure")]
    pub workers: u32,
    /// Seed of addresses, sizes, arrivals and content.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        help_heading = "Procedure",
        value_parser = whole_number,
        allow_negative_numbers = true
    )]
    pub seed: u64,

    /// Write all measurements to this new record.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub record: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

impl LoadArguments {
    /// Where the page cache is.
    pub fn caching(&self) -> Caching {
        if self.buffered { Caching::Buffered } else { Caching::Direct }
    }

    /// The seed.
    pub fn root(&self) -> RootSeed {
        RootSeed(self.seed)
    }

    /// Whether anything is written to the targets.
    pub fn writes(&self, profile: &IoProfile) -> bool {
        profile.writes() || self.fill || self.precondition > 0
    }

    /// Notes what contradicts itself, and what would be taken without effect.
    pub fn check(&self, profile: &IoProfile, complaints: &mut Complaints) {
        self.check_ranges(complaints);
        self.check_effects(profile, complaints);
        self.check_verifying(profile, complaints);
    }

    fn check_ranges(&self, complaints: &mut Complaints) {
        let second = Nanos::from_secs(1);
        if self.duration < second || self.duration > Nanos::from_secs(30 * 86_400) {
            complaints.add("--duration must lie in 1 s to 30 days");
        }
        if self.warm_up > Nanos::from_secs(86_400) {
            complaints.add("--warm-up must not exceed a day");
        }
        if self.spin > Nanos::from_millis(10) {
            complaints.add("--spin must not exceed 10 ms");
        }
        if (self.rounds_max() as usize) < WINDOW_ROUNDS {
            complaints.add("--rounds-max must be 5 or more: steady state is judged over 5 rounds");
        }
        if self.precondition > 100 {
            complaints.add("--precondition must lie in 0 to 100");
        }
    }

    /// Who gives an option expects it to do something.
    fn check_effects(&self, profile: &IoProfile, complaints: &mut Complaints) {
        let name = &profile.name;
        let leave_out = "or leave it out";
        if self.rounds_max.is_some() && !self.steady_state {
            complaints.add_with_hint(
                "--rounds-max has no effect without --steady-state",
                format!("add --steady-state, {leave_out}"),
            );
        }
        let open = self.curve || profile.jobs.iter().any(|job| job.rate_per_second().is_some());
        if self.arrivals.is_some() && self.rate.is_none() && !self.curve {
            let own = if open { "; the profile's rates define their own arrivals" } else { "" };
            complaints.add_with_hint(
                format!("--arrivals has no effect without --rate or --curve{own}"),
                format!("add --rate, {leave_out}"),
            );
        }
        if self.spin > Nanos::ZERO && !open {
            complaints.add_with_hint(
                "--spin has no effect in a closed loop, whose requests have no due time",
                format!("add --rate, {leave_out}"),
            );
        }
        let streams = || profile.jobs.iter().flat_map(|job| &job.workload.streams);
        if streams().all(|stream| stream.random_share == 0.0) {
            for (option, given) in
                [("--zipf", self.zipf.is_some()), ("--zones", self.zones.is_some())]
            {
                if given {
                    complaints.add_with_hint(
                        format!("{option} has no effect: all requests of `{name}` are sequential"),
                        format!("add --random-percent, {leave_out}"),
                    );
                }
            }
        }
        let options = [
            ("--flush-every", self.flush_every.is_some()),
            ("--write-through", self.write_through),
        ];
        for (option, given) in options {
            if given && !profile.writes() {
                complaints.add_with_hint(
                    format!("{option} has no effect: `{name}` only reads"),
                    format!("choose a load that writes, {leave_out}"),
                );
            }
        }
        // What is created is filled, and reads of it find that content.
        let created = self.targets.iter().any(|target| target.is_dir());
        let options = [
            ("--compress-ratio", self.compress_ratio.is_some()),
            ("--duplicate-percent", self.duplicate_percent.is_some()),
        ];
        for (option, given) in options {
            if given && !created && !self.writes(profile) {
                complaints.add_with_hint(
                    format!(
                        "{option} has no effect: nothing is written, because `{name}` only reads"
                    ),
                    format!("add --fill, which writes the targets once, {leave_out}"),
                );
            }
        }
    }

    fn check_verifying(&self, profile: &IoProfile, complaints: &mut Complaints) {
        if self.verify && profile.content.duplicate_share > 0.0 {
            complaints.add_with_hint(
                "verified blocks contain their own address, so none can be a duplicate",
                "add --duplicate-percent 0",
            );
        }
        if self.verify && profile.content.compress_ratio > 25.0 {
            complaints.add("verified blocks cannot be compressed more than 25 times");
        }
        if self.verify && !profile.writes() && !self.fill && self.destroy.is_empty() {
            // Files of our own are filled; what is only read has no marks.
            let created = self.targets.iter().all(|target| target.is_dir());
            if !created {
                complaints.add_with_hint(
                    format!("`{}` writes nothing to verify", profile.name),
                    "add --fill, which writes the targets once, or choose a load that writes",
                );
            }
        }
    }

    /// Rounds until a steady state is given up.
    pub fn rounds_max(&self) -> u32 {
        self.rounds_max.unwrap_or(ROUNDS_MAX)
    }

    /// How requests of an open loop are spread.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals.unwrap_or(Arrivals::Poisson)
    }

    /// The measured time.
    pub fn measure(&self) -> Duration {
        self.duration.into()
    }
}
