//! The run loop of one worker thread: it starts the thread's users and clockwork, and obeys commands until it is stopped.
//!
//! It deliberately decides nothing about users: what a command means for them is the [`Worker`]'s business.

use std::rc::Rc;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use underlay_core::Nanos;
use underlay_database::session::Connector;
use underlay_workload::transactional::Mix;

use crate::spec::Slowdown;
use crate::thread_tick::ThreadTick;
use crate::timers::Token;
use crate::user::virtual_user;
use crate::worker::{AccountingOf, HEARTBEAT, Worker};

/// What a thread can be told.
pub(crate) enum Command {
    /// The users with numbers below `users` shall be active.
    SetUsers { users: u32, at: Nanos },
    /// The open-loop rate shall change.
    SetRate { rate_per_second: f64, ramp: Nanos, at: Nanos },
    /// Types of transactions shall be chosen so from now on.
    SetMix(Mix),
    /// Transactions shall take this much more of the load generator.
    SetSlowdown(Slowdown),
    /// Hand over the counts.
    Tick(std::sync::mpsc::Sender<(u32, ThreadTick)>),
    /// Finish what is in progress within the grace.
    Stop { grace: Nanos },
}

/// What a thread leaves behind.
pub(crate) struct ThreadEnd<B> {
    pub(crate) tick: ThreadTick,
    pub(crate) accounting: B,
}

/// Runs a thread's users until it is stopped and they have all finished. Needs a runtime of local tasks.
pub(crate) async fn run_worker<C: Connector>(
    worker: Worker<C>,
    mut commands: UnboundedReceiver<Command>,
) -> ThreadEnd<AccountingOf<C>> {
    let worker = Rc::new(worker);
    let mut users = JoinSet::new();
    for index in 0..worker.slots.len() {
        users.spawn_local(virtual_user(Rc::clone(&worker), index as u32));
    }
    let clockwork = tokio::task::spawn_local(clockwork(Rc::clone(&worker)));
    let mut listening = true;
    loop {
        tokio::select! {
            biased;
            command = commands.recv(), if listening => match command {
                Some(command) => obey(&worker, command),
                // It can no longer be stopped from outside, so it stops itself.
                None => {
                    listening = false;
                    worker.stop(Nanos::ZERO);
                }
            },
            ended = users.join_next() => match ended {
                Some(Ok(())) => {}
                Some(Err(error)) => std::panic::resume_unwind(error.into_panic()),
                None => break,
            },
        }
    }
    clockwork.abort();
    ThreadEnd { tick: worker.take_tick(), accounting: worker.accounting.take() }
}

fn obey<C: Connector>(worker: &Worker<C>, command: Command) {
    match command {
        Command::SetUsers { users, at } => worker.set_users(users, at),
        Command::SetRate { rate_per_second, ramp, at } => {
            worker.set_rate(rate_per_second, ramp, at)
        }
        Command::SetSlowdown(slowdown) => {
            worker.cpu_cost.set_factor(slowdown.cpu.max(1.0));
            worker.connection_surcharge.set(slowdown.connections.max(1.0) - 1.0);
        }
        Command::SetMix(mix) => *worker.mix.borrow_mut() = mix,
        // Who asked may have lost patience; the counts are then lost with the driver.
        Command::Tick(reply) => drop(reply.send((worker.share.index, worker.take_tick()))),
        Command::Stop { grace } => worker.stop(grace),
    }
}

async fn clockwork<C: Connector>(worker: Rc<Worker<C>>) {
    worker.timers.set(worker.timers.clock().now() + HEARTBEAT, Token::Heartbeat);
    loop {
        let now = worker.timers.wait().await;
        while let Some((due, token)) = worker.timers.take_due(now) {
            worker.fire(now, due, token);
        }
    }
}
