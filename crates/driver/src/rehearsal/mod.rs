//! The driver against a fake database in virtual time: outages that take seconds are rehearsed in
//! milliseconds, and every run is the same.
//!
//! A rehearsal runs one worker on a runtime whose clock is paused: it jumps to the next timer
//! whenever nothing can be done. The fake database keeps what it really committed, so that what the
//! driver reports can be compared with the truth.

mod contention;
mod fake_database;
mod open_loop;
mod outages;
mod pool;
mod users;

use std::sync::mpsc::channel;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle, LocalSet};
use underlay_core::{Nanos, RootSeed};
use underlay_workload::tpcc::{Entropy, Parameters, Tpcc, TpccAccounting};

use self::fake_database::FakeDatabase;
use crate::arrivals::Share;
use crate::spec::{DriveSpec, Slowdown};
use crate::thread_tick::ThreadTick;
use crate::tick::TypeTick;
use crate::timers::{Alarm, Clock, Timers};
use crate::worker::Worker;
use crate::worker_thread::{Command, ThreadEnd, run_worker};

const ALONE: Share = Share { index: 0, of: 1 };

/// A worker on stage.
struct Stage {
    clock: Clock,
    grace: Nanos,
    commands: UnboundedSender<Command>,
    worker: JoinHandle<ThreadEnd<TpccAccounting>>,
}

impl Stage {
    fn set_users(&self, users: u32) {
        let _ = self.commands.send(Command::SetUsers { users, at: self.clock.now() });
    }

    fn set_slowdown(&self, slowdown: Slowdown) {
        let _ = self.commands.send(Command::SetSlowdown(slowdown));
    }

    async fn wait_until(&self, at: Nanos) {
        let left = at.saturating_sub(self.clock.now());
        tokio::time::sleep(self.clock.dilation().wall(left).into()).await;
    }

    async fn tick(&self) -> ThreadTick {
        let (reply, answer) = channel();
        let _ = self.commands.send(Command::Tick(reply));
        loop {
            match answer.try_recv() {
                Ok((_, tick)) => return tick,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// Stops; gives what the thread left and when it had ended.
    async fn stop(self) -> (ThreadEnd<TpccAccounting>, Nanos) {
        let _ = self.commands.send(Command::Stop { grace: self.grace });
        let end = self.worker.await.unwrap();
        (end, self.clock.now())
    }
}

/// `users` users of as many warehouses, so that a user is known by its home warehouse.
fn spec(users: u32) -> DriveSpec {
    DriveSpec::new(RootSeed(11), users)
}

fn workload(users: u32) -> Tpcc {
    Tpcc::new(Parameters::new(users, RootSeed(11), Entropy::FULL).unwrap())
}

/// Plays `script` with a worker for `spec` and sessions of `database`.
fn rehearse<T>(
    spec: &DriveSpec,
    database: &FakeDatabase,
    script: impl AsyncFnOnce(Stage) -> T,
) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    LocalSet::new().block_on(&runtime.unwrap(), async {
        let clock = Clock::paused(spec.dilation);
        database.start(clock);
        let timers = Timers::new(clock, Alarm::runtime());
        let connector = database.of(workload(spec.max_users));
        let worker = Worker::new(spec, connector, ALONE, timers);
        let (commands, receiver) = unbounded_channel();
        let worker = tokio::task::spawn_local(run_worker(worker, receiver));
        script(Stage { clock, grace: spec.stop_grace.into(), commands, worker }).await
    })
}

/// All users for `length`, then stop.
fn run_for(
    spec: &DriveSpec,
    database: &FakeDatabase,
    length: Duration,
) -> (ThreadEnd<TpccAccounting>, Nanos) {
    rehearse(spec, database, async |stage| {
        stage.set_users(spec.max_users);
        stage.wait_until(length.into()).await;
        stage.stop().await
    })
}

/// The counts over all types.
fn total(tick: &ThreadTick) -> TypeTick {
    let mut total = TypeTick::default();
    tick.types.iter().for_each(|kind| total.merge(kind));
    total
}
