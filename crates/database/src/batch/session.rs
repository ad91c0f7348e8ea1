//! One session's part of an insertion, and its measurements.
//!
//! A session sends one statement after the other, each as soon as the one before was answered. It keeps account of
//! what may have been committed: that is what the table is compared with after a server was lost.

use std::time::Instant;

use underlay_core::Histogram;
use underlay_workload::batch::{Claim, LOOP_ROWS, Loop, Mode, Row, Slice};

use super::inserter::Inserter;
use super::report::{SessionEnd, SessionReport, add_at};
use super::start::Start;
use super::{BatchError, BatchOptions};
use crate::connection::Connection;
use crate::dispatch::with_engine;
use crate::error::SessionError;
use crate::parallel::on_runtime;
use crate::schema_ownership::state::SchemaOwner;
use crate::target::Target;

/// What a session has to do.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub options: &'a BatchOptions,
    pub slice: Slice,
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Called with the rows that the server accepted.
    pub took: &'a (dyn Fn(u64) + Sync),
}

struct Account<'a> {
    told: &'a (dyn Fn(u64) + Sync),
    began: Instant,
    rows: u64,
    committed: u32,
    /// Rows sent with a commit that was not answered.
    uncertain: u32,
    insert_latency_ns: Histogram,
    commit_latency_ns: Histogram,
    rows_per_second: Vec<u64>,
}

impl Account<'_> {
    fn took(&mut self, rows: u64) {
        (self.told)(rows);
        self.rows += rows;
        let second = self.began.elapsed().as_secs() as usize;
        add_at(&mut self.rows_per_second, second, rows);
    }

    /// After a request that would have committed `rows`.
    fn settle(&mut self, rows: u32, done: &Result<(), SessionError>) {
        match done {
            Ok(()) => self.committed += rows,
            // The answer was lost, so the rows may or may not be there: the check accepts both.
            Err(error) if error.commit_unknown => self.uncertain = rows,
            Err(_) => {}
        }
    }
}

impl Work<'_> {
    /// Carries out the work on this thread, from when all sessions are connected.
    pub(super) fn on_thread(self, target: &Target, start: &Start) -> SessionReport {
        with_engine!(target.engine, C => self.on_engine::<C>(target, start))
    }

    fn on_engine<C: Connection + SchemaOwner>(
        self,
        target: &Target,
        start: &Start,
    ) -> SessionReport {
        let mut account = Account {
            told: self.took,
            began: Instant::now(),
            rows: 0,
            committed: 0,
            uncertain: 0,
            insert_latency_ns: Histogram::new(),
            commit_latency_ns: Histogram::new(),
            rows_per_second: Vec::new(),
        };
        let mut has_arrived = false;
        let ended = on_runtime(async {
            // Checked after all sessions have arrived: one that cannot connect must not leave the
            // others waiting.
            let connected = Inserter::<C>::connect(target).await;
            has_arrived = true;
            if !start.arrive() {
                return Ok(SessionEnd::Stopped);
            }
            account.began = Instant::now();
            self.carry_out(&mut connected?, &mut account).await.map_err(BatchError::from)
        });
        // The runtime could not be made: the others must not wait for this session.
        if !has_arrived {
            start.arrive();
        }
        let end = match ended {
            Ok(end) => end,
            Err(BatchError::Session(error)) => SessionEnd::Failed(error),
            Err(other) => SessionEnd::Failed(SessionError {
                class: crate::error::ErrorClass::Other,
                sqlstate: None,
                message: other.to_string(),
                commit_unknown: false,
            }),
        };
        let claim = Claim {
            slice: self.slice,
            least: account.committed,
            most: account.committed + account.uncertain,
            whole: self.options.mode.is_all_or_nothing(),
        };
        SessionReport {
            claim,
            rows: account.rows,
            insert_latency_ns: account.insert_latency_ns,
            commit_latency_ns: account.commit_latency_ns,
            rows_per_second: account.rows_per_second,
            end,
        }
    }

    async fn carry_out<C: Connection + SchemaOwner>(
        self,
        inserter: &mut Inserter<C>,
        account: &mut Account<'_>,
    ) -> Result<SessionEnd, SessionError> {
        let BatchOptions { parameters, mode, place, rollback, .. } = *self.options;
        let mut numbers = (self.slice.first..=self.slice.last).take_while(|_| !(self.stop)());
        let mut next = move || numbers.next().map(|number| Row::of(parameters.seed, number));
        match (mode, place) {
            (Mode::Implicit, Loop::Server) => {
                while let rows @ 1.. = self.in_loop(inserter, account, &mut next).await? {
                    account.committed += rows;
                }
                let all = account.committed == self.slice.rows();
                return Ok(if all { SessionEnd::Finished } else { SessionEnd::Stopped });
            }
            (Mode::Explicit, Loop::Server) => {
                inserter.begin().await?;
                while let 1.. =
                    self.in_loop(inserter, account, &mut next).await.map_err(uncommitted)?
                {
                }
            }
            (Mode::Implicit, Loop::Client) => {
                while let Some(row) = next() {
                    let sent = Instant::now();
                    let done = inserter.insert(&row).await;
                    account.settle(1, &done);
                    done?;
                    let latency_ns = sent.elapsed().as_nanos() as u64;
                    account.insert_latency_ns.record(latency_ns);
                    // The insert and its commit are one statement here, so they have one latency.
                    account.commit_latency_ns.record(latency_ns);
                    account.took(1);
                }
                let all = account.committed == self.slice.rows();
                return Ok(if all { SessionEnd::Finished } else { SessionEnd::Stopped });
            }
            (Mode::Explicit, Loop::Client) => {
                inserter.begin().await?;
                while let Some(row) = next() {
                    let sent = Instant::now();
                    inserter.insert(&row).await.map_err(uncommitted)?;
                    account.insert_latency_ns.record(sent.elapsed().as_nanos() as u64);
                    account.took(1);
                }
            }
            (Mode::Bulk, _) => {
                inserter.begin().await?;
                let streamed = inserter.stream(&mut next, &mut |rows| account.took(rows)).await;
                streamed.map_err(uncommitted)?;
            }
        }
        let complete = account.rows == u64::from(self.slice.rows());
        if rollback || !complete {
            inserter.rollback().await.map_err(uncommitted)?;
            return Ok(if complete { SessionEnd::Finished } else { SessionEnd::Stopped });
        }
        let sent = Instant::now();
        let done = inserter.commit().await;
        account.settle(self.slice.rows(), &done);
        done?;
        account.commit_latency_ns.record(sent.elapsed().as_nanos() as u64);
        Ok(SessionEnd::Finished)
    }

    /// Has the server insert the next rows in a loop; how many they were, 0 at the end. The time of a single row is not
    /// measured. Where each is a transaction, any number of them may be committed when it fails.
    async fn in_loop<C: Connection + SchemaOwner>(
        self,
        inserter: &mut Inserter<C>,
        account: &mut Account<'_>,
        next: &mut dyn FnMut() -> Option<Row>,
    ) -> Result<u32, SessionError> {
        let rows: Vec<Row> = std::iter::from_fn(next).take(LOOP_ROWS as usize).collect();
        if rows.is_empty() {
            return Ok(0);
        }
        let count = rows.len() as u32;
        if let Err(error) = inserter.insert_in_loop(&rows).await {
            if self.options.mode == Mode::Implicit {
                account.uncertain = count;
            }
            return Err(error);
        }
        account.took(u64::from(count));
        Ok(count)
    }
}

/// An error before the commit of an open transaction was sent: nothing can have been committed.
fn uncommitted(error: SessionError) -> SessionError {
    SessionError { commit_unknown: false, ..error }
}
