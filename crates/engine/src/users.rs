//! The users of a database: when transactions begin, connections, the network to the server and
//! back, and the accounting of answers.
//!
//! What happens on the server is in `database`.

use crate::core_state::Core;
use crate::database::Database;
use crate::session::Phase;
use crate::spec::Load;
use crate::timers::Timer;
use underlay_core::Nanos;
use underlay_model::target::Target;
use underlay_workload::arrivals::ArrivalSchedule;

impl Database {
    /// Users begin to work.
    pub(crate) fn start<T: Target>(&mut self, core: &mut Core<T>) {
        self.start_writers(core);
        self.start_autoanalyze(core);
        match self.spec.load {
            Load::Closed { .. } => {
                (0..self.active).for_each(|session| self.pause(core, session, None));
            }
            Load::Job { .. } => {
                (0..self.sessions.len() as u32).for_each(|session| self.pause(core, session, None));
            }
            Load::Open { rate_per_second, .. } => {
                self.idle = (0..self.active).collect();
                if let Some(schedule) = &mut self.schedule {
                    schedule.set_rate(core.now, rate_per_second, Nanos::ZERO);
                }
                self.expect_arrival(core);
            }
        }
        self.begin_warehouse_run(core);
        if self.job.is_some() {
            core.timers.set(core.now, Timer::Job { database: self.number });
        }
    }

    /// This many users are active from now on. Those above their number end their transaction and rest; a job has no
    /// users.
    pub(crate) fn set_users<T: Target>(
        &mut self,
        core: &mut Core<T>,
        users: u32,
        is_at_work: bool,
    ) {
        let before = std::mem::replace(&mut self.active, users.min(self.spec.load.users()));
        if !is_at_work {
            return;
        }
        let resting = |database: &Database, session: u32| {
            database.sessions[session as usize].phase == Phase::Idle
        };
        match self.spec.load {
            Load::Job { .. } => {}
            Load::Closed { .. } => {
                for session in before..self.active {
                    // Others have not ended what they began when they were active last.
                    if resting(self, session) {
                        self.pause(core, session, None);
                    }
                }
            }
            Load::Open { .. } => {
                let active = self.active;
                self.idle.retain(|session| *session < active);
                for session in before..active {
                    if resting(self, session) {
                        self.take_up(core, session);
                    }
                }
            }
        }
    }

    /// A session of an open loop has nothing to do: it begins what waits, or waits itself.
    fn take_up<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        match self.backlog.pop_front() {
            Some(intended) => self.begin(core, session, intended),
            None => self.idle.push_back(session),
        }
    }

    fn expect_arrival<T: Target>(&mut self, core: &mut Core<T>) {
        let due = self.schedule.as_ref().and_then(ArrivalSchedule::next_due);
        if let Some(due) = due {
            core.timers.set(due, Timer::Arrival { database: self.number });
        }
    }

    /// Arrivals that are due begin, or wait for a free session.
    pub(crate) fn arrive<T: Target>(&mut self, core: &mut Core<T>) {
        while let Some(due) = self.schedule.as_mut().and_then(|all| all.take_due(core.now)) {
            match self.idle.pop_front() {
                Some(session) => self.begin(core, session, due),
                None => self.backlog.push_back(due),
            }
        }
        self.expect_arrival(core);
    }

    /// A closed user pauses: it thinks about the answer to a transaction of type `answered`, and
    /// keys the next one in.
    pub(crate) fn pause<T: Target>(
        &mut self,
        core: &mut Core<T>,
        session: u32,
        answered: Option<usize>,
    ) {
        let pacing = match self.spec.load {
            Load::Closed { .. } if session >= self.active => {
                return self.enter(core.now, session, Phase::Idle);
            }
            Load::Closed { pacing, .. } => pacing,
            Load::Job { .. } => 0.0,
            Load::Open { .. } => return,
        };
        let Some(kind) = self.source.draw(session, &self.spec.mix) else {
            // Its part of the job is done; the last one to say so ends the job.
            self.last_idle = core.now;
            self.enter(core.now, session, Phase::Idle);
            return self.end_refresh(core);
        };
        if pacing == 0.0 {
            return self.send(core, session, core.now);
        }
        let think = answered.map_or(Nanos::ZERO, |kind| self.source.think_time(session, kind));
        let pause = think + self.source.keying_time(session, kind);
        let pause = Nanos((pause.0 as f64 * pacing) as u64);
        self.timer(core, session, pause, Phase::Pausing);
    }

    /// A transaction of an open loop begins.
    fn begin<T: Target>(&mut self, core: &mut Core<T>, session: u32, intended: Nanos) {
        self.source.draw(session, &self.spec.mix);
        self.send(core, session, intended);
    }

    /// A transaction asks for a connection.
    pub(crate) fn send<T: Target>(&mut self, core: &mut Core<T>, session: u32, intended: Nanos) {
        self.sessions[session as usize].intended = intended;
        if self.free_connections == 0 {
            self.enter(core.now, session, Phase::Connecting);
            self.connecting.push_back(session);
            return;
        }
        self.free_connections -= 1;
        self.prepare(core, session);
    }

    pub(crate) fn prepare<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        self.sessions[session as usize].started = core.now;
        if self.source.has_been_sent(session) {
            return self.receive(core, session);
        }
        let work = self.demands.client_cpu;
        if self.spec.client.host.is_some() && work > Nanos::ZERO {
            return self.burst(core, session, work, Phase::Preparing);
        }
        self.dispatch(core, session);
    }

    pub(crate) fn dispatch<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let half = Nanos(self.spec.client.round_trip.0 / 2);
        if half > Nanos::ZERO {
            return self.timer(core, session, half, Phase::Sending);
        }
        self.receive(core, session);
    }

    /// The client has its answer.
    pub(crate) fn answered<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        let state = &mut self.sessions[session as usize];
        let kind = state.script.kind;
        let server_cpu = std::mem::take(&mut state.server_cpu);
        if core.now > self.measured_from {
            let counted = &mut self.types[kind];
            let count = u64::from(state.script.count);
            counted.committed += if state.script.succeeds { count } else { 0 };
            counted.rolled_back += if state.script.succeeds { 0 } else { count };
            counted.cpu_ns += server_cpu.0;
            // Rows of a stream have no times of their own.
            if count == 1 {
                counted.response.record((core.now - state.intended).0);
                counted.service.record((core.now - state.started).0);
            }
        }
        match self.connecting.pop_front() {
            Some(next) => core.ready.push_back((self.number, next)),
            None => self.free_connections += 1,
        }
        if self.schedule.is_none() {
            return self.pause(core, session, Some(kind));
        }
        self.enter(core.now, session, Phase::Idle);
        if session < self.active {
            self.take_up(core, session);
        }
    }

    /// A user has paused: it asks again, if it is still to work.
    pub(crate) fn paused<T: Target>(&mut self, core: &mut Core<T>, session: u32) {
        if session < self.active {
            self.send(core, session, core.now);
        } else {
            self.enter(core.now, session, Phase::Idle);
        }
    }
}
