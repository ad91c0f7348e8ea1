//! What a block workload is: values, and the rules they must keep.

use super::locality::Locality;
use crate::arrivals::Arrivals;
use underlay_core::words;
use underlay_core::{Bytes, Nanos};

/// Requests start and end at multiples of this.
pub const SECTOR_BYTES: u32 = 512;
/// No request is larger.
pub const REQUEST_BYTES_MAX: u32 = 64 << 20;

/// What is asked of one volume.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockWorkload {
    /// Short name, for files and tables.
    pub name: String,
    /// The streams. At least one.
    pub streams: Vec<BlockStream>,
}

/// One kind of requests within a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockStream {
    /// Unique in the workload: `data`, `log`.
    pub name: String,
    /// Share of the workload's requests, relative to the other streams. Above 0.
    pub weight: f64,
    /// Share of its requests that are reads, 0..=1; the rest are writes.
    pub read_share: f64,
    /// Sizes of requests. At least one.
    pub sizes: Vec<SizeShare>,
    /// Share of its requests that go to a new place, 0..=1; the rest continue where the thread's last
    /// one ended. 1 = random, 0 = sequential.
    pub random_share: f64,
    /// Where new places are.
    pub locality: Locality,
    /// Where sequential threads start.
    pub runs: Runs,
    /// The part of the volume it uses.
    pub region: Region,
    /// What its writes ask of volatile caches.
    pub durability: FlushPolicy,
}

/// How the writes of a stream get through volatile caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushPolicy {
    /// Nothing: an acknowledged write may be lost in a power cut.
    Cached,
    /// Every write is durable when it is acknowledged (`RWF_DSYNC`; FUA where the device has it).
    WriteThrough,
    /// After so many writes of a thread, at least 1, it flushes and waits for that.
    FlushEvery(u32),
}

/// One size of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeShare {
    /// Bytes, a multiple of 512, at most 64 MiB.
    pub bytes: u32,
    /// Share of the stream's requests, relative to its other sizes. Above 0.
    pub weight: f64,
}

words! {
    /// Where the threads of one volume are in a sequential stream.
    pub enum Runs: "arrangement of runs" {
        /// Each thread goes through a part of its own: as many runs as threads.
        PerThread = "per-thread",
        /// The threads take turns along one run. Needs a single size.
        Interleaved = "interleaved",
    }
}

/// A part of a volume, as shares of its working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Where it begins, 0..1.
    pub begin: f64,
    /// Where it ends, above `begin`, at most 1.
    pub end: f64,
}

impl Region {
    /// All of it.
    pub const WHOLE: Region = Region { begin: 0.0, end: 1.0 };
}

/// How many requests may be in flight on one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    /// Threads, each with a generator of its own. At least 1.
    pub threads: u32,
    /// Requests in flight per thread. At least 1.
    pub queue_depth: u32,
}

impl Concurrency {
    /// Requests in flight on the volume.
    pub const fn in_flight(self) -> u32 {
        self.threads * self.queue_depth
    }
}

/// What makes the next request start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// The completion of one before, after a pause.
    Closed {
        /// The pause between a completion and the next request of the same place in the queue.
        think: Nanos,
    },
    /// A clock. Requests beyond the concurrency wait, and their waiting counts.
    Open {
        /// Requests per second and volume. Above 0.
        rate_per_second: f64,
        /// How they are spread in time.
        arrivals: Arrivals,
    },
}

impl Pace {
    /// As fast as it goes.
    pub const CLOSED: Pace = Pace::Closed { think: Nanos::ZERO };
}

/// A rule that a workload violates.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadProblem {
    /// Nothing to do.
    #[error("workload `{workload}` has no stream; add one")]
    NoStream {
        /// The workload.
        workload: String,
    },
    /// A stream without sizes.
    #[error("stream `{stream}` has no request size; add one, such as 4 KiB")]
    NoSize {
        /// The stream.
        stream: String,
    },
    /// A value outside its range.
    #[error("`{field}` of stream `{stream}` is {value}; {rule}")]
    OutOfRange {
        /// The stream.
        stream: String,
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it must hold.
        rule: &'static str,
    },
    /// The region is smaller than a request of every thread.
    #[error(
        "stream `{stream}` uses {region} of the volume, less than one request of {request} for each of \
         {threads} threads; enlarge the working set"
    )]
    RegionTooSmall {
        /// The stream.
        stream: String,
        /// Bytes it uses.
        region: Bytes,
        /// Its largest request.
        request: Bytes,
        /// Threads on the volume.
        threads: u32,
    },
}

impl BlockWorkload {
    /// Every rule that the workload violates on volumes with that working set; empty = usable.
    pub fn problems(&self, working_set: Bytes, concurrency: Concurrency) -> Vec<WorkloadProblem> {
        if self.streams.is_empty() {
            return vec![WorkloadProblem::NoStream { workload: self.name.clone() }];
        }
        let mut problems = Vec::new();
        for stream in &self.streams {
            stream.check(&mut problems);
            if problems.is_empty() {
                stream.check_space(working_set, concurrency, &mut problems);
            }
        }
        problems
    }

    /// The mean size of its requests.
    pub fn mean_request_bytes(&self) -> f64 {
        let weights: f64 = self.streams.iter().map(|stream| stream.weight).sum();
        self.streams.iter().map(|stream| stream.weight * stream.mean_bytes()).sum::<f64>() / weights
    }

    /// The share of its requests that are reads.
    pub fn read_share(&self) -> f64 {
        let weights: f64 = self.streams.iter().map(|stream| stream.weight).sum();
        self.streams.iter().map(|stream| stream.weight * stream.read_share).sum::<f64>() / weights
    }
}

impl BlockStream {
    /// The mean size of its requests.
    fn mean_bytes(&self) -> f64 {
        let weights: f64 = self.sizes.iter().map(|size| size.weight).sum();
        self.sizes.iter().map(|size| size.weight * f64::from(size.bytes)).sum::<f64>() / weights
    }

    /// Its largest request.
    pub fn bytes_max(&self) -> u32 {
        self.sizes.iter().map(|size| size.bytes).max().unwrap_or(0)
    }

    /// Its smallest request, to which places are aligned.
    pub fn bytes_min(&self) -> u32 {
        self.sizes.iter().map(|size| size.bytes).min().unwrap_or(0)
    }

    fn check(&self, problems: &mut Vec<WorkloadProblem>) {
        let mut require = |field, value: String, rule, holds: bool| {
            if !holds {
                let stream = self.name.clone();
                problems.push(WorkloadProblem::OutOfRange { stream, field, value, rule });
            }
        };
        let above_zero = |weight: f64| weight.is_finite() && weight > 0.0;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        require("weight", self.weight.to_string(), "use a number above 0", above_zero(self.weight));
        let rule = "use 0 to 1";
        require("read-share", self.read_share.to_string(), rule, share(self.read_share));
        require("random-share", self.random_share.to_string(), rule, share(self.random_share));
        let Region { begin, end } = self.region;
        let ordered = share(begin) && share(end) && begin < end;
        let rule = "the region must begin before it ends, both within 0 to 1";
        require("region", format!("{begin}..{end}"), rule, ordered);
        for size in &self.sizes {
            let holds = size.bytes > 0
                && size.bytes.is_multiple_of(SECTOR_BYTES)
                && size.bytes <= REQUEST_BYTES_MAX
                && above_zero(size.weight);
            let rule = "a size is a multiple of 512 B up to 64 MiB, with a weight above 0";
            require("sizes", format!("{} x {}", size.bytes, size.weight), rule, holds);
        }
        let single = self.runs == Runs::PerThread || self.sizes.len() <= 1;
        let rule = "threads that share one sequential run need a single size";
        require("runs", "interleaved".to_string(), rule, single);
        let flushes = self.durability != FlushPolicy::FlushEvery(0);
        require("flush-every", "0".to_string(), "flush after at least 1 write", flushes);
        if let Some((value, rule)) = self.locality.problem() {
            require("locality", value, rule, false);
        }
        if self.sizes.is_empty() {
            problems.push(WorkloadProblem::NoSize { stream: self.name.clone() });
        }
    }

    fn check_space(
        &self,
        working_set: Bytes,
        concurrency: Concurrency,
        problems: &mut Vec<WorkloadProblem>,
    ) {
        let region = (working_set.0 as f64 * (self.region.end - self.region.begin)) as u64;
        let request = u64::from(self.bytes_max());
        if region / u64::from(concurrency.threads.max(1)) < request {
            problems.push(WorkloadProblem::RegionTooSmall {
                stream: self.name.clone(),
                region: Bytes(region),
                request: Bytes(request),
                threads: concurrency.threads,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BlockWorkload, Concurrency, FlushPolicy, Region, Runs, SizeShare, WorkloadProblem,
    };
    use crate::block::locality::{Locality, Zone};
    use crate::block::samples;
    use underlay_core::Bytes;

    const ONE: Concurrency = Concurrency { threads: 1, queue_depth: 1 };

    fn workload() -> BlockWorkload {
        samples::random_reads()
    }

    #[test]
    fn every_violated_rule_is_named() {
        let mut bad = workload();
        let stream = &mut bad.streams[0];
        stream.weight = 0.0;
        stream.read_share = 1.5;
        stream.random_share = f64::NAN;
        stream.region = Region { begin: 0.6, end: 0.5 };
        stream.sizes =
            vec![SizeShare { bytes: 1000, weight: 1.0 }, SizeShare { bytes: 0, weight: 1.0 }];
        stream.runs = Runs::Interleaved;
        stream.durability = FlushPolicy::FlushEvery(0);
        stream.locality = Locality::Zones(vec![Zone { space_share: 0.5, access_share: 0.2 }]);
        let problems = bad.problems(Bytes::from_gib(1), ONE);
        let fields: Vec<_> = problems
            .iter()
            .map(|problem| match problem {
                WorkloadProblem::OutOfRange { field, .. } => *field,
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(
            fields,
            [
                "weight",
                "read-share",
                "random-share",
                "region",
                "sizes",
                "sizes",
                "runs",
                "flush-every",
                "locality"
            ]
        );
    }

    #[test]
    fn a_working_set_below_the_requests_is_refused_with_the_remedy() {
        let many = Concurrency { threads: 64, queue_depth: 1 };
        let problems = workload().problems(Bytes::from_kib(128), many);
        assert!(problems[0].to_string().ends_with("enlarge the working set"), "{problems:?}");
    }

    #[test]
    fn means_weigh_streams_and_sizes() {
        let oracle = samples::oracle();
        assert!((oracle.read_share() - (0.99 * 0.8 + 0.01 * 0.01)).abs() < 1e-9);
        assert!((oracle.mean_request_bytes() - (0.99 * 8192.0 + 0.01 * 65536.0)).abs() < 1e-6);
    }
}
