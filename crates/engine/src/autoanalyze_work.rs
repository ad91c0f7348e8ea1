//! Autoanalyze at work: its rounds, and what its samples ask of pool, page cache, volume and processors.
//!
//! Which tables are due and which pages are read is decided in `autoanalyze`.

use crate::core_state::{Core, Purpose, Task};
use crate::database::Database;
use crate::engine::{Engine, Postgresql};
use crate::page::PageId;
use crate::pool::{Pool, Touched};
use crate::timers::Timer;
use underlay_core::Nanos;
use underlay_model::Request;
use underlay_model::target::Target;

/// `vacuum_cost_page_hit`, `vacuum_cost_page_miss`, `vacuum_cost_page_dirty`.
const COST_HIT: u64 = 1;
const COST_MISS: u64 = 2;
const COST_DIRTY: u64 = 20;
/// `autovacuum_vacuum_cost_delay` over `vacuum_cost_limit`: how long a unit of cost is slept for.
const SLEEP_PER_COST: Nanos = Nanos::from_micros(2_000 / 200);
/// Processor time per page beside that of reading it, of looking at its rows: 59 us in all on pages of 13 customers
/// (PostgreSQL 15, `system usage` in its log).
const CPU_PER_PAGE: Nanos = Nanos::from_micros(50);

impl Postgresql {
    /// Looks at a page; whether it has to be read from the volume.
    fn analyze(&mut self, now: Nanos, page: PageId, pool: &mut Pool) -> bool {
        let Pool::Clock(pool) = pool else { return false };
        let is_in_pool = pool.contains(page);
        let is_unhinted = self.unhinted.contains(page);
        self.unhinted.remove(page);
        let mut cost = if is_in_pool { COST_HIT } else { COST_MISS };
        let mut is_read = false;
        if is_in_pool {
            if is_unhinted {
                pool.touch(page, true);
            }
        } else {
            is_read = matches!(self.page_cache.pass_through(page), Touched::Missed { .. });
            if is_unhinted {
                // The ring hands it on.
                self.kernel.counters.background_pages += 1;
                self.kernel.counters.analyze_pages += 1;
                self.write_to_kernel(now, page, false);
            }
        }
        if is_unhinted {
            cost += COST_DIRTY;
        }
        if let Some(sample) = &mut self.autoanalyze.sample {
            sample.cost += cost;
            sample.reading += u32::from(is_read);
        }
        is_read
    }
}

impl Database {
    /// The launcher takes the databases in turn, ours after `template1` and `postgres`.
    pub(crate) fn start_autoanalyze<T: Target>(&self, core: &mut Core<T>) {
        self.expect_worker(core, 2);
    }

    /// A worker begins after so many thirds of `autovacuum_naptime`.
    fn expect_worker<T: Target>(&self, core: &mut Core<T>, thirds: u64) {
        if let Engine::Postgresql(engine) = &self.engine
            && let Some(naptime) = engine.settings.autovacuum_naptime
            && !self.spec.workload.is_job()
        {
            let timer = Timer::Autoanalyze { database: self.number };
            core.timers.set(core.now + Nanos(naptime.0 / 3 * thirds), timer);
        }
    }

    /// A worker begins, unless the last one still works.
    pub(crate) fn autoanalyze_round<T: Target>(&mut self, core: &mut Core<T>) {
        self.expect_worker(core, 3);
        let Engine::Postgresql(engine) = &mut self.engine else { return };
        if engine.autoanalyze.sample.is_some() {
            return;
        }
        let tables = self.layout.relations().iter().enumerate();
        let tables = tables.filter(|(_, relation)| relation.is_heap);
        let tables =
            tables.map(|(number, relation)| (number as u16, relation.blocks, relation.rows));
        engine.autoanalyze.look(engine.settings.autovacuum_analyze_scale_factor, tables);
        self.analyze_next(core);
    }

    /// Looks at the next pages.
    pub(crate) fn analyze_next<T: Target>(&mut self, core: &mut Core<T>) {
        let path = self.path();
        let Engine::Postgresql(engine) = &mut self.engine else { return };
        let Some((relation, blocks)) = engine.autoanalyze.next_blocks() else { return };
        let purpose = Purpose::Analyze { database: self.number };
        for page in blocks.into_iter().map(|block| PageId::new(relation, block)) {
            if engine.analyze(core.now, page, &mut self.pool) {
                engine.kernel.read_at(core.now);
                let request = Request::read(self.layout.offset(page), self.layout.page_bytes());
                core.submit(path, self.spec.data.volume, request, purpose);
            }
        }
        if engine.autoanalyze.sample.as_ref().is_some_and(|sample| sample.reading == 0) {
            self.analyze_read(core);
        }
    }

    /// A page of the sample was read.
    pub(crate) fn analyzed_page_read<T: Target>(&mut self, core: &mut Core<T>, latency: Nanos) {
        let Engine::Postgresql(engine) = &mut self.engine else { return };
        engine.kernel.read_ended(core.now, latency);
        let Some(sample) = &mut engine.autoanalyze.sample else { return };
        sample.reading -= 1;
        if sample.reading == 0 {
            self.analyze_read(core);
        }
    }

    /// The next pages of the sample are in memory: they cost processor time.
    fn analyze_read<T: Target>(&mut self, core: &mut Core<T>) {
        let Engine::Postgresql(engine) = &self.engine else { return };
        let pages = engine.autoanalyze.sample.as_ref().map_or(0, |sample| sample.batch);
        let work = (self.demands.cpu_per_page_read.0 + CPU_PER_PAGE.0) * pages;
        let work = Nanos((work as f64 * self.cpu_scale).round() as u64);
        let task = Task::Analyze { database: self.number };
        core.cpus[self.spec.host].submit(core.now, work, task);
    }

    /// They have used the processor: the worker sleeps for what they cost.
    pub(crate) fn analyzed<T: Target>(&mut self, core: &mut Core<T>) {
        let Engine::Postgresql(engine) = &mut self.engine else { return };
        let Some(sample) = &mut engine.autoanalyze.sample else { return };
        let sleep = Nanos(SLEEP_PER_COST.0 * std::mem::take(&mut sample.cost));
        let timer = Timer::AnalyzeNext { database: self.number };
        core.timers.set(core.now + sleep, timer);
    }
}
