//! A closed loop on a real target: as many requests in flight as the queue depth, the next as one completes.
//!
//! Latency counts from the moment a request is handed to the kernel to the moment its completion is taken, on
//! one thread: the result includes the cost of this host. [`JobResult::processor_share`] says whether the
//! host rather than the target was the limit.
//!
//! If nothing was answered in the measured time, it is extended by whole multiples until the first answer.

use crate::error::BlockIoError;
use crate::ring::{Completed, Ring};
use crate::target::Target;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use underlay_core::{Bytes, Histogram, Nanos, RootSeed};
use underlay_workload::block::{
    Access, BlockRequest, BlockWorkload, Concurrency, RequestGenerator, Worker,
};

/// What to do.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// What is asked.
    pub workload: &'a BlockWorkload,
    /// Bytes used, from the beginning of the target; at most its size.
    pub working_set: Bytes,
    /// Requests in flight. At least 1.
    pub queue_depth: u32,
    /// Not measured.
    pub warm_up: Duration,
    /// Measured.
    pub measure: Duration,
    /// Length of the intervals in which bytes are counted.
    pub interval: Duration,
    /// Of the requests.
    pub seed: RootSeed,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// Latency of reads, ns.
    pub read: Histogram,
    /// Latency of writes, ns.
    pub write: Histogram,
    /// The measured time: that of the job, or several times as long if nothing was answered before.
    pub duration: Nanos,
    /// Bytes moved in the measured time.
    pub bytes: u64,
    /// Bytes moved in each interval, from the beginning (warm-up included), whole intervals only.
    pub intervals: Vec<u64>,
    /// Processor time of this process per measured time: near 1, the host was the limit.
    pub processor_share: f64,
}

impl JobResult {
    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.duration.as_secs_f64()
    }

    /// Requests per second.
    pub fn iops(&self) -> f64 {
        (self.read.count() + self.write.count()) as f64 / self.duration.as_secs_f64()
    }
}

/// Runs the loop. `stop` is asked now and then whether to give up.
///
/// # Errors
/// When a request fails, or `stop` says so.
///
/// # Panics
/// If the workload has problems with the working set.
pub fn run(
    target: &Target,
    job: &Job<'_>,
    stop: &mut dyn FnMut() -> bool,
) -> Result<JobResult, BlockIoError> {
    assert!(job.working_set <= target.size(), "the working set reaches beyond the target");
    let concurrency = Concurrency { threads: 1, queue_depth: job.queue_depth };
    let worker = Worker { volume: 0, thread: 0 };
    let mut generator =
        RequestGenerator::new(job.workload, job.working_set, concurrency, worker, job.seed);
    let largest = job.workload.streams.iter().map(|stream| stream.bytes_max()).max().unwrap_or(0);
    let mut random = job.seed.stream("blockio.content", 0);
    let mut ring = Ring::new(target, job.queue_depth, largest, &mut random)?;
    let mut progress = Progress::new(job);
    let mut slots = Vec::with_capacity(job.queue_depth as usize);
    for slot in 0..job.queue_depth {
        slots.push(start(&mut ring, slot, &mut generator)?);
    }
    let mut completed: Vec<Completed> = Vec::with_capacity(job.queue_depth as usize);
    while progress.goes_on {
        ring.wait(&mut completed)?;
        let now = Instant::now();
        progress.extend(now);
        for Completed { slot } in completed.drain(..) {
            let (begun, request) = slots[slot as usize];
            progress.note(now, begun, &request);
            if progress.goes_on {
                slots[slot as usize] = start(&mut ring, slot, &mut generator)?;
            }
        }
        progress.look(now);
        if stop() {
            return Err(BlockIoError::Interrupted);
        }
    }
    while ring.in_flight() > 0 {
        ring.wait(&mut completed)?;
    }
    Ok(progress.result())
}

fn start(
    ring: &mut Ring<'_>,
    slot: u32,
    generator: &mut RequestGenerator,
) -> Result<(Instant, BlockRequest), BlockIoError> {
    let request = generator.next_request();
    ring.push(slot, &request)?;
    Ok((Instant::now(), request))
}

/// What was seen so far.
struct Progress {
    began: Instant,
    measure_from: Instant,
    end: Instant,
    interval: Duration,
    goes_on: bool,
    processor_at_measure: Option<Duration>,
    last: Instant,
    read: Histogram,
    write: Histogram,
    bytes: u64,
    intervals: Vec<u64>,
}

impl Progress {
    fn new(job: &Job<'_>) -> Progress {
        let began = Instant::now();
        Progress {
            began,
            measure_from: began + job.warm_up,
            end: began + job.warm_up + job.measure,
            interval: job.interval.max(Duration::from_millis(1)),
            goes_on: true,
            processor_at_measure: None,
            last: began,
            read: Histogram::new(),
            write: Histogram::new(),
            bytes: 0,
            intervals: Vec::new(),
        }
    }

    fn note(&mut self, now: Instant, begun: Instant, request: &BlockRequest) {
        let interval = ((now - self.began).as_nanos() / self.interval.as_nanos()) as usize;
        if interval >= self.intervals.len() {
            self.intervals.resize(interval + 1, 0);
        }
        self.intervals[interval] += u64::from(request.length_bytes);
        if now < self.measure_from || now > self.end {
            return;
        }
        self.bytes += u64::from(request.length_bytes);
        let histogram = match request.access {
            Access::Read => &mut self.read,
            Access::Write => &mut self.write,
        };
        histogram.record((now - begun).as_nanos() as u64);
        self.last = now;
    }

    /// Something was answered at `now`: the measured time is extended to it, if nothing was before.
    fn extend(&mut self, now: Instant) {
        let measure = self.end - self.measure_from;
        if self.bytes > 0 || measure.is_zero() {
            return;
        }
        while self.end < now {
            self.end += measure;
        }
    }

    fn look(&mut self, now: Instant) {
        if self.processor_at_measure.is_none() && now >= self.measure_from {
            self.processor_at_measure = Some(processor_time());
        }
        self.goes_on = now < self.end;
    }

    fn result(mut self) -> JobResult {
        // A target that stalls beyond the end is measured up to the end all the same.
        let duration = self.end - self.measure_from;
        let processor = processor_time() - self.processor_at_measure.unwrap_or_default();
        let whole = (self.end - self.began).as_nanos() / self.interval.as_nanos();
        self.intervals.resize(whole as usize, 0);
        JobResult {
            read: self.read,
            write: self.write,
            duration: Nanos(duration.as_nanos() as u64),
            bytes: self.bytes,
            intervals: self.intervals,
            processor_share: processor.as_secs_f64() / duration.as_secs_f64(),
        }
    }
}

/// Processor time of this process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::{Job, Progress};
    use std::time::Duration;
    use underlay_core::{Bytes, RootSeed};
    use underlay_workload::block::{Access, BlockRequest, BlockWorkload};

    #[test]
    fn a_target_that_stalls_is_measured_until_it_answers() {
        let workload = BlockWorkload { name: "none".to_string(), streams: Vec::new() };
        let millis = Duration::from_millis;
        let job = Job {
            workload: &workload,
            working_set: Bytes(4096),
            queue_depth: 1,
            warm_up: millis(10),
            measure: millis(100),
            interval: millis(10),
            seed: RootSeed(1),
        };
        let request =
            BlockRequest { stream: 0, access: Access::Read, offset_bytes: 0, length_bytes: 4096 };
        let measured = |answers_ms: &[u64]| {
            let mut progress = Progress::new(&job);
            let began = progress.began;
            for at in answers_ms {
                let now = began + millis(*at);
                progress.extend(now);
                progress.note(now, began, &request);
                progress.look(now);
            }
            assert!(!progress.goes_on, "the last answer comes after the end");
            let result = progress.result();
            (result.read.count(), result.duration.0 / 1_000_000)
        };
        assert_eq!(measured(&[50, 60, 120]), (2, 100));
        // The first answer after 250 ms makes the time three times as long; what follows is as usual.
        assert_eq!(measured(&[250, 300, 311]), (2, 300));
        // One in the warm-up is none in the measured time.
        assert_eq!(measured(&[5, 130, 211]), (1, 200));
    }
}
