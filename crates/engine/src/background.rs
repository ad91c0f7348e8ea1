//! What a database does beside its sessions: rounds of the page writers, checkpoints, flushes for those who do not wait.

use crate::core_state::{Core, Purpose, Task};
use crate::database::Database;
use crate::timers::Timer;
use crate::writers::CheckpointWork;
use underlay_core::Nanos;
use underlay_model::Request;
use underlay_model::target::Target;

/// How often the checkpointer looks at its schedule: as long as PostgreSQL's sleeps between writes.
const CHECKPOINTER_ROUND: Nanos = Nanos::from_millis(100);
/// `vm.dirty_writeback_centisecs`.
const FLUSHER_ROUND: Nanos = Nanos::from_secs(5);
/// `wal_writer_delay`.
const LOG_WRITER_ROUND: Nanos = Nanos::from_millis(200);
/// Pages that may wait for the kernel before the checkpointer waits, as its synchronous flushes would.
const URGENT_MAX: usize = 1_024;
/// The background writer's average is over so many rounds (`smoothing_samples`).
const SMOOTHING_ROUNDS: f64 = 16.0;

impl Database {
    pub(crate) fn start_writers<T: Target>(&mut self, core: &mut Core<T>) {
        let database = self.number;
        core.timers.set(core.now + CHECKPOINTER_ROUND, Timer::Checkpointer { database });
        core.timers.set(core.now + FLUSHER_ROUND, Timer::Flusher { database });
        core.timers.set(core.now + LOG_WRITER_ROUND, Timer::LogWriter { database });
        if self.settings.bgwriter_lru_maxpages > 0 {
            core.timers.set(core.now + self.settings.bgwriter_delay, Timer::Writer { database });
        }
    }

    fn use_processor<T: Target>(&mut self, core: &mut Core<T>, work: Nanos) {
        if work > Nanos::ZERO {
            core.cpus[self.spec.host].submit(core.now, work, Task::Background);
        }
    }

    /// Lets the kernel write what is due.
    pub(crate) fn pump<T: Target>(&mut self, core: &mut Core<T>) {
        while let Some((first, pages)) = self.kernel.next_run(core.now) {
            for page in 0..pages {
                let page = crate::page::PageId::new(first.relation(), first.block() + page);
                self.page_cache.clean(page);
            }
            let length = pages * self.layout.page_bytes();
            // Neighbours lie side by side, but for a relation that starts again at its beginning.
            let offset = self.layout.offset_of_run(first, pages);
            let purpose = Purpose::PageWrite { database: self.number };
            core.submit(
                self.path(),
                self.spec.data.volume,
                Request::write(offset, length),
                purpose,
            );
        }
    }

    /// Pages were written.
    pub(crate) fn page_written<T: Target>(&mut self, core: &mut Core<T>) {
        self.kernel.complete();
        self.pump(core);
        if !self.kernel.is_over_limit() || !self.kernel.is_writing() {
            core.ready.extend(self.throttled.drain(..).map(|session| (self.number, session)));
        }
    }

    pub(crate) fn flusher_round<T: Target>(&mut self, core: &mut Core<T>) {
        self.pump(core);
        core.timers.set(core.now + FLUSHER_ROUND, Timer::Flusher { database: self.number });
    }

    /// Flushes what no session waits for.
    pub(crate) fn log_writer_round<T: Target>(&mut self, core: &mut Core<T>) {
        if self.log.try_lead() {
            self.use_processor(core, self.demands.cpu_per_log_flush);
            self.flush_log(core, None);
        }
        core.timers.set(core.now + LOG_WRITER_ROUND, Timer::LogWriter { database: self.number });
    }

    pub(crate) fn writer_round<T: Target>(&mut self, core: &mut Core<T>) {
        let misses = std::mem::take(&mut self.misses) as f64;
        // As in PostgreSQL: up at once, down slowly.
        self.smoothed_misses = if misses > self.smoothed_misses {
            misses
        } else {
            self.smoothed_misses + (misses - self.smoothed_misses) / SMOOTHING_ROUNDS
        };
        let wanted = (self.smoothed_misses * self.settings.bgwriter_lru_multiplier) as u32;
        let mut pages = Vec::new();
        self.pool.dirty_ahead(wanted, self.settings.bgwriter_lru_maxpages, &mut pages);
        let written = pages.len() as u64;
        for page in pages {
            self.pool.clean(page);
            self.write_to_kernel(core.now, page, true);
        }
        self.kernel.counters.background_pages += written;
        self.use_processor(core, Nanos(self.demands.cpu_per_page_write.0 * written));
        self.pump(core);
        let next = core.now + self.settings.bgwriter_delay;
        core.timers.set(next, Timer::Writer { database: self.number });
    }

    pub(crate) fn checkpointer_round<T: Target>(&mut self, core: &mut Core<T>) {
        let mut due = Vec::new();
        let work = if self.kernel.urgent() > URGENT_MAX {
            CheckpointWork::None
        } else {
            let (inserted, written) = (self.log.inserted(), self.kernel.left());
            self.checkpointer.work(core.now, inserted, written, &mut due)
        };
        let mut written = 0;
        for page in due {
            // Others may have written it already, or taken its frame.
            if self.pool.clean(page) {
                self.write_to_kernel(core.now, page, true);
                written += 1;
            }
        }
        self.kernel.counters.checkpoint_pages += written;
        self.use_processor(core, Nanos(self.demands.cpu_per_page_write.0 * written));
        match work {
            CheckpointWork::None => {}
            CheckpointWork::Begin { is_forced } => {
                self.kernel.counters.checkpoints_forced += u64::from(is_forced);
                let dirty = self.pool.dirty_pages().collect();
                self.checkpointer.begin(core.now, self.log.inserted(), dirty);
            }
            CheckpointWork::Synchronise => {
                let goal = self.kernel.synchronise();
                self.checkpointer.synchronise(goal);
            }
            CheckpointWork::Flush => {
                self.checkpointer.flush();
                let purpose = Purpose::DataFlush { database: self.number };
                core.submit(self.path(), self.spec.data.volume, Request::flush(), purpose);
            }
        }
        self.pump(core);
        let next = core.now + CHECKPOINTER_ROUND;
        core.timers.set(next, Timer::Checkpointer { database: self.number });
    }

    /// The data volume is flushed: the checkpoint is complete.
    pub(crate) fn data_flushed(&mut self) {
        self.checkpointer.end();
        self.kernel.counters.checkpoints += 1;
    }
}
