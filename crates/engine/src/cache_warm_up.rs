//! The caches of a database before its first window: filled by transactions that take no time, or
//! taken from a database that is like it.
//!
//! What is not here: what the caches hold and evict.

use crate::database::Database;
use crate::engine::Engine;
use crate::pool::Touched;
use crate::script::Script;
use underlay_core::Nanos;

impl Database {
    /// Touches what transactions touch, without anything else of them; or, where they are `kept`, with
    /// the new versions of rows and dirty pages.
    pub(crate) fn warm_caches(&mut self, transactions: u64, kept: bool) {
        if self.spec.workload.is_job() {
            return;
        }
        if kept {
            self.pass_all(transactions);
        } else {
            self.source.freeze(true);
            self.touch_all(transactions);
            self.source.freeze(false);
        }
        self.pool.take_counters();
        self.engine.take();
    }

    /// Whether it has the caches of `other` after the same fill, apart from what its users draw.
    pub(crate) fn is_like(&self, other: &Database) -> bool {
        let (own, other) = (&self.spec, &other.spec);
        (&own.engine, &own.workload, &own.mix) == (&other.engine, &other.workload, &other.mix)
            && (&own.demands, &own.load) == (&other.demands, &other.load)
    }

    /// Caches and rows of `other`, which is like it: as if both had been restored from one backup.
    pub(crate) fn restore(&mut self, other: &Database) {
        self.pool = other.pool.clone();
        self.created = other.created.clone();
        self.engine = other.engine.clone();
        self.log = other.log.clone();
        self.source.restore(&other.source);
    }

    fn touch_all(&mut self, transactions: u64) {
        let users = self.sessions.len() as u64;
        for number in 0..transactions {
            let user = (number % users) as u32;
            self.source.draw(user, &self.spec.mix);
            let mut script = std::mem::take(&mut self.sessions[user as usize].script);
            self.source.write_down(user, &mut script);
            self.look_ahead(&script);
            for &touch in &script.touches {
                let touched = self.pool.touch(Nanos::ZERO, touch.page, false, 0);
                if matches!(touched, Touched::Missed { .. }) {
                    self.creates(touch);
                    if let Engine::Postgresql(engine) = &mut self.engine {
                        let streams = &mut self.sessions[user as usize].streams;
                        engine.read(streams, touch.page, &self.layout);
                    }
                }
            }
            self.sessions[user as usize].script = script;
        }
    }

    /// Looks where the pages of a transaction are, before they are touched.
    pub(crate) fn look_ahead(&self, script: &Script) {
        let pages = script.touches.iter().map(|touch| touch.page);
        self.pool.look_ahead(pages);
    }
}
