//! A block load of a plan: what is asked of each volume, and how it rises.

use underlay_core::{Arrivals, Bytes};
use underlay_workload::block::{Concurrency, IoProfile};

use super::pacing::Pacing;

/// A block load on every volume of every design.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockPlan {
    /// What is asked of each volume. Its own rates are per volume.
    pub profile: IoProfile,
    /// Threads per volume of each rung, ascending. Of a profile with several jobs one number: the threads of all of them.
    pub threads: Vec<u32>,
    /// Requests per second over all volumes, instead of the profile's rates.
    pub rate_per_second: Option<f64>,
    /// How requests by a clock are spread in time.
    pub arrivals: Arrivals,
    /// Points of a rate curve in percent of the maximum, ascending; empty = none.
    pub curve: Vec<u32>,
    /// Size of the file on each volume.
    pub working_set: Bytes,
    /// Times that each file is written in order at the design's speed before the load.
    pub precondition: u32,
    /// Whether blocks are marked and compared.
    pub verify: bool,
}

impl BlockPlan {
    /// What one of so many volumes is asked at a rung; of a curve what finds its maximum.
    pub fn at(&self, threads: u32, volumes: usize) -> IoProfile {
        let mut profile = self.profile.clone();
        if let [job] = &mut profile.jobs[..] {
            job.concurrency.threads = threads;
        }
        if let Some(rate) = self.rate_per_second {
            profile.set_rate(rate / volumes.max(1) as f64, self.arrivals);
        }
        if !self.curve.is_empty() {
            profile.unpace();
        }
        profile
    }

    /// Requests in flight on each volume at a rung.
    pub fn in_flight(&self, threads: u32) -> u32 {
        let profile = self.at(threads, 1);
        profile.jobs.iter().map(|job| job.concurrency.in_flight()).sum()
    }

    /// Whether all requests follow a clock, and how many there are per second: over all volumes where the study says
    /// it, per volume where the profile does.
    pub fn pacing(&self) -> Pacing {
        let of_profile =
            || -> Option<f64> { self.profile.jobs.iter().map(|job| job.rate_per_second()).sum() };
        let rate = self.rate_per_second.or_else(of_profile).filter(|_| self.curve.is_empty());
        match rate {
            Some(rate_per_second) => Pacing::Open { rate_per_second, arrivals: self.arrivals },
            None => Pacing::Closed { key_think: 0.0 },
        }
    }

    /// Loads of one run, each with a measured window: rungs, or the points of a curve with their maximum.
    pub fn loads(&self) -> usize {
        match self.curve.len() {
            0 => self.threads.len(),
            points => points + 1,
        }
    }
}

/// The concurrency of a k-th of a load: as many requests in flight as are left, on as few threads less as possible.
pub(crate) fn scaled(full: Concurrency, divisor: u32) -> Concurrency {
    let round = |count: u32, by: u32| (count + by / 2) / by.max(1);
    let in_flight = round(full.in_flight(), divisor).max(1);
    let threads = round(full.threads, divisor).clamp(1, in_flight);
    let queue_depth = round(in_flight, threads).clamp(1, full.queue_depth);
    Concurrency { threads, queue_depth }
}

#[cfg(test)]
mod tests {
    use super::scaled;
    use underlay_workload::block::Concurrency;

    #[test]
    fn requests_in_flight_shrink_by_threads_first() {
        let of = |threads, queue_depth, divisor| {
            let Concurrency { threads, queue_depth } =
                scaled(Concurrency { threads, queue_depth }, divisor);
            (threads, queue_depth)
        };
        assert_eq!(of(128, 1, 64), (2, 1));
        assert_eq!(of(8, 4, 4), (2, 4));
        assert_eq!(of(8, 4, 16), (1, 2));
        assert_eq!(of(1, 32, 4), (1, 8));
        assert_eq!(of(1, 4, 64), (1, 1));
        assert_eq!(of(3, 7, 1), (3, 7));
    }
}
