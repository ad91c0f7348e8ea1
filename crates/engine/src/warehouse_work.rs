//! A database that answers a warehouse's queries: pages are looked for in memory and read, processes
//! compute, while a session carries out refresh functions.
//!
//! Pages that are being read count as in memory at once, as those that the kernel reads ahead for
//! sessions do. Scans set no hint bits.

use crate::core_state::{Core, Purpose, Task};
use crate::database::Database;
use crate::engine::Engine;
use crate::page::PageId;
use crate::pool::{Pool, Touched};
use crate::warehouse_job::Next;
use crate::warehouse_query::Chunk;
use underlay_core::Nanos;
use underlay_model::Request;
use underlay_model::target::Target;

impl Database {
    /// Begins the next run of a warehouse.
    pub(crate) fn begin_warehouse_run<T: Target>(&mut self, core: &mut Core<T>) {
        let Some(warehouse) = &mut self.warehouse else { return };
        for stream in 0..warehouse.begin_run(core.now) {
            self.begin_warehouse_step(core, stream);
        }
    }

    fn begin_warehouse_step<T: Target>(&mut self, core: &mut Core<T>, stream: usize) {
        let Some(warehouse) = &mut self.warehouse else { return };
        match warehouse.next_step(core.now, stream) {
            Next::Query => self.pump_query(core, stream),
            Next::Refresh(kind) => {
                self.source.begin_refresh(kind);
                // Its only session.
                self.pause(core, 0, None);
            }
            Next::Nothing if warehouse.is_run_done() => self.begin_warehouse_run(core),
            Next::Nothing => {}
        }
    }

    fn end_warehouse_step<T: Target>(&mut self, core: &mut Core<T>, stream: usize) {
        let Some(warehouse) = &mut self.warehouse else { return };
        if let Some((kind, took)) = warehouse.end_step(core.now, stream) {
            let counted = &mut self.types[kind];
            counted.committed += 1;
            counted.response.record(took.0);
            counted.service.record(took.0);
        }
        self.begin_warehouse_step(core, stream);
    }

    /// The session has nothing more to do: the refresh function is done, if it carried one out.
    pub(crate) fn end_refresh<T: Target>(&mut self, core: &mut Core<T>) {
        if self.warehouse.as_ref().is_some_and(|warehouse| warehouse.is_refreshing()) {
            self.end_warehouse_step(core, 0);
        }
    }

    /// Pages that a query waited for have been read: so many, of a request of so many bytes.
    pub(crate) fn query_read<T: Target>(
        &mut self,
        core: &mut Core<T>,
        (stream, pages, bytes): (u16, u32, u32),
        latency: Nanos,
    ) {
        if let Engine::Postgresql(engine) = &mut self.engine {
            engine.kernel.read_ended(core.now, latency);
        }
        let stream = usize::from(stream);
        let cpu = self.demands.cpu_per_page_read;
        if let Some(warehouse) = &mut self.warehouse {
            warehouse.count_read(stream, bytes);
            if let Some((query, _)) = warehouse.query(stream) {
                query.read(pages, cpu);
            }
        }
        self.pump_query(core, stream);
    }

    /// A process of a query has done its work.
    pub(crate) fn query_worked<T: Target>(&mut self, core: &mut Core<T>, stream: u16) {
        let stream = usize::from(stream);
        if let Some((query, _)) = self.warehouse.as_mut().and_then(|it| it.query(stream)) {
            query.worked();
        }
        self.pump_query(core, stream);
    }

    /// Does whatever a query can do now.
    fn pump_query<T: Target>(&mut self, core: &mut Core<T>, stream: usize) {
        let Some(mut warehouse) = self.warehouse.take() else { return };
        let Some((query, tables)) = warehouse.query(stream) else {
            self.warehouse = Some(warehouse);
            return;
        };
        while let Some(chunk) = query.next_chunk(tables) {
            match self.absent(core, chunk) {
                None => query.found(chunk.pages),
                Some(absent) => self.submit_query(core, stream, chunk.pages, absent),
            }
        }
        while let Some(work) = query.next_work() {
            let work = Nanos((work.0 as f64 * self.cpu_scale).round() as u64);
            let task = Task::Query { database: self.number, stream: stream as u16 };
            core.cpus[self.spec.host].submit(core.now, work, task);
        }
        let is_done = query.is_done();
        self.warehouse = Some(warehouse);
        if is_done {
            self.end_warehouse_step(core, stream);
        }
    }

    /// Asks for pages that are not in memory: the first one, and how many.
    fn submit_query<T: Target>(
        &mut self,
        core: &mut Core<T>,
        stream: usize,
        pages: u32,
        (first, absent): (PageId, u32),
    ) {
        if let Engine::Postgresql(engine) = &mut self.engine {
            engine.kernel.read_at(core.now);
        }
        let bytes = absent * self.layout.page_bytes();
        let request = Request::read(self.layout.offset(first), bytes);
        let purpose = Purpose::Query { database: self.number, stream: stream as u16, pages, bytes };
        core.submit(self.path(), self.spec.data.volume, request, purpose);
    }

    /// The pages of a chunk that have to be read, from the first to the last: all are in memory from
    /// now on.
    fn absent<T: Target>(&mut self, core: &Core<T>, chunk: Chunk) -> Option<(PageId, u32)> {
        let mut absent: Option<(u32, u32)> = None;
        let (relation, begin) = (chunk.first.relation(), chunk.first.block());
        for block in begin..begin + chunk.pages {
            let page = PageId::new(relation, block);
            if !self.is_in_buffers(core, page, chunk.is_kept) && !self.is_in_page_cache(page) {
                absent = Some((absent.map_or(block, |(first, _)| first), block));
            }
        }
        absent.map(|(first, last)| (PageId::new(relation, first), last - first + 1))
    }

    /// Whether a page is in shared buffers, which take it in where they keep it.
    fn is_in_buffers<T: Target>(&mut self, core: &Core<T>, page: PageId, is_kept: bool) -> bool {
        if let (Pool::Clock(pool), false) = (&mut self.pool, is_kept) {
            pool.pass_by();
            return false;
        }
        let touched = self.pool.touch(core.now, page, false, self.log.inserted());
        if let (Touched::Missed { evicted: Some((old, true)), .. }, Engine::Postgresql(engine)) =
            (touched, &mut self.engine)
        {
            engine.kernel.counters.session_pages += 1;
            engine.write_to_kernel(core.now, old, false);
        }
        matches!(touched, Touched::Hit(_))
    }

    /// Whether a page is in the page cache, which takes it in.
    fn is_in_page_cache(&mut self, page: PageId) -> bool {
        let Engine::Postgresql(engine) = &mut self.engine else { return false };
        matches!(engine.page_cache.touch(page, false), Touched::Hit(_))
    }
}
