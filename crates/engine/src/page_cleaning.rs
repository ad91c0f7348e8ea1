//! InnoDB's page cleaner at its work, and whom it wakes.
//!
//! Not here: when a round begins and what it flushes ([`crate::cleaner`]).

use crate::cleaner::{CleanerWork, PoolState};
use crate::core_state::Core;
use crate::database::Database;
use crate::engine::Engine;
use crate::pool::Pool;
use underlay_model::target::Target;

impl Database {
    /// Lets the page cleaner go on: what it has chosen is written, then the next piece of work
    /// begins if one is due. Sessions go on where the checkpoint allows it. PostgreSQL has none.
    pub(crate) fn clean<T: Target>(&mut self, core: &mut Core<T>) {
        if matches!(self.engine, Engine::Postgresql(_)) {
            return;
        }
        loop {
            self.pump(core);
            let Some(pages) = self.next_pages(core) else { break };
            self.use_processor(core, self.demands.of_written_pages(pages));
        }
        if !self.is_log_full() {
            self.end_throttle(core);
        }
    }

    /// The pages that the cleaner chooses now; none if it is at work or has nothing to do.
    fn next_pages<T: Target>(&mut self, core: &mut Core<T>) -> Option<u64> {
        let number = self.number;
        let has_starved = !self.starved.is_empty();
        let (Engine::Innodb(engine), Pool::Midpoint(pool)) = (&mut self.engine, &mut self.pool)
        else {
            return None;
        };
        if engine.cleaner.waiting() > 0 {
            return None;
        }
        let depth = engine.settings.lru_scan_depth;
        let state = PoolState {
            dirty: pool.dirty(),
            frames: pool.frames(),
            needs_frames: has_starved || pool.needs_frames(depth),
        };
        let position = self.log.inserted();
        let work =
            engine.cleaner.begin(core.now, position, &state, |page| pool.changed_at(page))?;
        let pages = match work {
            CleanerWork::Oldest { pages } => pages as u64,
            CleanerWork::Tail { most } => {
                let mut tail = Vec::new();
                let freed = pool.free_tail(depth, most, &mut tail);
                if freed > 0 {
                    let starved = self.starved.drain(..);
                    core.ready.extend(starved.map(|session| (number, session)));
                }
                let pages = tail.len() as u64;
                engine.cleaner.choose_tail(tail);
                if freed == 0 && pages == 0 {
                    return None;
                }
                pages
            }
        };
        engine.counters.background_pages += pages;
        Some(pages)
    }

    /// A session took a frame: the cleaner is woken where few are left (buf0lru.cc,
    /// `buf_LRU_get_free_block`).
    pub(crate) fn frame_taken<T: Target>(&mut self, core: &mut Core<T>) {
        let is_short = match (&self.engine, &self.pool) {
            (Engine::Innodb(engine), Pool::Midpoint(pool)) => {
                pool.needs_frames(engine.settings.lru_scan_depth)
            }
            _ => false,
        };
        if is_short {
            self.clean(core);
        }
    }

    /// Whether the checkpoint is so old that nothing may be logged: never in PostgreSQL.
    pub(crate) fn is_log_full(&self) -> bool {
        match &self.engine {
            Engine::Postgresql(_) => false,
            Engine::Innodb(engine) => engine.cleaner.is_log_full(self.log.inserted()),
        }
    }
}
