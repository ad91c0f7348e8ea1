//! What a database does beside its sessions: rounds of the page writers, checkpoints, flushes for
//! those who do not wait.

use crate::cleaner::CleanerRequest;
use crate::core_state::{Core, Purpose, Task};
use crate::database::Database;
use crate::engine::Engine;
use crate::page::PageId;
use crate::pool::Pool;
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
const WAL_WRITER_ROUND: Nanos = Nanos::from_millis(200);
/// How often InnoDB flushes the log for those who do not wait (`innodb_flush_log_at_timeout`), and
/// its page cleaner decides where nothing wakes it.
const INNODB_ROUND: Nanos = Nanos::from_secs(1);
/// Pages that may wait for the kernel before the checkpointer waits, as its synchronous flushes
/// would.
const URGENT_MAX: usize = 1_024;
/// Pages of the background writer that may wait for the kernel before it waits itself, as its flushes
/// do where the device is behind: `bgwriter_flush_after`, 512 KiB.
const BACKGROUND_URGENT_MAX: usize = 64;
/// Rounds over which the background writer averages (`smoothing_samples`).
const SMOOTHING_ROUNDS: f64 = 16.0;

impl Database {
    pub(crate) fn start_writers<T: Target>(&mut self, core: &mut Core<T>) {
        let database = self.number;
        let mut set = |after, timer| core.timers.set(core.now + after, timer);
        match &self.engine {
            Engine::Postgresql(engine) => {
                set(CHECKPOINTER_ROUND, Timer::Checkpointer { database });
                set(FLUSHER_ROUND, Timer::Flusher { database });
                set(WAL_WRITER_ROUND, Timer::LogWriter { database });
                if engine.settings.bgwriter_lru_maxpages > 0 {
                    set(engine.settings.bgwriter_delay, Timer::Writer { database });
                }
            }
            Engine::Innodb(_) => {
                set(INNODB_ROUND, Timer::Writer { database });
                set(INNODB_ROUND, Timer::LogWriter { database });
            }
        }
    }

    /// Processor time of the server that no session waits for.
    pub(crate) fn use_processor<T: Target>(&self, core: &mut Core<T>, work: Nanos) {
        let work = Nanos((work.0 as f64 * self.cpu_scale).round() as u64);
        if work > Nanos::ZERO {
            core.cpus[self.spec.host].submit(core.now, work, Task::Background);
        }
    }

    /// Lets those write who have something to write: the kernel, the page cleaner.
    pub(crate) fn pump<T: Target>(&mut self, core: &mut Core<T>) {
        let (path, volume, database) = (self.path(), self.spec.data.volume, self.number);
        let page_bytes = self.layout.page_bytes();
        match (&mut self.engine, &mut self.pool) {
            (Engine::Postgresql(engine), _) => {
                while let Some((first, pages)) = engine.kernel.next_run(core.now) {
                    for page in 0..pages {
                        let page = PageId::new(first.relation(), first.block() + page);
                        engine.page_cache.clean(page);
                    }
                    let offset = self.layout.offset_of_run(first, pages);
                    let request = Request::write(offset, pages * page_bytes);
                    core.submit(path, volume, request, Purpose::PageWrite { database, first });
                }
            }
            (Engine::Innodb(engine), Pool::Midpoint(pool)) => {
                while let Some(next) = engine.cleaner.next_request(|page| pool.begin_write(page)) {
                    let (request, purpose) = match next {
                        CleanerRequest::Doublewrite { behind, pages } => {
                            engine.counters.doublewrite_pages += u64::from(pages);
                            let offset = self.layout.doublewrite() + u64::from(behind * page_bytes);
                            let request = Request::write(offset, pages * page_bytes);
                            (request, Purpose::Doublewrite { database })
                        }
                        CleanerRequest::Page(page) => {
                            engine.counters.written_pages += 1;
                            engine.counters.write_requests += 1;
                            let offset = self.layout.offset(page);
                            let request = Request::write(offset, page_bytes);
                            (request, Purpose::PageWrite { database, first: page })
                        }
                    };
                    core.submit(path, volume, request, purpose);
                }
            }
            (Engine::Innodb(_), Pool::Clock(_)) => {
                unreachable!("an engine has its own kind of pool")
            }
        }
    }

    /// Pages were written, the first of which is this one.
    pub(crate) fn page_written<T: Target>(&mut self, core: &mut Core<T>, first: PageId) {
        match (&mut self.engine, &mut self.pool) {
            (Engine::Postgresql(engine), _) => {
                engine.kernel.complete(core.now);
                let may_go_on = !engine.kernel.is_over_limit();
                self.pump(core);
                if may_go_on {
                    self.end_throttle(core);
                }
            }
            (Engine::Innodb(engine), Pool::Midpoint(pool)) => {
                pool.clean(first);
                let is_last = engine.cleaner.page_written();
                let number = self.number;
                let waited = self.latched.extract_if(.., |(page, _)| *page == first);
                core.ready.extend(waited.map(|(_, session)| (number, session)));
                if is_last {
                    self.flush_data(core);
                }
                self.clean(core);
            }
            (Engine::Innodb(_), Pool::Clock(_)) => {
                unreachable!("an engine has its own kind of pool")
            }
        }
        core.ready.extend(self.starved.drain(..).map(|session| (self.number, session)));
    }

    /// Sessions that were throttled may go on.
    pub(crate) fn end_throttle<T: Target>(&mut self, core: &mut Core<T>) {
        core.ready.extend(self.throttled.drain(..).map(|session| (self.number, session)));
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
        let round = match self.engine {
            Engine::Postgresql(_) => WAL_WRITER_ROUND,
            Engine::Innodb(_) => INNODB_ROUND,
        };
        core.timers.set(core.now + round, Timer::LogWriter { database: self.number });
    }

    pub(crate) fn writer_round<T: Target>(&mut self, core: &mut Core<T>) {
        let mut pages = Vec::new();
        let delay = match (&mut self.engine, &mut self.pool) {
            (Engine::Postgresql(engine), Pool::Clock(pool)) => {
                let misses = std::mem::take(&mut engine.misses) as f64;
                // As in PostgreSQL: up at once, down slowly.
                engine.smoothed_misses = if misses > engine.smoothed_misses {
                    misses
                } else {
                    engine.smoothed_misses + (misses - engine.smoothed_misses) / SMOOTHING_ROUNDS
                };
                let settings = &engine.settings;
                let wanted = (engine.smoothed_misses * settings.bgwriter_lru_multiplier) as u32;
                if engine.kernel.urgent() <= BACKGROUND_URGENT_MAX {
                    pool.dirty_ahead(wanted, settings.bgwriter_lru_maxpages, &mut pages);
                }
                let delay = settings.bgwriter_delay;
                for &page in &pages {
                    pool.clean(page);
                    engine.write_to_kernel(core.now, page, true);
                }
                engine.kernel.counters.background_pages += pages.len() as u64;
                delay
            }
            (Engine::Innodb(engine), _) => {
                let next = engine.cleaner.next_timer(core.now);
                core.timers.set(next, Timer::Writer { database: self.number });
                return self.clean(core);
            }
            (Engine::Postgresql(_), Pool::Midpoint(_)) => {
                unreachable!("an engine has its own kind of pool")
            }
        };
        self.use_processor(core, self.demands.of_written_pages(pages.len() as u64));
        self.pump(core);
        core.timers.set(core.now + delay, Timer::Writer { database: self.number });
    }

    pub(crate) fn checkpointer_round<T: Target>(&mut self, core: &mut Core<T>) {
        let clock = self.clock(core.now);
        let (Engine::Postgresql(engine), Pool::Clock(pool)) = (&mut self.engine, &mut self.pool)
        else {
            return;
        };
        let mut due = Vec::new();
        let inserted = self.log.inserted();
        let work = if engine.kernel.urgent() > URGENT_MAX {
            CheckpointWork::None
        } else {
            engine.checkpointer.work(clock, inserted, engine.kernel.written(), &mut due)
        };
        let mut written = 0;
        for page in due {
            // Others may have written it already, or taken its frame.
            if pool.clean(page) {
                engine.write_to_kernel(core.now, page, true);
                written += 1;
            }
        }
        engine.kernel.counters.checkpoint_pages += written;
        match work {
            CheckpointWork::None => {}
            CheckpointWork::Begin { is_forced } => {
                engine.kernel.counters.checkpoints_forced += u64::from(is_forced);
                engine.checkpointer.begin(clock, inserted, pool.dirty_pages());
            }
            CheckpointWork::Synchronise => {
                let goal = engine.kernel.synchronise();
                engine.checkpointer.synchronise(goal);
            }
            CheckpointWork::Flush => {
                engine.checkpointer.flush();
                self.flush_data(core);
            }
        }
        self.use_processor(core, self.demands.of_written_pages(written));
        self.pump(core);
        let next = core.now + CHECKPOINTER_ROUND;
        core.timers.set(next, Timer::Checkpointer { database: self.number });
    }

    fn flush_data<T: Target>(&mut self, core: &mut Core<T>) {
        let purpose = Purpose::DataFlush { database: self.number };
        core.submit(self.path(), self.spec.data.volume, Request::flush(), purpose);
    }

    /// A batch is in the doublewrite buffer.
    pub(crate) fn doublewritten<T: Target>(&mut self, core: &mut Core<T>) {
        if let Engine::Innodb(engine) = &mut self.engine
            && engine.cleaner.doublewritten()
        {
            self.flush_data(core);
        }
    }

    /// The data volume is flushed: a checkpoint is complete, a batch can go to its places, or is there.
    pub(crate) fn data_flushed<T: Target>(&mut self, core: &mut Core<T>) {
        match &mut self.engine {
            Engine::Postgresql(engine) => {
                engine.checkpointer.end();
                engine.kernel.counters.checkpoints += 1;
            }
            Engine::Innodb(engine) => {
                engine.cleaner.flushed();
                self.clean(core);
            }
        }
    }
}
