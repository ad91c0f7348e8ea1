//! Work alongside the users: what else uses the volumes, when, and in which designs.
//!
//! Part of the plan, therefore without serde. Names of volumes were checked against every design concerned when
//! the plan was made.

use underlay_core::{Bytes, Nanos};
use underlay_workload::block::IoProfile;

use crate::fault_plan::FaultPhase;

/// Work that runs beside the users in every run of some designs.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundPlan {
    /// What records and pages call it; unique in the study.
    pub name: String,
    /// What it does.
    pub work: BackgroundWork,
    /// When it begins, since the beginning of the phase.
    pub at: Nanos,
    /// The phase.
    pub phase: FaultPhase,
    /// The rung, where the phase comes once per rung.
    pub users: Option<u32>,
    /// After this time it is stopped; `None` = when it is done, or the load has ended.
    pub lasts: Option<Nanos>,
    /// The designs that have it, by position.
    pub designs: Vec<usize>,
    /// Line of the study file.
    pub line: usize,
}

/// What it does.
#[derive(Clone, Debug, PartialEq)]
pub enum BackgroundWork {
    /// A block load on a file of its own on each volume.
    Load {
        /// What is asked.
        profile: Box<IoProfile>,
        /// On which volumes.
        volumes: Vec<String>,
        /// Size of each file.
        working_set: Bytes,
    },
    /// A copy of all blocks of a volume in large pieces, as a replication of a snapshot makes it.
    Copy(CopyPlan),
}

/// A copy of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPlan {
    /// The volume that is read, from its first block to its last.
    pub from: String,
    /// The volume that the copy is written to; `None` = it leaves the datastore.
    pub to: Option<String>,
    /// Size of the file on the volume that it is written to; written over from the beginning when full.
    pub space: Bytes,
    /// Size of a request.
    pub block_size: Bytes,
    /// Requests in flight.
    pub queue_depth: u32,
    /// Most bytes per second; `None` = as fast as it goes.
    pub bytes_per_second: Option<u64>,
}

impl BackgroundWork {
    /// In words.
    pub fn described(&self) -> String {
        match self {
            BackgroundWork::Load { profile, volumes, working_set } => format!(
                "the block load {} on {} of {}",
                profile.name,
                working_set,
                volumes.join(", ")
            ),
            BackgroundWork::Copy(copy) => {
                let to = match &copy.to {
                    Some(volume) => format!("to {volume}"),
                    None => "out of the datastore".to_string(),
                };
                let rate = match copy.bytes_per_second {
                    Some(rate) => format!(", at most {}", megabytes_per_second(rate)),
                    None => String::new(),
                };
                format!(
                    "{} is copied {to} in blocks of {}, {} in flight{rate}",
                    copy.from, copy.block_size, copy.queue_depth
                )
            }
        }
    }

    /// What it takes of each volume: files of its own.
    pub fn space(&self) -> Vec<(&str, Bytes)> {
        match self {
            BackgroundWork::Load { volumes, working_set, .. } => {
                volumes.iter().map(|volume| (volume.as_str(), *working_set)).collect()
            }
            BackgroundWork::Copy(copy) => {
                copy.to.iter().map(|volume| (volume.as_str(), copy.space)).collect()
            }
        }
    }
}

/// A rate in the unit in which rates are reported.
fn megabytes_per_second(bytes_per_second: u64) -> String {
    let text = format!("{:.3}", bytes_per_second as f64 / 1e6);
    format!("{} MB/s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::{BackgroundWork, CopyPlan};
    use underlay_core::Bytes;

    #[test]
    fn a_limit_is_told_in_the_unit_of_what_is_reported() {
        let text = |rate| {
            let copy = CopyPlan {
                from: "data".to_string(),
                to: None,
                space: Bytes(0),
                block_size: Bytes::from_mib(1),
                queue_depth: 4,
                bytes_per_second: rate,
            };
            BackgroundWork::Copy(copy).described()
        };
        let unlimited = "data is copied out of the datastore in blocks of 1 MiB, 4 in flight";
        assert_eq!(text(None), unlimited);
        assert_eq!(text(Some(20_000_000)), format!("{unlimited}, at most 20 MB/s"));
        assert_eq!(text(Some(1 << 20)), format!("{unlimited}, at most 1.049 MB/s"));
        assert_eq!(text(Some(50_000)), format!("{unlimited}, at most 0.05 MB/s"));
    }
}
