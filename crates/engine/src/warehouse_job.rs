//! A warehouse's power run and throughput run: which step of which stream is next, and how long the
//! steps took.
//!
//! Steps are the queries and refresh functions of [`underlay_workload::warehouse`], in its orders.
//! Not here: processors and volumes ([`crate::warehouse_work`] puts queries on them), and how refresh
//! functions change rows (a session carries them out as transactions).

use crate::demand::DemandProfile;
use crate::layout::warehouse::relations;
use crate::result::{JobOperation, JobResult};
use crate::warehouse_query::{Query, Tables};
use crate::warehouse_spec::WarehouseSpec;
use std::collections::VecDeque;
use underlay_core::{Nanos, RootSeed};
use underlay_workload::warehouse::order_of_stream;

/// The refresh functions among the types of `SHAPE`, behind the queries.
pub(crate) const INSERT: usize = 22;
/// The one that deletes.
pub(crate) const DELETE: usize = 23;

/// The runs, as [`JobOperation::cycle`] counts them.
const POWER_RUN: u32 = 1;
const THROUGHPUT_RUN: u32 = 2;

/// What a stream does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The query that was begun.
    Query,
    /// A refresh function.
    Refresh(usize),
    /// Nothing any more in this run.
    Nothing,
}

/// A stream of steps.
#[derive(Default)]
struct Stream {
    /// Types of the steps that have not begun.
    steps: VecDeque<usize>,
    /// The step under way, and when it began.
    step: Option<(usize, Nanos)>,
    query: Option<Query>,
    /// Bytes that the step has read.
    read: u64,
}

/// The runs of a database.
pub(crate) struct WarehouseJob {
    spec: WarehouseSpec,
    demands: DemandProfile,
    pub(crate) tables: Tables,
    free_workers: u32,
    run: u32,
    /// By their numbers. Number 0 is the power run's, then that of the refresh functions.
    streams: Vec<Stream>,
    result: JobResult,
}

impl WarehouseJob {
    /// Before its power run, on a database with so many shared buffers.
    pub(crate) fn new(
        spec: &WarehouseSpec,
        demands: &DemandProfile,
        buffers: u32,
        seed: RootSeed,
    ) -> WarehouseJob {
        let blocks = relations(spec.scale).iter().map(|relation| relation.blocks).collect();
        WarehouseJob {
            spec: *spec,
            demands: demands.clone(),
            tables: Tables::new(blocks, buffers, seed.stream("engine.warehouse", 0)),
            free_workers: spec.workers,
            run: 0,
            streams: Vec::new(),
            result: JobResult::default(),
        }
    }

    /// Begins the next run. Returns the number of its streams, 0 when all is done.
    pub(crate) fn begin_run(&mut self, now: Nanos) -> usize {
        self.run += 1;
        let queries = |stream| order_of_stream(stream).iter().map(|query| usize::from(*query) - 1);
        let steps: Vec<VecDeque<usize>> = match (self.run, self.spec.streams) {
            (POWER_RUN, _) => {
                vec![std::iter::once(INSERT).chain(queries(0)).chain([DELETE]).collect()]
            }
            (THROUGHPUT_RUN, streams @ 1..) => {
                let refreshes = (0..streams).flat_map(|_| [INSERT, DELETE]).collect();
                let of_queries = (1..=streams).map(|stream| queries(stream).collect());
                std::iter::once(refreshes).chain(of_queries).collect()
            }
            _ => Vec::new(),
        };
        let stream = |steps| Stream { steps, ..Stream::default() };
        self.streams = steps.into_iter().map(stream).collect();
        if self.streams.is_empty() {
            self.result.ended = Some(now);
        }
        self.streams.len()
    }

    /// Whether no stream of the run has anything to do.
    pub(crate) fn is_run_done(&self) -> bool {
        self.streams.iter().all(|stream| stream.step.is_none() && stream.steps.is_empty())
    }

    /// Whether a refresh function is under way.
    pub(crate) fn is_refreshing(&self) -> bool {
        let step = self.streams.first().and_then(|stream| stream.step);
        step.is_some_and(|(kind, _)| kind >= INSERT)
    }

    /// Begins the next step of a stream.
    pub(crate) fn next_step(&mut self, now: Nanos, stream: usize) -> Next {
        let state = &mut self.streams[stream];
        state.read = 0;
        let Some(kind) = state.steps.pop_front() else { return Next::Nothing };
        state.step = Some((kind, now));
        if kind >= INSERT {
            return Next::Refresh(kind);
        }
        let workers = self.spec.workers_of(kind).min(self.free_workers);
        self.free_workers -= workers;
        let cpu = self.demands.types[kind].cpu(self.spec.scale.hundredths());
        state.query = Some(Query::new(&self.spec.reads_of(kind), 1 + workers as usize, cpu));
        Next::Query
    }

    /// The query of a stream, with the tables that it reads.
    pub(crate) fn query(&mut self, stream: usize) -> Option<(&mut Query, &mut Tables)> {
        let query = self.streams.get_mut(stream)?.query.as_mut()?;
        Some((query, &mut self.tables))
    }

    /// The query of a stream has read so many bytes from the volume.
    pub(crate) fn count_read(&mut self, stream: usize, bytes: u32) {
        self.streams[stream].read += u64::from(bytes);
        self.result.volumes[0].read += u64::from(bytes);
    }

    /// The step of a stream is done. Its type and what it took; none where no step is under way.
    pub(crate) fn end_step(&mut self, now: Nanos, stream: usize) -> Option<(usize, Nanos)> {
        let state = &mut self.streams[stream];
        let (kind, begin) = state.step.take()?;
        if let Some(query) = state.query.take() {
            self.free_workers += query.processes() as u32 - 1;
        }
        self.result.operations.push(JobOperation {
            kind,
            cycle: self.run,
            stream: stream as u32,
            begin,
            end: now,
            bytes: state.read,
        });
        Some((kind, now - begin))
    }

    /// Its results since the last call.
    pub(crate) fn take(&mut self) -> JobResult {
        let fresh = JobResult { ended: self.result.ended, ..JobResult::default() };
        std::mem::replace(&mut self.result, fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::{DELETE, INSERT, Next, WarehouseJob};
    use crate::demand::DemandProfile;
    use crate::warehouse_spec::WarehouseSpec;
    use underlay_core::{Nanos, RootSeed};
    use underlay_workload::warehouse::{Scale, order_of_stream};

    fn job(streams: u32, workers: u32) -> WarehouseJob {
        let spec = WarehouseSpec { scale: Scale::ONE, streams, workers_per_query: 2, workers };
        WarehouseJob::new(&spec, &DemandProfile::warehouse_postgresql(), 1_000, RootSeed(1))
    }

    /// The steps of a stream until its end.
    fn steps(job: &mut WarehouseJob, stream: usize) -> Vec<usize> {
        let mut kinds = Vec::new();
        loop {
            let next = job.next_step(Nanos(5), stream);
            if next == Next::Nothing {
                return kinds;
            }
            if stream == 0 {
                assert_eq!(job.is_refreshing(), matches!(next, Next::Refresh(_)));
            }
            let (kind, took) = job.end_step(Nanos(7), stream).expect("a step");
            assert_eq!(took, Nanos(2));
            kinds.push(kind);
        }
    }

    #[test]
    fn a_power_run_is_followed_by_streams_beside_refresh_functions() {
        let mut job = job(2, 8);
        assert_eq!(job.begin_run(Nanos(1)), 1);
        let power = steps(&mut job, 0);
        assert_eq!((power.len(), power[0], power[23]), (24, INSERT, DELETE));
        let order = |stream: u32| -> Vec<usize> {
            order_of_stream(stream).iter().map(|query| usize::from(*query) - 1).collect()
        };
        assert_eq!(power[1..23], order(0));
        assert!(job.is_run_done());
        assert_eq!(job.begin_run(Nanos(7)), 3);
        assert_eq!(steps(&mut job, 0), [INSERT, DELETE, INSERT, DELETE]);
        assert!(!job.is_run_done());
        assert_eq!(steps(&mut job, 1), order(1));
        assert_eq!(steps(&mut job, 2), order(2));
        assert!(job.is_run_done());
        assert_eq!(job.begin_run(Nanos(9)), 0);
        let result = job.take();
        assert_eq!((result.ended, result.operations.len()), (Some(Nanos(9)), 24 + 4 + 44));
        assert_eq!(result.operations.last().map(|it| (it.cycle, it.stream)), Some((2, 2)));
    }

    #[test]
    fn queries_share_the_parallel_workers() {
        let mut job = job(3, 3);
        job.begin_run(Nanos(0));
        job.begin_run(Nanos(0));
        let mut processes = |stream: usize| {
            job.next_step(Nanos(0), stream);
            job.query(stream).map(|(query, _)| query.processes())
        };
        assert_eq!([processes(1), processes(2), processes(3)], [Some(3), Some(2), Some(1)]);
        job.end_step(Nanos(1), 1);
        job.next_step(Nanos(1), 1);
        assert_eq!(job.query(1).map(|(query, _)| query.processes()), Some(3));
    }
}
