//! From a workload to requests: deterministic by seed, volume, thread and request number.

use super::description::{BlockStream, BlockWorkload, Concurrency, Runs};
use super::locality::PlaceSampler;
use crate::draw::fraction;
use rand_pcg::Pcg64;
use underlay_core::{Bytes, RootSeed};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Return bytes.
    Read,
    /// Store bytes.
    Write,
}

/// One request to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// Index of its stream in the workload.
    pub stream: usize,
    /// What it does.
    pub access: Access,
    /// First byte, a multiple of 512.
    pub offset_bytes: u64,
    /// Number of bytes, a multiple of 512.
    pub length_bytes: u32,
}

/// Which thread of which volume a generator speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Number of the volume, from 0.
    pub volume: u32,
    /// Number of the thread on that volume, from 0.
    pub thread: u32,
}

/// The endless requests of one thread on one volume.
#[derive(Clone, Debug)]
pub struct RequestGenerator {
    streams: Vec<StreamState>,
    /// Cumulated weights of the streams; the last is 1.
    choice: Vec<f64>,
    random: Pcg64,
}

#[derive(Clone, Debug)]
struct StreamState {
    read_share: f64,
    random_share: f64,
    /// Size and cumulated weight.
    sizes: Vec<(u32, f64)>,
    places: PlaceSampler,
    align_bytes: u64,
    /// Of the whole region of the stream on the volume.
    begin: u64,
    /// Begin, end and current position of a sequential thread, and how far it steps beyond its own request.
    run: Run,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    begin: u64,
    end: u64,
    next: u64,
    skip: u64,
}

impl RequestGenerator {
    /// The generator of one thread.
    ///
    /// # Panics
    /// If the workload has problems with that working set and concurrency; see
    /// [`BlockWorkload::problems`].
    pub fn new(
        workload: &BlockWorkload,
        working_set: Bytes,
        concurrency: Concurrency,
        worker: Worker,
        seed: RootSeed,
    ) -> RequestGenerator {
        let problems = workload.problems(working_set, concurrency);
        assert!(problems.is_empty(), "workload `{}`: {problems:?}", workload.name);
        assert!(worker.thread < concurrency.threads, "thread {} of {concurrency:?}", worker.thread);
        let index = u64::from(worker.volume) << 32 | u64::from(worker.thread);
        let weights = workload.streams.iter().map(|stream| stream.weight);
        RequestGenerator {
            streams: workload
                .streams
                .iter()
                .map(|stream| StreamState::new(stream, working_set, concurrency, worker))
                .collect(),
            choice: cumulated(weights),
            random: seed.stream(&format!("block.{}", workload.name), index),
        }
    }

    /// The next request of the thread.
    pub fn next_request(&mut self) -> BlockRequest {
        let stream = match self.choice.len() {
            1 => 0,
            _ => pick(&self.choice, &mut self.random),
        };
        let state = &mut self.streams[stream];
        let length_bytes = state.size(&mut self.random);
        let offset_bytes = state.place(u64::from(length_bytes), &mut self.random);
        let is_read = state.read_share >= 1.0 || fraction(&mut self.random) < state.read_share;
        let access = if is_read { Access::Read } else { Access::Write };
        BlockRequest { stream, access, offset_bytes, length_bytes }
    }
}

impl StreamState {
    fn new(
        stream: &BlockStream,
        working_set: Bytes,
        concurrency: Concurrency,
        worker: Worker,
    ) -> StreamState {
        let align = u64::from(stream.bytes_min());
        let largest = u64::from(stream.bytes_max());
        let at = |share: f64| (working_set.0 as f64 * share) as u64 / align * align;
        let (begin, end) = (at(stream.region.begin), at(stream.region.end).max(align));
        let threads = u64::from(concurrency.threads);
        let thread = u64::from(worker.thread);
        let run = match stream.runs {
            Runs::PerThread => {
                let part = (end - begin) / threads / align * align;
                let begin = begin + thread * part;
                Run { begin, end: begin + part, next: begin, skip: 0 }
            }
            Runs::Interleaved => Run {
                begin: begin + thread * largest,
                end,
                next: begin + thread * largest,
                skip: (threads - 1) * largest,
            },
        };
        let weights = stream.sizes.iter().map(|size| size.weight);
        let cumulated = cumulated(weights);
        // The last place leaves room for the largest request.
        let places = ((end - begin).saturating_sub(largest) / align) + 1;
        StreamState {
            read_share: stream.read_share,
            random_share: stream.random_share,
            sizes: stream.sizes.iter().map(|size| size.bytes).zip(cumulated).collect(),
            places: PlaceSampler::new(&stream.locality, places),
            align_bytes: align,
            begin,
            run,
        }
    }

    fn size(&self, random: &mut Pcg64) -> u32 {
        if let [(only, _)] = self.sizes[..] {
            return only;
        }
        let draw = fraction(random);
        let found = self.sizes.iter().find(|(_, cumulated)| draw < *cumulated);
        found.or(self.sizes.last()).expect("the workload was checked").0
    }

    fn place(&mut self, length: u64, random: &mut Pcg64) -> u64 {
        let jumps = self.random_share >= 1.0
            || (self.random_share > 0.0 && fraction(random) < self.random_share);
        if jumps {
            let offset = self.begin + self.places.sample(random) * self.align_bytes;
            if self.random_share < 1.0 {
                self.run.next = offset + length;
            }
            return offset;
        }
        if self.run.next + length > self.run.end {
            self.run.next = self.run.begin;
        }
        let offset = self.run.next;
        self.run.next += length + self.run.skip;
        offset
    }
}

fn cumulated(weights: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let total: f64 = weights.clone().sum();
    weights
        .scan(0.0, |sum, weight| {
            *sum += weight / total;
            Some(*sum)
        })
        .collect()
}

fn pick(cumulated: &[f64], random: &mut Pcg64) -> usize {
    let draw = fraction(random);
    cumulated.iter().position(|share| draw < *share).unwrap_or(cumulated.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::{Access, RequestGenerator, Worker};
    use crate::block::description::{BlockWorkload, Concurrency, Region, Runs, SizeShare};
    use crate::block::samples;
    use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
    use underlay_core::{Bytes, RootSeed};

    fn generator(
        workload: &BlockWorkload,
        set: Bytes,
        thread: u32,
        threads: u32,
    ) -> RequestGenerator {
        let concurrency = Concurrency { threads, queue_depth: 1 };
        let worker = Worker { volume: 3, thread };
        RequestGenerator::new(workload, set, concurrency, worker, RootSeed(9))
    }

    fn named(name: &str) -> BlockWorkload {
        samples::find(name)
    }

    #[test]
    fn shares_of_reads_sizes_and_streams_are_those_asked_for() {
        let mut oracle = generator(&named("oracle"), Bytes::from_gib(4), 0, 1);
        let requests: Vec<_> = (0..100_000).map(|_| oracle.next_request()).collect();
        let share = |matches: &dyn Fn(&super::BlockRequest) -> bool| {
            requests.iter().filter(|request| matches(request)).count() as f64 / 1e5
        };
        assert!((share(&|r| r.stream == 1) - 0.01).abs() < 0.002);
        assert!((share(&|r| r.access == Access::Read) - 0.792).abs() < 0.006);
        assert!(
            requests.iter().all(|r| r.length_bytes == if r.stream == 1 { 65536 } else { 8192 })
        );
    }

    #[test]
    fn sequential_threads_have_parts_of_their_own_and_wrap() {
        let mut workload = named("64k-sequential-read");
        workload.streams[0].runs = Runs::PerThread;
        let set = Bytes::from_mib(1);
        for thread in 0..4 {
            let mut generator = generator(&workload, set, thread, 4);
            let offsets: Vec<u64> = (0..5).map(|_| generator.next_request().offset_bytes).collect();
            let begin = u64::from(thread) << 18;
            assert_eq!(offsets, [0, 1, 2, 3, 0].map(|block| begin + (block << 16)));
        }
    }

    #[test]
    fn interleaved_threads_together_make_one_run() {
        let mut workload = named("64k-sequential-read");
        workload.streams[0].runs = Runs::Interleaved;
        let mut offsets = Vec::new();
        for thread in 0..4 {
            let mut generator = generator(&workload, Bytes::from_mib(4), thread, 4);
            offsets.extend((0..16).map(|_| generator.next_request().offset_bytes));
        }
        offsets.sort_unstable();
        assert!(offsets.iter().copied().eq((0..64).map(|block| block << 16)), "{offsets:?}");
    }

    #[test]
    fn a_mixed_stream_continues_where_it_jumped() {
        let mut workload = named("4k-random-read");
        workload.streams[0].random_share = 0.25;
        let mut generator = generator(&workload, Bytes::from_gib(1), 0, 1);
        let offsets: Vec<u64> =
            (0..10_000).map(|_| generator.next_request().offset_bytes).collect();
        let continued = offsets.windows(2).filter(|pair| pair[1] == pair[0] + 4096).count();
        assert!((7_300..7_700).contains(&continued), "{continued}");
    }

    fn any_workload() -> impl Strategy<Value = BlockWorkload> {
        let names =
            prop_oneof![Just("4k-random-read"), Just("oracle"), Just("desktop"), Just("hot-spots")];
        (names, 0.0f64..0.5, 0.0f64..=1.0).prop_map(|(name, begin, random_share)| {
            let mut workload = named(name);
            workload.streams[0].region = Region { begin, end: begin + 0.5 };
            workload.streams[0].random_share = random_share;
            workload.streams[0].sizes.push(SizeShare { bytes: 20_480, weight: 0.3 });
            workload
        })
    }

    proptest! {
        /// No request leaves the working set, each thread is reproducible, and threads differ.
        #[test]
        fn requests_stay_inside_and_repeat(
            workload in any_workload(), mib in 64u64..4096, threads in 1u32..9, thread in 0u32..9,
        ) {
            let (set, thread) = (Bytes::from_mib(mib), thread % threads);
            let take = |thread| -> Vec<_> {
                let mut generator = generator(&workload, set, thread, threads);
                (0..300).map(|_| generator.next_request()).collect()
            };
            let requests = take(thread);
            for request in &requests {
                prop_assert!(request.offset_bytes + u64::from(request.length_bytes) <= set.0);
                prop_assert_eq!(request.offset_bytes % 512, 0);
            }
            prop_assert_eq!(&requests, &take(thread));
            if threads > 1 {
                prop_assert!(requests != take((thread + 1) % threads));
            }
        }
    }
}
