//! Time that is skipped: what transactions leave behind in a database, without the time they take.
//!
//! A window of a minute after a clean start shows no checkpoint of PostgreSQL: no page images but
//! those of a cycle that has just begun, and no pages that the checkpointer writes. On a real server
//! checkpoints follow each other, and a window lies anywhere in their cycle. So transactions are
//! carried out at once, until a whole cycle has passed and the next one has come to a given place.
//! They touch and change pages, log, and let the checkpointer work, whose writes take no time.
//! Transactions that are under way go on afterwards as if nothing had been.
//!
//! Before a warm-up, transactions that fill the caches are carried out in the same way, on both
//! engines. After it nothing of InnoDB is skipped. Its page cleaner has no cycle: it is behind where
//! the storage does not keep up with it, which takes time.
//!
//! Not here: what the skipped writes do to the storage and to the kernel's dirty pages, autoanalyze.

use crate::cleaner::{CleanerWork, PoolState};
use crate::database::Database;
use crate::engine::{Engine, Innodb, Postgresql};
use crate::pool::{ClockSweep, MidpointLru, Pool, Touched};
use crate::script::{Script, Touch};
use crate::writers::CheckpointWork;
use underlay_core::Nanos;

/// Transactions after which the number that each stands for is looked at again.
const LOOK: u64 = 256;

/// What is skipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skip {
    /// Transactions per second of the database.
    pub rate_per_second: f64,
    /// How much of the time between two checkpoints has passed when time goes on: from 0, when one
    /// begins, to below 1.
    pub place: f64,
    /// About how many transactions are carried out at most. If the skipped time has more, each stands
    /// for several in time and log. Of pages there are as many fewer: of those that the checkpointer
    /// would write, too.
    pub transactions_at_most: u64,
}

/// On the way to the end of the skipped time.
struct Progress {
    /// In cycles.
    target: f64,
    /// How far the last look was.
    last: f64,
    /// How many transactions each one stands for.
    stands_for: f64,
    /// Pages that the checkpointer would have written, of which one more is written when there are
    /// `stands_for` of them.
    owed: f64,
}

impl Progress {
    /// A look after [`LOOK`] transactions more, of which about `left` may follow.
    fn look(&mut self, now: f64, left: u64) {
        let each = (now - self.last) / LOOK as f64;
        let missing = (self.target - now).max(0.0);
        let needed = self.stands_for * missing / (each * left.max(LOOK) as f64);
        self.stands_for = if needed.is_finite() { needed.max(1.0) } else { 1.0 };
        self.last = now;
    }

    /// Whether a page that is due is written.
    fn is_written(&mut self) -> bool {
        self.owed += 1.0;
        let is_written = self.owed >= self.stands_for;
        if is_written {
            self.owed -= self.stands_for;
        }
        is_written
    }
}

impl Database {
    /// Skips time. How many transactions were carried out: none where there is no cycle.
    pub(crate) fn skip(&mut self, now: Nanos, skip: &Skip) -> u64 {
        let has_cycle = matches!(self.engine, Engine::Postgresql(_));
        if !has_cycle || self.spec.workload.is_job() || self.active == 0 {
            return 0;
        }
        let interval_ns = 1e9 / skip.rate_per_second.max(1e-3);
        let mut progress =
            Progress { target: 1.0 + skip.place, last: 0.0, stands_for: 1.0, owed: 0.0 };
        let mut script = Script::default();
        let mut passed = 0;
        // When a checkpoint has begun, and how long after the one before it.
        let mut cycle: Option<(Nanos, Nanos)> = None;
        // The number that each stands for is an estimate.
        while passed < skip.transactions_at_most + skip.transactions_at_most / 4 {
            let user = (passed % u64::from(self.active)) as u32;
            let bytes = self.pass(now, user, &mut script);
            let (log, position) = (self.layout.relations().len() as u16, self.log.inserted());
            let written = (self.log.place(position), bytes as u32);
            self.engine.log_enters_cache(log, self.layout.page_bytes(), written);
            self.log.skip((bytes as f64 * progress.stands_for).round() as u64);
            passed += 1;
            self.skipped += Nanos((interval_ns * progress.stands_for).round() as u64);
            let (now, position) = (self.clock(now), self.log.inserted());
            let (Engine::Postgresql(engine), Pool::Clock(pool)) =
                (&mut self.engine, &mut self.pool)
            else {
                unreachable!("only PostgreSQL has a cycle")
            };
            let before = engine.checkpointer.begun();
            let has_begun = engine.checkpoint_at_once((now, position), pool, &mut progress);
            if has_begun && cycle.is_none() {
                cycle = Some((now, now - before));
            }
            let is_there = cycle.is_some_and(|(begun, length)| {
                (now - begun).as_secs_f64() >= skip.place * length.as_secs_f64()
            });
            if is_there {
                break;
            }
            if passed.is_multiple_of(LOOK) {
                let begun = f64::from(u8::from(cycle.is_some()));
                let cycles = begun + engine.checkpointer.place(now, position);
                progress.look(cycles, skip.transactions_at_most.saturating_sub(passed));
            }
        }
        // What was counted belongs to no window.
        self.pool.take_counters();
        self.engine.take();
        passed
    }

    /// Carries so many transactions out at once, on a database that does nothing else yet, with
    /// neither time nor checkpoints between them: what they change stays dirty. A cycle begins
    /// afterwards.
    pub(crate) fn pass_all(&mut self, transactions: u64) {
        let mut script = Script::default();
        for number in 0..transactions {
            let user = (number % self.sessions.len() as u64) as u32;
            let bytes = self.pass(Nanos::ZERO, user, &mut script);
            if let (Engine::Innodb(engine), Pool::Midpoint(pool)) =
                (&mut self.engine, &mut self.pool)
            {
                self.log.skip(bytes);
                let position = self.log.inserted();
                if engine.cleaner.logged(position) {
                    engine.clean_at_once(Nanos::ZERO, position, pool, false);
                }
            }
        }
        self.engine.forget_images();
    }

    /// Carries a transaction of a user out at once. The bytes that it logs.
    fn pass(&mut self, now: Nanos, user: u32, script: &mut Script) -> u64 {
        // A user who pauses has drawn its next transaction. That one is carried out, and another
        // one follows after the pause.
        let has_drawn = self.source.has_drawn(user);
        if !has_drawn {
            self.source.draw(user, &self.spec.mix);
        }
        self.source.write_down(user, script);
        if has_drawn {
            self.source.draw(user, &self.spec.mix);
        }
        self.look_ahead(script);
        let images: u64 =
            script.touches.iter().map(|touch| self.touch_at_once(now, user, *touch)).sum();
        script.steps.iter().map(|step| u64::from(step.log_bytes)).sum::<u64>() + images
    }

    /// Touches a page. The bytes of its image in the log.
    fn touch_at_once(&mut self, now: Nanos, user: u32, touch: Touch) -> u64 {
        let position = self.log.inserted();
        let notes = self.engine.is_unhinted(touch.page);
        let writes = touch.writes || notes;
        let mut dirty = self.pool.dirty();
        let mut touched = self.pool.touch(now, touch.page, writes, position);
        if let (Touched::Full, Engine::Innodb(engine), Pool::Midpoint(pool)) =
            (touched, &mut self.engine, &mut self.pool)
        {
            engine.clean_at_once(now, position, pool, true);
            dirty = pool.dirty();
            touched = pool.touch(now, touch.page, writes, position);
        }
        if touch.writes && self.pool.dirty() > dirty {
            self.engine.changed(position, touch.page);
        }
        if self.layout.relation(touch.page).is_heap {
            self.engine.seen(touch.page, touch.writes);
        }
        let mut did_exist = true;
        if let Touched::Missed { evicted, .. } = touched {
            did_exist = !self.creates(touch);
            if let Engine::Postgresql(engine) = &mut self.engine {
                if let Some((old, true)) = evicted {
                    engine.page_cache.pass_through(old);
                }
                if did_exist {
                    let streams = &mut self.sessions[user as usize].streams;
                    engine.read(streams, touch.page, &self.layout);
                } else {
                    engine.page_cache.pass_through(touch.page);
                }
            }
        }
        if !touch.writes {
            return if notes { self.image_of_pruned(touch.page) } else { 0 };
        }
        let image_bytes = self.layout.relation(touch.page).image_bytes;
        self.engine.image(touch.page, image_bytes, did_exist)
    }
}

impl Postgresql {
    /// Lets the checkpointer do all that is due. Whether a checkpoint has begun.
    fn checkpoint_at_once(
        &mut self,
        (now, position): (Nanos, u64),
        pool: &mut ClockSweep,
        progress: &mut Progress,
    ) -> bool {
        let mut has_begun = false;
        let mut due = Vec::new();
        loop {
            self.checkpointer.end_if_written();
            let written = self.kernel.written();
            let work = self.checkpointer.work(now, position, written, &mut due);
            for page in due.drain(..) {
                if progress.is_written() && pool.clean(page) {
                    self.page_cache.pass_through(page);
                }
            }
            match work {
                CheckpointWork::None => return has_begun,
                CheckpointWork::Begin { .. } => {
                    has_begun = true;
                    self.checkpointer.begin(now, position, pool.dirty_pages());
                }
                CheckpointWork::Synchronise => self.checkpointer.synchronise(written),
                CheckpointWork::Flush => self.checkpointer.flush(),
            }
        }
    }
}

impl Innodb {
    /// Lets the page cleaner do all that is due; `has_starved`: a session waits for a frame.
    fn clean_at_once(
        &mut self,
        now: Nanos,
        position: u64,
        pool: &mut MidpointLru,
        has_starved: bool,
    ) {
        let depth = self.settings.lru_scan_depth;
        let mut has_starved = has_starved;
        loop {
            while let Some(page) = self.cleaner.next_at_once() {
                pool.clean(page);
            }
            let state = PoolState {
                dirty: pool.dirty(),
                frames: pool.frames(),
                needs_frames: has_starved || pool.needs_frames(depth),
            };
            let work = self.cleaner.begin(now, position, &state, |page| pool.changed_at(page));
            match work {
                None => return,
                Some(CleanerWork::Oldest { .. }) => {}
                Some(CleanerWork::Tail { most }) => {
                    let mut tail = Vec::new();
                    let freed = pool.free_tail(depth, most, &mut tail);
                    has_starved &= freed == 0;
                    if freed == 0 && tail.is_empty() {
                        return;
                    }
                    self.cleaner.choose_tail(tail);
                }
            }
        }
    }
}
