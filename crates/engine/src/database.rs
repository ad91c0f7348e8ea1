//! A database at work: sessions move through their steps, the log and the page writers beside them.
//!
//! Everything that happens comes in through one of four doors: a timer, a processor, a completed request, a session that may
//! go on. None of them waits; what has to wait is remembered in the session's phase.

use crate::core_state::{Core, IoPath, Purpose, Task};
use crate::demand::DemandProfile;
use crate::layout::Layout;
use crate::locks::Locks;
use crate::page::{NOWHERE, PageId, PageMap};
use crate::pool::{ClockSweep, Touched};
use crate::redo_log::RedoLog;
use crate::result::{DatabaseResult, IoResult, Place, TypeResult};
use crate::session::{Phase, Session};
use crate::sources::Source;
use crate::spec::{DatabaseSpec, EngineSpec, Load, PostgresqlSettings};
use crate::station::Station;
use crate::timers::Timer;
use crate::writers::{Checkpointer, WriteBack};
use std::collections::VecDeque;
use underlay_core::{Nanos, RootSeed};
use underlay_model::Request;
use underlay_model::target::Target;
use underlay_workload::arrivals::{ArrivalSchedule, Share};

/// Share of a page read's processor time that remains when the page is in the page cache: no block layer, no
/// interrupt, no switch to another process and back.
const CACHED_READ_PERCENT: u64 = 40;

/// A database.
pub(crate) struct Database {
    pub(crate) number: u16,
    pub(crate) spec: DatabaseSpec,
    pub(crate) settings: PostgresqlSettings,
    pub(crate) demands: DemandProfile,
    pub(crate) layout: Layout,
    pub(crate) source: Source,
    pub(crate) sessions: Vec<Session>,
    pub(crate) pool: ClockSweep,
    pub(crate) page_cache: ClockSweep,
    /// Sessions that wait for a page which another one reads, by the page.
    awaited: Locks,
    /// Sessions that wait until any read ends, because every frame is being read into.
    starved: VecDeque<u32>,
    locks: Locks,
    pub(crate) log: RedoLog,
    pub(crate) kernel: WriteBack,
    pub(crate) checkpointer: Checkpointer,
    /// Per page: the checkpoint after which its image was logged.
    images: PageMap,
    /// Free connections, and who waits for one.
    free_connections: u32,
    connecting: VecDeque<u32>,
    /// Sessions without a transaction, of an open loop.
    idle: VecDeque<u32>,
    schedule: Option<ArrivalSchedule>,
    pub(crate) backlog: VecDeque<Nanos>,
    pub(crate) throttled: VecDeque<u32>,
    /// Writes of the log's flush that are under way.
    log_writes: u32,
    log_requests: Vec<(u64, u32)>,
    /// Misses of the pool since the background writer's last round, and its estimate.
    pub(crate) misses: u64,
    pub(crate) smoothed_misses: f64,
    pub(crate) places: [Station; Place::COUNT],
    pub(crate) types: Vec<TypeResult>,
    pub(crate) headline_seconds: Vec<u32>,
    pub(crate) measured_from: Nanos,
}

impl Database {
    /// An idle database with empty caches.
    pub(crate) fn new(
        number: u16,
        spec: &DatabaseSpec,
        layout: Layout,
        seed: RootSeed,
    ) -> Database {
        let EngineSpec::Postgresql(settings) = &spec.engine;
        let page = u64::from(spec.engine.page_bytes());
        let frames = |bytes: u64| (bytes / page).min(u64::from(NOWHERE) - 1) as u32;
        let cached = frames(settings.page_cache.0);
        let users = spec.load.users();
        let seed = seed.child("engine.database", u64::from(number));
        let demands = spec.demands.scaled();
        let schedule = match spec.load {
            Load::Closed { .. } => None,
            Load::Open { arrivals, .. } => {
                Some(ArrivalSchedule::new(arrivals, seed, Share { index: 0, of: 1 }))
            }
        };
        let types = spec.workload.types().iter();
        Database {
            number,
            source: Source::new(&spec.workload, &spec.engine, &demands, users, seed),
            sessions: (0..users).map(|_| Session::new()).collect(),
            pool: ClockSweep::postgresql(frames(settings.shared_buffers.0)),
            page_cache: ClockSweep::second_chance(cached),
            awaited: Locks::default(),
            starved: VecDeque::new(),
            locks: Locks::default(),
            log: RedoLog::new(page, spec.log.length),
            kernel: WriteBack::new(cached),
            checkpointer: Checkpointer::new(
                settings.checkpoint_timeout,
                settings.checkpoint_completion_target,
                settings.max_wal_size.0,
            ),
            images: PageMap::default(),
            free_connections: spec.client.connections.unwrap_or(users),
            connecting: VecDeque::new(),
            idle: VecDeque::new(),
            schedule,
            backlog: VecDeque::new(),
            throttled: VecDeque::new(),
            log_writes: 0,
            log_requests: Vec::new(),
            misses: 0,
            smoothed_misses: 0.0,
            places: Default::default(),
            types: types.map(|name| TypeResult { name, ..TypeResult::default() }).collect(),
            headline_seconds: Vec::new(),
            measured_from: Nanos::ZERO,
            settings: settings.clone(),
            demands,
            layout,
            spec: spec.clone(),
        }
    }

    pub(crate) fn path(&self) -> IoPath {
        IoPath { host: self.spec.host, cpu_per_io: self.spec.cpu_per_io }
    }

    fn enter(&mut self, now: Nanos, session: u32, phase: Phase) {
        self.sessions[session as usize].enter(now, phase, &mut self.places);
    }

    /// Puts a session's work on the processors of a host.
    fn burst<T: Target>(&mut self, core: &mut Core<T>, session: u32, work: Nanos, phase: Phase) {
        self.enter(core.now, session, phase);
        let host = match phase {
            Phase::Preparing => self.spec.client.host.unwrap_or(self.spec.host),
            _ => self.spec.host,
        };
        let task = Task::Session { database: self.number, session };
        core.cpus[host].submit(core.now, work, task);
    }

    fn timer<T: Target>(&mut self, core: &mut Core<T>, session: u32, length: Nanos, phase: Phase) {
        self.enter(core.now, session, phase);
        let timer = Timer::Session { database: self.number, session };
        core.timers.set(core.now + length, timer);
    }

    /// Users begin to work.
    pub(crate) fn start<T: Target>(&mut self, core: &mut Core<T>) {
        self.start_writers(core);
        match self.spec.load {
            Load::Closed { .. } => {
                (0..self.sessions.len() as u32).for_each(|session| self.pause(core, session, None));
            }
            Load::Open { rate_per_second, .. } => {
                self.idle = (0..self.sessions.len() as u32).collect();
                if let Some(schedule) = &mut self.schedule {
                    schedule.set_rate(core.now, rate_per_second, Nanos::ZERO);
                }
                self.expect_arrival(core);
            }
        }
    }

    fn expect_arrival<T: Target>(&mut self, core: &mut Core<T>) {
        let due = self.schedule.as_ref().and_then(ArrivalSchedule::next_due);
        if let Some(due) = due {
            core.timers.set(due, Timer::Arrival { database: self.number });
        }
    }

    /// Arrivals that are due begin, or wait for a free session.
    pub(crate) fn arrive<T: Target>(&mut self, core: &mut Core<T>) {
        while let Some(due) = self.schedule.as_mut().and_then(|all| all.take_due(core.now)) {
            match self.idle.pop_front() {
                Some(session) => self.begin(core, session, due),
                None => self.backlog.push_back(due),
            }
        }
        self.expect_arrival(core);
    }

    /// A closed user pauses: it thinks about the answer to a transaction of type `answered`, and keys the next one in.
    fn pause<T: Target>(&mut self, core: &mut Core<T>, session: u32, answered: Option<usize>) {
        let Load::Closed { pacing, .. } = self.spec.load else { return };
        let kind = self.source.draw(session, &self.spec.mix);
        if pacing == 0.0 {
            return self.send(core, session, core.now);
        }
        let think = answered.map_or(Nanos::ZERO, |kind| self.source.think_time(session, kind));
        let pause = think + self.source.keying_time(session, kind);
        let pause = Nanos((pause.0 as f64 * pacing) as u64);
        self.timer(core, session, pause, Phase::Pausing);
    }

    /// A transaction of an open loop begins.
    fn begin<T: Target>(&mut self, core: &mut Core<T>, session: u32, intended: Nanos) {
        self.source.draw(session, &self.spec.mix);
        self.send(core, session, intended);
    }

    /// A transaction asks for a connection.
    fn send<T: Target>(&mut self, core: &mut Core<T>, session: u32, intended: Nanos) {
        self.sessions[session as usize].intended = intended;
        if self.free_connections == 0 {
            self.enter(core.now, session, Phase::Connecting);
            self.connecting.push_back(session);
            return;
        }
        self.free_connections -= 1;
        self.prepare(core, session);
    }

    fn prepare<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        self.sessions[session as usize].started = core.now;
        let work = self.demands.client_cpu;
        if self.spec.client.host.is_some() && work > Nanos::ZERO {
            return self.burst(core, session, work, Phase::Preparing);
        }
        self.dispatch(core, session);
    }

    fn dispatch<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let half = Nanos(self.spec.client.round_trip.0 / 2);
        if half > Nanos::ZERO {
            return self.timer(core, session, half, Phase::Sending);
        }
        self.receive(core, session);
    }

    /// The server has the request.
    fn receive<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &mut self.sessions[session as usize];
        self.source.write_down(session, &mut state.script);
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
            Phase::Pausing => self.send(core, session, core.now),
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
            Phase::Locking | Phase::Awaiting => self.advance(core, session),
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
            match self.pool.touch(touch.page, touch.writes) {
                Touched::Hit(frame) => {
                    if self.pool.is_loading(frame) {
                        // Whoever reads it has this; those who wait get it one after the other.
                        let has_it = self.awaited.acquire(page_key(touch.page), session);
                        debug_assert!(!has_it, "the reader has it");
                        return self.enter(core.now, session, Phase::Awaiting);
                    }
                }
                Touched::Missed { frame, evicted } => {
                    return self.miss(core, session, touch.page, frame, evicted);
                }
                Touched::Full => {
                    self.starved.push_back(session);
                    return self.enter(core.now, session, Phase::Awaiting);
                }
            }
            let state = &mut self.sessions[session as usize];
            if touch.writes && self.settings.full_page_writes {
                let number = self.checkpointer.number;
                if self.images.get(touch.page) != number {
                    self.images.set(touch.page, number);
                    state.images += u64::from(self.layout.relation(touch.page).image_bytes);
                }
            }
            state.next_touch += 1;
        }
        let state = &self.sessions[session as usize];
        let work = step.cpu.saturating_sub(state.cpu_used);
        self.burst(core, session, work, Phase::Working);
    }

    /// A page has to be read: first the processor time up to here, that of the read, and that of writing what gives way.
    fn miss<T: Target>(
        &mut self,
        core: &mut Core<T>,
        session: u32,
        page: PageId,
        frame: u32,
        evicted: Option<(PageId, bool)>,
    ) {
        self.pool.set_loading(frame, true);
        let first = self.awaited.acquire(page_key(page), session);
        debug_assert!(first, "nobody else reads a page that was not in the pool");
        self.misses += 1;
        let mut work = Nanos::ZERO;
        if let Some((old, true)) = evicted {
            self.kernel.counters.session_pages += 1;
            self.write_to_kernel(core.now, old, false);
            work = self.demands.cpu_per_page_write;
        }
        let is_cached = matches!(self.page_cache.touch(page, false), Touched::Hit(_));
        let read = self.demands.cpu_per_page_read.0;
        work = work + Nanos(if is_cached { read * CACHED_READ_PERCENT / 100 } else { read });
        let state = &mut self.sessions[session as usize];
        state.frame = frame;
        state.is_cached = is_cached;
        // The step's own time passes as its pages do.
        let begin = match state.step {
            0 => 0,
            step => state.script.steps[step - 1].touches_end,
        };
        let step = state.script.steps[state.step];
        let share = u64::from(state.next_touch - begin) * step.cpu.0;
        let until = Nanos(share / u64::from(step.touches_end - begin));
        work = work + until.saturating_sub(state.cpu_used);
        state.cpu_used = until;
        self.burst(core, session, work, Phase::BeforeRead);
    }

    /// Hands a page to the kernel; `is_urgent`: to be written back at once.
    pub(crate) fn write_to_kernel(&mut self, now: Nanos, page: PageId, is_urgent: bool) {
        let was_dirty = self.page_cache.is_dirty(page);
        self.page_cache.touch(page, true);
        if is_urgent {
            self.kernel.push_urgent(page);
            self.page_cache.clean(page);
        } else if !was_dirty {
            self.kernel.push_lazy(now, page);
        }
    }

    fn read<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        self.pump(core);
        if self.kernel.is_over_limit() && self.kernel.is_writing() {
            self.throttled.push_back(session);
            return self.enter(core.now, session, Phase::Throttled);
        }
        self.read_page(core, session);
    }

    fn read_page<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &self.sessions[session as usize];
        if state.is_cached {
            return self.loaded(core, session);
        }
        let page = state.script.touches[state.next_touch as usize].page;
        let request = Request::read(self.layout.offset(page), self.layout.page_bytes());
        let purpose = Purpose::Read { database: self.number, session };
        self.enter(core.now, session, Phase::Reading);
        core.submit(self.path(), self.spec.data.volume, request, purpose);
    }

    /// The page that a session needs is in the pool, and so it is for those who wait for it.
    pub(crate) fn loaded<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &self.sessions[session as usize];
        let page = page_key(state.script.touches[state.next_touch as usize].page);
        self.pool.set_loading(state.frame, false);
        let mut reader = session;
        while let Some(next) = self.awaited.release(page, reader) {
            core.ready.push_back((self.number, next));
            reader = next;
        }
        if let Some(next) = self.starved.pop_front() {
            core.ready.push_back((self.number, next));
        }
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
        if state.step < state.script.steps.len() {
            return self.advance(core, session);
        }
        let waits = state.script.commits && self.settings.synchronous_commit;
        if !waits || !self.log.wait(session) {
            return self.committed(core, session);
        }
        self.enter(core.now, session, Phase::Flushing);
        self.lead_flush(core);
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
        for (offset, length) in requests.drain(..) {
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

    /// The transaction has ended on the server.
    fn committed<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let locks = std::mem::take(&mut self.sessions[session as usize].script.locks);
        for &row in &locks {
            if let Some(next) = self.locks.release(row, session) {
                self.sessions[next as usize].next_lock += 1;
                core.ready.push_back((self.number, next));
            }
        }
        self.sessions[session as usize].script.locks = locks;
        let half = Nanos(self.spec.client.round_trip.0 / 2);
        if half > Nanos::ZERO {
            return self.timer(core, session, half, Phase::Answering);
        }
        self.answered(core, session);
    }

    /// The client has its answer.
    fn answered<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &self.sessions[session as usize];
        let kind = state.script.kind;
        if core.now > self.measured_from {
            let counted = &mut self.types[kind];
            counted.committed += u64::from(state.script.succeeds);
            counted.rolled_back += u64::from(!state.script.succeeds);
            counted.response.record((core.now - state.intended).0);
            counted.service.record((core.now - state.started).0);
            if state.script.succeeds && self.spec.workload.headline().types.contains(&kind) {
                let second = ((core.now - self.measured_from).0 - 1) / 1_000_000_000;
                if second as usize >= self.headline_seconds.len() {
                    self.headline_seconds.resize(second as usize + 1, 0);
                }
                self.headline_seconds[second as usize] += 1;
            }
        }
        match self.connecting.pop_front() {
            Some(next) => core.ready.push_back((self.number, next)),
            None => self.free_connections += 1,
        }
        if self.schedule.is_none() {
            return self.pause(core, session, Some(kind));
        }
        self.enter(core.now, session, Phase::Idle);
        match self.backlog.pop_front() {
            Some(intended) => self.begin(core, session, intended),
            None => self.idle.push_back(session),
        }
    }

    /// Touches what transactions touch, without anything else of them.
    pub(crate) fn warm_caches(&mut self, transactions: u64) {
        let users = self.sessions.len() as u64;
        for number in 0..transactions {
            let user = (number % users) as u32;
            self.source.draw(user, &self.spec.mix);
            let mut script = std::mem::take(&mut self.sessions[user as usize].script);
            self.source.write_down(user, &mut script);
            for touch in &script.touches {
                if let Touched::Missed { .. } = self.pool.touch(touch.page, false) {
                    self.page_cache.touch(touch.page, false);
                }
            }
            self.sessions[user as usize].script = script;
        }
        self.pool.take_counters();
        self.page_cache.take_counters();
    }

    /// What was counted by `until`; counting begins again.
    pub(crate) fn take(&mut self, until: Nanos, io: IoResult) -> DatabaseResult {
        self.measured_from = until;
        let names = self.spec.workload.types().iter();
        let fresh = names.map(|name| TypeResult { name, ..TypeResult::default() }).collect();
        let places = std::array::from_fn(|place| self.places[place].take(until));
        DatabaseResult {
            name: self.spec.name.clone(),
            types: std::mem::replace(&mut self.types, fresh),
            headline: self.spec.workload.headline(),
            headline_seconds: std::mem::take(&mut self.headline_seconds),
            places,
            io,
            pool: self.pool.take_counters(),
            page_cache: self.page_cache.take_counters(),
            log: self.log.take_counters(),
            writers: std::mem::take(&mut self.kernel.counters),
            backlog: self.backlog.len() as u64,
        }
    }
}

fn page_key(page: PageId) -> u64 {
    u64::from(page.relation()) << 32 | u64::from(page.block())
}
