//! The options that change a study from the command line, shared by `run` and `check`.

use crate::cli::whole_number::whole_number;
use clap::Args;
use std::path::PathBuf;
use underlay_core::Nanos;
use underlay_study::{PlanOptions, Repeats, Scale, StudySize, TimeDilation, procedure_keys};

/// The options of the plain keys of `[procedure]`, between those that are declared here.
macro_rules! overrides {
    (
        [$($(#[doc = $doc:literal])+ $key:literal $field:ident: $type:ty = $kind:expr,
            plan $json:literal, of [$($load:ident),+], unused $unused:expr
            $(, option $option:literal $value:literal $help:literal)?;)*]
        first { $($first:tt)* }
        last { $($last:tt)* }
    ) => {
        /// What may be changed without editing the study.
        #[derive(Debug, Args)]
        pub struct Overrides {
            $($first)*
            $($(
                #[arg(long, value_name = $value, help = $help)]
                $field: Option<$type>,
            )?)*
            $($last)*
        }

        impl Overrides {
            /// The options for the planner.
            pub fn to_options(&self, out: Option<PathBuf>) -> PlanOptions {
                PlanOptions {
                    size: self.laptop.then_some(StudySize::Laptop),
                    scale: self.scale,
                    repeats: self.repeats,
                    users: self.users.clone(),
                    $($($field: { let _ = $option; self.$field },)?)*
                    seed: self.seed,
                    designs: self.designs.clone(),
                    server_bin: self.server_bin.clone(),
                    out,
                }
            }
        }
    };
}

procedure_keys! { overrides!
    first {
        /// The study's laptop size: use the values of its [laptop] table. Other options take precedence.
        #[arg(long)]
        laptop: bool,
        /// Similarity scale: cores, users, warehouses, memory and rate caps divided by k.
        #[arg(long, value_name = "1/k")]
        scale: Option<Scale>,
        /// Runs per design: a number, or "until 5 %" for repeats until the main ratio is that precise.
        #[arg(long, value_name = "N")]
        repeats: Option<Repeats>,
        /// The ladder of virtual users.
        #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
        users: Option<Vec<u32>>,
    }
    last {
        /// Root seed of data, transactions and device models.
        #[arg(long, value_name = "N", value_parser = whole_number, allow_negative_numbers = true)]
        seed: Option<u64>,
        /// Only these designs of the study.
        #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',')]
        designs: Option<Vec<String>>,
        /// Folder with the database server's programs.
        #[arg(long, value_name = "DIR")]
        server_bin: Option<PathBuf>,
    }
}
