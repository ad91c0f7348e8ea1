//! A complete block load: concurrent workloads on a target, how many requests of each are in flight, how
//! fast they come, and what their bytes are like.
//!
//! Values only. Where profiles come from, and how they are written, is the `study` crate's.

use super::content::ContentSpec;
use super::description::{BlockWorkload, Concurrency, FlushPolicy, Pace, WorkloadProblem};
use underlay_core::Bytes;
use underlay_core::words;

words! {
    /// The origin of a profile's numbers.
    pub enum Provenance: "kind of profile" {
        /// A published definition, followed as far as it goes.
        Published = "published",
        /// Our own model of an unpublished workload.
        Model = "model",
    }
}

/// A block load.
#[derive(Clone, Debug, PartialEq)]
pub struct IoProfile {
    /// Lower case letters, digits and `-`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The definition that it follows, or what the model assumes.
    pub source: String,
    /// Its origin.
    pub provenance: Provenance,
    /// What is written.
    pub content: ContentSpec,
    /// What runs concurrently on each target. At least one.
    pub jobs: Vec<IoJob>,
}

/// One of the workloads of a profile, with threads of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct IoJob {
    /// What is asked; its name is the job's and unique in the profile.
    pub workload: BlockWorkload,
    /// Per target.
    pub concurrency: Concurrency,
    /// Per target.
    pub pace: Pace,
}

impl IoJob {
    /// Requests per second and target, of an open loop.
    pub fn rate_per_second(&self) -> Option<f64> {
        match self.pace {
            Pace::Open { rate_per_second, .. } => Some(rate_per_second),
            Pace::Closed { .. } => None,
        }
    }
}

impl IoProfile {
    /// Every rule that the jobs violate on a target with that working set; empty = usable.
    pub fn problems(&self, working_set: Bytes) -> Vec<WorkloadProblem> {
        let of_job = |job: &IoJob| job.workload.problems(working_set, job.concurrency);
        self.jobs.iter().flat_map(of_job).collect()
    }

    /// Whether anything is written.
    pub fn writes(&self) -> bool {
        let mut streams = self.jobs.iter().flat_map(|job| &job.workload.streams);
        streams.any(|stream| stream.read_share < 1.0)
    }

    /// Whether writes ask volatile caches for anything.
    pub fn is_durable(&self) -> bool {
        let mut streams = self.jobs.iter().flat_map(|job| &job.workload.streams);
        streams.any(|stream| stream.durability != FlushPolicy::Cached)
    }

    /// All streams as one workload whose threads serve all of them: jobs weigh as much as their rates, or all
    /// the same when none has one. For callers that cannot run jobs concurrently.
    pub fn merged(&self) -> BlockWorkload {
        let mut streams = Vec::new();
        for job in &self.jobs {
            let total: f64 = job.workload.streams.iter().map(|stream| stream.weight).sum();
            let share = job.rate_per_second().unwrap_or(1.0) / total;
            for stream in &job.workload.streams {
                let mut stream = stream.clone();
                if self.jobs.len() > 1 {
                    stream.weight *= share;
                    stream.name = match job.workload.streams.len() {
                        1 => job.workload.name.clone(),
                        _ => format!("{}-{}", job.workload.name, stream.name),
                    };
                }
                streams.push(stream);
            }
        }
        BlockWorkload { name: self.name.clone(), streams }
    }

    /// Gives the profile a total rate per target, shared by its jobs as their rates are, or else evenly.
    pub fn set_rate(&mut self, total_per_second: f64, arrivals: crate::arrivals::Arrivals) {
        let shares: Vec<f64> =
            self.jobs.iter().map(|job| job.rate_per_second().unwrap_or(0.0)).collect();
        let total: f64 = shares.iter().sum();
        let even = 1.0 / self.jobs.len() as f64;
        let all_have_one = shares.iter().all(|share| *share > 0.0);
        for (job, share) in self.jobs.iter_mut().zip(shares) {
            let share = if all_have_one { share / total } else { even };
            job.pace = Pace::Open { rate_per_second: total_per_second * share, arrivals };
        }
    }

    /// Drops all rates: as fast as the concurrency allows.
    pub fn unpace(&mut self) {
        self.jobs.iter_mut().for_each(|job| job.pace = Pace::CLOSED);
    }
}

#[cfg(test)]
mod tests {
    use super::{IoJob, IoProfile, Provenance};
    use crate::arrivals::Arrivals;
    use crate::block::content::ContentSpec;
    use crate::block::description::{Concurrency, Pace};
    use crate::block::samples;

    fn profile(rates: [Option<f64>; 2]) -> IoProfile {
        let job = |(name, rate): (&str, Option<f64>)| {
            let mut workload = samples::oracle();
            workload.name = name.to_string();
            let pace = match rate {
                None => Pace::CLOSED,
                Some(rate_per_second) => {
                    Pace::Open { rate_per_second, arrivals: Arrivals::Poisson }
                }
            };
            IoJob { workload, concurrency: Concurrency { threads: 1, queue_depth: 4 }, pace }
        };
        IoProfile {
            name: "two".to_string(),
            title: String::new(),
            source: String::new(),
            provenance: Provenance::Model,
            content: ContentSpec::NOISE,
            jobs: ["a", "b"].into_iter().zip(rates).map(job).collect(),
        }
    }

    #[test]
    fn merged_streams_weigh_as_much_as_their_rates() {
        let merged = profile([Some(300.0), Some(100.0)]).merged();
        let weights: Vec<f64> = merged.streams.iter().map(|stream| stream.weight).collect();
        assert_eq!(weights, [297.0, 3.0, 99.0, 1.0]);
        assert_eq!(merged.streams[3].name, "b-log");
    }

    #[test]
    fn a_total_rate_keeps_the_proportions() {
        let mut profile = profile([Some(300.0), Some(100.0)]);
        profile.set_rate(1_000.0, Arrivals::Uniform);
        let rates = || profile.jobs.iter().map(IoJob::rate_per_second).collect::<Vec<_>>();
        assert_eq!(rates(), [Some(750.0), Some(250.0)]);
        profile.unpace();
        profile.set_rate(10.0, Arrivals::Uniform);
        let rates: Vec<_> = profile.jobs.iter().map(IoJob::rate_per_second).collect();
        assert_eq!(rates, [Some(5.0), Some(5.0)]);
    }
}
