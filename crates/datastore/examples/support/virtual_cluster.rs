//! A cluster in virtual time, used as the benchmarks use an emulated one: the same steps under the same names.

use std::time::Duration;

use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_model::cluster::{ClusterSpec, Policy};
use underlay_simulation::{ClientSpec, ClusterTarget, RunSpec, SimulationResult, Target, simulate};
use underlay_workload::block::{
    BlockStream, BlockWorkload, Concurrency, FlushPolicy, Locality, Pace, Region, Runs, SizeShare,
};

use super::buffers::Buffers;
use super::clusters::SEED;
use super::site::Failure;

/// Bytes per request while a file is written from end to end.
const SEQUENTIAL_BYTES: u32 = 1 << 20;

/// A cluster with one volume, at some moment.
pub struct VirtualCluster {
    target: ClusterTarget,
    now: Nanos,
    file: Bytes,
    /// What requests are drawn from; the cluster itself is the same for all of them.
    requests: RootSeed,
}

impl VirtualCluster {
    /// A new one, a file of whose volume will be used.
    pub fn new(
        spec: &ClusterSpec,
        policy: Policy,
        volume: Bytes,
        file: Bytes,
        requests: RootSeed,
    ) -> Result<VirtualCluster, Failure> {
        let target = ClusterTarget::new(spec, policy, &[volume], SEED)?;
        Ok(VirtualCluster { target, now: Nanos::ZERO, file, requests })
    }

    /// Writes the file from end to end, one request after the other: as an emulated cluster does whose timing is off, which
    /// carries each through before it takes the next.
    pub fn overwrite(&mut self) {
        let requests_max = self.file.0 / u64::from(SEQUENTIAL_BYTES);
        let measure = Nanos::from_secs(3_600);
        let spec = RunSpec { begin: self.now, warm_up: Nanos::ZERO, measure, requests_max };
        self.run(&workload(0.0, SEQUENTIAL_BYTES, 0.0), 1, spec);
    }

    /// Lets time pass.
    pub fn pass(&mut self, span: Duration) {
        self.now += Nanos::from(span);
        self.target.advance(self.now, &mut Vec::new());
    }

    /// What the write buffers hold.
    pub fn buffers(&mut self) -> Buffers {
        Buffers::of_simulated(self.target.cluster_mut())
    }

    /// Random requests of 4 KiB.
    pub fn use_at_random(
        &mut self,
        read_share: f64,
        queue_depth: u32,
        warm_up: Nanos,
        measure: Nanos,
    ) -> SimulationResult {
        let spec = RunSpec { begin: self.now, warm_up, measure, requests_max: u64::MAX };
        self.run(&workload(read_share, 4096, 1.0), queue_depth, spec)
    }

    fn run(
        &mut self,
        workload: &BlockWorkload,
        queue_depth: u32,
        spec: RunSpec,
    ) -> SimulationResult {
        let client = ClientSpec {
            name: "client".to_string(),
            volume: 0,
            workload,
            working_set: self.file,
            concurrency: Concurrency { threads: 1, queue_depth },
            pace: Pace::CLOSED,
        };
        let result = simulate(&mut self.target, &[client], &spec, self.requests);
        self.now = result.end;
        result
    }
}

fn workload(read_share: f64, bytes: u32, random_share: f64) -> BlockWorkload {
    let stream = BlockStream {
        name: "data".to_string(),
        weight: 1.0,
        read_share,
        sizes: vec![SizeShare { bytes, weight: 1.0 }],
        random_share,
        locality: Locality::Uniform,
        runs: Runs::PerThread,
        region: Region::WHOLE,
        durability: FlushPolicy::Cached,
    };
    BlockWorkload { name: "load".to_string(), streams: vec![stream] }
}
