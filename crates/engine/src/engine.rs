//! What engines have of their own beside the pool: caches, writers, checkpoints.

use crate::autoanalyze::Autoanalyze;
use crate::cleaner::Cleaner;
use crate::layout::Layout;
use crate::page::{NOWHERE, PageId, PageSet};
use crate::pool::{ClockSweep, EntryPerFrame, MidpointLru, Pool, PoolCounters, Touched};
use crate::read_ahead::{Run, Streams};
use crate::settings::{InnodbSettings, PostgresqlSettings};
use crate::spec::EngineSpec;
use crate::writers::{Checkpointer, WriteBack, WriterCounters};
use underlay_core::Nanos;

/// An engine's own state.
#[derive(Clone)]
pub(crate) enum Engine {
    Postgresql(Box<Postgresql>),
    Innodb(Box<Innodb>),
}

/// PostgreSQL's.
#[derive(Clone)]
pub(crate) struct Postgresql {
    pub(crate) settings: PostgresqlSettings,
    pub(crate) page_cache: ClockSweep<EntryPerFrame>,
    /// Pages read ahead since the window began.
    pub(crate) ahead_pages: u64,
    pub(crate) kernel: WriteBack,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) autoanalyze: Autoanalyze,
    /// Pages whose images were logged since a checkpoint began, and its number.
    images: (u32, PageSet),
    /// Pages of tables with row versions that are not yet marked as committed (hint bits).
    pub(crate) unhinted: PageSet,
    /// Misses of the pool since the background writer's last round, and its estimate.
    pub(crate) misses: u64,
    pub(crate) smoothed_misses: f64,
}

/// InnoDB's.
#[derive(Clone)]
pub(crate) struct Innodb {
    pub(crate) settings: InnodbSettings,
    pub(crate) cleaner: Cleaner,
    pub(crate) counters: WriterCounters,
}

fn frames(bytes: u64, page_bytes: u32) -> u32 {
    (bytes / u64::from(page_bytes)).min(u64::from(NOWHERE) - 1) as u32
}

impl Engine {
    /// An engine at rest, and its empty pool.
    pub(crate) fn new(spec: &EngineSpec) -> (Engine, Pool) {
        let page = spec.page_bytes();
        match spec {
            EngineSpec::Postgresql(settings) => {
                let cached = frames(settings.page_cache.0, page);
                let engine = Postgresql {
                    page_cache: ClockSweep::second_chance(cached),
                    ahead_pages: 0,
                    kernel: WriteBack::new(cached),
                    checkpointer: Checkpointer::new(
                        settings.checkpoint_timeout,
                        settings.checkpoint_completion_target,
                        settings.max_wal_size.0,
                    ),
                    autoanalyze: Autoanalyze::default(),
                    images: Default::default(),
                    unhinted: PageSet::default(),
                    misses: 0,
                    smoothed_misses: 0.0,
                    settings: settings.clone(),
                };
                let pool = ClockSweep::postgresql(frames(settings.shared_buffers.0, page));
                (Engine::Postgresql(Box::new(engine)), Pool::Clock(pool))
            }
            EngineSpec::Mariadb(settings) => {
                let engine = Innodb {
                    cleaner: Cleaner::new(settings),
                    counters: WriterCounters::default(),
                    settings: settings.clone(),
                };
                let pool = MidpointLru::new(
                    frames(settings.buffer_pool_size.0, page),
                    settings.old_blocks_pct,
                    settings.old_blocks_time,
                );
                (Engine::Innodb(Box::new(engine)), Pool::Midpoint(pool))
            }
        }
    }

    /// Whether a commit waits until the log is durable.
    pub(crate) fn waits_for_log(&self) -> bool {
        match self {
            Engine::Postgresql(engine) => engine.settings.synchronous_commit,
            Engine::Innodb(engine) => engine.settings.flush_log_at_commit,
        }
    }

    /// InnoDB gives its locks up when a transaction is committed in memory, PostgreSQL when it is
    /// durable.
    pub(crate) fn unlocks_before_flush(&self) -> bool {
        matches!(self, Engine::Innodb(_))
    }

    /// Whether reading a page of a table changes it: the first reader of new row versions marks them as committed on
    /// their page, and prunes those that are no longer visible.
    pub(crate) fn is_unhinted(&self, page: PageId) -> bool {
        matches!(self, Engine::Postgresql(engine) if engine.unhinted.contains(page))
    }

    /// A page of a table was read, or a row on it changed.
    pub(crate) fn seen(&mut self, page: PageId, writes: bool) {
        let Engine::Postgresql(engine) = self else { return };
        if writes {
            engine.unhinted.insert(page);
        } else {
            engine.unhinted.remove(page);
        }
    }

    /// Bytes of the image of a page that has to be logged with a change of it; 0 for none. The
    /// first record of a page that did not exist needs none: it makes the page when it is replayed
    /// (`REGBUF_WILL_INIT`).
    pub(crate) fn image(&mut self, page: PageId, image_bytes: u32, did_exist: bool) -> u64 {
        let Engine::Postgresql(engine) = self else { return 0 };
        let number = engine.checkpointer.number;
        if !engine.settings.full_page_writes {
            return 0;
        }
        let (since, logged) = &mut engine.images;
        if *since != number {
            logged.clear();
            *since = number;
        }
        if logged.insert(page) || !did_exist { 0 } else { u64::from(image_bytes) }
    }

    /// Every page has to have an image again, as if a checkpoint had begun.
    pub(crate) fn forget_images(&mut self) {
        if let Engine::Postgresql(engine) = self {
            engine.images.1.clear();
        }
    }

    /// The log is written through the page cache, and stays there until it is evicted; as relation `log`, because it
    /// has none. InnoDB's goes past it.
    pub(crate) fn log_enters_cache(
        &mut self,
        log: u16,
        page_bytes: u32,
        (offset, length): (u64, u32),
    ) {
        let Engine::Postgresql(engine) = self else { return };
        let page = u64::from(page_bytes);
        // Segments are used again when a checkpoint has made them superfluous.
        let pages = (engine.settings.max_wal_size.0 / page).clamp(1, u64::from(NOWHERE));
        for block in offset / page..(offset + u64::from(length)).div_ceil(page) {
            engine.page_cache.pass_through(PageId::new(log, (block % pages) as u32));
        }
    }

    /// A clean page was changed at a position of the log.
    pub(crate) fn changed(&mut self, position: u64, page: PageId) {
        if let Engine::Innodb(engine) = self {
            engine.cleaner.push_changed(position, page);
        }
    }

    /// Records were logged up to a position. Whether the page cleaner must be woken.
    pub(crate) fn logged(&mut self, position: u64) -> bool {
        match self {
            Engine::Postgresql(_) => false,
            Engine::Innodb(engine) => engine.cleaner.logged(position),
        }
    }

    /// Pages that the kernel has not begun to write.
    pub(crate) fn kernel_pages(&self) -> u64 {
        match self {
            Engine::Postgresql(engine) => engine.kernel.waiting(),
            Engine::Innodb(_) => 0,
        }
    }

    /// What was counted; counting begins again: of the page cache, pages read ahead, and of the writers.
    pub(crate) fn take(&mut self) -> (PoolCounters, u64, WriterCounters) {
        match self {
            Engine::Postgresql(engine) => {
                let writers = std::mem::take(&mut engine.kernel.counters);
                let ahead_pages = std::mem::take(&mut engine.ahead_pages);
                (engine.page_cache.take_counters(), ahead_pages, writers)
            }
            Engine::Innodb(engine) => {
                (PoolCounters::default(), 0, std::mem::take(&mut engine.counters))
            }
        }
    }
}

impl Postgresql {
    /// A process reads a page through the kernel: whether it is in the page cache, and what the kernel reads: the first page
    /// and how many. If that does not begin with `page`, nobody waits for it.
    pub(crate) fn read(
        &mut self,
        streams: &mut Streams,
        page: PageId,
        layout: &Layout,
    ) -> (bool, Option<(PageId, u32)>) {
        let relation = page.relation();
        let is_marked = self.page_cache.take_mark(page);
        let is_cached = |block| self.page_cache.contains(PageId::new(relation, block));
        let run = streams.read((relation, page.block()), layout.page_bytes(), is_marked, is_cached);
        let is_cached = matches!(self.page_cache.touch(page, false), Touched::Hit(_));
        (is_cached, run.and_then(|run| self.load(run, page, layout)))
    }

    /// Takes the pages of a run into the page cache, as if they were read already. Returns what has to be read.
    fn load(&mut self, run: Run, page: PageId, layout: &Layout) -> Option<(PageId, u32)> {
        let at = |block| PageId::new(page.relation(), block);
        // A file ends, and what users add to it is in memory.
        let end = (run.first + run.blocks).min(layout.relation(page).blocks);
        let is_missing =
            |block: &u32| *block == page.block() || !self.page_cache.contains(at(*block));
        let first = (run.first..end).find(is_missing)?;
        let last = (first..end).rfind(is_missing)?;
        for read in (first..=last).map(at) {
            if !self.page_cache.contains(read) {
                self.page_cache.pass_through(read);
            }
        }
        if let Some(marked) = run.marked.filter(|marked| *marked < end) {
            self.page_cache.mark(at(marked));
        }
        let blocks = last - first + 1;
        self.ahead_pages += u64::from(blocks) - u64::from(first == page.block());
        Some((at(first), blocks))
    }

    /// Hands a page to the kernel; `is_urgent`: to be written back at once.
    pub(crate) fn write_to_kernel(&mut self, now: Nanos, page: PageId, is_urgent: bool) {
        self.page_cache.touch(page, true);
        if is_urgent {
            self.kernel.push_urgent(page);
            self.page_cache.clean(page);
        } else {
            self.kernel.push_lazy(now, page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Engine;
    use crate::page::PageId;
    use crate::settings::{InnodbSettings, PostgresqlSettings};
    use crate::spec::EngineSpec;
    use underlay_core::Nanos;

    #[test]
    fn a_page_that_was_just_made_has_an_image_after_the_next_checkpoint_only() {
        let [made, old] = [1, 2].map(|block| PageId::new(0, block));
        let (mut engine, _) = Engine::new(&EngineSpec::Postgresql(PostgresqlSettings::default()));
        let images = [(made, false), (made, true), (old, true), (old, true)]
            .map(|(page, did_exist)| engine.image(page, 8_000, did_exist));
        assert_eq!(images, [0, 0, 8_000, 0]);
        let Engine::Postgresql(postgresql) = &mut engine else { unreachable!("it is PostgreSQL") };
        postgresql.checkpointer.begin(Nanos::from_secs(1), 0, Vec::new());
        assert_eq!(engine.image(made, 8_000, true), 8_000);
    }

    #[test]
    fn the_first_reader_of_a_change_changes_the_page_on_postgresql() {
        let page = PageId::new(0, 7);
        let (mut engine, _) = Engine::new(&EngineSpec::Postgresql(PostgresqlSettings::default()));
        assert!(!engine.is_unhinted(page), "rows that were loaded are frozen");
        engine.seen(page, true);
        assert!(engine.is_unhinted(page));
        engine.seen(page, true);
        assert!(engine.is_unhinted(page), "a change notes what was before it, and leaves its own");
        engine.seen(page, false);
        assert!(!engine.is_unhinted(page), "noted once");
        let (mut engine, _) = Engine::new(&EngineSpec::Mariadb(InnodbSettings::default()));
        engine.seen(page, true);
        assert!(!engine.is_unhinted(page), "versions are in the undo log");
    }
}
