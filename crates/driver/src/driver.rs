//! The running driver: worker threads, and the merging of what they count.

use std::io;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use underlay_core::{Bytes, Dilation, Nanos};
use underlay_database::session::{Commits, Connector, Session};
use underlay_workload::transactional::{Mix, RunAccounting, Shape, Workload};

use crate::activity::{ActivityLine, Span};
use crate::arrivals::Share;
use crate::error::DriveError;
use crate::outage::{Outage, OutageTracker};
use crate::server_task::ServerTask;
use crate::spec::{DriveSpec, Pacing, Slowdown, check_rate};
use crate::summary::{Delivery, DriveSummary};
use crate::thread_tick::ThreadTick;
use crate::tick::{DriveTick, ThreadLoad};
use crate::timers::{Alarm, Clock, Timers};
use crate::worker::{AccountingOf, Worker};
use crate::worker_thread::{Command, ThreadEnd, run_worker};

/// How long a tick waits for a thread that does not answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// A running load generator. Dropping it without [`Driver::stop`] cuts everything off and forgets what
/// it knew.
///
/// All methods block for at most some seconds and may be called from any thread. `B` is what the workload
/// keeps of the run.
pub struct Driver<B: RunAccounting> {
    clock: Clock,
    shape: &'static Shape,
    commits: Vec<(&'static str, Commits)>,
    pacing: Pacing,
    max_users: u32,
    stop_grace: Nanos,
    threads: Vec<WorkerThread<B>>,
    state: Mutex<DriverState>,
}

struct WorkerThread<B> {
    commands: UnboundedSender<Command>,
    /// None where a runtime could not be had: then starting has failed.
    handle: JoinHandle<Option<ThreadEnd<B>>>,
}

/// What is known over all threads.
struct DriverState {
    answers: Receiver<(u32, ThreadTick)>,
    answer_to: Sender<(u32, ThreadTick)>,
    /// Threads that were asked and have not answered.
    asked: Vec<bool>,
    /// What each thread had done when last heard of.
    loads: Vec<ThreadLoad>,
    dilation: Dilation,
    active_users: u32,
    totals: DriveTick,
    outages: OutageTracker,
    activity: ActivityLine,
}

impl<B: RunAccounting> Driver<B> {
    /// Starts the threads, with no user active. Instants are counted from `clock_origin`.
    ///
    /// One session is opened and closed first, so that a wrong address or password is an error here and
    /// not an outage later.
    pub fn start<C>(
        spec: DriveSpec,
        mut connector: C,
        clock_origin: Instant,
    ) -> Result<Driver<B>, DriveError>
    where
        C: Connector,
        C::Workload: Workload<Accounting = B>,
    {
        spec.check()?;
        connector.limit_statements(spec.dilation.wall_duration(spec.statement_timeout));
        let shape = connector.workload().shape();
        let kinds = shape.types.iter().enumerate();
        let commits = kinds.map(|(kind, name)| (*name, connector.commits(kind))).collect();
        probe(connector.clone(), spec.dilation)?;
        let clock = Clock::new(clock_origin, spec.dilation);
        let count = spec.thread_count();
        let threads = (0..count)
            .map(|index| spawn(&spec, connector.clone(), clock, Share { index, of: count }))
            .collect::<Result<Vec<_>, _>>()?;
        let (answer_to, answers) = channel();
        let now = clock.now();
        let state = DriverState {
            answers,
            answer_to,
            asked: vec![false; threads.len()],
            loads: vec![ThreadLoad::default(); threads.len()],
            dilation: spec.dilation,
            active_users: 0,
            totals: DriveTick::empty(shape, now, now),
            outages: OutageTracker::default(),
            activity: ActivityLine::default(),
        };
        Ok(Driver {
            clock,
            shape,
            commits,
            pacing: spec.pacing,
            max_users: spec.max_users,
            stop_grace: spec.stop_grace.into(),
            threads,
            state: Mutex::new(state),
        })
    }

    /// Makes the users with the numbers below `users` active, at most all of them.
    ///
    /// Users that become active open their sessions a few at a time. Users that cease to be active
    /// finish their transaction and keep their session, so that a ladder that goes down and up
    /// again measures no connecting. In an open loop the schedule begins with the first active user and
    /// rests while there is none.
    pub fn set_users(&self, users: u32) {
        let users = users.min(self.max_users);
        let at = self.clock.now();
        let mut state = self.state();
        if users == 0 && state.active_users > 0 {
            state.activity.rest(at);
        }
        state.active_users = users;
        self.send_all(|| Command::SetUsers { users, at });
    }

    /// Changes the rate of an open loop, in a straight line over `ramp`.
    pub fn set_rate(&self, rate_per_second: f64, ramp: Nanos) -> Result<(), DriveError> {
        if matches!(self.pacing, Pacing::Closed { .. }) {
            return Err(DriveError::NotOpen);
        }
        check_rate(rate_per_second)?;
        let at = self.clock.now();
        self.send_all(|| Command::SetRate { rate_per_second, ramp, at });
        Ok(())
    }

    /// Makes what the load generator itself contributes to a transaction slower, or as fast as it is again.
    pub fn set_slowdown(&self, slowdown: Slowdown) {
        self.send_all(|| Command::SetSlowdown(slowdown));
    }

    /// Changes how the types of transactions are chosen. What a user has drawn already stays.
    pub fn set_mix(&self, mix: Mix) -> Result<(), DriveError> {
        if let Mix::Weighted(weights) = &mix {
            let (given, known) = (weights.values().count(), self.shape.types.len());
            if given > known {
                return Err(DriveError::Weights { given, known });
            }
        }
        self.send_all(|| Command::SetMix(mix.clone()));
        Ok(())
    }

    /// Names and headline of the workload.
    pub fn shape(&self) -> &'static Shape {
        self.shape
    }

    /// Everything since the last tick.
    pub fn tick(&self) -> DriveTick {
        let mut state = self.state();
        for (index, thread) in self.threads.iter().enumerate() {
            // A thread that is gone has panicked and will not answer; `stop` will say so.
            if thread.handle.is_finished() {
                state.asked[index] = false;
            } else if !state.asked[index] {
                let command = Command::Tick(state.answer_to.clone());
                state.asked[index] = thread.commands.send(command).is_ok();
            }
        }
        let ticks = state.collect_answers();
        state.close_tick(ticks, self.clock.now())
    }

    /// The outages so far; the last one may still go on.
    pub fn outages(&self) -> Vec<Outage> {
        let state = self.state();
        state.outages_until(self.clock.now())
    }

    /// Lets the transactions in progress finish, for at most the grace of the specification, and ends all
    /// threads. Nothing new is begun, and nothing is repeated.
    ///
    /// # Panics
    /// If a worker thread panicked: a bug of the driver or of a session.
    pub fn stop(mut self) -> DriveSummary<B> {
        let ends = self.end_threads(self.stop_grace).unwrap_or_else(|panic| {
            std::panic::resume_unwind(panic);
        });
        let end = self.clock.now();
        let mut state = self.state();
        let mut kept = B::default();
        let mut ticks = state.late_answers();
        for (index, thread) in ends.into_iter().enumerate() {
            ticks.push((index as u32, thread.tick));
            kept.merge(&thread.accounting);
        }
        let last_tick = state.close_tick(ticks, end);
        DriveSummary {
            last_tick,
            accounting: kept,
            outages: state.outages_until(end),
            longest_silence: state.activity.longest_silence(Span { begin: Nanos::ZERO, end }),
            commits_unknown: state.totals.types.iter().map(|kind| kind.unknown).sum(),
            delivery: Delivery::of(&state.totals),
            commits: self.commits.clone(),
            totals: state.totals.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, DriverState> {
        // The state is consistent between any two statements that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_all(&self, command: impl Fn() -> Command) {
        for thread in &self.threads {
            // A thread that is gone has panicked; `stop` will say so.
            let _ = thread.commands.send(command());
        }
    }

    fn end_threads(&mut self, grace: Nanos) -> std::thread::Result<Vec<ThreadEnd<B>>> {
        self.send_all(|| Command::Stop { grace });
        let results: Vec<_> = self.threads.drain(..).map(|thread| thread.handle.join()).collect();
        results.into_iter().filter_map(Result::transpose).collect()
    }
}

impl<B: RunAccounting> Drop for Driver<B> {
    fn drop(&mut self) {
        // A panic of a worker was reported by the panic hook; there is no receiver for it.
        let _ = self.end_threads(Nanos::ZERO);
    }
}

impl DriverState {
    /// Waits for those who were asked, but not for long.
    fn collect_answers(&mut self) -> Vec<(u32, ThreadTick)> {
        let limit = Instant::now() + ANSWER_LIMIT;
        let mut ticks = Vec::new();
        while self.asked.contains(&true) {
            match self.answers.recv_timeout(limit.saturating_duration_since(Instant::now())) {
                Ok((index, tick)) => {
                    self.asked[index as usize] = false;
                    ticks.push((index, tick));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        ticks
    }

    /// What threads answered after the last tick had given up waiting.
    fn late_answers(&mut self) -> Vec<(u32, ThreadTick)> {
        self.asked.fill(false);
        self.answers.try_iter().collect()
    }

    fn close_tick(&mut self, ticks: Vec<(u32, ThreadTick)>, end: Nanos) -> DriveTick {
        let mut tick = DriveTick::empty(self.totals.shape, self.totals.end, end);
        let mut events = Vec::new();
        for (index, mut thread) in ticks {
            let known = &mut self.loads[index as usize];
            let load = thread.load.since(known).in_design_time(self.dilation);
            *known = thread.load;
            if load.awake_ns() > tick.busiest.awake_ns() {
                tick.busiest = load;
            }
            self.activity.add(&thread.activity);
            events.append(&mut thread.events);
            add_thread(&mut tick, thread);
        }
        self.outages.add(events);
        tick.thread_cpu_ns = self.loads.iter().map(|load| load.cpu_ns).collect();
        tick.cpu_ns = tick.thread_cpu_ns.iter().sum();
        tick.late_threads = self.asked.iter().filter(|asked| **asked).count() as u32;
        tick.memory = resident_memory();
        self.totals.append(&tick);
        tick
    }

    fn outages_until(&self, now: Nanos) -> Vec<Outage> {
        let mut outages = self.outages.outages().to_vec();
        for outage in &mut outages {
            let within = Span { begin: outage.first_error, end: outage.restored.unwrap_or(now) };
            outage.silence = self.activity.longest_silence(within);
        }
        outages
    }
}

fn add_thread(tick: &mut DriveTick, thread: ThreadTick) {
    for (mine, theirs) in tick.types.iter_mut().zip(&thread.types) {
        mine.merge(theirs);
    }
    tick.arrivals.add(&thread.arrivals);
    tick.connects.merge(&thread.connects);
    tick.users.add(&thread.users);
    tick.dispatch_lag.merge(&thread.dispatch_lag);
    tick.held_back_ns += thread.held_back_ns;
    tick.samples.merge(thread.samples);
}

/// Opens one session, looks whether its processor time can be followed where that matters, and closes it. On a thread
/// of its own, because the caller may be inside a runtime.
fn probe<C: Connector>(connector: C, dilation: Dilation) -> Result<(), DriveError> {
    let name = "drive-probe".to_string();
    let failed = |source| DriveError::Thread { thread: name.clone(), source };
    let handle = std::thread::Builder::new()
        .name(name.clone())
        .spawn(move || {
            Ok(build_runtime()?.block_on(async {
                let mut session = connector.connect().await.map_err(DriveError::Connect)?;
                if let Some(task) = dilated_task(&mut session, dilation).await? {
                    ServerTask::open(task).map_err(DriveError::CpuAccount)?;
                }
                Ok(())
            }))
        })
        .map_err(failed)?;
    let result = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    result.map_err(failed)?
}

/// The process or thread behind a session, where its processor time matters.
async fn dilated_task<S: Session>(
    session: &mut S,
    dilation: Dilation,
) -> Result<Option<u32>, DriveError> {
    match dilation.is_dilated() {
        true => session.server_task().await.map_err(DriveError::Connect),
        false => Ok(None),
    }
}

/// Starts a thread, and returns when it has what it needs.
fn spawn<C: Connector>(
    spec: &DriveSpec,
    connector: C,
    clock: Clock,
    share: Share,
) -> Result<WorkerThread<AccountingOf<C>>, DriveError> {
    let name = format!("drive-{}", share.index);
    let failed = |source| DriveError::Thread { thread: name.clone(), source };
    let (commands, receiver) = unbounded_channel();
    let (failure_to, failure) = channel();
    let spec = spec.clone();
    let handle = std::thread::Builder::new()
        .name(name.clone())
        .spawn(move || match equipment() {
            Ok((runtime, alarm)) => {
                drop(failure_to);
                let worker = Worker::new(&spec, connector, share, Timers::new(clock, alarm));
                Some(runtime.block_on(run_worker(worker, receiver)))
            }
            Err(error) => {
                // The starter of the thread waits for this.
                let _ = failure_to.send(error);
                None
            }
        })
        .map_err(failed)?;
    match failure.recv() {
        Ok(error) => Err(failed(error)),
        Err(RecvError) => Ok(WorkerThread { commands, handle }),
    }
}

/// What a thread needs of the system. Both stay on the thread that asked for them.
fn equipment() -> io::Result<(LocalRuntime, Alarm)> {
    let runtime = build_runtime()?;
    let alarm = {
        let _inside = runtime.enter();
        Alarm::kernel()?
    };
    Ok((runtime, alarm))
}

/// A runtime whose tasks are of its thread alone. A set of local tasks on a runtime of any tasks would look at the thread's
/// commands and wake itself through the runtime at each wake-up.
fn build_runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
}

/// Resident memory of the process; zero where the system does not say.
fn resident_memory() -> Bytes {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    Bytes(pages.unwrap_or(0) * rustix::param::page_size() as u64)
}
