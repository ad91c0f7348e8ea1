//! Batch insertion as scripts: rows of one table one after the other, each session those of its
//! slice.
//!
//! A row is a transaction, or a request of the only transaction of its session; a stream is cut
//! into pieces, of which the last one commits. Rows go to the end of the table and to the place of
//! their number in its key.

use crate::demand::{DemandProfile, TypeDemand};
use crate::job_spec::BatchSpec;
use crate::layout::Relation;
use crate::page::PageId;
use crate::script::Script;
use crate::spec::EngineSpec;
use underlay_core::Nanos;
use underlay_workload::batch::{LOOP_ROWS, Loop, Mode, Slice, slices};

/// Rows of a piece of a stream: what the client sends at once.
const STREAM_ROWS: u32 = 1_000;
/// Processor time of a row in a stream, of that of a row with a statement of its own, in percent:
/// nothing is parsed, planned or answered.
const STREAM_PERCENT: u64 = 25;

const ROWS: u16 = 0;
const KEYS: u16 = 1;

/// Sessions and what they have inserted.
pub(crate) struct BatchSource {
    mode: Mode,
    place: Loop,
    demand: TypeDemand,
    /// What each session inserts, and its next row.
    sessions: Vec<(Slice, u32)>,
    /// Rows of the table.
    inserted: u64,
    rows_per_page: u64,
    keys_per_page: u64,
    is_clustered: bool,
}

/// Rows and keys on a page. PostgreSQL: 160 bytes and a pointer of 4; index entries of 20 bytes on
/// leaves that grow at their end, filled to 90 %. InnoDB: 140 bytes in the leaves of the key.
fn per_page(engine: &EngineSpec) -> (u64, u64) {
    match engine {
        EngineSpec::Postgresql(_) => (49, 367),
        EngineSpec::Mariadb(_) => (109, 109),
    }
}

impl BatchSource {
    pub(crate) fn new(
        batch: &BatchSpec,
        engine: &EngineSpec,
        demands: &DemandProfile,
        sessions: u32,
    ) -> BatchSource {
        let (rows_per_page, keys_per_page) = per_page(engine);
        let slices = slices(batch.rows, sessions);
        BatchSource {
            mode: batch.mode,
            place: batch.place,
            demand: demands.types[0].clone(),
            sessions: slices.into_iter().map(|slice| (slice, slice.first)).collect(),
            inserted: 0,
            rows_per_page,
            keys_per_page,
            is_clustered: matches!(engine, EngineSpec::Mariadb(_)),
        }
    }

    /// The table with the size that it will have, so that its place is large enough.
    pub(crate) fn relations(batch: &BatchSpec, engine: &EngineSpec) -> Vec<Relation> {
        let (rows, keys) = per_page(engine);
        let relation = |name, per: u64, (image_bytes, is_heap)| Relation {
            name,
            blocks: u64::from(batch.rows).div_ceil(per) as u32,
            rows: 0,
            image_bytes,
            is_heap,
            grows: true,
        };
        let mut relations = vec![relation("orders", rows, (8_000, true))];
        if matches!(engine, EngineSpec::Postgresql(_)) {
            relations.push(relation("orders_pkey", keys, (7_400, false)));
        }
        relations
    }

    pub(crate) fn draw(&mut self, session: u32) -> Option<usize> {
        let (slice, next) = *self.sessions.get(session as usize)?;
        (next <= slice.last).then_some(0)
    }

    /// Whether the server has the next row already: the client does nothing for it, and no message passes.
    pub(crate) fn has_been_sent(&self, session: u32) -> bool {
        let (slice, next) = self.sessions[session as usize];
        let is_in_loop = self.place == Loop::Server && self.mode != Mode::Bulk;
        is_in_loop && next <= slice.last && !(next - slice.first).is_multiple_of(LOOP_ROWS)
    }

    pub(crate) fn write_down(&mut self, session: u32, script: &mut Script) {
        let (slice, next) = self.sessions[session as usize];
        let end = slice.last + 1;
        let rows = match self.mode {
            Mode::Implicit | Mode::Explicit => 1,
            Mode::Bulk => STREAM_ROWS.min(end - next),
        };
        self.sessions[session as usize].1 = next + rows;
        script.begin(0);
        for row in next..next + rows {
            let place = if self.is_clustered { u64::from(row) - 1 } else { self.inserted };
            Self::insert(place, self.rows_per_page, ROWS, script);
            if !self.is_clustered {
                Self::insert(u64::from(row) - 1, self.keys_per_page, KEYS, script);
            }
            self.inserted += 1;
        }
        let is_last = next + rows == end;
        script.commits = is_last || self.mode == Mode::Implicit;
        script.count = rows;
        let (base, unit) = (self.demand.cpu_base.0, self.demand.cpu_per_unit.0);
        let per_row = match (self.mode, self.place) {
            (Mode::Bulk, _) => (base + unit) * STREAM_PERCENT / 100,
            (Mode::Implicit | Mode::Explicit, Loop::Client) => base + unit,
            // No statement is received or answered.
            (Mode::Implicit | Mode::Explicit, Loop::Server) => unit,
        };
        let commit = if script.commits { u64::from(self.demand.log_bytes_base) } else { 0 };
        let log = u64::from(self.demand.log_bytes_per_unit) * u64::from(rows) + commit;
        script.end_step(Nanos(per_row * u64::from(rows)), log);
    }

    /// Writes into the page at the end. This job created it, and it is not on the volume before it
    /// is evicted, so it is never read.
    fn insert(place: u64, per: u64, relation: u16, script: &mut Script) {
        script.create(PageId::new(relation, (place / per) as u32));
    }
}
