//! The loop: a virtual clock that jumps from event to event.
//!
//! At each moment, what the storage has finished comes first, then bursts on processors, then
//! timers, and after each of them whoever was woken by it. The order depends on nothing but the
//! arguments.

use crate::background_work::BackgroundWork;
use crate::core_state::{Asker, Core, PURPOSES, Purpose, Task};
use crate::database::Database;
use crate::layout::Layout;
use crate::result::{DatabaseResult, EngineRun, HostResult, IoResult, JobIoResult};
use crate::skipped_time::Skip;
use crate::spec::{Scenario, ScenarioProblem};
use crate::station::Station;
use crate::timers::{BackgroundTimer, Timer};
use underlay_core::{Nanos, RootSeed};
use underlay_model::target::{Target, TargetFinished};

/// How long to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Time that is not measured.
    pub warm_up: Nanos,
    /// Time that is measured.
    pub measure: Nanos,
}

/// Databases on storage, at some moment of virtual time. All users work from the beginning, unless
/// [`Simulation::set_users`] says otherwise; windows follow each other without a gap.
pub struct Simulation<T> {
    core: Core<T>,
    databases: Vec<Database>,
    background: Vec<BackgroundWork>,
    hosts: Vec<(String, u32)>,
    finished: Vec<TargetFinished>,
    events: u64,
    has_started: bool,
    /// When users begin: what times of results are counted from.
    began: Nanos,
}

impl<T: Target> Simulation<T> {
    /// Databases with empty caches on `target`, whose volumes exist.
    ///
    /// # Errors
    /// Every rule that the scenario violates.
    pub fn new(
        scenario: &Scenario,
        target: T,
        seed: RootSeed,
    ) -> Result<Simulation<T>, Vec<ScenarioProblem>> {
        let mut problems = scenario.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut databases = Vec::with_capacity(scenario.databases.len());
        for (number, spec) in scenario.databases.iter().enumerate() {
            let relations = spec.workload.relations(&spec.engine);
            let page = spec.engine.page_bytes();
            let doublewrite = spec.engine.doublewrite_bytes();
            match Layout::new(page, relations, spec.data.offset, spec.data.length, doublewrite) {
                Ok(layout) => databases.push(Database::new(number as u16, spec, layout, seed)),
                Err(needed) => problems.push(ScenarioProblem::TooSmall {
                    of: format!("database `{}`", spec.name),
                    needed,
                    there: spec.data.length,
                }),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let background = scenario.background.iter().enumerate();
        let background =
            background.map(|(number, spec)| BackgroundWork::new(number as u16, spec, seed));
        let threads = |host: &crate::spec::HostSpec| host.cores * host.threads_per_core;
        Ok(Simulation {
            core: Core::new(target, &scenario.hosts, databases.len()),
            databases,
            background: background.collect(),
            hosts: scenario.hosts.iter().map(|host| (host.name.clone(), threads(host))).collect(),
            finished: Vec::new(),
            events: 0,
            has_started: false,
            began: Nanos::ZERO,
        })
    }

    /// The target, for its counters.
    pub fn target_mut(&mut self) -> &mut T {
        &mut self.core.target
    }

    /// Fills the caches of every database with what so many of its transactions touch, in no time
    /// and without I/O: instead of hours of warm-up. Pages are clean afterwards. Databases that
    /// are alike begin with the same caches. Only before the first window.
    ///
    /// # Panics
    /// If users work already.
    pub fn warm_caches(&mut self, transactions: u64) {
        self.touch(transactions, false);
    }

    /// The same with transactions that were made: rows have their new versions, and pages are dirty.
    ///
    /// # Panics
    /// If users work already.
    pub fn warm_by_load(&mut self, transactions: u64) {
        self.touch(transactions, true);
    }

    /// Processor times of the servers are multiplied by `scale` from now on.
    pub fn scale_cpu(&mut self, scale: f64) {
        self.databases.iter_mut().for_each(|database| database.cpu_scale = scale);
    }

    fn touch(&mut self, transactions: u64, kept: bool) {
        assert!(!self.has_started, "caches are warmed before users work");
        for number in 0..self.databases.len() {
            let (before, rest) = self.databases.split_at_mut(number);
            match before.iter().find(|other| rest[0].is_like(other)) {
                // Equal databases begin with equal caches, and one warm-up is enough.
                Some(other) => rest[0].restore(other),
                None => rest[0].warm_caches(transactions, kept),
            }
        }
    }

    /// Skips time, of each database as its [`Skip`] says. Only between windows; nothing of it is counted. How many
    /// transactions each has skipped.
    pub fn skip(&mut self, skips: &[Skip]) -> Vec<u64> {
        let now = self.core.now;
        let each = self.databases.iter_mut().zip(skips);
        each.map(|(database, skip)| database.skip(now, skip)).collect()
    }

    /// This many users of each database are active from now on, at most those of the scenario; the others end their
    /// transaction and rest. In an open loop they are the transactions in service at most. Jobs go on.
    pub fn set_users(&mut self, users: u32) {
        for database in &mut self.databases {
            database.set_users(&mut self.core, users, self.has_started);
        }
        self.wake();
    }

    /// Lets a piece of background work of the scenario begin after some time from now, once. It is
    /// stopped after it has lasted as long as it may; without that, it goes on until it is done.
    pub fn begin_background(&mut self, number: usize, after: Nanos, lasts: Option<Nanos>) {
        let begin = self.core.now + after;
        let mut set = |at, timer| {
            self.core.timers.set(at, Timer::Background { work: number as u16, timer });
        };
        set(begin, BackgroundTimer::Begin);
        if let Some(lasts) = lasts {
            set(begin + lasts, BackgroundTimer::End);
        }
    }

    /// Lets time pass in which only the storage works, with what it does by itself. Only before the first window. Times of
    /// results are counted from its end.
    ///
    /// # Panics
    /// If users work already.
    pub fn rest(&mut self, length: Nanos) {
        assert!(!self.has_started, "users give the storage no rest");
        self.began = self.core.now + length;
        self.advance(self.began);
    }

    /// Lets time pass: a warm-up, and a window that is measured.
    pub fn run(&mut self, window: &Window) -> EngineRun {
        let from = self.warm_up(window);
        let until = from + window.measure;
        self.advance(until);
        self.take(from, until)
    }

    /// Lets the warm-up pass; returns when the window begins.
    fn warm_up(&mut self, window: &Window) -> Nanos {
        if !self.has_started {
            self.has_started = true;
            for database in &mut self.databases {
                database.start(&mut self.core);
            }
            self.wake();
        }
        let from = self.core.now + window.warm_up;
        if window.warm_up > Nanos::ZERO {
            self.advance(from);
            // What was counted during the warm-up is dropped: the window begins with zeros.
            self.take(from, from);
        }
        self.events = 0;
        from
    }

    /// Handles every event up to `until`.
    fn advance(&mut self, until: Nanos) {
        loop {
            let timer = self.core.timers.next().unwrap_or(Nanos(u64::MAX));
            let cpus = self.core.cpus.iter().filter_map(|cpu| cpu.next());
            let limit = cpus.fold(timer.min(until), Nanos::min);
            let now = self.core.target.advance_to_finish(limit, &mut self.finished);
            self.core.now = now;
            let mut is_idle = self.finished.is_empty();
            // Handling an event needs all of `self`; the list is put back to keep its memory.
            let mut finished = std::mem::take(&mut self.finished);
            for done in finished.drain(..) {
                self.events += 1;
                match self.core.complete(&done) {
                    (Asker::Database(purpose), latency) => self.on_io(purpose, latency),
                    (Asker::Background { work, place }, latency) => {
                        let work = &mut self.background[usize::from(work)];
                        work.on_io(&mut self.core, place, latency);
                    }
                }
                self.wake();
            }
            self.finished = finished;
            for host in 0..self.core.cpus.len() {
                while let Some(task) = self.core.cpus[host].pop(now) {
                    is_idle = false;
                    self.events += 1;
                    match task {
                        Task::Session { database, session } => {
                            self.databases[usize::from(database)].on_cpu(&mut self.core, session);
                        }
                        Task::Job { database, process, length } => {
                            let database = &mut self.databases[usize::from(database)];
                            database.job_processed(&mut self.core, process, length);
                        }
                        Task::Analyze { database } => {
                            self.databases[usize::from(database)].analyzed(&mut self.core);
                        }
                        Task::Query { database, stream } => {
                            let database = &mut self.databases[usize::from(database)];
                            database.query_worked(&mut self.core, stream);
                        }
                        Task::Background => {}
                    }
                    self.wake();
                }
            }
            while let Some(timer) = self.core.timers.pop(now) {
                is_idle = false;
                self.events += 1;
                self.on_timer(timer);
                self.wake();
            }
            // Events at `until` itself belong to this window, also those that they cause at the
            // same time.
            if now >= until && is_idle {
                return;
            }
        }
    }

    fn on_io(&mut self, purpose: Purpose, latency: Nanos) {
        let core = &mut self.core;
        let database = &mut self.databases[usize::from(purpose.database())];
        match purpose {
            Purpose::Read { session, .. } => database.loaded(core, session),
            Purpose::LogWrite { .. } => database.log_written(core),
            Purpose::LogFlush { .. } => database.log_flushed(core),
            Purpose::PageWrite { first, .. } => database.page_written(core, first),
            Purpose::DataFlush { .. } => database.data_flushed(core),
            Purpose::Doublewrite { .. } => database.doublewritten(core),
            Purpose::Analyze { .. } => database.analyzed_page_read(core, latency),
            Purpose::ReadAhead { .. } => database.read_ahead_ended(core, latency),
            Purpose::Job { io, .. } => database.job_io_done(core, io),
            Purpose::Query { stream, pages, bytes, .. } => {
                database.query_read(core, (stream, pages, bytes), latency);
            }
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        let core = &mut self.core;
        let of = |database: u16| usize::from(database);
        match timer {
            Timer::Session { database, session } => {
                self.databases[of(database)].on_timer(core, session);
            }
            Timer::Arrival { database } => self.databases[of(database)].arrive(core),
            Timer::Checkpointer { database } => {
                self.databases[of(database)].checkpointer_round(core);
            }
            Timer::Writer { database } => self.databases[of(database)].writer_round(core),
            Timer::Flusher { database } => self.databases[of(database)].flusher_round(core),
            Timer::LogWriter { database } => self.databases[of(database)].log_writer_round(core),
            Timer::Autoanalyze { database } => {
                self.databases[of(database)].autoanalyze_round(core);
            }
            Timer::AnalyzeNext { database } => self.databases[of(database)].analyze_next(core),
            Timer::Job { database } => self.databases[of(database)].begin_job_cycle(core),
            Timer::JobRate { database } => self.databases[of(database)].go_on_with_job(core),
            Timer::Background { work, timer } => {
                self.background[usize::from(work)].on_timer(core, timer);
            }
        }
    }

    /// Lets those go on who were woken.
    fn wake(&mut self) {
        while let Some((database, session)) = self.core.ready.pop_front() {
            self.databases[usize::from(database)].on_ready(&mut self.core, session);
        }
    }

    /// What was counted; counting begins again at `until`.
    fn take(&mut self, from: Nanos, until: Nanos) -> EngineRun {
        let (core, began) = (&mut self.core, self.began);
        let databases = self.databases.iter_mut().map(|database| {
            let stations = &mut core.stations[usize::from(database.number)];
            let taken: [Station; PURPOSES] =
                std::array::from_fn(|purpose| stations[purpose].take(until));
            let [
                read,
                log_write,
                log_flush,
                page_write,
                data_flush,
                doublewrite,
                analyze,
                read_ahead,
                job @ ..,
            ] = taken;
            let of_volume = |volume: usize| {
                let [read, write, flush] = [0, 1, 2].map(|operation| job[volume * 3 + operation]);
                JobIoResult { read, write, flush }
            };
            let io = IoResult {
                read,
                log_write,
                log_flush,
                page_write,
                data_flush,
                doublewrite,
                analyze,
                read_ahead,
                job: [0, 1].map(of_volume),
            };
            let mut taken = database.take(until, io);
            if let Some(job) = &mut taken.job {
                job.count_from(began);
            }
            taken
        });
        let databases: Vec<DatabaseResult> = databases.collect();
        let hosts =
            core.cpus.iter_mut().zip(&self.hosts).map(|(cpu, (name, threads))| HostResult {
                name: name.clone(),
                used: cpu.take_use(until),
                full_capacity: cpu.full_capacity(),
                threads: *threads,
            });
        let hosts = hosts.collect();
        let background = self.background.iter_mut().map(|work| {
            let mut taken = work.take(until);
            taken.count_from(began);
            taken
        });
        let background = background.collect();
        // The rest before users began is in no result.
        let (from, until) = (from - began, until - began);
        EngineRun { from, until, databases, background, hosts, events: self.events }
    }
}
