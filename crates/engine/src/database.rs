//! A running database: the sessions' steps, and the log.
//!
//! Every event enters through one of four functions: a timer, a processor, a completed request, or
//! a session that may continue. None of them blocks; the session's phase records what it waits for.

use crate::core_state::{Core, IoPath, Purpose, Task};
use crate::demand::DemandProfile;
use crate::engine::Engine;
use crate::job::Job;
use crate::layout::Layout;
use crate::locks::Locks;
use crate::page::{PageId, PageSet};
use crate::pool::{Pool, Touched};
use crate::redo_log::RedoLog;
use crate::result::{Place, TypeResult, UnreadMisses};
use crate::script::Touch;
use crate::session::{Phase, Session};
use crate::sources::Source;
use crate::spec::{DatabaseSpec, Load, WorkloadSpec};
use crate::station::Station;
use crate::timers::Timer;
use crate::warehouse_job::WarehouseJob;
use std::collections::VecDeque;
use underlay_core::{Nanos, RootSeed};
use underlay_model::Request;
use underlay_model::target::Target;
use underlay_workload::arrivals::{ArrivalSchedule, Share};

/// Share of a page read's processor time that remains when the page is in the page cache: no block
/// layer, no interrupt, no switch to another process and back.
const CACHED_READ_PERCENT: u64 = 40;

/// A database.
pub(crate) struct Database {
    pub(crate) number: u16,
    pub(crate) spec: DatabaseSpec,
    pub(crate) engine: Engine,
    pub(crate) demands: DemandProfile,
    /// What processor times of sessions are multiplied by now.
    pub(crate) cpu_scale: f64,
    pub(crate) layout: Layout,
    pub(crate) source: Source,
    pub(crate) sessions: Vec<Session>,
    /// Users that work, the first ones; the others rest.
    pub(crate) active: u32,
    /// Time that was skipped.
    pub(crate) skipped: Nanos,
    pub(crate) pool: Pool,
    pub(crate) unread: UnreadMisses,
    /// Pages behind those that were loaded, which have been made since.
    pub(crate) created: PageSet,
    /// Sessions that wait for a page which another one reads, by the page.
    awaited: Locks,
    /// Sessions that wait to change a page that is being written.
    pub(crate) latched: Vec<(PageId, u32)>,
    /// Sessions that wait until any read ends, because every frame is being read into.
    pub(crate) starved: VecDeque<u32>,
    locks: Locks,
    pub(crate) log: RedoLog,
    /// Free connections, and who waits for one.
    pub(crate) free_connections: u32,
    pub(crate) connecting: VecDeque<u32>,
    /// Sessions without a transaction, of an open loop.
    pub(crate) idle: VecDeque<u32>,
    pub(crate) schedule: Option<ArrivalSchedule>,
    pub(crate) backlog: VecDeque<Nanos>,
    pub(crate) throttled: VecDeque<u32>,
    /// Writes of the log's flush that are under way.
    log_writes: u32,
    log_requests: Vec<(u64, u32)>,
    pub(crate) places: [Station; Place::COUNT],
    pub(crate) types: Vec<TypeResult>,
    pub(crate) measured_from: Nanos,
    /// When a session of its job was done, the last one.
    pub(crate) last_idle: Nanos,
    /// Its job, where that is more than sessions.
    pub(crate) job: Option<Job>,
    /// The runs of its warehouse, if it is one.
    pub(crate) warehouse: Option<Box<WarehouseJob>>,
}

impl Database {
    /// An idle database with empty caches.
    pub(crate) fn new(
        number: u16,
        spec: &DatabaseSpec,
        layout: Layout,
        seed: RootSeed,
    ) -> Database {
        let (engine, pool) = Engine::new(&spec.engine);
        let users = spec.load.users();
        let seed = seed.child("engine.database", u64::from(number));
        let demands = spec.demands.scaled();
        let schedule = match spec.load {
            Load::Closed { .. } | Load::Job { .. } => None,
            Load::Open { arrivals, .. } => {
                Some(ArrivalSchedule::new(arrivals, seed, Share { index: 0, of: 1 }))
            }
        };
        let types = spec.workload.types().iter();
        let job = match &spec.workload {
            WorkloadSpec::Backup(backup) => {
                let bytes = layout.loaded_bytes().0;
                Some(Job::new(backup, &spec.engine, &demands, bytes))
            }
            _ => None,
        };
        let warehouse = match (&spec.workload, &pool) {
            (WorkloadSpec::Warehouse(warehouse), Pool::Clock(buffers)) => {
                let job = WarehouseJob::new(warehouse, &demands, buffers.frames(), seed);
                Some(Box::new(job))
            }
            _ => None,
        };
        Database {
            number,
            job,
            warehouse,
            last_idle: Nanos::ZERO,
            cpu_scale: 1.0,
            source: Source::new(&spec.workload, &spec.engine, &demands, users, seed),
            sessions: (0..users).map(|_| Session::new()).collect(),
            active: users,
            skipped: Nanos::ZERO,
            pool,
            unread: UnreadMisses::default(),
            created: PageSet::default(),
            engine,
            awaited: Locks::default(),
            latched: Vec::new(),
            starved: VecDeque::new(),
            locks: Locks::default(),
            log: RedoLog::new(spec.engine.log_block_bytes(), spec.log.length),
            free_connections: spec.client.connections.unwrap_or(users),
            connecting: VecDeque::new(),
            idle: VecDeque::new(),
            schedule,
            backlog: VecDeque::new(),
            throttled: VecDeque::new(),
            log_writes: 0,
            log_requests: Vec::new(),
            places: Default::default(),
            types: types.map(|name| TypeResult { name, ..TypeResult::default() }).collect(),
            measured_from: Nanos::ZERO,
            demands,
            layout,
            spec: spec.clone(),
        }
    }

    /// The time of its checkpointer, which does not stand still while time is skipped.
    pub(crate) fn clock(&self, now: Nanos) -> Nanos {
        now + self.skipped
    }

    pub(crate) fn path(&self) -> IoPath {
        IoPath { host: self.spec.host, cpu_per_io: self.demands.cpu_per_io }
    }

    pub(crate) fn enter(&mut self, now: Nanos, session: u32, phase: Phase) {
        self.sessions[session as usize].enter(now, phase, &mut self.places);
    }

    /// Puts a session's work on the processors of a host.
    pub(crate) fn burst<T: Target>(
        &mut self,
        core: &mut Core<T>,
        session: u32,
        work: Nanos,
        phase: Phase,
    ) {
        self.enter(core.now, session, phase);
        let (host, work) = match phase {
            Phase::Preparing => (self.spec.client.host.unwrap_or(self.spec.host), work),
            _ => {
                let work = Nanos((work.0 as f64 * self.cpu_scale).round() as u64);
                self.sessions[session as usize].server_cpu += work;
                (self.spec.host, work)
            }
        };
        let task = Task::Session { database: self.number, session };
        core.cpus[host].submit(core.now, work, task);
    }

    pub(crate) fn timer<T: Target>(
        &mut self,
        core: &mut Core<T>,
        session: u32,
        length: Nanos,
        phase: Phase,
    ) {
        self.enter(core.now, session, phase);
        let timer = Timer::Session { database: self.number, session };
        core.timers.set(core.now + length, timer);
    }

    /// The server has the request.
    pub(crate) fn receive<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        // InnoDB makes sessions wait before they change anything, so that the checkpoint can catch
        // up.
        if self.is_log_full() {
            self.throttled.push_back(session);
            return self.enter(core.now, session, Phase::Throttled);
        }
        let mut script = std::mem::take(&mut self.sessions[session as usize].script);
        self.source.write_down(session, &mut script);
        self.look_ahead(&script);
        let state = &mut self.sessions[session as usize];
        state.script = script;
        state.step = 0;
        state.next_lock = 0;
        state.next_touch = 0;
        state.cpu_used = Nanos::ZERO;
        state.images = 0;
        self.advance(core, session);
    }

    /// A pause or a message's time has passed.
    pub(crate) fn on_timer<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        match self.sessions[session as usize].phase {
            Phase::Pausing => self.paused(core, session),
            Phase::Sending => self.receive(core, session),
            Phase::Answering => self.answered(core, session),
            other => unreachable!("no timer wakes a session in phase {other:?}"),
        }
    }

    /// A burst is done.
    pub(crate) fn on_cpu<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        match self.sessions[session as usize].phase {
            Phase::Preparing => self.dispatch(core, session),
            Phase::BeforeRead => self.read(core, session),
            Phase::Working => self.end_step(core, session),
            Phase::BeforeFlush => self.flush_log(core, Some(session)),
            other => unreachable!("no processor has a session in phase {other:?}"),
        }
    }

    /// Whatever a session waited for has come.
    pub(crate) fn on_ready<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        match self.sessions[session as usize].phase {
            Phase::Connecting => self.prepare(core, session),
            Phase::Locking | Phase::Starved | Phase::Latched => self.advance(core, session),
            Phase::Awaiting => {
                self.touched(session);
                self.advance(core, session);
            }
            Phase::Throttled if self.engine.unlocks_before_flush() => self.receive(core, session),
            Phase::Throttled => self.read_page(core, session),
            Phase::Flushing => self.committed(core, session),
            other => unreachable!("nothing wakes a session in phase {other:?}"),
        }
    }

    /// Takes the locks of the step, touches its pages, and uses the processor.
    fn advance<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &mut self.sessions[session as usize];
        let step = state.script.steps[state.step];
        while state.next_lock < step.locks_end {
            let row = state.script.locks[state.next_lock as usize];
            if !self.locks.acquire(row, session) {
                return self.enter(core.now, session, Phase::Locking);
            }
            state.next_lock += 1;
        }
        while self.sessions[session as usize].next_touch < step.touches_end {
            let state = &self.sessions[session as usize];
            let touch = state.script.touches[state.next_touch as usize];
            if touch.writes && self.pool.is_latched(touch.page) {
                self.latched.push((touch.page, session));
                return self.enter(core.now, session, Phase::Latched);
            }
            // A change counts from the end of the log as it is now; the count of dirty pages shows
            // whether it is the page's first one.
            let (dirty, position) = (self.pool.dirty(), self.log.inserted());
            let notes = self.engine.is_unhinted(touch.page);
            let writes = touch.writes || notes;
            let touched = self.pool.touch(core.now, touch.page, writes, position);
            if touch.writes && self.pool.dirty() > dirty {
                self.engine.changed(position, touch.page);
            }
            if touched != Touched::Full && self.layout.relation(touch.page).is_heap {
                if notes && !touch.writes {
                    let images = self.image_of_pruned(touch.page);
                    self.sessions[session as usize].images += images;
                }
                self.engine.seen(touch.page, touch.writes);
                if let Engine::Postgresql(engine) = &mut self.engine {
                    engine.autoanalyze.count(touch.page.relation(), touch.rows.into());
                }
            }
            match touched {
                Touched::Hit(frame) => {
                    if self.pool.is_loading(frame) {
                        // The session that reads it has the page; the waiting ones get it one after
                        // the other.
                        let has_it = self.awaited.acquire(touch.page.number(), session);
                        debug_assert!(!has_it, "the reader has it");
                        return self.enter(core.now, session, Phase::Awaiting);
                    }
                }
                Touched::Missed { frame, evicted } => {
                    return self.miss(core, session, touch, (frame, evicted));
                }
                Touched::Full => {
                    // All frames at the tail are dirty or being read, so the session waits until
                    // the page cleaner has freed some.
                    self.starved.push_back(session);
                    self.enter(core.now, session, Phase::Starved);
                    return self.clean(core);
                }
            }
            self.touched(session);
        }
        let state = &self.sessions[session as usize];
        let work = step.cpu.saturating_sub(state.cpu_used);
        self.burst(core, session, work, Phase::Working);
    }

    /// The page of the current touch is in memory: the next one follows.
    #[inline]
    fn touched(&mut self, session: u32) {
        let state = &mut self.sessions[session as usize];
        let touch = state.script.touches[state.next_touch as usize];
        if touch.writes {
            let image_bytes = self.layout.relation(touch.page).image_bytes;
            let did_exist = std::mem::replace(&mut state.page_exists, true);
            state.images += self.engine.image(touch.page, image_bytes, did_exist);
        }
        state.next_touch += 1;
    }

    /// Bytes of the image that is logged when a reader prunes the versions that a change left behind. Pages that were made
    /// since the load have new versions, and none that were left.
    pub(crate) fn image_of_pruned(&mut self, page: PageId) -> u64 {
        let relation = self.layout.relation(page);
        let has_old_versions = page.block() < relation.blocks;
        if has_old_versions { self.engine.image(page, relation.image_bytes, true) } else { 0 }
    }

    /// A page has to be read: first the processor time up to here, that of the read, and that of
    /// writing the evicted pages.
    fn miss<T: Target>(
        &mut self,
        core: &mut Core<T>,
        session: u32,
        touch: Touch,
        (frame, evicted): (u32, Option<(PageId, bool)>),
    ) {
        let (page, is_new) = (touch.page, self.creates(touch));
        self.pool.set_loading(frame, true);
        let first = self.awaited.acquire(page.number(), session);
        debug_assert!(first, "nobody else reads a page that was not in the pool");
        self.frame_taken(core);
        let mut work = Nanos::ZERO;
        let mut wrote = false;
        let (is_cached, run) = match &mut self.engine {
            Engine::Postgresql(engine) => {
                engine.misses += 1;
                wrote = is_new || matches!(evicted, Some((_, true)));
                if let Some((old, true)) = evicted {
                    engine.kernel.counters.session_pages += 1;
                    engine.write_to_kernel(core.now, old, false);
                    work = self.demands.cpu_per_page_write;
                }
                if is_new {
                    // The file grows by a page of zeros.
                    engine.kernel.counters.session_pages += 1;
                    engine.write_to_kernel(core.now, page, false);
                    work += self.demands.cpu_per_page_write;
                }
                // A page that a user adds is made in memory.
                match is_new {
                    true => (matches!(engine.page_cache.touch(page, false), Touched::Hit(_)), None),
                    false => {
                        let streams = &mut self.sessions[session as usize].streams;
                        engine.read(streams, page, &self.layout)
                    }
                }
            }
            Engine::Innodb(_) => (is_new, None),
        };
        let unread = if is_new { &mut self.unread.created } else { &mut self.unread.cached };
        *unread += u64::from(is_cached);
        let read = self.demands.cpu_per_page_read.0;
        work += Nanos(if is_cached { read * CACHED_READ_PERCENT / 100 } else { read });
        let state = &mut self.sessions[session as usize];
        state.frame = frame;
        state.page_exists = !is_new;
        state.is_cached = is_cached;
        state.has_written = wrote;
        state.read_blocks = 1;
        match run {
            Some((first, blocks)) if first == page => state.read_blocks = blocks,
            Some((first, blocks)) => self.submit_ahead(core, first, blocks),
            None => {}
        }
        let state = &mut self.sessions[session as usize];
        // The step's own time passes as its pages do.
        let begin = match state.step {
            0 => 0,
            step => state.script.steps[step - 1].touches_end,
        };
        let step = state.script.steps[state.step];
        let share = u64::from(state.next_touch - begin) * step.cpu.0;
        let until = Nanos(share / u64::from(step.touches_end - begin));
        work += until.saturating_sub(state.cpu_used);
        state.cpu_used = until;
        self.burst(core, session, work, Phase::BeforeRead);
    }

    /// The kernel lets those wait that have written, not those that only read.
    fn read<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        if self.sessions[session as usize].has_written
            && let Engine::Postgresql(engine) = &mut self.engine
            && engine.kernel.is_over_limit()
        {
            engine.kernel.await_at(core.now);
            self.pump(core);
            if let Engine::Postgresql(engine) = &self.engine
                && engine.kernel.is_over_limit()
                && engine.kernel.is_writing()
            {
                self.throttled.push_back(session);
                return self.enter(core.now, session, Phase::Throttled);
            }
        }
        self.read_page(core, session);
    }

    /// Whether a touch makes its page, which is noted: the first row behind those that were loaded does.
    pub(crate) fn creates(&mut self, Touch { page, writes, is_new, .. }: Touch) -> bool {
        let is_behind = page.block() >= self.layout.relation(page).blocks;
        is_new || (writes && is_behind && !self.created.insert(page))
    }

    fn read_page<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &self.sessions[session as usize];
        if state.is_cached {
            return self.loaded(core, session);
        }
        let page = state.script.touches[state.next_touch as usize].page;
        if let Engine::Postgresql(engine) = &mut self.engine {
            engine.kernel.read_at(core.now);
        }
        let length = state.read_blocks * self.layout.page_bytes();
        let request = Request::read(self.layout.offset(page), length);
        let purpose = Purpose::Read { database: self.number, session };
        self.enter(core.now, session, Phase::Reading);
        core.submit(self.path(), self.spec.data.volume, request, purpose);
    }

    /// The kernel reads pages that nobody waits for.
    fn submit_ahead<T: Target>(&mut self, core: &mut Core<T>, first: PageId, blocks: u32) {
        if let Engine::Postgresql(engine) = &mut self.engine {
            engine.kernel.read_at(core.now);
        }
        let length = blocks * self.layout.page_bytes();
        let request = Request::read(self.layout.offset(first), length);
        let purpose = Purpose::ReadAhead { database: self.number };
        core.submit(self.path(), self.spec.data.volume, request, purpose);
    }

    /// It has read them.
    pub(crate) fn read_ahead_ended<T: Target>(&mut self, core: &mut Core<T>, latency: Nanos) {
        if let Engine::Postgresql(engine) = &mut self.engine {
            engine.kernel.read_ended(core.now, latency);
        }
    }

    /// The page that a session needs is in the pool, and so it is for those who wait for it.
    pub(crate) fn loaded<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &self.sessions[session as usize];
        if let (Phase::Reading, Engine::Postgresql(engine)) = (state.phase, &mut self.engine) {
            engine.kernel.read_ended(core.now, core.now - state.since);
        }
        let page = state.script.touches[state.next_touch as usize].page.number();
        self.pool.set_loading(state.frame, false);
        let mut reader = session;
        // All who waited for the page go on; each takes the lock from the one before it and gives
        // it up at once.
        while let Some(next) = self.awaited.release(page, reader) {
            core.ready.push_back((self.number, next));
            reader = next;
        }
        if let Some(next) = self.starved.pop_front() {
            core.ready.push_back((self.number, next));
        }
        self.touched(session);
        self.advance(core, session);
    }

    /// The step's processor time is used: its records go to the log.
    fn end_step<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &mut self.sessions[session as usize];
        let step = state.script.steps[state.step];
        self.log.insert(u64::from(step.log_bytes), state.images);
        state.images = 0;
        state.cpu_used = Nanos::ZERO;
        state.step += 1;
        let is_last = state.step >= state.script.steps.len();
        let commits = state.script.commits;
        if step.log_bytes > 0 && self.engine.logged(self.log.inserted()) {
            self.clean(core);
        }
        if !is_last {
            return self.advance(core, session);
        }
        let waits = commits && self.engine.waits_for_log();
        if self.engine.unlocks_before_flush() {
            self.unlock(core, session);
        }
        // Nothing to flush: another session's flush may have covered its records already.
        if !waits || !self.log.wait(session) {
            return self.committed(core, session);
        }
        self.lead_flush(core);
        if self.sessions[session as usize].phase != Phase::BeforeFlush {
            self.enter(core.now, session, Phase::Flushing);
        }
    }

    /// Lets the session that waits longest flush the log, unless a flush is under way.
    fn lead_flush<T: Target>(&mut self, core: &mut Core<T>) {
        let Some(leader) = self.log.first_waiting() else { return };
        if self.log.try_lead() {
            let work = self.demands.cpu_per_log_flush;
            self.burst(core, leader, work, Phase::BeforeFlush);
        }
    }

    /// Writes everything that was inserted.
    pub(crate) fn flush_log<T: Target>(&mut self, core: &mut Core<T>, leader: Option<u32>) {
        if let Some(leader) = leader {
            self.enter(core.now, leader, Phase::Flushing);
        }
        let mut requests = std::mem::take(&mut self.log_requests);
        self.log.begin_flush(&mut requests);
        self.log_writes = requests.len() as u32;
        let purpose = Purpose::LogWrite { database: self.number };
        let (log, page_bytes) = (self.layout.relations().len() as u16, self.layout.page_bytes());
        for (offset, length) in requests.drain(..) {
            self.engine.log_enters_cache(log, page_bytes, (offset, length));
            let request = Request::write(self.spec.log.offset.0 + offset, length);
            core.submit(self.path(), self.spec.log.volume, request, purpose);
        }
        self.log_requests = requests;
    }

    /// A write of the log is done; after the last one the volume is flushed.
    pub(crate) fn log_written<T: Target>(&mut self, core: &mut Core<T>) {
        self.log_writes -= 1;
        if self.log_writes == 0 {
            let purpose = Purpose::LogFlush { database: self.number };
            core.submit(self.path(), self.spec.log.volume, Request::flush(), purpose);
        }
    }

    /// The log is durable.
    pub(crate) fn log_flushed<T: Target>(&mut self, core: &mut Core<T>) {
        self.log.end_flush();
        while let Some(session) = self.log.pop_durable() {
            core.ready.push_back((self.number, session));
        }
        self.lead_flush(core);
    }

    /// Gives up the locks of a transaction.
    fn unlock<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let locks = std::mem::take(&mut self.sessions[session as usize].script.locks);
        for &row in &locks {
            if let Some(next) = self.locks.release(row, session) {
                self.sessions[next as usize].next_lock += 1;
                core.ready.push_back((self.number, next));
            }
        }
        self.sessions[session as usize].script.locks = locks;
    }

    /// The transaction has ended on the server.
    fn committed<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        if !self.engine.unlocks_before_flush() {
            self.unlock(core, session);
        }
        self.use_processor(core, self.demands.background_cpu);
        let half = Nanos(self.spec.client.round_trip.0 / 2);
        // The client hears of the last row of a call.
        if half > Nanos::ZERO && !self.source.has_been_sent(session) {
            return self.timer(core, session, half, Phase::Answering);
        }
        self.answered(core, session);
    }
}
