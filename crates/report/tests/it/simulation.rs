//! A database under load as a closed queueing network, with known truth.
//!
//! Users cycle through: load generator, processors of the server (first come, first served), reads from the
//! data device (each by itself), the log (group commit: whoever arrives while a write is on its way shares the next
//! one). What is sampled and counted is what a real run would show, so that time budgets close and
//! Little's law holds by construction, and what limits is known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand::RngExt;
use rand_pcg::Pcg64;

/// Transaction types with their share of the mix, in percent, and whether they write the log.
pub const MIX: [(&str, u32, bool); 5] = [
    ("new_order", 45, true),
    ("payment", 43, true),
    ("order_status", 4, false),
    ("delivery", 4, true),
    ("stock_level", 4, false),
];

/// The service times of one design, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Processor time of a transaction in the server.
    pub cpu_ns: f64,
    /// Reads from the data device per transaction.
    pub reads: u32,
    /// Time of one read.
    pub read_ns: f64,
    /// Time of one write of the log.
    pub log_ns: f64,
    /// Processor time of the load generator per transaction.
    pub driver_ns: f64,
    /// Think time between transactions, mean.
    pub think_ns: f64,
    /// Processors of the server.
    pub processors: u32,
}

/// What a user is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Thinking, or in the load generator.
    Client,
    /// Waiting for a processor.
    Runnable,
    /// On a processor.
    Running,
    /// Waiting for data.
    Reading,
    /// Waiting for the log.
    Logging,
}

/// One second of the simulation.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Response times (nanoseconds) of the completed transactions per type.
    pub responses: [Vec<u64>; 5],
    /// Session samples per state: client, on CPU or runnable, reading, logging.
    pub samples: [u32; 4],
    /// Processor time used, nanoseconds.
    pub on_cpu_ns: f64,
    /// Time in the run queue, nanoseconds.
    pub run_queue_ns: f64,
    /// Processor time of the load generator, nanoseconds.
    pub driver_ns: f64,
    /// Reads, and their time.
    pub reads: (u64, f64),
    /// Writes of the log, and their time.
    pub log_writes: (u64, f64),
}

/// Samples of the sessions per second.
pub const SAMPLES: u32 = 20;

struct User {
    state: State,
    since: u64,
    began: u64,
    kind: usize,
    reads_left: u32,
}

/// The network while it runs.
pub struct Simulation {
    demands: Demands,
    random: Pcg64,
    now: u64,
    users: Vec<User>,
    events: BinaryHeap<Reverse<(u64, usize, State)>>,
    running: u32,
    run_queue: VecDeque<usize>,
    log_busy: Vec<usize>,
    log_waiting: Vec<usize>,
    second: Second,
}

impl Simulation {
    /// A network without users.
    pub fn new(demands: Demands, random: Pcg64) -> Simulation {
        Simulation {
            demands,
            random,
            now: 0,
            users: Vec::new(),
            events: BinaryHeap::new(),
            running: 0,
            run_queue: VecDeque::new(),
            log_busy: Vec::new(),
            log_waiting: Vec::new(),
            second: Second::default(),
        }
    }

    /// Adds users up to this number. (A ladder only climbs.)
    pub fn set_users(&mut self, users: u32) {
        while self.users.len() < users as usize {
            let user = self.users.len();
            self.users.push(User {
                state: State::Client,
                since: self.now,
                began: self.now,
                kind: 0,
                reads_left: 0,
            });
            self.begin(user);
        }
    }

    /// Runs one second and returns what happened.
    pub fn second(&mut self) -> Second {
        let begin = self.now;
        for sample in 1..=u64::from(SAMPLES) {
            self.run_until(begin + sample * 1_000_000_000 / u64::from(SAMPLES));
            for user in &self.users {
                let slot = match user.state {
                    State::Client => 0,
                    State::Runnable | State::Running => 1,
                    State::Reading => 2,
                    State::Logging => 3,
                };
                self.second.samples[slot] += 1;
            }
        }
        // Time in progress is counted up to now, and from now on in the next second.
        for user in 0..self.users.len() {
            self.account(user);
        }
        std::mem::take(&mut self.second)
    }

    fn run_until(&mut self, end: u64) {
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= end) {
            let Some(Reverse((at, user, done))) = self.events.pop() else { break };
            self.now = at;
            self.finish(user, done);
        }
        self.now = end;
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        (-mean * (1.0 - self.random.random::<f64>()).ln()).max(1.0) as u64
    }

    fn schedule(&mut self, user: usize, mean_ns: f64, state: State) {
        let at = self.now + self.exponential(mean_ns);
        self.events.push(Reverse((at, user, state)));
    }

    fn account(&mut self, user: usize) {
        let elapsed = (self.now - self.users[user].since) as f64;
        match self.users[user].state {
            State::Running => self.second.on_cpu_ns += elapsed,
            State::Runnable => self.second.run_queue_ns += elapsed,
            _ => {}
        }
        self.users[user].since = self.now;
    }

    fn enter(&mut self, user: usize, state: State) {
        self.account(user);
        self.users[user].state = state;
    }

    fn begin(&mut self, user: usize) {
        self.enter(user, State::Client);
        self.second.driver_ns += self.demands.driver_ns;
        let draw = self.random.random_range(0..100);
        let mut upper = 0;
        for (kind, (_, share, _)) in MIX.iter().enumerate() {
            upper += share;
            if draw < upper {
                self.users[user].kind = kind;
                break;
            }
        }
        let pause = self.demands.driver_ns + self.demands.think_ns;
        let at = self.now + if pause > 0.0 { self.exponential(pause) } else { 0 };
        // Thinking is not part of the response, the load generator's own time is.
        let own = self.exponential(self.demands.driver_ns.max(1.0)).min(at - self.now);
        self.users[user].began = at - own;
        self.users[user].reads_left = self.demands.reads;
        self.events.push(Reverse((at, user, State::Client)));
    }

    fn finish(&mut self, user: usize, done: State) {
        match done {
            State::Client => self.want_processor(user),
            State::Running | State::Runnable => {
                self.running -= 1;
                if let Some(next) = self.run_queue.pop_front() {
                    self.take_processor(next);
                }
                self.next_read(user);
            }
            State::Reading => self.next_read(user),
            State::Logging => self.log_done(),
        }
    }

    fn want_processor(&mut self, user: usize) {
        if self.running < self.demands.processors {
            self.take_processor(user);
        } else {
            self.enter(user, State::Runnable);
            self.run_queue.push_back(user);
        }
    }

    fn take_processor(&mut self, user: usize) {
        self.running += 1;
        self.enter(user, State::Running);
        self.schedule(user, self.demands.cpu_ns, State::Running);
    }

    fn next_read(&mut self, user: usize) {
        if self.users[user].state == State::Reading {
            let elapsed = (self.now - self.users[user].since) as f64;
            self.second.reads.0 += 1;
            self.second.reads.1 += elapsed.min(1e9);
        }
        if self.users[user].reads_left > 0 {
            self.users[user].reads_left -= 1;
            self.enter(user, State::Reading);
            self.schedule(user, self.demands.read_ns, State::Reading);
        } else if MIX[self.users[user].kind].2 {
            self.enter(user, State::Logging);
            self.log_waiting.push(user);
            self.start_log_write();
        } else {
            self.complete(user);
        }
    }

    fn start_log_write(&mut self) {
        if self.log_busy.is_empty() && !self.log_waiting.is_empty() {
            self.log_busy = std::mem::take(&mut self.log_waiting);
            let length = self.exponential(self.demands.log_ns);
            self.second.log_writes.0 += 1;
            self.second.log_writes.1 += length as f64;
            self.events.push(Reverse((self.now + length, self.log_busy[0], State::Logging)));
        }
    }

    fn log_done(&mut self) {
        let group = std::mem::take(&mut self.log_busy);
        for user in group {
            self.complete(user);
        }
        self.start_log_write();
    }

    fn complete(&mut self, user: usize) {
        let response = self.now - self.users[user].began;
        let kind = self.users[user].kind;
        self.second.responses[kind].push(response);
        self.begin(user);
    }
}
