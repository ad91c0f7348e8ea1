//! The results of a database for one window: its counters, which are then reset.
//!
//! What is not here: when a window ends, and the counting itself.

use crate::database::Database;
use crate::result::{DatabaseResult, IoResult, JobResult, TypeResult, Unwritten};
use crate::session::Phase;
use underlay_core::Nanos;

impl Database {
    /// What was counted by `until`; counting begins again.
    pub(crate) fn take(&mut self, until: Nanos, io: IoResult) -> DatabaseResult {
        self.measured_from = until;
        let names = self.spec.workload.types().iter();
        let fresh = names.map(|name| TypeResult { name, ..TypeResult::default() }).collect();
        let places = std::array::from_fn(|place| self.places[place].take(until));
        let (page_cache, ahead_pages, writers) = self.engine.take();
        DatabaseResult {
            name: self.spec.name.clone(),
            types: std::mem::replace(&mut self.types, fresh),
            headline: self.spec.workload.headline(),
            places,
            io,
            pool: self.pool.take_counters(),
            unread: std::mem::take(&mut self.unread),
            page_cache,
            ahead_pages,
            log: self.log.take_counters(),
            writers,
            unwritten: Unwritten {
                pool_pages: self.pool.dirty().into(),
                kernel_pages: self.engine.kernel_pages(),
                log_bytes: self.log.pending(),
            },
            backlog: self.backlog.len() as u64,
            job: self.take_job(),
        }
    }

    /// The results of its job.
    fn take_job(&mut self) -> Option<JobResult> {
        if let Some(warehouse) = &mut self.warehouse {
            return Some(warehouse.take());
        }
        match &mut self.job {
            Some(job) => Some(job.take()),
            // A job of sessions is done when none of them has anything to do.
            None if self.spec.workload.is_job() => {
                let is_done = self.sessions.iter().all(|session| session.phase == Phase::Idle);
                let ended = is_done.then_some(self.last_idle);
                Some(JobResult { ended, ..JobResult::default() })
            }
            None => None,
        }
    }
}
